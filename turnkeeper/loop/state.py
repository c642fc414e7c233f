"""What the loop knows: one frozen value. A stage takes it and returns the next one."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.types.calls import ToolCall
from turnkeeper.types.ends import Completed, Empty, Failed, FollowUp, PassEnd, Paused, Stopped, TimedOut, ToolCalls
from turnkeeper.types.messages import AssistantMessage, Message
from turnkeeper.types.outcomes import ContextItem
from turnkeeper.types.turn import HistoryEntry, PassUsage


class Beginning(Struct, frozen=True):
    """The attempt has done nothing yet.

    unfinished: an earlier attempt left text that people see, and that is to be carried on (S3.4).
    lost_call: the tool whose call was cut off with the stream before, and did not run (S3.4a).
    """

    unfinished: bool = False
    lost_call: str | None = None


class Restarted(Struct, frozen=True):
    """A context item was taken up; the pass is to be made again."""


class RanTool(Struct, frozen=True):
    """What the policy needs to know of a call that has its outcome.

    silent, follow_up: the tool's nature, or what its outcome said. delivered: it answered the channel itself.
    """

    name: str
    succeeded: bool
    silent: bool = False
    follow_up: bool = False
    delivered: bool = False


class Executed(Struct, frozen=True):
    """The calls of a pass have their outcomes. `text_before`: people saw text in that pass."""

    ran: tuple[RanTool, ...]
    text_before: bool = False
    end_turn: bool = False
    restart: ContextItem | None = None


class Repetition(Struct, frozen=True):
    """The call that came last, with its result as the model read it, and how often in a row it came so (S4.2a)."""

    call: ToolCall | None = None
    content: str = ""
    count: int = 0


At: TypeAlias = Beginning | Restarted | Executed | PassEnd


class Batch(Struct, frozen=True):
    """What the execution of a pass's calls adds to the state."""

    executed: Executed
    entries: tuple[HistoryEntry, ...]
    messages: tuple[Message, ...]
    repetition: Repetition
    tool_errors: int
    thoughts: tuple[str, ...] = ()
    delivered_texts: tuple[str, ...] = ()
    switched_off: frozenset[str] = frozenset()


class LoopState(Struct, frozen=True):
    """The state of one turn's chain.

    at: what happened last; the policy decides from it.
    passes: requests made in this turn, restarts included (S4.2).
    messages: this turn's chain as the model reads it, without the trigger.
    history: the calls with their outcomes.
    texts: the visible text of each pass that showed some; a carried-on text is one (S9.4b).
    usage: one entry a pass. thoughts: the thought log.
    ran: the tools of the last batch. tool_errors: failed calls in a row. repetition: S4.2a.
    empties: empty passes in a row. continuations: of the present text (S9.4b).
    dropped: how many of the oldest exchanges of the context are left out (S9.4).
    switched_off: tools that have had their restart (S7.1). context_keys: keys of items taken up.
    delivered_texts: what tools put into the channel themselves.
    attempt: the turn's attempts so far, this one included.
    """

    at: At = Beginning()
    passes: int = 0
    messages: tuple[Message, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    texts: tuple[str, ...] = ()
    usage: tuple[PassUsage, ...] = ()
    thoughts: tuple[str, ...] = ()
    ran: tuple[RanTool, ...] = ()
    tool_errors: int = 0
    repetition: Repetition = Repetition()
    empties: int = 0
    continuations: int = 0
    dropped: int = 0
    switched_off: frozenset[str] = frozenset()
    context_keys: frozenset[str] = frozenset()
    delivered_texts: tuple[str, ...] = ()
    attempt: int = 1

    @property
    def shown_anything(self) -> bool:
        """Whether people have seen text in this turn."""
        return bool(self.texts or self.delivered_texts)

    @property
    def text_of_pass(self) -> str:
        """The visible text of the last pass, with that of the passes that it carried on (S9.4b)."""
        if self.continuations and self.texts:
            return self.texts[-1]
        return shown_in(self.at) if isinstance(self.at, ToolCalls) else ""

    @property
    def text(self) -> str:
        """The reply as people saw it; passes are joined by a blank line."""
        return "\n\n".join([text.strip() for text in self.texts])

    def after_pass(self, end: PassEnd, usage: PassUsage, thoughts: tuple[str, ...], *, carried_on: bool) -> LoopState:
        """The state after a pass. `carried_on`: its text goes on with the last text (S9.4b)."""
        texts = self._texts_with(shown_in(end), carried_on=carried_on)
        paused = (AssistantMessage(end.shown, (), end.native),) if isinstance(end, Paused) else ()
        return replace(
            self,
            at=end,
            passes=self.passes + 1,
            messages=self.messages + paused,
            texts=texts,
            usage=(*self.usage, usage),
            thoughts=self.thoughts + thoughts,
            empties=self.empties + 1 if isinstance(end, Empty) else 0,
            continuations=self.continuations + 1 if carried_on else 0,
        )

    def with_results(self, batch: Batch) -> LoopState:
        """The state after a batch of outcomes."""
        return replace(
            self,
            at=batch.executed,
            messages=self.messages + batch.messages,
            history=self.history + batch.entries,
            thoughts=self.thoughts + batch.thoughts,
            ran=batch.executed.ran,
            tool_errors=batch.tool_errors,
            repetition=batch.repetition,
            switched_off=self.switched_off | batch.switched_off,
            delivered_texts=self.delivered_texts + batch.delivered_texts,
        )

    def final_messages(self) -> tuple[Message, ...]:
        """This turn's chain as later turns read it: with the text that people saw last (S2.5)."""
        text = self._text_after_chain()
        return (*self.messages, AssistantMessage(text)) if text.strip() else self.messages

    def _text_after_chain(self) -> str:
        """Text of the last pass, where that pass is not part of the chain already."""
        match self.at:
            case Completed() | Failed() | TimedOut() | Stopped() | FollowUp() | Empty():
                return self.texts[-1] if self.texts and (shown_in(self.at) or self.continuations) else ""
            case ToolCalls():
                return self.at.shown
            case Paused() | Beginning() | Restarted() | Executed():
                return ""

    def _texts_with(self, shown: str, *, carried_on: bool) -> tuple[str, ...]:
        if not shown.strip():
            return self.texts
        if carried_on and self.texts:
            return (*self.texts[:-1], self.texts[-1] + shown)
        return (*self.texts, shown)


def shown_in(end: PassEnd) -> str:
    """The visible text of a pass."""
    return "" if isinstance(end, Empty) else end.shown
