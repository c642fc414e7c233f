"""Budgets: what a turn, a user, a channel, a server and all together may use (issue 11.8, S15.2)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import Bench
from turnkeeper import Host, tool
from turnkeeper.delivery.notices import Language, words
from turnkeeper.journal.events import PassEnded, Recorded
from turnkeeper.journal.folds import summaries
from turnkeeper.journal.journal import MemoryJournal
from turnkeeper.keys.entry import Key, Rest
from turnkeeper.ledger.entries import entries
from turnkeeper.ledger.ledger import DAY_S, Ledger, Payer
from turnkeeper.settings import Settings
from turnkeeper.testing import Answer, call, hang, say, usage
from turnkeeper.types.turn import Notice
from turnkeeper.types.usage import Usage

MIDNIGHT = 20_000 * DAY_S
NOON = float(MIDNIGHT + DAY_S // 2)


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def host(clock: Clock, **options: Any) -> Host:
    return Host(random=random.Random(7), clock=clock, **options)


def reply(tokens: int, text: str = "Fine.") -> Answer:
    """An answer that uses so many tokens."""
    return say(text) + usage(prompt=tokens - 10, completion=10)


async def test_a_user_is_refused_when_the_days_tokens_are_used_and_answered_on_the_next_day(bench: Bench) -> None:
    clock = Clock()
    engine = bench.engine(user_day_tokens=1000, host=host(clock))
    bench.provider.play(reply(600), reply(600), reply(600))
    ends = [(await engine.run("hi", channel=f"c{number}", user="ann")).end for number in range(3)]
    assert ends == ["completed", "completed", "error"]
    assert len(bench.provider.requests) == 2
    refused = await engine.run("hi", user="ann")
    assert [words(notice) for notice in refused.notices] == [
        "Your budget of 1,000 tokens a day is used up; it is full again at 00:00 UTC, in 12 h."
    ]
    assert (await engine.run("hi", user="bob")).end == "completed"
    clock.now += DAY_S / 2
    bench.provider.play(reply(600))
    assert (await engine.run("hi", user="ann")).end == "completed"


async def test_a_user_with_a_budget_of_1000_tokens_who_stops_ten_turns_after_300_each(bench: Bench) -> None:
    """cases.md: ten rows, refused from the fourth or fifth. A stopped turn counts, by estimate."""
    engine = bench.engine(user_day_tokens=1000, host=host(Clock()))
    ends: list[str] = []
    for number in range(10):
        bench.provider.play(say("word " * 240, pieces=1) + hang())
        ends.append(await stopped_once_shown(bench, engine, f"c{number}"))
    assert len(summaries(await bench.journal.latest(100))) == 10
    first_refused = ends.index("error")
    assert first_refused in (3, 4)
    assert set(ends[first_refused:]) == {"error"}
    assert len(bench.provider.requests) == first_refused


async def stopped_once_shown(bench: Bench, engine: Any, channel: str) -> str:
    """Runs a turn and stops it when its text has come; returns how it ended."""
    end = ""
    async for event in engine.stream("hi", channel=channel, user="ann"):
        if hasattr(event, "result"):
            end = event.result.end
        else:
            await engine.stop(channel)
    return end


@pytest.mark.parametrize(
    ("settings", "others"),
    [
        ({"channel_day_tokens": 500}, {"channel": "other"}),
        ({"server_day_tokens": 500}, {"channel": "elsewhere"}),
        ({"user_day_cost": 0.5}, {"user": "bob"}),
        ({"channel_day_cost": 0.5}, {"channel": "other"}),
    ],
)
async def test_a_budget_is_that_of_its_channel_server_or_user_alone(
    bench: Bench, settings: dict[str, Any], others: dict[str, str]
) -> None:
    priced = bench.model(price={"input": 1000.0, "output": 1000.0})
    at = {"c": "home", "d": "home"}
    engine = bench.engine(models=[priced], host=host(Clock(), server_of=lambda channel: at.get(channel, "")), **settings)
    bench.provider.play(reply(500), reply(500), reply(500))
    assert (await engine.run("hi", channel="c", user="ann")).end == "completed"
    same = "d" if "server_day_tokens" in settings else "c"
    refused = await engine.run("hi", channel=same, user="ann")
    assert (refused.end, [notice.kind for notice in refused.notices]) == ("error", ["over_budget"])
    assert (await engine.run("hi", **{"channel": "c", "user": "ann"} | others)).end == "completed"


@pytest.mark.parametrize("settings", [{"day_tokens": 500}, {"day_cost": 0.5}])
async def test_the_budget_of_the_day_is_everybodys(bench: Bench, settings: dict[str, Any]) -> None:
    engine = bench.engine(models=[bench.model(price={"input": 1000.0, "output": 1000.0})], host=host(Clock()), **settings)
    bench.provider.play(reply(500))
    await engine.run("hi", channel="c", user="ann")
    assert (await engine.run("hi", channel="d", user="bob")).end == "error"


async def test_a_turn_over_its_budget_ends_between_passes_and_what_was_done_stands(bench: Bench) -> None:
    runs: list[int] = []

    @tool
    async def work() -> str:
        """Works."""
        runs.append(1)
        return "done"

    engine = bench.engine(work, turn_tokens=1000)
    bench.provider.default = say("On it.") + call("work", {}) + usage(prompt=390, completion=10)
    result = await engine.run("go")
    assert (result.end, result.fault) == ("error", None)
    assert (len(bench.provider.requests), len(runs)) == (3, 3)
    assert words(result.notices[-1]) == (
        "Stopped: this reply has used its budget of 1,000 tokens. What was done so far stands."
    )
    assert len(result.attempts) == 1  # no other key or model is asked to pay instead


async def test_a_restart_forgets_nothing_of_the_day(bench: Bench, tmp_path: Path) -> None:
    journal, clock = f"sqlite:///{tmp_path / 'turns.db'}", Clock()
    first = bench.engine(user_day_tokens=500, journal=journal, host=host(clock))
    bench.provider.play(reply(300), reply(300), reply(300))
    await first.run("hi", user="ann")
    await first.run("hi", user="ann")
    await first.aclose()
    again = bench.engine(user_day_tokens=500, journal=journal, host=host(clock))
    assert (await again.run("hi", user="ann")).end == "error"
    assert (await again.run("hi", user="bob")).end == "completed"


async def test_yesterdays_use_does_not_count_and_a_turn_over_midnight_counts_where_its_passes_end(bench: Bench) -> None:
    clock = Clock(MIDNIGHT - 10.0)
    engine = bench.engine(user_day_tokens=500, host=host(clock))
    bench.provider.play(reply(900))
    await engine.run("hi", user="ann")
    clock.now += 20
    bench.provider.play(reply(900))
    assert (await engine.run("hi", user="ann")).end == "completed"
    again = bench.engine(user_day_tokens=500, host=host(clock))
    assert (await again.run("hi", user="ann")).end == "error"


class OwnKeys:
    """A store with ann's own key."""

    def load(self) -> tuple[list[Key], list[Rest]]:
        return [Key("k1", self.provider, "anns-own-key-0123456789", "ann")], []

    def save(self, rests: object, ended: object) -> None:
        return None

    def __init__(self, provider: str) -> None:
        self.provider = provider


