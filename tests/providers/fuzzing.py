# Parsers against mutated recordings: `make fuzz` for a minute, a short slice in the tests.
#
# What must hold for any bytes: no exception, an end, events that are no larger than what came in, and the same report
# however the bytes were cut.

"""Mutates recorded answers and feeds them to the parsers."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.shared import STREAMS
from turnkeeper.providers.families import find_family
from turnkeeper.providers.model import FAMILIES
from turnkeeper.providers.report import fold
from turnkeeper.types.stream import StreamEvent

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, 1e308, "", " ", "\ud800", "\udc00\ud83d", "\x00", "<think>", "</think>", "`", "[DONE]",
    [], {}, [[]], [{}], [None], {"": None}, {"error": {"message": "x"}}, "STOP", "stop", "error", "x" * 5_000, [1, "a", {"b": []}],
]  # fmt: skip
BYTES = [b"\x00", b"\xff", b"\r", b"\n", b"\n\n", b"\r\n\r\n", b"data: ", b"data:", b"event: error\n", b"\xe2\x80\xa8", b":", b"{", b"}",
         b'"', b"[DONE]", b"data: [DONE]\n\n", b"\xef\xbb\xbf", b"[" * 2_000, b'{"a":' * 2_000, b"\\ud83d", b"<html>"]  # fmt: skip
SEEDS: dict[str, list[bytes]] = {
    "novelai": [
        b'event:newToken\nid:1\ndata:{"token":"Hello","ptr":0,"final":false}\n\n'
        b'event:newToken\nid:2\ndata:{"token":" there.\\n[ Place: inn ]\\nUser:","ptr":1,"final":true}\n\n',
    ],
    "openai-chat": [
        b'data: {"choices":[{"index":0,"delta":{"content":"hi","tool_calls":[{"index":0,"id":"a","function":{"name":"f",'
        b'"arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n'
    ],
}


def seeds() -> list[tuple[str, bytes]]:
    """Family and body of each recording, and of a few made up."""
    found = [(family, body) for family, bodies in SEEDS.items() for body in bodies]
    for path in sorted(STREAMS.glob("*.json")) if STREAMS is not None else []:
        body = path.with_suffix(".sse").read_bytes()
        found.append((json.loads(path.read_text("utf-8"))["family"], body[:60_000]))
    return found


def mutated(body: bytes, chance: random.Random) -> bytes:
    """The body with one to six mutations."""
    for _ in range(chance.randint(1, 6)):
        body = chance.choice(MUTATIONS)(body, chance)
    return body[:200_000]


def check(family: str, body: bytes, chance: random.Random) -> None:
    """Raises AssertionError, or what a parser raised, where something does not hold."""
    whole = _events(family, [body])
    assert sum(_size(event) for event in whole) <= 40 * len(body) + 20_000, "events larger than what came in"
    cuts = sorted(chance.sample(range(len(body)), min(len(body), chance.choice([1, 3, 20, 200]))))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert fold(_events(family, pieces)) == fold(whole), "the report depends on the cuts"


def _events(family: str, pieces: list[bytes]) -> list[StreamEvent]:
    parser = find_family(family).parser(None)
    events = [event for piece in pieces for event in parser.feed(piece)]
    events += parser.close()
    assert parser.over
    assert not parser.feed(b"data: {}\n\n")
    return events


def _size(event: StreamEvent) -> int:
    return sum(len(value) for name in event.__struct_fields__ if isinstance(value := getattr(event, name), str))


def _flip(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]


def _insert(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + chance.choice(BYTES) + body[at:]


def _delete(body: bytes, chance: random.Random) -> bytes:
    a, b = sorted((chance.randrange(len(body) + 1), chance.randrange(len(body) + 1)))
    return body[:a] + body[min(b, a + 400) :]


def _repeat(body: bytes, chance: random.Random) -> bytes:
    a = chance.randrange(len(body) + 1)
    span = body[a : a + chance.randint(1, 800)]
    return body[:a] + span * chance.randint(2, 5) + body[a:]


def _cut(body: bytes, chance: random.Random) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def _shuffle(body: bytes, chance: random.Random) -> bytes:
    parts = body.split(b"\n\n")
    a, b = chance.randrange(len(parts)), chance.randrange(len(parts))
    parts[a], parts[b] = parts[b], parts[a]
    return b"\n\n".join(parts)


def _odd_value(body: bytes, chance: random.Random) -> bytes:
    """One JSON value somewhere in one event becomes an odd one."""
    lines = body.split(b"\n")
    data = [place for place, line in enumerate(lines) if line.startswith(b"data:")]
    if not data:
        return body
    place = chance.choice(data)
    try:
        value = json.loads(lines[place][5:])
    except (ValueError, RecursionError):
        return body
    lines[place] = b"data: " + json.dumps(_with_odd(value, chance)).encode()
    return b"\n".join(lines)


def _with_odd(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        return {**value, key: _with_odd(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], _with_odd(value[place], chance), *value[place + 1 :]]
    return chance.choice(ODD)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _flip, _insert, _delete, _repeat, _cut, _shuffle, _odd_value, _odd_value, _odd_value, _odd_value,
]  # fmt: skip


def run(rounds: int, seed: int, until: float | None = None) -> int:
    """Checks `rounds` mutated answers, or as many as there is time for. Returns how many. Raises with what shows a failure."""
    known = seeds()
    for number in range(rounds):
        if until is not None and time.monotonic() > until:
            return number
        chance = random.Random(f"{seed}/{number}")
        family, body = chance.choice(known)
        family = chance.choice(FAMILIES) if chance.random() < 0.1 else family
        body = mutated(body, chance)
        try:
            check(family, body, chance)
        except Exception:
            where = Path("fuzz-failure.sse")
            where.write_bytes(body)
            sys.stderr.write(f"{family}: seed {seed}, round {number}; the bytes are in {where}\n")
            raise
    return rounds


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    begin = time.monotonic()
    sys.stdout.write(f"{run(10**9, random.randrange(10**9), begin + seconds):,} mutated answers, no failure\n")
