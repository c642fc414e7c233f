"""Every way to fail, at every position, with everybody who may come next (S3.1 to S3.8), over real HTTP.

The scripted models behave as real ones do: a replacement goes on only where it was given the text so far, else it begins at
the top. What should come out is worked out here anew, from the rules, and compared on what the reader sees, what ran, who is
charged, which keys rest and how many requests the server got.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from msgspec import Struct

from tests.harness import Bench
from turnkeeper import Engine, Host, TurnResult, tool
from turnkeeper.delivery.stitcher import resume_point
from turnkeeper.keys.entry import Key, Rest
from turnkeeper.keys.ring import KeyRing
from turnkeeper.testing import Answer, SeenRequest, call, cut, error, fail, hang, say

Next = Literal["key", "model", "server", "none"]
Position = Literal["before text", "mid-text", "after a message", "after many messages", "mid-tool", "after tool"]

ONE, TWO = "sk-one-0123456789abcdef", "sk-two-0123456789abcdef"
REPLY = " ".join(f"Sentence {n} of the reply tells of the tide of day {n}." for n in range(1, 31))
SHOWN: dict[Position, int] = {
    "before text": 0,
    "mid-text": 31,
    "after a message": 180,
    "after many messages": 700,
    "mid-tool": 0,
    "after tool": 0,
}


class Failure(Struct, frozen=True):
    """A class of failure: as an HTTP error, and inside a stream; None where it does not come so."""

    kind: str
    status: int = 0
    body: dict[str, Any] | str | None = None
    code: str | None = None
    rests: str = "nothing"  # "pair", "key", "provider" or "nothing"
    retryable: bool = True
    same_key: bool = False  # a lost connection before any byte is tried once more on the same key (S3.3d)


def said(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "code": code}}


FAILURES = [
    Failure("rate_limit", 429, said("Rate limit reached", "rate_limit_exceeded"), "rate_limit_exceeded", "pair"),
    Failure("quota_exhausted", 429, said("You exceeded your current quota", "insufficient_quota"), "insufficient_quota", "key"),
    Failure("credit_ceiling", 402, said("Insufficient credits", "insufficient_credits"), None, "key"),
    Failure("auth", 401, said("Incorrect API key provided", "invalid_api_key"), None, "key"),
    Failure("permission", 403, said("Project has no access to model", "model_not_found"), None, "pair"),
    Failure("model_unavailable", 404, said("The model does not exist", "model_not_found"), None, "pair"),
    Failure("overloaded", 503, said("Overloaded", "overloaded_error"), "overloaded_error", "soft"),
    Failure("server", 500, said("Internal error", "server_error"), "server_error", "soft"),
    Failure("content_blocked", 400, said("flagged", "content_filter"), "content_filter", retryable=False),
    Failure("bad_request", 400, said("Unknown parameter: 'x'", "invalid_request_error"), None, retryable=False),
    Failure("protocol", 200, "<html>a page</html>"),
    Failure("network", same_key=True),
    Failure("timeout"),
]
BROKEN = ("network", "server", "overloaded")  # a stream that breaks so is carried on (S3.4a)


class Case(Struct, frozen=True):
    failure: Failure
    position: Position
    next: Next

    def __str__(self) -> str:
        return f"{self.failure.kind}, {self.position}, next {self.next}"


def cases() -> list[Case]:
    made = [Case(*one) for one in itertools.product(FAILURES, SHOWN, ("key", "model", "server", "none"))]
    streamed = ("mid-text", "after a message", "after many messages", "mid-tool")
    return [
        case
        for case in made
        if case.position not in streamed or case.failure.code or case.failure.kind in ("network", "timeout")
    ]


@tool
async def tide() -> str:
    """Tells the tide."""
    RAN.append("tide")
    return "high"


RAN: list[str] = []


def breaking(case: Case) -> Answer:
    """What stands where the answer breaks."""
    failure = case.failure
    begun = case.position not in ("before text", "after tool")
    if failure.kind == "network":
        return cut()
    if failure.kind == "timeout":
        return hang()
    if begun:
        return error(str(failure.kind), code=failure.code)
    return fail(failure.status, body=failure.body)


def answer(case: Case, seen: SeenRequest, failing: bool) -> Answer:
    """What the models say: the one that fails until the case's position, the others to the end."""
    messages: list[dict[str, Any]] = seen.body["messages"]
    wants_tool = case.position in ("mid-tool", "after tool")
    has_result = any(message["role"] == "tool" for message in messages)
    if wants_tool and not has_result:
        if failing and case.position == "mid-tool":
            return call("tide", '{"n": 1', pieces=2) + breaking(case)
        return call("tide", {})
    said_before = [m for m in messages[-2:] if m["role"] == "assistant" and not m.get("tool_calls")]
    given = said_before[-1]["content"] if said_before else ""
    assert REPLY.startswith(given)
    rest = REPLY[len(given) :]
    if failing:
        text = rest[: SHOWN[case.position]]
        return say(text) + breaking(case) if text else breaking(case)
    return say(rest)


