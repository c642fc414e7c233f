"""The chat-completions chunk as typed structs, and a lenient reading of what does not fit them."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

_EMPTY = Raw(b"")


class Function(Struct):
    """A call's name and arguments; arguments may come as an object where a string was promised."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallDelta(Struct):
    """A fragment of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(Struct):
    """What a chunk adds. The same shape serves as `message` in a whole answer."""

    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: Function | None = None
    refusal: str | None = None


class Choice(Struct):
    """One of the answers that a request may ask for; only the one with index 0 is read."""

    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    error: Raw = _EMPTY


class Groq(Struct):
    """Groq's own corner, where its older models report usage."""

    usage: Raw = _EMPTY


class Chunk(Struct):
    """One event of the stream, or a whole answer."""

    choices: list[Choice] | None = None
    usage: Raw = _EMPTY
    error: Raw = _EMPTY
    x_groq: Groq | None = None


class PlainDelta(Struct, forbid_unknown_fields=True):
    """A delta of text and nothing else."""

    content: str
    role: str | None = None


class PlainChoice(Struct):
    """A choice of such a delta."""

    delta: PlainDelta
    index: int = 0
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    error: Raw = _EMPTY


class PlainChunk(Struct):
    """The chunk that nearly all chunks are; whatever does not fit it is read as a `Chunk`."""

    choices: list[PlainChoice]
    usage: Raw = _EMPTY
    error: Raw = _EMPTY
    x_groq: Raw = _EMPTY


decode_plain = msgspec.json.Decoder(PlainChunk).decode
"""The chunk in `data`; raises msgspec.DecodeError where it is any but a plain one."""

_decoder = msgspec.json.Decoder(Chunk)


def decode_chunk(data: bytes) -> Chunk | None:
    """The chunk in `data`, or None where it is no JSON object at all.

    What does not fit the typed shape (a number where text was promised, half of a surrogate pair, broken UTF-8) is read
    field by field instead: one odd field does not cost the rest.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _lenient(data)


def decode_raw(raw: Raw | bytes) -> object:
    """The JSON value kept undecoded in `raw`; None for none."""
    data = bytes(raw)
    if not data or data == b"null":
        return None
    value: object = json.loads(data.decode("utf-8", "replace"))
    return value


def _lenient(data: bytes) -> Chunk | None:
    try:
        value: object = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    chunk = cast(dict[str, Any], value)
    choices = [_choice(_table(one)) for one in _items(chunk.get("choices"))]
    usage = chunk.get("usage") or _table(chunk.get("x_groq")).get("usage")
    return Chunk(choices=choices, usage=_raw(usage), error=_raw(chunk.get("error")))


def _choice(choice: dict[str, Any]) -> Choice:
    index = choice.get("index")
    return Choice(
        index=index if isinstance(index, int) else 0,
        delta=_delta(choice.get("delta")),
        message=_delta(choice.get("message")),
        finish_reason=_text(choice.get("finish_reason")),
        native_finish_reason=_text(choice.get("native_finish_reason")),
        error=_raw(choice.get("error")),
    )


def _delta(value: object) -> Delta | None:
    if not isinstance(value, dict):
        return None
    delta = cast(dict[str, Any], value)
    content: object = delta.get("content")
    return Delta(
        content=cast(list[Any], content) if isinstance(content, list) else _text(content),
        reasoning_content=_text(delta.get("reasoning_content")),
        reasoning=_text(delta.get("reasoning")),
        reasoning_details=[_table(one) for one in _items(delta.get("reasoning_details"))] or None,
        tool_calls=[_call(_table(one)) for one in _items(delta.get("tool_calls"))] or None,
        function_call=_function(delta.get("function_call")),
        refusal=_text(delta.get("refusal")),
    )


def _call(call: dict[str, Any]) -> CallDelta:
    index = call.get("index")
    number = int(index) if isinstance(index, str) and index.isdecimal() else index
    return CallDelta(
        index=number if isinstance(number, int) else None,
        id=_text(call.get("id")),
        function=_function(call.get("function")),
    )


def _function(value: object) -> Function | None:
    if not isinstance(value, dict):
        return None
    function = cast(dict[str, Any], value)
    arguments: object = function.get("arguments")
    return Function(
        name=_text(function.get("name")),
        arguments=cast(dict[str, Any], arguments) if isinstance(arguments, dict) else _arguments_text(arguments),
    )


def _arguments_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)  # a list or number: kept as text, and refused as arguments later


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else None


def _items(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def _table(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _raw(value: object) -> Raw:
    return _EMPTY if value is None else Raw(json.dumps(value).encode())
