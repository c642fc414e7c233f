"""The encrypted store of API keys (S3.3): on SQLite, and on PostgreSQL where there is one."""

from __future__ import annotations

import itertools
import logging
import string
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from turnkeeper.errors import ConfigurationError, JournalError
from turnkeeper.keys.entry import UNTIL_EDITED, Key, Rest
from turnkeeper.keys.master import NEW_VARIABLE, VARIABLE, Masters
from turnkeeper.keys.vault import NewKey, Vault

NOW = 1_790_000_000.0
SECRET = "sk-test-0123456789abcdef"
_names = itertools.count()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'turns.db'}"
        return
    server: str = request.getfixturevalue("postgres")
    name = f"vault{next(_names)}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.rsplit("/", 1)[0] + f"/{name}"
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


_vaults: list[Vault] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    """Closes what a test has opened."""
    yield
    while _vaults:
        _vaults.pop().close()


def opened(url: str, tmp_path: Path, env: dict[str, str] | None = None) -> Vault:
    """A vault on it, as a new process would open it."""
    _vaults.append(Vault(url, Masters(env or {}, tmp_path / "data")))
    return _vaults[-1]


def test_a_key_is_read_back_by_the_next_process_with_its_scope_and_account(url: str, tmp_path: Path) -> None:
    vault = opened(url, tmp_path)
    stored = vault.add(NewKey("openai", SECRET, "ann", "acme", "https://x.test/v1"), NOW)
    vault.close()
    again = opened(url, tmp_path)
    keys, rests = again.load()
    assert keys == [Key(stored.id, "openai", SECRET, "ann", "acme")]
    assert (again.all()[0].base_url, again.all()[0].last_four, again.all()[0].added_at) == ("https://x.test/v1", "cdef", NOW)
    assert rests == []
    again.close()


def test_the_same_key_is_not_stored_twice_but_in_another_scope_it_is(url: str, tmp_path: Path) -> None:
    vault = opened(url, tmp_path)
    stored = vault.add(NewKey("openai", SECRET), NOW)
    with pytest.raises(ConfigurationError, match=f"there already, as {stored.id}"):
        vault.add(NewKey("openai", SECRET), NOW)
    vault.add(NewKey("openai", SECRET, "ann"), NOW)
    assert len(vault.all()) == 2
    vault.close()


