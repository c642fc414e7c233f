"""The chunks of Gemini's streamGenerateContent as typed structs."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from turnkeeper.providers.counts import table_of
from turnkeeper.providers.lenient import decode_json, decode_leniently


class FunctionCall(Struct, rename="camel", omit_defaults=True):
    """A call, whole, or in pieces: begun by its name, grown by `partial_args`, ended by an empty one."""

    id: str | None = None
    name: str | None = None
    args: Any = None
    partial_args: list[dict[str, Any]] | None = None
    will_continue: bool | None = None


class Part(Struct, rename="camel", omit_defaults=True):
    """One part of the answer. `thought`: its text is reasoning."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: dict[str, Any] | None = None
    executable_code: dict[str, Any] | None = None
    code_execution_result: dict[str, Any] | None = None


class Content(Struct):
    """The parts of one message."""

    parts: list[Part] | None = None


class Candidate(Struct, rename="camel"):
    """One of the answers that a request may ask for; only the one with index 0 is read."""

    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None


class Chunk(Struct, rename="camel"):
    """One event of the stream, or a whole answer."""

    candidates: list[Candidate] | None = None
    usage_metadata: Raw = Raw(b"")
    prompt_feedback: dict[str, Any] | None = None
    error: Any = None


class PlainPart(Struct, forbid_unknown_fields=True):
    """A part of text and nothing else."""

    text: str


class PlainContent(Struct):
    """Such parts."""

    parts: list[PlainPart]


class PlainCandidate(Struct, rename="camel"):
    """A candidate of such content."""

    content: PlainContent
    finish_reason: str | None = None
    index: int | None = None


class PlainChunk(Struct, rename="camel"):
    """The chunk that nearly all chunks are; whatever does not fit it is read as a `Chunk`."""

    candidates: list[PlainCandidate]
    usage_metadata: Raw = Raw(b"")
    prompt_feedback: None = None
    error: None = None


decode_plain = msgspec.json.Decoder(PlainChunk).decode
"""The chunk in `data`; raises msgspec.DecodeError where it is any but a plain one."""

_decoder = msgspec.json.Decoder(Chunk)


def decode_chunk(data: bytes) -> Chunk | None:
    """The chunk in `data`, or None where it is no JSON object at all."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_leniently(data, Chunk)


def decode_raw(raw: Raw | None) -> dict[str, Any]:
    """The JSON object kept undecoded in `raw`; an empty one for none."""
    return table_of(decode_json(bytes(raw))) if raw else {}
