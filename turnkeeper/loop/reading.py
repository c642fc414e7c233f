"""What a pass has brought so far: the events of its answer, sorted."""

from __future__ import annotations

import re
from bisect import bisect
from typing import Protocol

from turnkeeper.delivery.delivery import Delivery
from turnkeeper.delivery.repeats import RepeatFilter
from turnkeeper.delivery.stitcher import Stitcher
from turnkeeper.loop.signals import TurnSignals
from turnkeeper.providers.families import Parser
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.ends import AskedCall
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    FinishReason,
    Heartbeat,
    NativePart,
    ReasoningDelta,
    StartedOver,
    StreamEvent,
    TextDelta,
    TextRevised,
    ToolCallArguments,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)
from turnkeeper.types.usage import Usage

_BOUNDARY = re.compile(r"[.!?…][\"')\]*_”’]*(?=\s|$)|[。！？][”’」』）]*|\n")
_AT_END = re.compile(rf"(?:{_BOUNDARY.pattern})\s*$")


class TextFilter(Protocol):
    """What stands between the model's text and delivery in some passes."""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        ...

    def close(self) -> str:
        """What is left when the text has ended."""
        ...


class Reading:
    """Collects one pass. Text goes on to `delivery` at once, through `text_filter` where there is one.

    signals: where a newer message shows, for which the text is broken off at the next clean boundary (S5.4).
    number: the pass's, which makes call ids of ours unique in the turn.
    """

    def __init__(self, delivery: Delivery, text_filter: TextFilter | None, signals: TurnSignals, number: int) -> None:
        self._delivery = delivery
        self._signals = signals
        self._start = len(delivery.shown)  # text before it belongs to the pass that this one carries on
        self.number = number
        self._filter = text_filter
        self._marks: dict[int, int] = {}  # by a call's position: how much of the pass's text had been shown at its beginning
        self._order: list[int] = []  # the positions of `calls`
        self._pieces: list[str] = []
        self._closed = False
        self.parser: Parser | None = None
        self.calls: list[ToolCall] = []
        self.native: list[NativePart] = []
        self.reasoning: list[str] = []
        self.usage: Usage | None = None
        self.finish: FinishReason = "unknown"
        self.ended = False
        """The provider said that it had finished."""
        self.fault: Fault | None = None
        self.begun = False
        """Text has come."""
        self.interrupted = False
        """A newer message ended the reading at a clean boundary (S5.4)."""

    @property
    def text(self) -> str:
        """The text as the model sent it, shown or not."""
        return "".join(self._pieces)

    @property
    def repeated(self) -> bool:
        """The pass only said again what people had seen (S9.4b)."""
        if isinstance(self._filter, RepeatFilter):
            return self._filter.repeated
        return isinstance(self._filter, Stitcher) and self._filter.repeated_only

    @property
    def unfinished(self) -> bool:
        """The text stopped for want of room, or broke off: it may be carried on."""
        return (self.finish == "length" or self.fault is not None) and not self.calls

    @property
    def lost_call(self) -> str | None:
        """The name of a call that was cut off with the stream (S3.4a)."""
        return self.parser.call_in_progress if self.parser is not None and not self.calls else None

    def take(self, events: list[StreamEvent]) -> bool:
        """Sorts the events of one network read. Returns whether any of them is progress (S5.1)."""
        progress = False
        for event in events:
            if self.interrupted:
                break
            match event:
                case TextDelta():
                    self._take_text(event.text)
                    progress = True
                case ReasoningDelta():
                    self.reasoning.append(event.text)
                    progress = True
                case ToolCallArguments():
                    progress = True
                case ToolCallStarted(position=position):
                    self._mark(position)
                    progress = True
                case ToolCallReady(position=position, call=call):
                    place = bisect(self._order, position)
                    self._order.insert(place, position)
                    self.calls.insert(place, call)
                case NativePart():
                    self.native.append(event)
                case UsageReported(usage=usage):
                    self.usage = usage
                case Finished(reason=reason):
                    self.finish = reason
                    self.ended = True
                case FaultReported(fault=fault):
                    self.fault = self.fault or fault
                case StartedOver():
                    self._marks.clear()
                    self._order.clear()
                    self.calls.clear()
                    self.native.clear()
                    self.reasoning.clear()
                case TextRevised() | Heartbeat():
                    pass
        return progress

    def reported(self) -> Usage | None:
        """What the provider has reported of tokens; of an answer that was broken off, as far as it had come."""
        if self.usage is None and self.parser is not None and not self.parser.over:
            counted = [event.usage for event in self.parser.close() if isinstance(event, UsageReported)]
            return counted[-1] if counted else None
        return self.usage

    def close(self) -> None:
        """The text is complete: nothing may be held back any more."""
        if self._closed:
            return
        self._closed = True
        if self._filter is not None:
            rest = self._filter.close()
            if rest:
                self._delivery.write(rest)
        self._delivery.end_text()

    def reached_boundary(self) -> bool:
        """Whether the text can be broken off here: after a sentence or a line, outside a code fence (S5.4)."""
        if not self.begun or self._marks:
            return False
        shown = self._delivery.shown
        return bool(_AT_END.search(shown)) and shown.count("```") % 2 == 0

    def asked(self) -> tuple[AskedCall, ...]:
        """The calls, each with the visible text before it (S4.3)."""
        shown = self._delivery.shown
        asked: list[AskedCall] = []
        begin = self._start
        for position, call in zip(self._order, self.calls, strict=True):
            end = max(begin, self._marks.get(position, begin))
            text = shown[begin:end]
            asked.append(AskedCall(call, text if text.strip() else ""))
            begin = end
        return tuple(asked)

    def text_after(self) -> str:
        """The visible text after the last call."""
        text = self._delivery.shown[max(self._marks.values()) :] if self._marks else ""
        return text if text.strip() else ""

    def _take_text(self, text: str) -> None:
        if self._signals.follow_up and self.begun and not self._marks:
            text = self._up_to_boundary(text)
        self.begun = True
        self._pieces.append(text)
        if self._filter is not None:
            text = self._filter.feed(text)
        if text:
            self._delivery.write(text)

    def _up_to_boundary(self, text: str) -> str:
        """S5.4: the part of `text` up to the first place where it may be broken off; all of it where there is none."""
        shown = self._delivery.shown
        for found in _BOUNDARY.finditer(text):
            if (shown + text[: found.end()]).count("```") % 2 == 0:
                self.interrupted = True
                return text[: found.end()]
        return text

    def _mark(self, position: int) -> None:
        if self._filter is not None and not self._marks:
            rest = self._filter.close()
            self._filter = None
            if rest:
                self._delivery.write(rest)
        self._delivery.end_text()
        self._marks[position] = len(self._delivery.shown)
