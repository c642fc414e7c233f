"""The events of the Responses API as typed structs."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from turnkeeper.providers.lenient import decode_leniently


class Event(Struct):
    """One event of the stream. Which fields are there depends on its type."""

    type: str = ""
    output_index: int | None = None
    summary_index: int | None = None
    delta: str | dict[str, Any] | None = None
    text: str | None = None
    arguments: str | None = None
    item: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    error: Any = None


class TextEvent(Struct):
    """The event that nearly all events are; whatever does not fit it is read as an `Event`."""

    type: Literal["response.output_text.delta"]
    output_index: int
    delta: str


decode_text = msgspec.json.Decoder(TextEvent).decode
"""The text event in `data`; raises msgspec.DecodeError where it is any other."""

_decoder = msgspec.json.Decoder(Event)


def decode_event(data: bytes) -> Event | None:
    """The event in `data`, or None where it is no JSON object at all."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_leniently(data, Event)
