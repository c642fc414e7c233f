"""Real recorded answers give what they are known to mean, however they are cut (S12.2)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.shared import STREAMS
from turnkeeper.providers.report import report

FAMILIES = ("openai-chat", "anthropic", "openai-responses", "gemini")
COMPARED = ("text", "reasoning", "tool_calls", "finish_reason", "usage", "error")


def recordings() -> list[Path]:
    if STREAMS is None:
        return []
    return [path for path in sorted(STREAMS.glob("*.json")) if json.loads(path.read_text("utf-8"))["family"] in FAMILIES]


def pieces_of(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
def test_a_recording_gives_what_is_expected_at_every_chunking(path: Path) -> None:
    known = json.loads(path.read_text("utf-8"))
    expected: dict[str, Any] = {name: known["expected"][name] for name in COMPARED}
    body = path.with_suffix(".sse").read_bytes()
    chance = random.Random(path.stem)
    ways = {
        "whole": [body],
        "one byte at a time": pieces_of(body, 1),
        "7 bytes": pieces_of(body, 7),
        "1,000 bytes": pieces_of(body, 1000),
        "CRLF": pieces_of(body.replace(b"\n", b"\r\n"), 333),
        "lone CR": pieces_of(body.replace(b"\n", b"\r"), 333),
    }
    for number in range(50):
        cuts = sorted(chance.sample(range(len(body)), min(chance.choice([1, 5, 60]), len(body))))
        ways[f"random cuts {number}"] = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    for way, pieces in ways.items():
        found = report(known["family"], pieces)
        for call, wanted in zip(found["tool_calls"], expected["tool_calls"], strict=True):
            if wanted["id"] is None:  # the server sent none: we make one
                assert call["id"]
                call["id"] = None
        assert {name: found[name] for name in COMPARED} == expected, way
