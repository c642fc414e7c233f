"""`turnkeeper keys`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.surfaces.test_cli import run
from turnkeeper.testing import ScriptedProvider, fail, say

SECRET = "test-key-0123456789abcdef"


async def add(folder: Path, *args: str, secret: str = SECRET) -> str:
    """Adds a key and returns its id."""
    ran = await run(folder, "keys", "add", *args, typed=f"{secret}\n")
    assert ran.code == 0, ran.err
    assert secret not in ran.out + ran.err
    return ran.out.split()[1].rstrip(":")


async def test_a_key_is_added_listed_replaced_and_removed_and_never_shown(tmp_path: Path) -> None:
    """S3.3: never echo a key; the list shows the last four characters and the health."""
    first = await add(tmp_path, "OpenAI")
    other = await add(tmp_path, "groq", "--user", "ann", "--account", "acme", secret="gsk_fedcba9876543210")
    listed = await run(tmp_path, "keys", "list")
    assert f"{first}  openai        server        …cdef  ready" in listed.out
    assert f"{other}  groq          ann           …3210  ready" in listed.out
    replaced = await run(tmp_path, "keys", "replace", first, "--from-env", "NEW_ONE", NEW_ONE="another-key-00000000wxyz")
    assert "…cdef became …wxyz" in replaced.out
    assert (await run(tmp_path, "keys", "rotate")).out.startswith("2 keys are sealed")
    assert (await run(tmp_path, "keys", "remove", other[:6])).out.startswith(f"Removed {other}: ann's own key of groq")
    rows = json.loads((await run(tmp_path, "keys", "list", "--json")).out)
    assert [(row["id"], row["last_four"], row["readable"]) for row in rows] == [(first, "wxyz", True)]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file())
    assert b"another-key-00000000wxyz" not in stored


@pytest.mark.parametrize(
    ("args", "typed", "said"),
    [
        (["add", "opnai"], SECRET, "did you mean openai"),
        (["add", "openai"], "", "No key came on standard input"),
        (["add", "openai"], "OPENAI_API_KEY=sk-0123456789", "without 'OPENAI_API_KEY='"),
        (["add", "openai"], "two words of it", "This is no API key"),
        (["add", "openai"], "sk-1234", "This is no API key"),
        (["add", "openai"], "clé-0123456789", "This is no API key"),
        (["add", "openai"], "k" * 5000, "This is no API key"),
        (["add", "openai", "--from-env", "NOT_SET"], "", r"The environment variable NOT_SET (--from-env) is not set"),
        (["remove", "k123"], "", "There is no key 'k123'"),
        (["test", "nobody"], "", "There is no key 'nobody'"),
        (["replace", ""], "", "There is no key ''"),
        (["list", "--journal", "no-address"], "", "is no database URL"),
    ],
)
async def test_bad_input_is_one_clear_sentence(args: list[str], typed: str, said: str, tmp_path: Path) -> None:
    ran = await run(tmp_path, "keys", *args, typed=typed)
    assert ran.code == 1
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert not typed or typed not in ran.err


async def test_a_key_of_another_kind_is_taken_with_a_warning(tmp_path: Path) -> None:
    ran = await run(tmp_path, "keys", "add", "openai", typed="sk-ant-0123456789abcdef")
    assert ran.code == 0
    assert "Keys that begin with sk-ant- are anthropic's" in ran.err


async def test_a_test_tells_a_key_that_works_from_one_that_is_refused_and_notes_it(tmp_path: Path) -> None:
    """The refusal is on record as a rest until the key is replaced, and a test that passes ends it."""
    async with ScriptedProvider(models=("gpt-x",), keys=(SECRET,)) as provider:
        good = await add(tmp_path, provider.base_url)
        bad = await add(tmp_path, provider.base_url, secret="wrong-key-0123456789")
        ran = await run(tmp_path, "keys", "test")
        assert ran.code == 1
        assert f"{good}  127.0.0.1:" in ran.out
        assert "…cdef  works" in ran.out
        assert "…6789  refused: The key was refused" in ran.out
        assert "until it is replaced (auth)" in (await run(tmp_path, "keys", "list")).out
        assert (await run(tmp_path, "keys", "test", good)).code == 0
        await run(tmp_path, "keys", "remove", good)
        await run(tmp_path, "keys", "replace", bad, typed=SECRET)
        assert (await run(tmp_path, "keys", "list")).out.rstrip().endswith("ready")


async def test_a_server_that_shows_its_list_to_anybody_proves_nothing(tmp_path: Path) -> None:
    async with ScriptedProvider(models=("gpt-x",)) as provider:
        await add(tmp_path, provider.base_url)
        ran = await run(tmp_path, "keys", "test")
    assert ran.code == 0
    assert "unclear: the server answers, but it would answer anybody" in ran.out


async def test_a_chat_asks_with_the_keys_that_are_kept_and_remembers_their_limits(tmp_path: Path) -> None:
    """S3.3: health survives a restart: the second process does not ask with the key that rests."""
    async with ScriptedProvider(models=("gpt-x",), keys=(SECRET, "other-key-0123456789")) as provider:
        await add(tmp_path, provider.base_url)
        await add(tmp_path, provider.base_url, secret="other-key-0123456789")
        provider.play(fail(429, message="Slow down.", headers={"retry-after": "3600"}), say("Hello."), say("Again."))
        asked = ["--model", "gpt-x", "--base-url", provider.base_url]
        assert (await run(tmp_path, "chat", "--once", "hi", *asked)).out == "Hello.\n"
        assert (await run(tmp_path, "chat", "--once", "hi", *asked)).out == "Again.\n"
        first, second, third = [request.key for request in provider.requests]
        assert first != second == third
        listed = (await run(tmp_path, "keys", "list")).out
        assert "rests for gpt-x for 60 min" in listed or "rests for gpt-x for 1 h" in listed
        assert "Slow down." in listed


async def test_a_lost_master_key_is_named_and_the_chat_goes_on_without_the_key(tmp_path: Path) -> None:
    async with ScriptedProvider(models=("gpt-x",)) as provider:
        await add(tmp_path, provider.base_url)
        (tmp_path / "data" / "master.key").unlink()
        listed = await run(tmp_path, "keys", "list")
        assert "can't be read: its master key is missing" in listed.out
        assert "master.key" in listed.err
        provider.play(say("Hello."))
        ran = await run(tmp_path, "chat", "--once", "hi", "--model", "gpt-x", "--base-url", provider.base_url)
        assert ran.out == "Hello.\n"
        assert "can't be read" in ran.err
