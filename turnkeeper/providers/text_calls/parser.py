# Any family's answer, with the calls that stand in its text (S10.4, S10.5).
#
# It stands between a family's parser and the loop, and turns text into text and calls; all else passes. A call begins when it
# is found, and is ready when the answer has ended well, as native ones are: of a stream that breaks, no call runs. A call
# that the server sends natively as well is one call. What was still open when the answer ended for want of room was cut.

"""Finds calls in the text of an answer."""

from __future__ import annotations

from msgspec.structs import replace

from turnkeeper.providers.families import Parser
from turnkeeper.providers.text_calls.scanner import Piece, TextCalls
from turnkeeper.providers.text_calls.shapes import Found, Shape
from turnkeeper.types.calls import Parsed, ToolCall, Truncated
from turnkeeper.types.stream import (
    Finished,
    ReasoningDelta,
    StartedOver,
    StreamEvent,
    TextDelta,
    ToolCallArguments,
    ToolCallReady,
    ToolCallStarted,
)


class CallsInText:
    """A parser like the one that it is given.

    tools: the offered ones, by the names that the model reads. verbatim: the model calls in text; else only leaked markup
    is looked for, and in reasoning always only that. id_prefix: what ids made by us begin with, unique in the turn.
    """

    def __init__(self, inner: Parser, tools: dict[str, Shape], *, verbatim: bool, id_prefix: str) -> None:
        self._inner = inner
        self._tools = tools
        self._verbatim = verbatim
        self._prefix = id_prefix
        self._begin()

    def _begin(self) -> None:
        self._text = TextCalls(self._tools, verbatim=self._verbatim)
        self._reasoning = TextCalls(self._tools, verbatim=False)
        self._calls: dict[int, Found] = {}  # by position: found, and not ready yet
        self._positions: dict[int, int] = {}  # of native calls, among all
        self._next = 0

    @property
    def over(self) -> bool:
        """True once the answer has ended; later bytes are ignored."""
        return self._inner.over

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that was being written last, None for none."""
        if self._text.name_in_progress is not None:
            return self._text.name_in_progress
        return self._inner.call_in_progress or next((call.name for call in reversed(self._calls.values())), None)

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Events that are certain with these bytes."""
        events = self._inner.feed(data)
        if len(events) == 1 and type(events[0]) is TextDelta and self._text.passes(events[0].text):
            return events
        return self._read(events)

    def close(self) -> list[StreamEvent]:
        """Events that the end of the bytes makes certain."""
        return self._read(self._inner.close())

    def _read(self, events: list[StreamEvent]) -> list[StreamEvent]:
        out: list[StreamEvent] = []
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._add(self._text.feed(text), TextDelta, out)
                case ReasoningDelta(text=text):
                    self._add(self._reasoning.feed(text), ReasoningDelta, out)
                case ToolCallStarted():
                    self._positions[event.position] = self._next
                    self._next += 1
                    out.append(replace(event, position=self._positions[event.position]))
                case ToolCallArguments():
                    out.append(replace(event, position=self._positions.get(event.position, event.position)))
                case ToolCallReady():
                    self._forget(event.call)
                    out.append(replace(event, position=self._positions.get(event.position, event.position)))
                case Finished():
                    out += self._finish(event)
                case StartedOver():
                    self._begin()
                    out.append(event)
                case _:
                    out.append(event)
        if self._inner.over and not any(isinstance(event, Finished) for event in events):
            self._release(out)
        return out

    def _add(self, pieces: list[Piece], kind: type[TextDelta | ReasoningDelta], out: list[StreamEvent]) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                out.append(kind(piece))
            else:
                self._calls[self._next] = piece
                out.append(ToolCallStarted(self._next, f"{self._prefix}text_{self._next}", piece.name))
                self._next += 1

    def _release(self, out: list[StreamEvent]) -> None:
        """Of a stream that broke: text that was held is text, and what may have been a call was lost."""
        if self._text.name_in_progress is None:
            self._add([piece for piece in self._text.close() if isinstance(piece, str)], TextDelta, out)

    def _finish(self, event: Finished) -> list[StreamEvent]:
        out: list[StreamEvent] = []
        before = self._next
        self._add(self._reasoning.close(), ReasoningDelta, out)
        self._add(self._text.close(), TextDelta, out)
        cut = event.reason == "length"
        for position, call in self._calls.items():
            arguments = Truncated() if cut and position >= before else call.arguments
            made = ToolCall(f"{self._prefix}text_{position}", call.name, call.text, arguments)
            out.append(ToolCallReady(position, made))
        called = bool(self._calls) and event.reason in ("stop", "unknown")
        return [*out, replace(event, reason="tool_calls") if called else event]

    def _forget(self, native: ToolCall) -> None:
        """The call that the text says too."""
        for position, call in self._calls.items():
            if call.name == native.name and _value(call.arguments) == _value(native.arguments):
                del self._calls[position]
                return


def _value(arguments: object) -> object:
    return arguments.value if isinstance(arguments, Parsed) else arguments