async def test_what_a_users_own_key_pays_counts_for_the_turn_alone(bench: Bench) -> None:
    """S3.8: who brings a key is not held to the server's budgets."""
    from turnkeeper.providers.catalogue import provider_at

    keys = OwnKeys(provider_at(bench.provider.base_url))
    engine = bench.engine(user_day_tokens=100, day_tokens=100, host=host(Clock(), keys=keys))
    bench.provider.play(reply(300), reply(300), reply(300))
    results = [await engine.run("hi", user="ann") for _ in range(2)]
    assert [(one.end, one.charged) for one in results] == [("completed", "ann")] * 2
    assert (await engine.run("hi", user="bob")).end == "completed"
    assert (await engine.run("hi", user="bob")).end == "error"


async def test_a_model_without_a_price_is_told_of_once_and_does_not_count_in_money(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    engine = bench.engine(user_day_cost=0.01, host=host(Clock()))
    bench.provider.play(reply(500), reply(500))
    assert [(await engine.run("hi")).end for _ in range(2)] == ["completed", "completed"]
    assert caplog.text.count("The price of gpt-x is not known") == 1


async def test_a_refusal_blames_no_key_and_no_model(bench: Bench) -> None:
    engine = bench.engine(day_tokens=1, host=host(Clock()))
    bench.provider.play(reply(100))
    await engine.run("hi")
    refused = await engine.run("hi")
    assert (refused.end, refused.fault, refused.usage) == ("error", None, ())


async def test_a_clock_that_jumps_and_comes_back_finds_its_day_again() -> None:
    clock = Clock()
    ledger = Ledger(Settings(user_day_tokens=100), MemoryJournal(), clock)
    await ledger.open()
    ledger.add(Payer("ann", "c"), "m", Usage(input=100))
    assert ledger.refusal(Payer("ann", "c")) is not None
    clock.now += 100 * DAY_S
    assert ledger.refusal(Payer("ann", "c")) is None
    clock.now -= 100 * DAY_S
    assert ledger.refusal(Payer("ann", "c")) is not None


@given(st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 400), st.floats(0, 2 * DAY_S)), max_size=30))
def test_sums_of_a_day_are_what_the_passes_of_that_day_add_up_to(passes: list[tuple[str, int, float]]) -> None:
    clock = Clock()
    ledger = Ledger(Settings(user_day_tokens=1000), MemoryJournal(), clock)
    for user, tokens, later in passes:
        ledger.add(Payer(user, "c"), "m", Usage(input=tokens), MIDNIGHT + later)
    for user in ("ann", "bob"):
        for day in (0, 1):
            clock.now = MIDNIGHT + day * DAY_S + 5.0
            used = sum(tokens for who, tokens, later in passes if who == user and later // DAY_S == day)
            assert (ledger.refusal(Payer(user, "c")) is not None) == (used >= 1000)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("scope", ["turn", "user", "channel", "server", "day"])
@pytest.mark.parametrize("amount", ["1000 tokens", "2.5 usd"])
def test_every_refusal_is_one_sentence_in_each_language(language: Language, scope: str, amount: str) -> None:
    said = words(Notice("over_budget", f"{scope} {amount} 5400"), language)
    assert "{" not in said
    assert ("1,000" if "tokens" in amount else "$2.50") in said
    assert scope == "turn" or "00:00 UTC" in said


def test_a_pass_of_a_turn_whose_beginning_is_not_known_is_still_on_the_ledger() -> None:
    found = entries([Recorded("t", "c", NOON, PassEnded(1, "Completed", "hi", usage=Usage(input=5)))])
    assert [(one.channel, one.user, one.usage.input) for one in found] == [("c", "", 5)]
