# Chat completions: bytes in, stream events out. What all families do alike is in answer.py.
#
# Theory of operation. Text passes through ReasoningTags; calls through CallAssembler; an odd field is read by wire.py.
# An answer that ends without a finish reason and without `[DONE]` was dropped on the way: what it said stands, its calls
# do not run (S3.4a), but for servers that the catalogue knows never to send either.

"""Parser of the OpenAI chat-completions family."""

from __future__ import annotations

from typing import Any, cast

from msgspec import DecodeError

from turnkeeper.providers.answer import AnswerOptions, AnswerParser, add_text
from turnkeeper.providers.finish import finish_reason
from turnkeeper.providers.openai_chat.calls import CallAssembler
from turnkeeper.providers.openai_chat.usage import read_usage
from turnkeeper.providers.openai_chat.wire import Choice, Chunk, Delta, decode_chunk, decode_plain, decode_raw
from turnkeeper.providers.sse import COMMENT
from turnkeeper.types.calls import Invalid, ToolCall
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    Heartbeat,
    NativePart,
    StreamEvent,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)

FAMILY = "openai-chat"
_MALFORMED = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
_RESENT_CHARS = 24  # a last chunk of at least this length that says again what was said is a server's echo


class ChatParser(AnswerParser):
    """Reads one answer."""

    def __init__(self, options: AnswerOptions | None = None) -> None:
        super().__init__(options)
        self._calls = CallAssembler(self.options.id_prefix)
        self._texts: list[str] = []
        self._text_chars = 0
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._refusal: list[str] = []
        self._usage: bytes = b""
        self._said_finish: str | None = None
        self._native_finish: str | None = None

    def _read_document(self, body: bytes, events: list[StreamEvent]) -> bool:
        chunk = decode_chunk(body)
        if chunk is None:
            return False
        self._read_chunk(chunk, events)
        return bool(self._chunks) or self._fault is not None

    # Events of a stream

    def _plain_text(self, data: bytes) -> str:
        if data[:6] != b"data: " or data.find(b"\n") != len(data) - 2 or len(data) > self.options.max_event_bytes:
            return ""
        text = _text_of_plain(data[6:-2]) if data[-1] == 0x0A else ""
        if text:
            self._texts.append(text)
            self._text_chars += len(text)
        return text

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
            text = _text_of_plain(chunk) if self._tags.idle and not self._half else ""
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
            add_text(text, events)
            texts.clear()

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        if self.over:
            return
        if data == b"[DONE]" or data.strip() == b"[DONE]":
            events += self._finish(marked=True)
            return
        chunk = decode_chunk(data)
        if chunk is None:
            self._not_read(data)
        elif name == b"error" and not bytes(chunk.error):
            self._report_error(decode_raw(data), events)
        elif chunk == Chunk():
            self._not_read(data)
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
        if last and len(text) >= _RESENT_CHARS and self._is_echo(text):
            return
        self._texts.append(text)
        self._text_chars += len(text)
        self._add_text(text, events)

    def _read_reasoning(self, delta: Delta, events: list[StreamEvent]) -> None:
        text = delta.reasoning_content or delta.reasoning or ""
        if not self._reasoning_field and text:
            self._reasoning_field = "reasoning_content" if delta.reasoning_content else "reasoning"
        if delta.reasoning_details:
            self._details += delta.reasoning_details
            if not text:
                words: list[object] = [one.get("text") or one.get("summary") for one in delta.reasoning_details]
                text = "".join([word for word in words if isinstance(word, str)])
        self._add_reasoning(text, events)

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
                    self._add_reasoning(_text_in(table["thinking"]), events)

    def _is_echo(self, text: str) -> bool:
        """S12.3: a tail or the whole that the last chunk sends again."""
        return self._text_chars >= len(text) and "".join(self._texts).endswith(text)

    # The end

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        self.over = True
        events: list[StreamEvent] = []
        self._close_text(events)
        events += self._native_parts()
        usage_said = decode_raw(self._usage)
        usage = read_usage(usage_said)
        if usage is not None:
            events.append(UsageReported(usage, cast(dict[str, Any], usage_said)))
        reason = finish_reason(self._said_finish, self._native_finish)
        if self._fault is not None:
            return [*events, Finished(reason, self._said_finish)] if reason else events
        if reason is None and not marked and not self.options.ends_unmarked:
            return [*events, self._unfinished()]
        if self._refusal:
            said = "".join(self._refusal)[:300]
            return [
                *events,
                FaultReported(Fault("content_blocked", "request", said=said)),
                Finished("content_filter", self._said_finish),
            ]
        events += self._calls.close(ended=reason not in (None, "length"))
        if (self._native_finish or "").upper() in _MALFORMED and not len(self._calls):
            events += self._malformed()
        return [*events, Finished(reason or "stop", self._said_finish)]

    def _malformed(self) -> list[StreamEvent]:
        """S10.5: the server behind a gateway could not read the model's call; the text that came is a tail of it, no answer."""
        problem = f"The call could not be read ({self._native_finish}). Call a tool that is offered, with one JSON object."
        call = ToolCall(f"{self.options.id_prefix}0", "malformed_call", "", Invalid(problem))
        return [ToolCallStarted(0, call.id, call.name), ToolCallReady(0, call)]

    def _native_parts(self) -> list[StreamEvent]:
        if self._details:
            return [NativePart(FAMILY, self.options.model, {"reasoning_details": self._details})]
        if self._reasoning_field:
            return [NativePart(FAMILY, self.options.model, {self._reasoning_field: "".join(self._reasoning)})]
        return []

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that the answer was writing last, None where it asked for none (S3.4a)."""
        return self._calls.last_name if len(self._calls) else None


def _text_of_plain(data: bytes) -> str:
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


def _first(choices: list[Choice]) -> Choice | None:
    return next((choice for choice in choices if choice.index == 0), None)


def _text_in(parts: object) -> str:
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list):
        return ""
    tables = [cast(dict[str, Any], one) for one in cast(list[object], parts) if isinstance(one, dict)]
    return "".join([one["text"] for one in tables if isinstance(one.get("text"), str)])
