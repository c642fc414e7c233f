"""Typed decoding that loses a field where that field is odd, and not the rest of the message."""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast, get_args

import msgspec
from msgspec import Struct

_S = TypeVar("_S", bound=Struct)


def decode_leniently(data: bytes, kind: type[_S]) -> _S | None:
    """The object in `data` with the fields that fit `kind`; None where `data` is no JSON object at all.

    For what a typed decoder refused: a number where text was promised, half of a surrogate pair, broken UTF-8.
    """
    value = decode_json(data)
    return _fit(cast(dict[str, Any], value), kind) if isinstance(value, dict) else None


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
        try:
            fields[field.name] = msgspec.convert(part, field.type)
        except (msgspec.ValidationError, RecursionError):
            inner = _struct_of(field.type)
            if inner is not None and isinstance(part, dict):
                fields[field.name] = _fit(cast(dict[str, Any], part), inner)
    return kind(**fields)


def _struct_of(annotation: object) -> type[Struct] | None:
    """The struct that an annotation such as `Delta | None` speaks of."""
    for one in (annotation, *get_args(annotation)):
        if isinstance(one, type) and issubclass(one, Struct):
            return one
    return None
