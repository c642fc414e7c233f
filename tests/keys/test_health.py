"""How long keys rest, and what ends a rest (S3.3, S3.3a, S3.3b)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from turnkeeper.keys.entry import UNTIL_EDITED, Key, Rest
from turnkeeper.keys.health import FIRST_GUESS_S, LONGEST_GUESS_S, OTHER_ERROR_S, Health, is_preference
from turnkeeper.types.faults import Fault

A = Key("a", "openai", "sk-a-0123456789")
B = Key("b", "openai", "sk-b-0123456789")
NOW = 1_790_000_000.0


def limit(wait: float | None = None, **more: Any) -> Fault:
    return Fault("rate_limit", "key", retry_after_s=wait, **{"rests": "pair"} | more)


def left(health: Health, key: Key, model: str = "m", now: float = NOW) -> float:
    rest = health.rest_of(key, model, now)
    return rest.until - now if rest is not None else 0.0


def test_a_limit_rests_the_pair_of_key_and_model_only() -> None:
    """S3.3a; cases.md: 429 for one model of a key: other models of that key go on."""
    health = Health()
    health.refused(A, "m", limit(20), NOW)
    assert (left(health, A), left(health, A, "other"), left(health, B)) == (20, 0, 0)


@pytest.mark.parametrize("kind", ["quota_exhausted", "credit_ceiling"])
def test_spent_money_rests_the_key_for_all_models_until_the_time_that_was_named(kind: Any) -> None:
    """cases.md: `usage_limit_reached` with `resets_in_seconds: 500000`."""
    health = Health()
    health.refused(A, "m", Fault(kind, "key", retry_after_s=500_000, rests="key"), NOW)
    assert (left(health, A), left(health, A, "other"), left(health, B)) == (500_000, 500_000, 0)


def test_guesses_begin_at_a_minute_and_double_to_a_quarter_of_an_hour() -> None:
    """S3.3"""
    health, now, seen = Health(), NOW, list[float]()
    for _ in range(7):
        health.refused(A, "m", limit(), now)
        seen.append(left(health, A, now=now))
        now += seen[-1]
    assert seen == [60, 120, 240, 480, 900, 900, 900]


def test_a_success_begins_the_guesses_anew() -> None:
    health = Health()
    for number in range(3):
        health.refused(A, "m", limit(), NOW + number)
    health.succeeded(A, "m", NOW + 10)
    assert left(health, A, now=NOW + 10) == 0
    health.refused(A, "m", limit(), NOW + 20)
    assert left(health, A, now=NOW + 20) == FIRST_GUESS_S


def test_a_success_that_began_before_the_refusal_ends_nothing() -> None:
    """S3.3a"""
    health = Health()
    health.refused(A, "m", limit(50), NOW)
    assert health.succeeded(A, "m", NOW - 1).ended == ()
    assert left(health, A) == 50
    assert [rest.model for rest in health.succeeded(A, "m", NOW + 1).ended] == ["m"]
    assert left(health, A) == 0


def test_a_refused_key_is_out_until_it_is_edited() -> None:
    """S3.3"""
    health = Health()
    health.refused(A, "m", Fault("auth", "key", rests="key"), NOW)
    assert left(health, A, "other", NOW + 10**9) == UNTIL_EDITED
    health.edited(A)
    assert left(health, A) == 0


@pytest.mark.parametrize(
    "fault",
    [
        Fault("network", "network"),
        Fault("timeout", "model"),
        Fault("content_blocked", "request"),
        Fault("context_length", "request"),
        Fault("bad_request", "request"),
        Fault("auth", "network"),
        Fault("protocol", "network"),
    ],
    ids=str,
)
def test_what_is_not_the_keys_fault_leaves_it_unharmed(fault: Fault) -> None:
    """S3.3b: a bot challenge, a proxy's 401, flagged input, a timeout."""
    health = Health()
    assert health.refused(A, "m", fault, NOW).rests == ()
    assert left(health, A) == 0


def test_a_region_rests_the_provider_with_all_its_keys() -> None:
    """S3.3b"""
    health = Health()
    health.refused(A, "m", Fault("permission", "network", rests="provider"), NOW)
    assert left(health, A) == left(health, B, "other") == FIRST_GUESS_S
    assert left(health, replace(B, provider="anthropic")) == 0


