"""Answers for parser tests: made of events, and read at every cut."""

from __future__ import annotations

import json
from typing import Any

from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.families import find_family
from turnkeeper.providers.report import fold
from turnkeeper.types.stream import NativePart, StreamEvent


def sse(*events: dict[str, Any], named: bool = False) -> bytes:
    """The events as a stream; `named`: each with its type before its data, as Anthropic and OpenAI do."""
    parts = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join(parts).encode()


def events_of(family: str, pieces: list[bytes], model: str = "m") -> list[StreamEvent]:
    """What the family's parser makes of the pieces."""
    parser = find_family(family).parser(AnswerOptions(model))
    return [one for piece in pieces for one in parser.feed(piece)] + parser.close()


def read(family: str, body: bytes) -> dict[str, Any]:
    """The report of a body; the same whole, byte by byte, and cut in two at any place."""
    whole = fold(events_of(family, [body]))
    assert fold(events_of(family, [body[i : i + 1] for i in range(len(body))])) == whole
    for place in range(0, len(body), max(1, len(body) // 40)):
        assert fold(events_of(family, [body[:place], body[place:]])) == whole
    return whole


def native_of(family: str, body: bytes) -> dict[str, Any] | None:
    """The native part of a body's answer."""
    return next((event.data for event in events_of(family, [body]) if isinstance(event, NativePart)), None)
