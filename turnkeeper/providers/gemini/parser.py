# Gemini: bytes in, stream events out. What all families do alike is in answer.py.
#
# Theory of operation. Each event is a chunk with a few parts. Text and thoughts go on at once. A call comes whole, or in
# pieces: begun by its name, grown by values with paths, ended by an empty one. The stream has no end mark: it is whole when
# it closes after a finish reason, which may be said more than once. Parts with a signature go back with it (S3.10).

"""Parser of the Google Gemini family."""

from __future__ import annotations

import re
from typing import Any, cast

from msgspec import DecodeError, Raw, to_builtins
from msgspec.json import encode

from turnkeeper.providers.answer import AnswerOptions, AnswerParser
from turnkeeper.providers.arguments import read_call
from turnkeeper.providers.counts import list_of, text_of
from turnkeeper.providers.finish import finish_reason
from turnkeeper.providers.gemini.arguments import PathArguments
from turnkeeper.providers.gemini.usage import read_usage
from turnkeeper.providers.gemini.wire import Candidate, Chunk, FunctionCall, Part, decode_chunk, decode_plain, decode_raw
from turnkeeper.providers.identifiers import unique_call_id
from turnkeeper.providers.lenient import decode_json, without_halves
from turnkeeper.types.calls import Invalid, Parsed, ToolCall, Truncated
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    FinishReason,
    NativePart,
    StreamEvent,
    ToolCallArguments,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)

FAMILY = "gemini"
_MALFORMED = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE")
_NAME_IN_MESSAGE = re.compile(r"\b(?!print\b)(?:default_api\.)?([A-Za-z_][\w-]{0,63})\s*\(")


class _Call:
    """A call of the answer. `open`: its arguments are still coming."""

    __slots__ = ("arguments", "id", "name", "odd", "open", "paths")

    def __init__(self, call_id: str, name: str) -> None:
        self.id = call_id
        self.name = name
        self.arguments: dict[str, Any] = {}
        self.odd: str | None = None  # arguments that came as anything but an object
        self.paths: PathArguments | None = None
        self.open = False


