# One scripted answer in Gemini's words.
#
# Theory of operation. A step becomes chunks of parts (without the envelope that all share); `together` puts parts into one
# chunk, `interleave` shuffles chunks; last each gets its envelope, with the counts so far, and is one event.
# Not on this wire, and so without effect: the end mark, the index of a call, its legacy form, its name in pieces, a late id.
# Signatures are made up. They are distinct, so that a test sees which part a client has given back.

"""How an answer of the Gemini API is worded, chunk by chunk or whole."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, zip_longest
from typing import Any, Literal, TypeAlias, assert_never

from msgspec import UNSET, Struct

from turnkeeper.testing.gemini_words import Counts, Part, Target, Weight, compact, error, partial_arguments
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.steps import (
    Answer,
    Call,
    Chunked,
    Done,
    Error,
    Event,
    Finish,
    Interleaved,
    Refuse,
    Say,
    Spoken,
    Think,
    Together,
    Usage,
    flat,
)
from turnkeeper.testing.wire import SseEvent

Signed: TypeAlias = Literal["each", "first", "none"]
"""Which calls of an answer carry a thought signature."""

_FINISHES = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "function_call": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_FINISH_MESSAGES = {
    "MALFORMED_FUNCTION_CALL": "Malformed function call: what the model wrote is no call",
    "UNEXPECTED_TOOL_CALL": "Unexpected tool call: the model called a tool that it was not given",
}


class Chunk(Struct, frozen=True):
    """What is in a chunk. `parts` None is no content; `error` alone stands without an envelope."""

    parts: tuple[Part, ...] | None = None
    finish: str | None = None
    blocked: bool = False
    error: dict[str, Any] | None = None


class GeminiVoice:
    """One answer. `say` and `end` for a stream, `whole` for a document."""

    def __init__(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str], signed: Signed) -> None:
        self._answer = answer
        self._target = Target.of(request.path)
        self._signed = signed
        self._counts = Counts.of(answer, request.body)
        self._id = f"resp-{new_id().removeprefix('call_')}"
        self._closing_text = _closing_text(answer)
        self._signatures = 0
        self._texts = 0
        self._calls = 0
        self._said = Weight()
        self._finished = False

    def say(self, step: Spoken) -> list[SseEvent]:
        """The step's events."""
        match step:
            case Event():
                return [SseEvent(step.data, step.name)]
            case Done():
                return []
            case Error() if step.name:
                return [SseEvent(compact({"error": error(step)}), step.name)]
            case _:
                return [SseEvent(compact(self._body(chunk))) for chunk in self._chunks(step)]

    def end(self) -> list[SseEvent]:
        """The finish reason, if it is still due."""
        return [] if self._finished else self.say(Finish("STOP"))

    def whole(self) -> dict[str, Any] | list[Any]:
        """All of the answer as one document: of a stream without `alt=sse` an array of the chunks, else one response."""
        if self._target.method == "streamGenerateContent" and not self._answer.whole:
            return self._array()
        said = list(flat(self._answer.steps))
        for step in said:
            if isinstance(step, Error):
                return {"error": error(step)}
        parts = tuple(_joined(part for step in said for part in self._parts(step)))
        blocked = any(isinstance(step, Refuse) for step in said)
        reasons = [step.reason for step in said if isinstance(step, Finish)]
        reason = reasons[-1] if reasons else None if blocked else "STOP"
        finish = None if reason is None else _FINISHES.get(reason, reason)
        self._finished = True
        return self._body(Chunk(parts or (None if blocked else ()), finish, blocked))

    def _array(self) -> list[Any]:
        events = [event for step in self._answer.steps if isinstance(step, Spoken) for event in self.say(step)]
        events += [] if self._answer.ends_itself else self.end()
        return [_data(event) for event in events]

    def _chunks(self, step: Chunked) -> list[Chunk]:
        match step:
            case Say() | Think():
                return [Chunk((part,)) for part in self._text(step, step.pieces)]
            case Call():
                return [Chunk((part,)) for part in self._call(step, streamed=step.in_pieces)]
            case Refuse():
                self._finished = True  # a blocked prompt has no candidate that could finish
                return [Chunk(blocked=True)]
            case Error():
                return [Chunk(error=error(step))]
            case Finish():
                self._finished = True
                return [] if step.reason is None else [Chunk((), _FINISHES.get(step.reason, step.reason))]
            case Usage():
                return []  # the counts are in every chunk
            case Together():
                return _one_chunk(list(chain.from_iterable(self._chunks(one) for one in step.steps)))
            case Interleaved():
                turns = zip_longest(*[self._chunks(one) for one in step.steps])
                return [chunk for turn in turns for chunk in turn if chunk is not None]
            case _:
                assert_never(step)

    def _parts(self, step: Chunked | Done | Event) -> list[Part]:
        """What a step adds to a whole response."""
        match step:
            case Say() | Think():
                return self._text(step, step.pieces)
            case Call():
                return self._call(step, streamed=False)
            case _:
                return []

    def _text(self, step: Say | Think, pieces: tuple[str, ...]) -> list[Part]:
        if isinstance(step, Think):
            return [{"text": piece, "thought": True} for piece in pieces]
        parts: list[Part] = [{"text": piece} for piece in pieces]
        if self._texts == self._closing_text and self._signed != "none":
            parts[-1]["thoughtSignature"] = self._signature()
        self._texts += bool(pieces)
        return parts

    def _call(self, step: Call, *, streamed: bool) -> list[Part]:
        """The parts of a call: one, or its name, its arguments path by path, and an empty end."""
        own = {"name": step.name} if step.id in (UNSET, None) else {"name": step.name, "id": step.id}
        signed = self._signed == "each" or (self._signed == "first" and not self._calls)
        self._calls += 1
        signature = {"thoughtSignature": self._signature()} if signed else {}
        given = _arguments(step)
        partial = partial_arguments(given, max(map(len, step.fragments), default=1)) if streamed else None
        if partial is None or len(step.fragments) < 2:
            return [{"functionCall": own if given is UNSET else own | {"args": given}} | signature]
        begun: Part = {"functionCall": own | {"willContinue": True}} | signature
        values = [{"functionCall": {"partialArgs": [entry], "willContinue": True}} for entry in partial]
        return [begun, *values, {"functionCall": {}}]

    def _signature(self) -> str:
        self._signatures += 1
        return base64.b64encode(f"turnkeeper thought {self._signatures} of {self._id}".encode()).decode()

    def _body(self, chunk: Chunk) -> dict[str, Any]:
        if chunk.error is not None and chunk.parts is None:
            return {"error": chunk.error}
        body: dict[str, Any] = {}
        if chunk.parts is not None or chunk.finish is not None:
            body["candidates"] = [_candidate(chunk)]
        if chunk.blocked:
            body["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        self._said = self._said.with_parts(chunk.parts or ())
        counts = self._counts.at(None if self._finished else self._said)
        body |= {"usageMetadata": counts, "modelVersion": self._target.model, "responseId": self._id}
        return body if chunk.error is None else body | {"error": chunk.error}


def _candidate(chunk: Chunk) -> dict[str, Any]:
    parts = list(chunk.parts or ())
    candidate: dict[str, Any] = {}
    if parts or chunk.finish in ("STOP", "MAX_TOKENS"):
        candidate["content"] = {"parts": parts or [{"text": ""}], "role": "model"}
    elif chunk.finish in _FINISH_MESSAGES:
        candidate["content"] = {}
    if chunk.finish is not None:
        candidate["finishReason"] = chunk.finish
    candidate["index"] = 0
    if chunk.finish in _FINISH_MESSAGES:
        candidate["finishMessage"] = _FINISH_MESSAGES[chunk.finish]
    return candidate


def _closing_text(answer: Answer) -> int | None:
    """Which of the texts is the last after some thinking, counted from 0; None if there was no thinking before it."""
    said = [step for step in flat(answer.steps) if isinstance(step, Say | Think) and step.pieces]
    last = max((place for place, step in enumerate(said) if isinstance(step, Say)), default=-1)
    texts = [step for step in said if isinstance(step, Say)]
    return len(texts) - 1 if any(isinstance(step, Think) for step in said[: last + 1]) else None


def _one_chunk(chunks: list[Chunk]) -> list[Chunk]:
    """All in one chunk; none if there is nothing to be said."""
    if not chunks:
        return []
    with_parts = [chunk.parts for chunk in chunks if chunk.parts is not None]
    finishes = [chunk.finish for chunk in chunks if chunk.finish is not None]
    errors = [chunk.error for chunk in chunks if chunk.error is not None]
    return [
        Chunk(
            tuple(_joined(chain.from_iterable(with_parts))) if with_parts else None,
            finishes[-1] if finishes else None,
            any(chunk.blocked for chunk in chunks),
            errors[-1] if errors else None,
        )
    ]


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, with neighbouring texts of one kind in one."""
    before: Part | None = None
    for part in parts:
        if before is not None and _joins(before, part):
            before = part | {"text": before["text"] + part["text"]}
            continue
        if before is not None:
            yield before
        before = part
    if before is not None:
        yield before


def _joins(before: Part, part: Part) -> bool:
    """Whether both are text of one kind. A signed text is complete: nothing is added to it."""
    both_texts = "text" in before and "text" in part
    return both_texts and before.get("thought") == part.get("thought") and "thoughtSignature" not in before


def _arguments(step: Call) -> Any:
    """`args` of a call: an object where the text spells one, UNSET for an empty text, and a broken text as it is."""
    if isinstance(step.arguments, dict):
        return step.arguments
    if not step.arguments:
        return UNSET
    try:
        return json.loads(step.arguments)
    except (ValueError, RecursionError):
        return step.arguments


def _data(event: SseEvent) -> Any:
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError):
        return event.data
