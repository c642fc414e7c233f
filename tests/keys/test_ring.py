"""Which key is asked next (S3.3, S3.3a)."""

from __future__ import annotations

from turnkeeper import Model
from turnkeeper.keys.entry import Key
from turnkeeper.keys.health import Change
from turnkeeper.keys.ring import KeyRing, NoKey, Ready, Resting
from turnkeeper.types.faults import Fault

NOW = 1_790_000_000.0
SECRETS = ["sk-one-0123456789", "sk-two-0123456789", "sk-six-0123456789"]
URL = "http://127.0.0.1:9/v1"
MODEL = Model("openai-chat", "gpt-x", URL, keys=SECRETS)
LIMIT = Fault("rate_limit", "key", retry_after_s=60, rests="pair")


def pick(ring: KeyRing, channel: str = "a", now: float = NOW, model: Model = MODEL, tried: frozenset[str] = frozenset()) -> str:
    """Picks a key, and returns its secret."""
    look = ring.look(model, "", channel, now, tried)
    assert isinstance(look, Ready)
    ring.picked(look.key, model, channel, now)
    return look.key.secret


def test_three_fresh_keys_and_six_channels_in_the_same_tick_get_two_each() -> None:
    """cases.md: used is stamped at the pick."""
    ring = KeyRing()
    picked = [pick(ring, channel) for channel in "abcdef"]
    assert picked == SECRETS * 2


def test_a_channel_keeps_its_key_while_the_prompt_may_be_cached_and_then_takes_the_least_used() -> None:
    """S3.3; cases.md: three turns in a channel on a pool of three keys: one key."""
    ring = KeyRing(warm_s=300)
    assert [pick(ring, "a", NOW + 100 * turn) for turn in range(3)] == [SECRETS[0]] * 3
    assert pick(ring, "a", NOW + 200 + 301) == SECRETS[1]


def test_a_channels_key_is_kept_by_model() -> None:
    ring = KeyRing()
    other = Model("openai-chat", "gpt-y", URL, keys=SECRETS)
    assert [pick(ring), pick(ring, model=other), pick(ring), pick(ring, model=other)] == [
        SECRETS[0], SECRETS[1], SECRETS[0], SECRETS[1],
    ]  # fmt: skip


def test_a_warm_key_that_rests_is_left_for_another() -> None:
    ring = KeyRing()
    pick(ring)
    ring.refused(ring.pool(MODEL)[0], MODEL, LIMIT, NOW)
    assert pick(ring) == SECRETS[1]


def test_keys_that_were_tried_are_not_asked_again_and_an_empty_pool_says_so() -> None:
    ring = KeyRing()
    ids = frozenset(key.id for key in ring.pool(MODEL))
    assert ring.look(MODEL, "", "a", NOW, ids) == NoKey(empty=False)
    assert ring.look(MODEL, "nobody", "a", NOW) == NoKey(empty=True)


def test_where_all_rest_the_first_to_be_back_is_named() -> None:
    ring = KeyRing()
    for seconds, key in zip((50, 20, 90), ring.pool(MODEL), strict=True):
        ring.refused(key, MODEL, Fault("rate_limit", "key", retry_after_s=seconds, rests="pair"), NOW)
    look = ring.look(MODEL, "", "a", NOW)
    assert isinstance(look, Resting)
    assert (look.rest.until, look.keys) == (NOW + 20, 3)
    assert isinstance(ring.look(MODEL, "", "a", NOW + 21), Ready)


def test_a_key_that_is_given_twice_is_one() -> None:
    model = Model("openai-chat", "gpt-x", URL, keys=[SECRETS[0], SECRETS[0]])
    assert [key.secret for key in KeyRing().pool(model)] == [SECRETS[0]]
    stored = [Key("k1", "127.0.0.1:9", SECRETS[0]), Key("k2", "127.0.0.1:9", SECRETS[0])]
    assert [key.id for key in KeyRing(stored).pool(Model("openai-chat", "gpt-x", URL))] == ["k1"]


def test_a_model_that_names_no_key_is_asked_with_those_of_its_provider_or_with_none() -> None:
    bare = Model("openai-chat", "gpt-x", URL)
    stored = [
        Key("k1", "127.0.0.1:9", SECRETS[0]),
        Key("k2", "openai", SECRETS[1]),
        Key("k3", "127.0.0.1:9", SECRETS[2], "ada"),
    ]
    assert [key.id for key in KeyRing(stored).pool(bare)] == ["k1"]
    assert [key.id for key in KeyRing(stored).pool(bare, "ada")] == ["k3"]
    assert [key.secret for key in KeyRing().pool(bare)] == [""]


def test_a_server_that_wants_no_key_and_refuses_all_the_same_is_asked_again() -> None:
    """There is no key that could be edited: the rest would never end."""
    ring, bare = KeyRing(), Model("openai-chat", "gpt-x", URL)
    ring.refused(ring.pool(bare)[0], bare, Fault("auth", "key", rests="key"), NOW)
    assert isinstance(ring.look(bare, "", "a", NOW), Ready)


def test_keys_of_an_account_that_answers_name_share_its_limits() -> None:
    """S3.3a"""
    ring = KeyRing()
    for key in ring.pool(MODEL)[:2]:
        ring.belongs(key, "org-1")
    first, second, third = ring.pool(MODEL)
    ring.refused(first, MODEL, LIMIT, NOW)
    assert ring.rest_of(second, MODEL, NOW) is not None
    assert ring.rest_of(third, MODEL, NOW) is None


def test_changes_of_health_are_told_but_for_a_refused_key_of_the_configuration() -> None:
    """A key that stands in a file is edited there: the next start must try it again."""
    told: list[Change] = []
    stored = Key("k1", "127.0.0.1:9", "sk-stored-0123456789")
    ring = KeyRing([stored], changed=told.append)
    configured = ring.pool(MODEL)[0]
    ring.refused(configured, MODEL, Fault("auth", "key", rests="key"), NOW)
    assert told == []
    ring.refused(stored, MODEL, Fault("auth", "key", rests="key"), NOW)
    ring.refused(configured, MODEL, LIMIT, NOW)
    ring.succeeded(configured, MODEL, NOW + 61)
    assert [(len(change.rests), len(change.ended)) for change in told] == [(1, 0), (1, 0), (0, 2)]


def test_keys_are_not_shown() -> None:
    """S3.3"""
    key = Key("k1", "openai", "sk-secret-0123456789")
    assert "secret" not in repr(key)
    assert key.shown == "6789"