class GeminiParser(AnswerParser):
    """Reads one answer."""

    def __init__(self, options: AnswerOptions | None = None) -> None:
        super().__init__(options)
        self._calls: list[_Call] = []
        self._parts: list[dict[str, Any]] = []
        self._texts: list[str] = []  # of the last part, while it grows
        self._signed = False  # some part is more than the neutral message can hold
        self._said: str | None = None  # the finish reason
        self._message = ""  # beside the finish reason
        self._blocked = ""  # why the prompt was refused
        self._candidates = 0
        self._usage: Raw | None = None  # the last one, undecoded: it comes with each chunk

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that the answer was writing last, None where it asked for none (S3.4a)."""
        return self._calls[-1].name if self._calls else None

    # Chunks

    def _plain_text(self, data: bytes) -> str:
        if data[:6] != b"data: " or data.find(b"\n") != len(data) - 2 or data[-1] != 0x0A:
            return ""
        try:
            chunk = decode_plain(data[6:-2])
        except (DecodeError, RecursionError):
            return ""
        if not self._texts or len(chunk.candidates) != 1 or len(data) > self.options.max_event_bytes:
            return ""
        candidate = chunk.candidates[0]
        if len(candidate.content.parts) != 1 or candidate.finish_reason or candidate.index:
            return ""
        text = candidate.content.parts[0].text
        if "<" in text or text[-1:] == "`":
            return ""
        self._texts.append(text)
        if chunk.usage_metadata:
            self._usage = chunk.usage_metadata
        return text

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        if self.over or data.strip() == b"[DONE]":
            return
        chunk = decode_chunk(data)
        if chunk is None or chunk == Chunk():
            self._not_read(data)
        else:
            self._read_chunk(chunk, events)

    def _read_document(self, body: bytes, events: list[StreamEvent]) -> bool:
        """One answer, or the list of chunks that a server streams which was not asked for an event stream."""
        value = decode_json(body)
        for one in list_of(value) or [value]:
            chunk = decode_chunk(encode(one)) if isinstance(one, dict) else None
            if chunk is not None and chunk != Chunk():
                self._read_chunk(chunk, events)
        return bool(self._chunks) or self._fault is not None

    def _read_chunk(self, chunk: Chunk, events: list[StreamEvent]) -> None:
        self._chunks += 1
        if chunk.usage_metadata:
            self._usage = chunk.usage_metadata
        if chunk.prompt_feedback is not None:
            self._blocked = text_of(chunk.prompt_feedback.get("blockReason")) or self._blocked
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._candidates += 1
                self._read_candidate(candidate, events)
        if chunk.error is not None:
            self._report_error(chunk.error, events)

    def _read_candidate(self, candidate: Candidate, events: list[StreamEvent]) -> None:
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                self._read_part(part, events)
        if candidate.finish_reason:
            self._said = candidate.finish_reason
            self._message = candidate.finish_message or self._message

    def _read_part(self, part: Part, events: list[StreamEvent]) -> None:
        if part.function_call is not None:
            self._read_call(part.function_call, part.thought_signature, events)
            return
        if part.text is None:
            self._keep(to_builtins(part))
            self._signed = True
        elif part.thought:
            self._add_reasoning(part.text, events)
            if part.thought_signature:
                self._keep(to_builtins(part))
                self._signed = True
        else:
            self._keep_text(part.text, part.thought_signature)
            if part.text:
                self._add_text(part.text, events)

    # Parts, as they are to be sent back

    def _keep(self, part: dict[str, Any]) -> None:
        self._close_part()
        self._parts.append(part)

    def _keep_text(self, text: str, signature: str | None) -> None:
        """Text goes on with the part before it, unless it is signed: a signature belongs to its own part."""
        if signature is not None:
            self._keep({"text": text, "thoughtSignature": signature})
            self._signed = True
        elif text:
            if not self._texts:
                self._parts.append({"text": ""})
            self._texts.append(text)

    def _close_part(self) -> None:
        if self._texts:
            self._parts[-1]["text"] = without_halves("".join(self._texts))
            self._texts = []

    # Calls

    def _read_call(self, said: FunctionCall, signature: str | None, events: list[StreamEvent]) -> None:
        last = self._calls[-1] if self._calls else None
        call = last if not said.name and last is not None and last.open else None
        if call is None:
            if said.name is None and not said.args and not said.partial_args:
                return  # the end of a call that has ended
            call = self._begin_call(said, signature, events)
        given: object = said.args
        if given is not None:
            text = given if isinstance(given, str) else encode(given).decode()
            if isinstance(given, dict):
                call.arguments |= cast(dict[str, Any], given)
            else:  # some server's own idea of arguments: text, which may be an object's
                call.odd = text
            events += [ToolCallArguments(self._calls.index(call), text)] if given else []
        for piece in said.partial_args or ():
            call.paths = call.paths or PathArguments()
            events.append(ToolCallArguments(self._calls.index(call), call.paths.add(piece)))
        call.open = bool(said.will_continue)

    def _begin_call(self, said: FunctionCall, signature: str | None, events: list[StreamEvent]) -> _Call:
        position = len(self._calls)
        name = said.name or ""
        part: dict[str, Any] = {"functionCall": {"name": name} | ({"id": said.id} if said.id else {})}
        if said.id:
            self._signed = True
        if signature:
            part["thoughtSignature"] = signature
            self._signed = True
        self._keep(part)
        call = _Call(unique_call_id(said.id or "", [one.id for one in self._calls], self.options.id_prefix), name)
        self._calls.append(call)
        events.append(ToolCallStarted(position, call.id, name))
        return call

    def _ready(self, call: _Call, *, ended: bool) -> ToolCall:
        if call.open and not ended:
            return ToolCall(call.id, call.name, encode(call.arguments).decode(), Truncated())
        if call.odd is not None:
            return read_call(call.id, call.name, call.odd, ended=ended)
        value = call.arguments | (call.paths.close() if call.paths is not None else {})
        text = encode(value).decode()
        if call.paths is not None and call.paths.problem:
            return ToolCall(call.id, call.name, text, Invalid(call.paths.problem))
        return ToolCall(call.id, call.name, text, Parsed(value))

    # The end

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        self.over = True
        events: list[StreamEvent] = []
        self._close_text(events)
        self._close_part()
        said = decode_raw(self._usage)
        usage = read_usage(said)
        if usage is not None:
            events.append(UsageReported(usage, said))
        reason = finish_reason(self._said)
        if self._fault is not None:
            return [*events, Finished(reason, self._said)] if reason else events
        if self._blocked and not self._candidates:
            said = f"the prompt was refused ({self._blocked})"
            return [*events, FaultReported(Fault("content_blocked", "request", said=said)), Finished("content_filter", None)]
        if reason is None and not self.options.ends_unmarked:
            if self._candidates or not self._chunks:
                return [*events, self._unfinished()]
            return [*events, Finished("unknown", None)]  # no candidate at all: an empty answer
        return [*events, *self._closing(reason or "stop")]

    def _closing(self, reason: FinishReason) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for position, call in enumerate(self._calls):
            events.append(ToolCallReady(position, self._ready(call, ended=reason != "length")))
        if self._said in _MALFORMED and not self._calls:
            events += self._malformed()
        if self._signed:
            events.append(NativePart(FAMILY, self.options.model, {"parts": self._parts}))
        return [*events, Finished(reason, self._said)]

    def _malformed(self) -> list[StreamEvent]:
        """The server could not read the model's own call: a failure that the model is told of, and can mend."""
        found = _NAME_IN_MESSAGE.search(self._message)
        name = found.group(1) if found else "malformed_call"
        problem = f"The call could not be read ({self._said}: {self._message[:200] or 'no more was said'})."
        call = ToolCall(
            f"{self.options.id_prefix}0", name, "", Invalid(f"{problem} Call an offered tool, with one JSON object.")
        )
        return [ToolCallStarted(0, call.id, name), ToolCallReady(0, call)]
