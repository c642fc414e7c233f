"""The events of the Messages API as typed structs."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from turnkeeper.providers.lenient import decode_leniently


class Delta(Struct):
    """What an event adds to a block, or to the message."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    citation: dict[str, Any] | None = None
    stop_reason: str | None = None


class Event(Struct):
    """One event of the stream."""

    type: str = ""
    index: int | None = None
    delta: Delta | None = None
    content_block: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class TextDelta(Struct):
    """The delta that nearly all deltas are."""

    text: str


class TextEvent(Struct):
    """The event of such a delta; whatever does not fit it is read as an `Event`."""

    index: int
    delta: TextDelta


decode_text = msgspec.json.Decoder(TextEvent).decode
"""The text event in `data`; raises msgspec.DecodeError where it is any other."""

_decoder = msgspec.json.Decoder(Event)


def decode_event(data: bytes) -> Event | None:
    """The event in `data`, or None where it is no JSON object at all."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_leniently(data, Event)
