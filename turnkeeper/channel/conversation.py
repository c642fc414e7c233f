"""A channel's conversation, as the next turn reads it (S2.5)."""

from __future__ import annotations

from msgspec import Struct

from turnkeeper.loop.history import exchanges_to_drop, heal
from turnkeeper.loop.window import Weight, WindowMeasure, weigh
from turnkeeper.types.messages import Message, UserMessage


class Context(Struct, frozen=True):
    """What a turn begins with.

    exchanges: where in `messages` each exchange begins; the last is the trigger's. weight: of all messages.
    """

    messages: tuple[Message, ...]
    exchanges: tuple[int, ...]
    weight: Weight


class Conversation:
    """Earlier exchanges of a channel, oldest first; an exchange is a message of a person and all that came of it.

    turns: how many exchanges are kept at most.
    """

    def __init__(self, exchanges: list[tuple[Message, ...]], turns: int) -> None:
        self._turns = turns
        self._exchanges: list[tuple[Message, ...]] = []
        self._weights: list[Weight] = []
        self.repairs: list[str] = []
        """What had to be mended in the history that was read, a sentence each (S15.1a)."""
        for exchange in exchanges:
            healed = heal(exchange)
            self.repairs += healed.repairs
            self._append(healed.messages)

    def context(self, trigger: UserMessage, measure: WindowMeasure, tokens: int) -> Context:
        """The conversation up to `trigger`, fitted into so many tokens by leaving out whole exchanges, the oldest first."""
        own = weigh(trigger)
        drop = exchanges_to_drop([measure.tokens(weight) for weight in [*self._weights, own]], tokens)
        del self._exchanges[:drop], self._weights[:drop]
        messages: list[Message] = []
        starts: list[int] = []
        for exchange in [*self._exchanges, (trigger,)]:
            starts.append(len(messages))
            messages += exchange
        return Context(tuple(messages), tuple(starts), sum([*self._weights, own], Weight()))

    @property
    def begun(self) -> bool:
        """Whether there is an earlier exchange."""
        return bool(self._exchanges)

    def add(self, trigger: UserMessage, chain: tuple[Message, ...]) -> None:
        """Takes up a turn that has ended."""
        self._append(heal((trigger, *chain)).messages)

    def clear(self) -> None:
        """Ends the context: `/new` (S2.6)."""
        self._exchanges.clear()
        self._weights.clear()

    def _append(self, messages: tuple[Message, ...]) -> None:
        if not messages or not self._turns:
            return
        self._exchanges.append(messages)
        self._weights.append(sum([weigh(message) for message in messages], Weight()))
        if len(self._exchanges) > self._turns:  # a large step, then a rest (S3.10b)
            drop = max(1, self._turns // 4)
            del self._exchanges[:drop], self._weights[:drop]