@pytest.mark.parametrize(
    "secret",
    ["", "sk-1234", "two words of a key", "schlüssel-0123456789", "x" * 4001, '"sk-0123456789"', "OPENAI_API_KEY=sk-01234567"],
)
def test_what_can_be_no_key_is_refused_and_not_quoted(tmp_path: Path, secret: str) -> None:
    vault = opened(f"sqlite:///{tmp_path / 'turns.db'}", tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        vault.add(NewKey("openai", secret), NOW)
    assert not secret or secret.rpartition("=")[2] not in str(refused.value)
    assert vault.all() == []
    vault.close()


def test_a_key_is_named_by_how_only_its_id_begins(tmp_path: Path) -> None:
    vault = opened(f"sqlite:///{tmp_path / 'turns.db'}", tmp_path)
    stored = [vault.add(NewKey("openai", f"{SECRET}{n}"), NOW) for n in range(3)]
    assert vault.find(stored[1].id) == stored[1]
    with pytest.raises(ConfigurationError, match="More than one"):
        vault.find("k")
    for nothing in ("", "zzz"):
        with pytest.raises(ConfigurationError, match="There is no key"):
            vault.find(nothing)
    vault.close()


def test_rests_survive_the_process_the_longest_ones_too_and_end_with_an_edit(url: str, tmp_path: Path) -> None:
    """S3.3: health survives restarts; a refused key is out until it is edited."""
    vault = opened(url, tmp_path)
    stored = vault.add(NewKey("openai", SECRET), NOW)
    limited = Rest(stored.id, "gpt-x", NOW + 60, NOW, "rate_limit", "slow down", 2, named=True)
    refused = Rest(stored.id, "", UNTIL_EDITED, NOW, "auth", "no such key")
    account = Rest("account:openai/acme", "", NOW + 5, NOW, "quota_exhausted", "x" * 500)
    vault.save([limited, refused, account], [])
    vault.save([limited], [])  # said again
    vault.close()
    vault = opened(url, tmp_path)
    assert {rest.holder: len(rest.said) for rest in vault.rests()}["account:openai/acme"] == 400
    assert limited in vault.rests()
    assert refused in vault.rests()
    vault.replace(stored.id, f"{SECRET}-new")
    assert [rest.holder for rest in vault.rests()] == ["account:openai/acme"]
    assert vault.load()[0][0].secret == f"{SECRET}-new"
    vault.save([], [account])
    assert vault.rests() == []
    vault.close()


def test_a_removed_key_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    vault = opened(url, tmp_path)
    stored = vault.add(NewKey("openai", SECRET), NOW)
    vault.save([Rest(stored.id, "m", NOW + 60, NOW, "rate_limit")], [])
    vault.remove(stored.id)
    assert vault.load() == ([], [])
    vault.close()


def test_a_lost_master_key_makes_keys_unreadable_and_loses_nothing_else(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 11, bad input: a clear message, and the rests, the records and new keys are as they were."""
    vault = opened(url, tmp_path)
    lost = vault.add(NewKey("openai", SECRET), NOW)
    vault.save([Rest(lost.id, "m", NOW + 60, NOW, "rate_limit")], [])
    (tmp_path / "data" / "master.key").rename(tmp_path / "kept")
    other = vault.add(NewKey("anthropic", f"{SECRET}-2"), NOW)
    with caplog.at_level(logging.ERROR):
        keys, rests = vault.load()
    assert [key.id for key in keys] == [other.id]
    assert len(rests) == 1
    assert lost.id in caplog.text
    assert "master.key" in caplog.text
    assert SECRET not in caplog.text
    with pytest.raises(ConfigurationError, match="can't be read"):
        vault.rotate()
    assert {one.id for one in vault.all()} == {lost.id, other.id}
    (tmp_path / "kept").rename(tmp_path / "data" / "master.key")
    assert lost.id in [key.id for key in vault.load()[0]]
    vault.close()


def test_a_sealed_key_moved_to_another_record_is_not_opened(url: str, tmp_path: Path) -> None:
    """The record's id, provider and scope are bound to the sealed key: nobody makes ann's key bob's."""
    vault = opened(url, tmp_path)
    vault.add(NewKey("openai", SECRET, "ann"), NOW)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE api_keys SET scope = 'bob'"))
    engine.dispose()
    assert vault.load()[0] == []
    vault.close()


def test_a_rotation_that_died_between_its_steps_loses_no_key(url: str, tmp_path: Path) -> None:
    vault = opened(url, tmp_path)
    vault.add(NewKey("openai", SECRET), NOW)
    Masters({}, tmp_path / "data").begin_rotation()  # and died: the new master key is there, no key is sealed with it
    assert [key.secret for key in opened(url, tmp_path).load()[0]] == [SECRET]
    assert vault.rotate() == 1
    assert [key.secret for key in opened(url, tmp_path).load()[0]] == [SECRET]
    vault.close()


def test_a_rotation_by_the_environment_needs_only_the_new_one_afterwards(url: str, tmp_path: Path) -> None:
    one, two = (b64encode(letter * 32).decode() for letter in (b"1", b"2"))
    before = opened(url, tmp_path, {VARIABLE: one})
    before.add(NewKey("openai", SECRET), NOW)
    assert opened(url, tmp_path, {VARIABLE: one, NEW_VARIABLE: two}).rotate() == 1
    assert [key.secret for key in opened(url, tmp_path, {VARIABLE: two}).load()[0]] == [SECRET]
    assert opened(url, tmp_path, {VARIABLE: one}).load()[0] == []
    assert not list(tmp_path.rglob("master.key*"))
    before.close()


def test_a_database_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "turns.db").write_bytes(b"no database at all, but long enough to be one" * 100)
    with pytest.raises(JournalError, match=r"turns\.db"):
        opened(f"sqlite:///{tmp_path / 'turns.db'}", tmp_path).all()


_secrets = st.text(string.ascii_letters + string.digits + "-_", min_size=12, max_size=60).map("sk-zq-{}".format)
_steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "rotate", "replace", "reopen"]), _secrets), min_size=1, max_size=12
)


@settings(max_examples=25, deadline=None)
@given(_steps)
def test_whatever_is_done_all_keys_stay_readable_and_no_secret_is_in_the_file(steps: list[tuple[str, str]]) -> None:
    """S3.3: encrypted at rest; compared with a plain dictionary after each step."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        vault = opened(f"sqlite:///{place / 'turns.db'}", place)
        kept: dict[str, str] = {}
        seen: set[str] = set()
        for step, secret in steps:
            seen.add(secret)
            first = next(iter(kept), "")
            if step == "add" and secret not in kept.values():
                kept[vault.add(NewKey("openai", secret), NOW).id] = secret
            elif step == "remove" and first:
                vault.remove(first)
                del kept[first]
            elif step == "replace" and first and secret not in kept.values():
                vault.replace(first, secret)
                kept[first] = secret
            elif step == "rotate":
                assert vault.rotate() == len(kept)
            elif step == "reopen":
                vault.close()
                vault = opened(f"sqlite:///{place / 'turns.db'}", place)
            assert {key.id: key.secret for key in vault.load()[0]} == kept
        vault.close()
        stored = b"".join(path.read_bytes() for path in place.glob("turns.db*"))
        for secret in seen:
            for form in (secret, quote(secret, safe=""), b64encode(secret.encode()).decode()):
                assert form.encode() not in stored
