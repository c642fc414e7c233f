"""Typed decoding that loses a field where that field is odd, and not the rest of the message."""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Struct

_STREAMED = ("text", "thinking", "partial_json", "delta", "token")
"""Fields whose text goes on in the next event."""

_S = TypeVar("_S", bound=Struct)


def decode_leniently(data: bytes, kind: type[_S]) -> _S | None:
    """The object in `data` with the fields that fit `kind`; None where `data` is no JSON object at all.

    For what a typed decoder refused: a number where text was promised, half of a surrogate pair, broken UTF-8. Halves stay
    where the other half may follow in the next event; elsewhere they become U+FFFD.
    """
    value = decode_json(data)
    try:
        return _fit(cast(dict[str, Any], value), kind) if isinstance(value, dict) else None
    except RecursionError:  # nested deeper than anything that is meant
        return None


def decode_json(data: bytes) -> object:
    """The JSON value in `data`, None where there is none. Broken UTF-8 and halves of surrogate pairs are let through."""
    try:
        value: object = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def _fit(value: dict[str, Any], kind: type[_S]) -> _S:
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in value:
            continue
        part: object = value[field.encode_name]
        if isinstance(part, str):
            if field.type is str or str in get_args(field.type) or field.type is Any:
                fields[field.name] = part if field.name in _STREAMED else without_halves(part)
            continue
        if field.type is msgspec.Raw:
            fields[field.name] = msgspec.Raw(msgspec.json.encode(without_halves(part)))
            continue
        one, many = _structs_of(field.type)
        if one is not None and isinstance(part, dict):
            fields[field.name] = _fit(cast(dict[str, Any], part), one)
        elif many is not None and isinstance(part, list):
            tables = [cast(dict[str, Any], item) for item in cast(list[object], part) if isinstance(item, dict)]
            fields[field.name] = [_fit(table, many) for table in tables]
        else:
            try:
                fields[field.name] = msgspec.convert(without_halves(part), field.type)
            except msgspec.ValidationError:
                continue  # the odd field is left out
    return kind(**fields)


def without_halves(value: object) -> Any:
    """The JSON value with U+FFFD for halves of surrogate pairs, which no encoder takes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [without_halves(one) for one in cast(list[object], value)]
    if isinstance(value, dict):
        return {without_halves(name): without_halves(one) for name, one in cast(dict[str, object], value).items()}
    return value


def _structs_of(annotation: object) -> tuple[type[Struct] | None, type[Struct] | None]:
    """The struct that an annotation takes, and the struct that it takes a list of: `Delta | None`, `list[Part] | None`."""
    one = many = None
    for kind in (annotation, *get_args(annotation)):
        if get_origin(kind) is list:
            many = next((inner for inner in get_args(kind) if _is_struct(inner)), None)
        elif _is_struct(kind):
            one = cast(type[Struct], kind)
    return one, many


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)
