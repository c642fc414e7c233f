"""Folds over the journal: what the events come to, for those who want to know."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from turnkeeper.journal.events import (
    Admitted,
    AskedFor,
    ContextEnded,
    Ended,
    MessageDelivered,
    PassEnded,
    PassStarted,
    Recorded,
    Restarted,
    ToolFinished,
)
from turnkeeper.types.calls import Parsed, ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from turnkeeper.types.turn import EndName


class TurnSummary(msgspec.Struct, frozen=True):
    """A line of the list of turns. `end`: None while it runs, or where the process died in it."""

    turn_id: str
    channel: str
    user: str
    text: str
    at: float
    took_s: float | None
    end: EndName | None


def summaries(events: Iterable[Recorded]) -> list[TurnSummary]:
    """The turns among `events`, in the order in which they appear."""
    ends = {one.turn_id: one for one in events if isinstance(one.event, Ended)}
    found: list[TurnSummary] = []
    for one in events:
        if isinstance(one.event, Admitted):
            end = ends.get(one.turn_id)
            took = None if end is None else max(0.0, end.at - one.at)
            name = end.event.end if end is not None and isinstance(end.event, Ended) else None
            found.append(TurnSummary(one.turn_id, one.channel, one.event.user, one.event.text, one.at, took, name))
    return found


def exchanges(events: Iterable[Recorded]) -> list[tuple[Message, ...]]:
    """The conversation of a channel, a tuple a turn: what was said and done as a model may read it (S2.5).

    Text that people saw is in it, text that they did not see is not. Nothing before the last `/new` is (S2.6).
    """
    turns: dict[str, _TurnFold] = {}
    for one in events:
        if isinstance(one.event, ContextEnded):
            turns.clear()
            continue
        turns.setdefault(one.turn_id, _TurnFold()).take(one)
    return [messages for fold in turns.values() if (messages := fold.messages())]


class _TurnFold:
    """One turn's messages, event by event."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._text = ""  # visible text that no message has yet
        self._unended = ""  # delivered in a pass that has not ended: all that is known of it after a crash
        self._in_pass = False
        self._carries_on = False
        self._batch: tuple[PassEnded, dict[str, ToolFinished]] | None = None
        self._restarted: set[str] = set()

    def take(self, one: Recorded) -> None:
        event = one.event
        match event:
            case Admitted(text=text):
                self._messages.append(UserMessage(text))
            case PassStarted(purpose=purpose):
                self._close_batch()
                self._carries_on = purpose == "carry_on"
                self._unended, self._in_pass = "", True
            case PassEnded():
                self._end_pass(event)
            case ToolFinished():
                if self._batch is not None:
                    self._batch[1].setdefault(event.call_id, event)
            case Restarted(call_id=call_id, item=item):
                self._restarted.add(call_id)
                self._close_batch()
                self._messages.append(UserMessage(item.text))
            case MessageDelivered(message=message) if self._in_pass:
                self._unended += message.text
            case _:
                pass

    def messages(self) -> tuple[Message, ...]:
        """All of the turn, as far as it came."""
        self._close_batch()
        self._close_text()
        if self._unended.strip():
            self._messages.append(AssistantMessage(self._unended))
            self._unended = ""
        return tuple(self._messages)

    def _end_pass(self, event: PassEnded) -> None:
        self._unended, self._in_pass = "", False
        if not self._carries_on:
            self._close_text()
        if event.asked:
            self._batch = (event, {})
        else:
            self._text += event.shown

    def _close_text(self) -> None:
        if self._text.strip():
            self._messages.append(AssistantMessage(self._text))
        self._text = ""

    def _close_batch(self) -> None:
        if self._batch is None:
            return
        ended, results = self._batch
        self._batch = None
        asked = [one for one in ended.asked if one.id not in self._restarted]
        text, self._text = self._text + ended.shown, ""
        if asked or text.strip():
            self._messages.append(AssistantMessage(text, tuple(_call(one) for one in asked)))
        for one in asked:
            if one.id in results:
                self._messages.append(ToolMessage(one.id, one.name, results[one.id].content))


def _call(asked: AskedFor) -> ToolCall:
    """A call as the journal has it: its arguments without secrets, `{}` where they were cut or no object."""
    try:
        value = msgspec.json.decode(asked.arguments.encode("utf-8", "surrogatepass"), type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return ToolCall(asked.id, asked.name, "{}", Parsed({}))
    return ToolCall(asked.id, asked.name, asked.arguments, Parsed(value))
