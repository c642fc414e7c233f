"""`turnkeeper usage`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.surfaces.test_cli import model, run
from turnkeeper.testing import ScriptedProvider, say, usage


async def test_what_was_used_is_summed_by_what_one_asks_for(provider: ScriptedProvider, tmp_path: Path) -> None:
    """S15.2: the sum says what has no known price."""
    provider.play(say("Hi.") + usage(prompt=90, completion=10), say("Hi.") + usage(prompt=190, completion=10))
    for _ in range(2):
        assert (await run(tmp_path, "chat", "--once", "hi", *model(provider))).code == 0
    ran = await run(tmp_path, "usage", "--by", "model")
    assert ran.out.splitlines()[0].split() == ["model", "passes", "tokens", "cost"]
    assert ran.out.splitlines()[1].split() == ["gpt-x", "2", "300", "unknown"]
    assert "The price of 300 of these tokens is not known" in ran.out
    rows = json.loads((await run(tmp_path, "usage", "--by", "payer", "--json")).out)
    assert [(row["payer"], row["passes"], row["tokens"]) for row in rows] == [("the server's keys", 2, 300)]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], 1, "There is no journal"),
        (["--days", "0"], 2, "0 is not in the range"),
        (["--by", "planet"], 2, "'planet' is not one of"),
        (["--journal", "nonsense"], 1, "is no database URL"),
    ],
)
async def test_bad_input_is_one_clear_sentence(args: list[str], code: int, said: str, tmp_path: Path) -> None:
    ran = await run(tmp_path, "usage", *args)
    assert ran.code == code
    assert said in ran.err