def test_keys_of_one_account_share_its_limits_but_not_a_refused_key() -> None:
    """S3.3a"""
    one, two = replace(A, account="org"), replace(B, account="org")
    health = Health()
    health.refused(one, "m", limit(20), NOW)
    assert (left(health, two), left(health, two, "other")) == (20, 0)
    assert left(health, replace(two, provider="anthropic")) == 0
    health.refused(one, "m", Fault("auth", "key", rests="key"), NOW)
    assert left(health, two) == 20


def test_a_failure_of_the_server_is_a_preference_unless_it_named_a_time() -> None:
    """S3.3: other errors cool down 30 s."""
    health = Health()
    health.refused(A, "m", Fault("server", "model"), NOW)
    rest = health.rest_of(A, "m", NOW)
    assert rest is not None
    assert (rest.until - NOW, is_preference(rest)) == (OTHER_ERROR_S, True)
    health.refused(A, "m", Fault("overloaded", "model", retry_after_s=600), NOW)
    rest = health.rest_of(A, "m", NOW)
    assert rest is not None
    assert (rest.until - NOW, is_preference(rest)) == (600, False)


def test_a_clock_that_goes_back_makes_no_rest_longer_than_it_was() -> None:
    health = Health()
    health.refused(A, "m", limit(20), NOW)
    back = NOW - 86_400
    assert left(health, A, now=back) == 20
    assert left(health, A, now=back + 15) == 5
    assert left(health, A, now=back + 21) == 0


def test_rests_survive_a_restart() -> None:
    health = Health()
    health.refused(A, "m", limit(20), NOW)
    again = Health(health.rests)
    assert left(again, A, now=NOW + 5) == 15


FAULTS = st.one_of(
    st.one_of(st.none(), st.floats(0, 100_000)).map(limit),
    st.one_of(st.none(), st.floats(0, 1_000_000)).map(
        lambda wait: Fault("quota_exhausted", "key", retry_after_s=wait, rests="key")
    ),
    st.sampled_from([Fault("server", "model"), Fault("network", "network"), Fault("timeout", "model")]),
)
STEPS = st.lists(
    st.tuples(
        st.floats(0, 5000),  # seconds that pass
        st.sampled_from([A, B, replace(A, id="c", account="org"), replace(B, id="d", account="org")]),
        st.sampled_from(["m", "n"]),
        st.one_of(FAULTS, st.floats(0, 10_000)),  # a refusal, or a success that began so many seconds ago
    ),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=400)
def test_no_rest_is_ever_shorter_than_the_latest_time_that_a_server_named(
    steps: list[tuple[float, Key, str, Fault | float]],
) -> None:
    """S3.3a: in any order of refusals with and without times, and late successes."""
    health, now = Health(), NOW
    named: dict[tuple[str, str], tuple[float, float]] = {}  # holder and model: until when, and when that was said
    for passed, key, model, step in steps:
        now += passed
        holder = f"account:{key.account}" if key.account else key.id
        if isinstance(step, Fault):
            health.refused(key, model, step, now)
            if step.retry_after_s is not None:
                place = (holder, "" if step.rests == "key" else model)
                until = max(now + step.retry_after_s, named.get(place, (0.0, 0.0))[0])
                named[place] = (until, now)
        else:
            health.succeeded(key, model, now - step)
            for place in ((holder, model), (holder, "")):
                if place in named and now - step > named[place][1]:
                    del named[place]
        for other in (A, B, replace(A, id="c", account="org"), replace(B, id="d", account="org")):
            who = f"account:{other.account}" if other.account else other.id
            for name in ("m", "n"):
                least = max([named.get((who, name), (0.0, 0.0))[0], named.get((who, ""), (0.0, 0.0))[0]])
                rest = health.rest_of(other, name, now)
                if least > now:
                    assert rest is not None
                    assert rest.until >= least - 1e-6
                assert rest is None or rest.named or rest.until - now <= LONGEST_GUESS_S + 1e-6


@given(st.lists(st.tuples(st.floats(0, 1000), FAULTS), min_size=1, max_size=20))
def test_the_same_refusals_give_the_same_rests(refusals: list[tuple[float, Fault]]) -> None:
    def fold() -> tuple[Rest, ...]:
        health, now = Health(), NOW
        for passed, fault in refusals:
            now += passed
            health.refused(A, "m", fault, now)
        return health.rests

    assert fold() == fold()
