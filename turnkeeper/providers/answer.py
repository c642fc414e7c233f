# What the parsers of all families do alike.
#
# Rule 1: no sockets, no clock, no awaiting; what comes out never depends on where the bytes were cut.
# Rule 2: the stream's end ends the answer, not a finish reason: usage, errors and even further calls may follow one (S12.1).
# Rule 3: an odd field costs that field, never the answer.
#
# Theory of operation. The first byte that is not blank decides what the body is: `{` or `[` a whole JSON answer, `<` a page
# of somebody else's, anything else an event stream. A family reads events in `_read_event` and a whole answer in
# `_read_document`; both say what they find through `_add_text`, `_add_reasoning` and `_report_error`. What can only be said
# at the end (calls, native parts, usage, finish) is said once, by `_finish`, at the end mark or at `close`.
#
# The hot path. Most reads are one event with a bit of plain text. While nothing is open or held anywhere (`_quiet`), a
# family's `_plain_text` may read such an event at once; it changes nothing but the text, so it leaves all else as it was.

"""The base of the parsers: bodies, events, text."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec import Struct

from turnkeeper.providers.classify import fault_in_stream, network_fault, protocol_fault
from turnkeeper.providers.lenient import decode_json, without_halves
from turnkeeper.providers.reasoning_tags import ReasoningTags
from turnkeeper.providers.sse import COMMENT, SseParser, TooLargeError
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import FaultReported, Heartbeat, ReasoningDelta, StreamEvent, TextDelta

_HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which only a lenient reading lets through
_BLANK = b" \t\r\n\xef\xbb\xbf"
_UNREAD_KEPT = 800  # bytes of data that nobody could read, for the error that quotes it


class AnswerOptions(Struct, frozen=True):
    """What is known of an answer before its first byte.

    model: who makes it, for native parts. id_prefix: what call ids made by us begin with, unique in the turn.
    content_type: "" where unknown. max_event_bytes: the largest event taken.
    ends_unmarked: this server never says that it has finished (catalogue).
    now: the wall clock, seconds since the epoch, for times that an error names; None where only spans can be read.
    """

    model: str = ""
    id_prefix: str = "call_"
    content_type: str = ""
    max_event_bytes: int = 16 * 2**20
    ends_unmarked: bool = False
    now: float | None = None


class AnswerParser:
    """Reads one answer. A family's parser gives the methods that raise NotImplementedError here."""

    def __init__(self, options: AnswerOptions | None = None) -> None:
        self.options = options or AnswerOptions()
        self._sse = SseParser(self.options.max_event_bytes)
        self._tags = ReasoningTags()
        self._read: Callable[[bytes], list[StreamEvent]] = self._decide
        self._whole: list[bytes] = []
        self._whole_bytes = 0
        self._half = ""  # the first half of a surrogate pair whose second half is in the next delta
        self._reasoning: list[str] = []
        self._chunks = 0  # events of this family, which tell an answer from bytes of another kind
        self._unread = b""  # the beginning of data that was none
        self._foreign = False  # that data was an event of another family
        self._fault: Fault | None = None
        self._quiet = False
        self.over = False
        """True once the answer has ended; later bytes are ignored."""

    # The interface

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Events that are certain with these bytes."""
        if self._quiet:
            text = self._plain_text(data)
            if text:
                return [TextDelta(text)]
        if self.over:
            return []
        self._quiet = False
        try:
            events = self._read(data)
        except TooLargeError:
            return self._break(protocol_fault(f"an event of over {self.options.max_event_bytes} bytes", b""))
        self._quiet = self._sse.idle and self._tags.idle and not self._half and not self.over
        return events

    def close(self) -> list[StreamEvent]:
        """The events that the end of the bytes makes certain."""
        if self.over:
            return []
        events: list[StreamEvent] = []
        if self._read == self._read_whole:
            events += self._close_whole()
        elif self._read == self._read_stream:
            for event in self._sse.close():
                self._read_event(event.name, event.data, events)
        return events if self.over else events + self._finish(marked=False)

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that the answer was writing last, None where it asked for none (S3.4a)."""
        raise NotImplementedError

    # What a family gives

    def _plain_text(self, data: bytes) -> str:
        """The text of a read that is one event of plain text and nothing else; "" for any other, of which nothing is read."""
        return ""

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        """Reads one event of a stream."""
        raise NotImplementedError

    def _read_document(self, body: bytes, events: list[StreamEvent]) -> bool:
        """Reads a whole answer. Returns whether it was one of this family."""
        raise NotImplementedError

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        """Ends the answer: what can only be said now. marked: the server said that it is complete."""
        raise NotImplementedError

    # What the body is

    def _decide(self, data: bytes) -> list[StreamEvent]:
        first = data.lstrip(_BLANK)[:1]
        if not first:
            self._whole.append(data)
            return []
        page = first == b"<" or "html" in self.options.content_type
        self._read = self._read_whole if first in b"{[" or page else self._read_stream
        data = b"".join(self._whole) + data
        self._whole.clear()
        return self._read(data)

    def _read_whole(self, data: bytes) -> list[StreamEvent]:
        self._whole_bytes += len(data)
        if self._whole_bytes > self.options.max_event_bytes:
            raise TooLargeError
        self._whole.append(data)
        return []

    def _close_whole(self) -> list[StreamEvent]:
        body = b"".join(self._whole).strip(_BLANK)
        events: list[StreamEvent] = []
        if self._read_document(body, events):
            return events + self._finish(marked=self._fault is None)
        if body[:1] in (b"{", b"[") and not _is_json(body):
            return self._break(network_fault("the answer broke off in the middle of its JSON"))
        return self._break(protocol_fault(self.options.content_type, body))

    def _read_stream(self, data: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        whole = self._sse.whole_named(data) if data[:1] == b"e" else self._sse.whole(data)
        if whole is not None:
            for chunk in whole:
                self._read_event(b"", chunk, events)
            return events
        for event in self._sse.feed(data):
            if event is COMMENT:
                events.append(Heartbeat())
            else:
                self._read_event(event.name, event.data, events)
        return events

    # What is found in it

    def _add_text(self, text: str, events: list[StreamEvent]) -> None:
        """Visible text, which may hold reasoning between tags (S12.3)."""
        if self._half or not (text.isascii() or _HALF.search(text) is None):
            text = self._whole_characters(text)
        if "<" not in text and text[-1:] != "`" and self._tags.idle:
            add_text(text, events)
            return
        visible, reasoning = self._tags.feed(text)
        self._add_sorted(visible, reasoning, events)

    def _add_reasoning(self, text: str, events: list[StreamEvent]) -> None:
        if text:
            text = text if text.isascii() or _HALF.search(text) is None else without_halves(text)
            self._reasoning.append(text)
            events.append(ReasoningDelta(text))

    def _add_sorted(self, visible: str, reasoning: str, events: list[StreamEvent]) -> None:
        self._add_reasoning(reasoning, events)
        add_text(visible, events)

    def _close_text(self, events: list[StreamEvent]) -> None:
        """The text is complete: what was held as the beginning of a tag was none."""
        half = "\ufffd" if self._half else ""
        self._half = ""
        visible, reasoning = self._tags.feed(half) if half else ("", "")
        self._add_sorted(visible, reasoning, events)
        visible, reasoning = self._tags.close()
        self._add_sorted(visible, reasoning, events)

    def _whole_characters(self, text: str) -> str:
        """Joins surrogate pairs that a server split over two deltas; a half without its other half becomes U+FFFD."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return without_halves(text[:-1] if self._half else text)

    def _not_read(self, data: bytes) -> None:
        """Data that is no event of this family: ignored, but quoted where nothing better came."""
        if not self._unread:
            self._unread = data[:_UNREAD_KEPT]
            self._foreign = isinstance(decode_json(data), dict)

    # What went wrong

    def _report_error(self, error: object, events: list[StreamEvent], said: object = None) -> None:
        """An error of the server's own. said: as it words it, where that is more than `error`."""
        if self._fault is None:
            self._fault = fault_in_stream(error, now=self.options.now)
            events.append(FaultReported(self._fault, error if said is None else said))

    def _break(self, fault: Fault) -> list[StreamEvent]:
        self.over = True
        self._fault = fault
        return [FaultReported(fault)]

    def _unfinished(self) -> FaultReported:
        """Why an answer that does not say its end is none."""
        if not self._chunks and self._unread:
            fault = protocol_fault(self.options.content_type, self._unread)
            return FaultReported(fault, foreign=self._foreign)
        if not self._chunks:
            return FaultReported(network_fault("the connection was closed before anything came"))
        return FaultReported(network_fault("the connection was closed in the middle of the answer"))


def add_text(text: str, events: list[StreamEvent]) -> None:
    """Appends visible text: one event for the text of a network read."""
    if not text:
        return
    if events and type(events[-1]) is TextDelta:
        events[-1] = TextDelta(events[-1].text + text)
    else:
        events.append(TextDelta(text))


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