class Store:
    """Keys in memory."""

    def __init__(self, *keys: Key) -> None:
        self.keys = list(keys)
        self.rests: dict[tuple[str, str], Rest] = {}

    def load(self) -> tuple[list[Key], list[Rest]]:
        return self.keys, list(self.rests.values())

    def save(self, rests: Sequence[Rest], ended: Sequence[Rest]) -> None:
        self.rests |= {(rest.holder, rest.model): rest for rest in rests}
        for rest in ended:
            self.rests.pop((rest.holder, rest.model), None)


def engine_for(case: Case, bench: Bench) -> Engine:
    provider = f"127.0.0.1:{bench.provider.base_url.split(':')[2].split('/')[0]}"
    if case.next == "key":
        models = [bench.model("gpt-x", keys=[ONE, TWO])]
    elif case.next == "model":
        models = [bench.model("gpt-x", keys=[ONE]), bench.model("gpt-y", keys=[TWO])]
    elif case.next == "server":
        models = [bench.model("gpt-x", keys=[TWO])]
    else:
        models = [bench.model("gpt-x", keys=[ONE])]
    own = Store(Key("own", provider, ONE, "ada")) if case.next == "server" else Store()
    return bench.engine(tide, models=models, host=Host(keys=own), message_limit=150)


class Expected(Struct, frozen=True):
    """What the rules say that comes of a case."""

    reads: str
    end: str
    ran: list[str]
    requests: int
    charged: str
    resting: str  # what of the key that failed rests


def expected(case: Case) -> Expected:
    failure, position = case.failure, case.position
    goes_on = case.next != "none" and failure.retryable
    if failure.kind == "timeout" and case.next == "key":  # S3.2: another key of a silent model would be silent too
        goes_on = False
    begun = position not in ("before text", "after tool")
    last_try = case.next in ("none", "server") and begun and failure.kind in BROKEN  # once more with the same key
    shown = SHOWN[position]
    first = 2 if position == "after tool" else 1
    again = 1 if failure.same_key and not begun else 0
    if goes_on:
        more = 1 + again + (1 if position == "mid-tool" else 0) + (1 if last_try else 0)
        ran = ["tide"] if position in ("mid-tool", "after tool") else []
        return Expected(REPLY, "completed", ran, first + more, "", failure.rests)
    end = "timeout" if failure.kind == "timeout" else "error"
    ran = ["tide"] if position == "after tool" else []
    charged = "ada" if case.next == "server" else ""
    if last_try and position != "mid-tool":  # it goes on by the same piece, and breaks once more
        given = len(resume_point(REPLY[:shown]).sent)
        return Expected(REPLY[: given + shown].strip(), end, ran, first + 1, charged, failure.rests)
    return Expected(REPLY[:shown].strip(), end, ran, first + again + (1 if last_try else 0), charged, failure.rests)


@pytest.mark.looptime
@pytest.mark.parametrize("case", cases(), ids=str)
async def test_whatever_fails_wherever_the_next_one_finishes_the_reply(case: Case, bench: Bench) -> None:
    RAN.clear()

    @bench.provider.by_request
    def choose(seen: SeenRequest) -> Answer:
        return answer(case, seen, failing=seen.key == ONE)

    engine = engine_for(case, bench)
    result = await engine.run("What of the tides?", user="ada")
    wanted = expected(case)
    reads = " ".join(message.text.strip() for message in result.deliveries)
    story = await bench.timeline(result)
    assert reads == wanted.reads == result.text, story
    assert (result.end, RAN) == (wanted.end, wanted.ran), story
    assert len(bench.provider.requests) == wanted.requests, story
    assert len(result.usage) == wanted.requests, story  # S3.3d: requests at the server = passes in the journal
    assert result.charged == wanted.charged, story
    assert resting(engine, case, bench) == wanted.resting, story
    assert [notice.kind for notice in result.notices] == notices(case, result), story


def resting(engine: Engine, case: Case, bench: Bench) -> str:
    """What the failing key rests for: nothing, one model, or all."""
    tier = engine._asking._tier  # pyright: ignore[reportPrivateUsage]
    assert tier is not None
    ring: KeyRing = tier.ring
    now = tier.clock()
    model, other = bench.model("gpt-x", keys=[ONE]), bench.model("gpt-z", keys=[ONE])
    key = next(key for key in ring.pool(model, "ada" if case.next == "server" else "") if key.secret == ONE)
    rest = ring.rest_of(key, model, now)
    if rest is None:
        return "nothing"
    if ring.rest_of(key, other, now) is not None:
        return "key"
    return "soft" if rest.kind in ("server", "overloaded") else "pair"


def notices(case: Case, result: TurnResult) -> list[str]:
    """S3.6, S3.7: one report at the end; after a fallback to another model, which one answered."""
    if result.end == "completed":
        return ["answered_by"] if case.next == "model" else []
    return ["timed_out" if result.end == "timeout" else "failed"]
