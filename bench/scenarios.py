# What is played: the same bytes for both sides, and what must come of them.
#
# Everything is made here, before anything is measured: the SSE events of each pass, and the outcome that a correct client
# has in its hands at the end. A side whose outcome differs stops the benchmark, so a wrong engine can't win.

"""The scenarios of the benchmark."""

from __future__ import annotations

import random
from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.json import encode

from bench.tools import page_text, saved

PROMPT = "Go through all of it, please."

_VOCABULARY = (
    "the tide and moon of water pulls rises falls between harbour twice each day while boats wait low stone café quiet "
    "lanterns drift along wall because gravity turns slowly north naïve fishers count ropes under grey light — again"
)
_WORDS = _VOCABULARY.split()
_PIECE = 4096  # characters of arguments in one chunk of the large call


class Call(Struct, frozen=True):
    """A tool call as asked for, and what the tool returned."""

    name: str
    arguments: str
    result: str


class Outcome(Struct, frozen=True):
    """What a turn came to."""

    end: str
    text: str
    calls: tuple[Call, ...]

    @property
    def digest(self) -> str:
        """Equal outcomes have equal ones. How blank lines join the passes' texts is nobody's concern here."""
        return blake2b(encode([self.end, self.text.split(), self.calls]), digest_size=16).hexdigest()


class Scenario(Struct, frozen=True, kw_only=True):
    """One scenario.

    passes: for each request of a turn, the events of its answer.
    gap_s: between two writes of the server. at_once: turns that run together. turns: of one repetition.
    carried: the first pass breaks off, and the second one carries it on where the request holds what was said.
    burst: a pass is one write. hold_at: this many events of a pass are sent, the rest waits until it is released.
    target: the most that the engine may cost, in costs of the reference; None where the row is for information.
    """

    name: str
    title: str
    passes: tuple[tuple[bytes, ...], ...]
    outcome: Outcome
    target: float | None = None
    gap_s: float = 100e-6
    at_once: int = 1
    turns: int = 1
    burst: bool = False
    carried: bool = False
    hold_at: int | None = None

    @property
    def together(self) -> bool:
        """Whether its turns run side by side."""
        return self.at_once > 1

    @property
    def events(self) -> int:
        """Server-sent events of one turn."""
        return sum(len(events) for events in self.passes)


