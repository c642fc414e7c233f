"""From the text of a call's arguments to what may be dispatched (S12.3, S6.1)."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from turnkeeper.providers.lenient import without_halves
from turnkeeper.types.calls import Arguments, Invalid, Parsed, ToolCall, Truncated

_NOTHING = ("", "null")


def read_call(call_id: str, name: str, text: str, *, ended: bool) -> ToolCall:
    """The call that a name and the text of its arguments make; see `read_arguments`.

    Where the text is not itself the one object that was read out of it (nothing at all, or the last of several), the call
    keeps that object's text: what is sent back to a server is always one object.
    """
    text = without_halves(text)
    stripped = text.strip()
    try:
        value: object = msgspec.json.decode(stripped) if stripped not in _NOTHING else None
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        return ToolCall(call_id, without_halves(name), stripped, Parsed(cast(dict[str, Any], value)))
    arguments = read_arguments(text, ended=ended)
    kept = msgspec.json.encode(arguments.value).decode() if isinstance(arguments, Parsed) else text
    return ToolCall(call_id, without_halves(name), kept, arguments)


def read_arguments(text: str, *, ended: bool) -> Arguments:
    """What the text of a call's arguments is.

    text: all that the model wrote; empty and `null` mean no arguments.
    ended: the provider said that it had finished, and not for want of room. Where it had not, text that is the
        beginning of an object was cut and is Truncated: never mended into a dispatch.
    Several whole objects in a row are a server that repeats itself: the last one counts (cases.md).
    """
    stripped = text.strip()
    if stripped in _NOTHING:
        return Parsed({})
    try:
        value: object = msgspec.json.decode(stripped.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError) as problem:
        return _read_odd(stripped, str(problem), ended=ended)
    return _object(value)


def is_whole_object(text: str) -> bool:
    """Whether the text is one complete JSON object already."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(msgspec.json.decode(text.encode("utf-8", "surrogatepass")), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def _object(value: object) -> Arguments:
    if isinstance(value, dict):
        return Parsed(cast(dict[str, Any], value))
    kind = {"list": "a list", "str": "a string", "bool": "a boolean", "NoneType": "null"}.get(type(value).__name__, "a number")
    return Invalid(f"The arguments must be one JSON object, not {kind}.")


def _read_odd(text: str, problem: str, *, ended: bool) -> Arguments:
    """Text that is no single JSON value: several objects in a row, a cut object, or plain wrong."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    position, value = 0, None
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            if not ended and text[position] == "{":
                return Truncated()
            return Invalid(f"The arguments are not valid JSON ({problem}); write one JSON object and nothing else.")
        while position < len(text) and text[position].isspace():
            position += 1
    return _object(value)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
