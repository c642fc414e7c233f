# Chat completions: bytes in, stream events out.
#
# Rule 1: no sockets, no clock, no awaiting; what comes out never depends on where the bytes were cut.
# Rule 2: the stream's end ends the answer, not a finish reason: usage, errors and even further calls may follow one (S12.1).
# Rule 3: an odd field costs that field, never the answer (see wire.py).
#
# Theory of operation. The first byte that is not blank decides what the body is: `{` a whole JSON answer, `<` a page of
# somebody else's, anything else an event stream. Text passes through ReasoningTags; calls through CallAssembler. What can
# only be said at the end (calls, native parts, usage, finish) is said once, by `_finish`, at `[DONE]` or at `close`.
# An answer that ends without a finish reason and without `[DONE]` was dropped on the way: what it said stands, its calls
# do not run (S3.4a), but for servers that the catalogue knows never to send either.

"""Parser of the OpenAI chat-completions family."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from msgspec import DecodeError

from turnkeeper.providers.classify import fault_in_stream, network_fault, protocol_fault
from turnkeeper.providers.finish import finish_reason
from turnkeeper.providers.openai_chat.calls import CallAssembler
from turnkeeper.providers.openai_chat.usage import read_usage
from turnkeeper.providers.openai_chat.wire import Choice, Chunk, Delta, decode_chunk, decode_plain, decode_raw
from turnkeeper.providers.reasoning_tags import ReasoningTags
from turnkeeper.providers.sse import COMMENT, SseParser, TooLargeError
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    Heartbeat,
    NativePart,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)

FAMILY = "openai-chat"
_HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which only the lenient reading lets through
_RESENT_CHARS = 24  # a last chunk of at least this length that says again what was said is a server's echo


class ChatParser:
    """Reads one answer.

    model: who made it, for native parts. id_prefix: what call ids made by us begin with, unique in the turn.
    content_type: the answer's, "" where unknown. max_event_bytes: the largest event taken.
    ends_unmarked: this server never says that it has finished (catalogue).
    """

    def __init__(
        self,
        model: str = "",
        *,
        id_prefix: str = "call_",
        content_type: str = "",
        max_event_bytes: int = 16 * 2**20,
        ends_unmarked: bool = False,
    ) -> None:
        self._model = model
        self._content_type = content_type
        self._max_bytes = max_event_bytes
        self._ends_unmarked = ends_unmarked
        self._sse = SseParser(max_event_bytes)
        self._tags = ReasoningTags()
        self._calls = CallAssembler(id_prefix)
        self._read: Callable[[bytes], list[StreamEvent]] = self._decide
        self._whole: list[bytes] = []
        self._whole_bytes = 0
        self._texts: list[str] = []
        self._text_chars = 0
        self._reasoning: list[str] = []
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._refusal: list[str] = []
        self._half = ""  # the first half of a surrogate pair whose second half is in the next chunk
        self._usage: bytes = b""
        self._said_finish: str | None = None
        self._native_finish: str | None = None
        self._unread = b""  # the beginning of data that was no chunk
        self._chunks = 0
        self._fault: Fault | None = None
        self.over = False
        """True once the answer has ended; later bytes are ignored."""

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Events that are certain with these bytes."""
        if self.over:
            return []
        try:
            return self._read(data)
        except TooLargeError:
            return self._break(protocol_fault(f"an event of over {self._max_bytes} bytes", b""))

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

    # What the body is

    def _decide(self, data: bytes) -> list[StreamEvent]:
        first = data.lstrip(b" \t\r\n\xef\xbb\xbf")[:1]
        if not first:
            self._whole.append(data)
            return []
        page = first == b"<" or "html" in self._content_type
        self._read = self._read_whole if first in b"{[" or page else self._read_stream
        data = b"".join(self._whole) + data
        self._whole.clear()
        return self._read(data)

    def _read_whole(self, data: bytes) -> list[StreamEvent]:
        self._whole_bytes += len(data)
        if self._whole_bytes > self._max_bytes:
            raise TooLargeError
        self._whole.append(data)
        return []

    def _close_whole(self) -> list[StreamEvent]:
        body = b"".join(self._whole).strip(b" \t\r\n\xef\xbb\xbf")
        chunk = decode_chunk(body)
        if chunk is None:
            if body[:1] == b"{":
                return self._break(network_fault("the answer broke off in the middle of its JSON"))
            return self._break(protocol_fault(self._content_type, body))
        events: list[StreamEvent] = []
        self._read_chunk(chunk, events)
        if not self._chunks and self._fault is None:
            return self._break(protocol_fault(self._content_type, body))
        return events + self._finish(marked=self._fault is None)

    # Events of a stream

    def _read_stream(self, data: bytes) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        whole = self._sse.whole(data)
        if whole is None:
            for event in self._sse.feed(data):
                if event is COMMENT:
                    events.append(Heartbeat())
                else:
                    self._read_event(event.name, event.data, events)
            return events
        texts: list[str] = []  # of plain text chunks in a row: the hot path, which makes one event of a network read
        for chunk in whole:
            text = _plain_text(chunk) if self._tags.idle and not self._half else ""
            if text and not self.over:
                texts.append(text)
            else:
                self._add_plain(texts, events)
                self._read_event(b"", chunk, events)
        self._add_plain(texts, events)
        return events

    def _add_plain(self, texts: list[str], events: list[StreamEvent]) -> None:
        """What a row of plain text chunks says."""
        if texts:
            self._chunks += len(texts)
            text = texts[0] if len(texts) == 1 else "".join(texts)
            self._texts.append(text)
            self._text_chars += len(text)
            _add_text(text, events)
            texts.clear()

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        if self.over:
            return
        if data == b"[DONE]" or data.strip() == b"[DONE]":
            events += self._finish(marked=True)
            return
        chunk = decode_chunk(data)
        if chunk is None:
            self._unread = self._unread or data[:800]
        elif name == b"error" and not bytes(chunk.error):
            self._report_error(decode_raw(data), events)
        else:
            self._read_chunk(chunk, events)

    def _read_chunk(self, chunk: Chunk, events: list[StreamEvent]) -> None:
        choices = chunk.choices
        if choices:
            self._chunks += 1
            choice = choices[0] if len(choices) == 1 else _first(choices)
            if choice is not None and choice.index == 0:
                self._read_choice(choice, events)
        if chunk.usage or chunk.x_groq is not None:
            self._keep_usage(chunk)
        if chunk.error:
            error = decode_raw(chunk.error)
            if error is not None:
                self._report_error(error, events)

    def _keep_usage(self, chunk: Chunk) -> None:
        usage = bytes(chunk.usage)
        if not usage and chunk.x_groq is not None:
            usage = bytes(chunk.x_groq.usage)
        if usage and usage != b"null":
            self._usage = usage
            self._chunks += 1

    def _read_choice(self, choice: Choice, events: list[StreamEvent]) -> None:
        delta = choice.delta or choice.message
        if choice.finish_reason:
            self._said_finish = choice.finish_reason
        if choice.native_finish_reason:
            self._native_finish = choice.native_finish_reason
        if delta is not None:
            self._read_delta(delta, events, last=bool(choice.finish_reason))
        if choice.error:
            error = decode_raw(choice.error)
            if error is not None:
                self._report_error(error, events)

    def _read_delta(self, delta: Delta, events: list[StreamEvent], *, last: bool) -> None:
        if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
            self._read_reasoning(delta, events)
        if delta.content:
            if isinstance(delta.content, str):
                self._read_text(delta.content, events, last=last)
            else:
                self._read_parts(delta.content, events)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        if delta.tool_calls:
            for fragment in delta.tool_calls:
                events += self._calls.add(fragment)
        elif delta.function_call is not None:
            events += self._calls.add_legacy(delta.function_call)

    def _read_text(self, text: str, events: list[StreamEvent], *, last: bool) -> None:
        if self._half or not (text.isascii() or _HALF.search(text) is None):
            text = self._whole_characters(text)
        if last and len(text) >= _RESENT_CHARS and self._is_echo(text):
            return
        self._texts.append(text)
        self._text_chars += len(text)
        if "<" not in text and text[-1:] != "`" and self._tags.idle:
            _add_text(text, events)
            return
        visible, reasoning = self._tags.feed(text)
        self._add_sorted(visible, reasoning, events)

    def _read_reasoning(self, delta: Delta, events: list[StreamEvent]) -> None:
        text = delta.reasoning_content or delta.reasoning or ""
        if not self._reasoning_field and text:
            self._reasoning_field = "reasoning_content" if delta.reasoning_content else "reasoning"
        if delta.reasoning_details:
            self._details += delta.reasoning_details
            if not text:
                words: list[object] = [one.get("text") or one.get("summary") for one in delta.reasoning_details]
                text = "".join([word for word in words if isinstance(word, str)])
        self._add_sorted("", text, events)

    def _read_parts(self, parts: list[Any], events: list[StreamEvent]) -> None:
        """Content as a list: Mistral's thinking parts, and text parts (cases.md)."""
        for part in parts:
            if isinstance(part, str):
                self._read_text(part, events, last=False)
            elif isinstance(part, dict):
                table = cast(dict[str, Any], part)
                if isinstance(table.get("text"), str):
                    self._read_text(table["text"], events, last=False)
                elif "thinking" in table:
                    self._add_sorted("", _text_in(table["thinking"]), events)

    def _add_sorted(self, visible: str, reasoning: str, events: list[StreamEvent]) -> None:
        if reasoning:
            self._reasoning.append(reasoning)
            events.append(ReasoningDelta(reasoning))
        if visible:
            _add_text(visible, events)

    def _whole_characters(self, text: str) -> str:
        """Joins surrogate pairs that a server split over two chunks; a half without its other half becomes U+FFFD."""
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        text = text[:-1] if self._half else text
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _is_echo(self, text: str) -> bool:
        """S12.3: a tail or the whole that the last chunk sends again."""
        return self._text_chars >= len(text) and "".join(self._texts).endswith(text)

    # The end

    def _report_error(self, error: object, events: list[StreamEvent]) -> None:
        if self._fault is None:
            self._fault = fault_in_stream(error)
            events.append(FaultReported(self._fault, error))

    def _break(self, fault: Fault) -> list[StreamEvent]:
        self.over = True
        self._fault = fault
        return [FaultReported(fault)]

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        self.over = True
        events: list[StreamEvent] = []
        visible, reasoning = self._tags.close()
        self._add_sorted(visible, reasoning, events)
        events += self._native_parts()
        usage_said = decode_raw(self._usage)
        usage = read_usage(usage_said)
        if usage is not None:
            events.append(UsageReported(usage, cast(dict[str, Any], usage_said)))
        reason = finish_reason(self._said_finish, self._native_finish)
        if self._fault is not None:
            return [*events, Finished(reason, self._said_finish)] if reason else events
        if reason is None and not marked and not self._ends_unmarked:
            return [*events, FaultReported(self._unfinished())]
        if self._refusal:
            said = "".join(self._refusal)[:300]
            return [
                *events,
                FaultReported(Fault("content_blocked", "request", said=said)),
                Finished("content_filter", self._said_finish),
            ]
        events += self._calls.close(ended=reason not in (None, "length"))
        return [*events, Finished(reason or "stop", self._said_finish)]

    def _unfinished(self) -> Fault:
        if not self._chunks and self._unread:
            return protocol_fault(self._content_type, self._unread)
        if not self._chunks:
            return network_fault("the connection was closed before anything came")
        return network_fault("the connection was closed in the middle of the answer")

    def _native_parts(self) -> list[StreamEvent]:
        if self._details:
            return [NativePart(FAMILY, self._model, {"reasoning_details": self._details})]
        if self._reasoning_field:
            return [NativePart(FAMILY, self._model, {self._reasoning_field: "".join(self._reasoning)})]
        return []

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that the answer was writing last, None where it asked for none (S3.4a)."""
        return self._calls.last_name if len(self._calls) else None


def _plain_text(data: bytes) -> str:
    """The text of a chunk that says nothing else, and that can be no part of a tag; "" for any other chunk."""
    try:
        chunk = decode_plain(data)
    except (DecodeError, RecursionError):
        return ""
    if len(chunk.choices) != 1 or chunk.error or chunk.usage:
        return ""
    choice = chunk.choices[0]
    if choice.finish_reason or choice.native_finish_reason or choice.index or choice.error:
        return ""
    text = choice.delta.content
    return text if "<" not in text and text[-1:] != "`" else ""


def _add_text(text: str, events: list[StreamEvent]) -> None:
    if events and type(events[-1]) is TextDelta:  # one event for the text of a network read
        events[-1] = TextDelta(events[-1].text + text)
    else:
        events.append(TextDelta(text))


def _first(choices: list[Choice]) -> Choice | None:
    return next((choice for choice in choices if choice.index == 0), None)


def _text_in(parts: object) -> str:
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list):
        return ""
    tables = [cast(dict[str, Any], one) for one in cast(list[object], parts) if isinstance(one, dict)]
    return "".join([one["text"] for one in tables if isinstance(one.get("text"), str)])