class _Writer:
    """Writes chat-completion chunks as OpenAI does, and remembers what they said."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._random = random.Random(model.partition("-")[0])  # the same bytes in each run
        self._passes: list[tuple[bytes, ...]] = []
        self._texts: list[str] = []
        self._calls: list[Call] = []

    def say(self, chunks: int) -> list[bytes]:
        """Text in `chunks` pieces, a word or two each."""
        pieces = [self._random.choice(_WORDS) + self._random.choice(("", "", "", "", ".", ",", " of")) for _ in range(chunks)]
        pieces[0] = f"Part{len(self._passes) + 1}"
        pieces = [piece if place == 0 else f" {piece}" for place, piece in enumerate(pieces)]
        self._texts.append("".join(pieces))
        return [self._event({"content": piece}) for piece in pieces]

    def call(self, name: str, arguments: str, result: str, pieces: Iterable[str]) -> list[bytes]:
        """A tool call, its arguments in `pieces`."""
        number = len(self._calls) + 1
        self._calls.append(Call(name, arguments, result))
        start = {"index": 0, "id": f"call_{number:024d}", "type": "function", "function": {"name": name, "arguments": ""}}
        deltas = [start, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
        return [self._event({"tool_calls": [delta]}) for delta in deltas]

    def look_up(self, chunks: int) -> list[bytes]:
        """A call of `look_up` in `chunks` pieces, the one with its name among them."""
        page = len(self._calls) + 1
        topic = " ".join(self._random.choices(_WORDS, k=6))
        arguments = encode({"topic": topic, "page": page}).decode()
        return self.call("look_up", arguments, page_text(topic, page), _cut(arguments, -(-len(arguments) // (chunks - 1))))

    def end_pass(self, events: list[bytes], finish: str) -> None:
        """Puts a head and a foot to the events of a pass."""
        head = self._event({"role": "assistant", "content": None if finish == "tool_calls" else "", "refusal": None})
        foot = [self._event({}, finish), self._usage(len(events)), b"data: [DONE]\n\n"]
        self._passes.append((head, *events, *foot))

    def break_pass(self, events: list[bytes]) -> None:
        """Ends a pass by an error of the server."""
        head = self._event({"role": "assistant", "content": "", "refusal": None})
        failed = b"data: " + encode({"error": {"message": "The server had an error.", "code": "server_error"}}) + b"\n\n"
        self._passes.append((head, *events, failed))

    def scenario(self, **fields: object) -> Scenario:
        """The scenario of all that was written."""
        outcome = Outcome("completed", "\n\n".join(self._texts), tuple(self._calls))
        values = {"name": self._model, "passes": tuple(self._passes), "outcome": outcome} | fields
        return Scenario(**values)  # type: ignore[arg-type]

    def _event(self, delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._chunk([choice], None)

    def _usage(self, written: int) -> bytes:
        return self._chunk([], {"prompt_tokens": 100, "completion_tokens": written, "total_tokens": 100 + written})

    def _chunk(self, choices: list[dict[str, object]], usage: dict[str, int] | None) -> bytes:
        chunk = {
            "id": f"chatcmpl-{len(self._passes):029d}",
            "object": "chat.completion.chunk",
            "created": 1764000000,
            "model": self._model,
            "service_tier": "default",
            "system_fingerprint": "fp_0123456789",
            "choices": choices,
            "usage": usage,
        }
        return b"data: " + encode(chunk) + b"\n\n"


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _text(name: str, title: str, **fields: object) -> Scenario:
    writer = _Writer(name)
    writer.end_pass(writer.say(400), "stop")
    return writer.scenario(title=title, **fields)


def _failover() -> list[Scenario]:
    """A reply that breaks in its middle and is carried on, and the same reply unbroken, played by `failover-whole`."""
    writer, whole = _Writer("failover"), _Writer("failover-whole")
    events = writer.say(400)
    writer.break_pass(events[:200])
    writer.end_pass(events[200:], "stop")
    whole.end_pass(whole.say(400), "stop")
    title = "400 text chunks with one failover"
    told = whole.scenario(title=title, turns=8)
    return [writer.scenario(title=title, target=1.3, turns=8, carried=True), told]


def _passes() -> Scenario:
    writer = _Writer("passes")
    for _ in range(10):
        writer.end_pass(writer.say(12) + writer.look_up(8), "tool_calls")
    writer.end_pass(writer.say(20), "stop")
    return writer.scenario(title="10 tool passes of 20 chunks", target=2.5, turns=8)


def _long() -> Scenario:
    """100 passes, which is the engine's ceiling by default: 99 with a call, and the answer."""
    writer = _Writer("long")
    for _ in range(99):
        writer.end_pass(writer.look_up(4), "tool_calls")
    writer.end_pass(writer.say(4), "stop")
    return writer.scenario(title="100 passes of 4 chunks", target=2.5, turns=3)


def _arguments() -> Scenario:
    writer = _Writer("arguments")
    chance = random.Random("arguments")
    lines = [" ".join(chance.choices(_WORDS, k=12)) for _ in range(18_000)]
    content = "\n".join(f'{number}: "{line}"' for number, line in enumerate(lines))[:1_000_000]
    arguments = encode({"path": "notes/tides.txt", "content": content}).decode()
    writer.end_pass(
        writer.call("write_file", arguments, saved("notes/tides.txt", content), _cut(arguments, _PIECE)), "tool_calls"
    )
    writer.end_pass(writer.say(10), "stop")
    return writer.scenario(title="1 MB of arguments in 4 KB pieces", target=1.3, turns=3)


def _many(name: str, title: str, **fields: object) -> Scenario:
    writer = _Writer(name)
    writer.end_pass(writer.say(40), "stop")
    return writer.scenario(title=title, gap_s=0.005, **fields)


def all_scenarios() -> dict[str, Scenario]:
    """Every scenario, by name, which is the name of the model that plays it."""
    made = [
        _text("text", "400 text chunks", target=2.0, turns=8),
        _passes(),
        _long(),
        _arguments(),
        _many("many", "200 turns at once, 5 ms a chunk", target=1.4, at_once=200, turns=200),
        _text("filter", "400 text chunks, calls looked for", target=1.15, turns=8),
        *_failover(),
        _text("burst", "400 text chunks in one write", burst=True, turns=16),
        _many("held", "turns that are held half-way", hold_at=20, at_once=250),
    ]
    return {scenario.name: scenario for scenario in made}


def decode_outcome(data: bytes) -> Outcome:
    """An outcome that was written as JSON."""
    return msgspec.json.decode(data, type=Outcome)
