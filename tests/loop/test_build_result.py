"""The result, built in one place for every path (S8.1), and what is not swallowed on the way (S5.5)."""

from __future__ import annotations

import pytest

from tests.harness import Bench, Watching
from turnkeeper import tool
from turnkeeper.testing import Answer, call, cut, done, fail, finish, say, think


@tool
async def f(n: int = 0) -> int:
    """Gives a number."""
    return n


PATHS: list[tuple[str, list[Answer]]] = [
    ("completed", [think("hm") + say("First.") + call("f", {"n": 1}), say("Last.")]),
    ("empty_response", [done(), done(), done()]),
    ("error", [say("First.") + call("f", {"n": 1}), fail(500)]),
    ("error", [say("Half") + cut(), cut()]),
    ("timeout", [call("f", {"n": n}) for n in range(3)]),
    ("completed", [say("Cut") + finish("length"), say(" and carried on.")]),
]


@pytest.mark.parametrize(("end", "answers"), PATHS)
async def test_every_path_gives_a_whole_result(end: str, answers: list[Answer], bench: Bench) -> None:
    """S8.1"""
    bench.provider.play(*answers)
    result = await bench.engine(f, max_passes=3).run("go")
    assert result.end == end
    assert len(result.usage) == len(bench.provider.requests)
    assert len(result.attempts) == (2 if answers[-1] == cut() else 1)
    assert result.attempts[-1].end == end
    shown = "".join(message.text for message in result.deliveries)
    assert "".join(result.text.split()) == "".join(shown.split())
    assert (result.fault is not None) == (end == "error")
    assert bool(result.notices) == (end != "completed")


async def test_a_tool_only_turn_does_not_invent_prose(bench: Bench) -> None:
    """S9.3"""

    @tool(silent=True)
    async def quiet() -> str:
        """Says nothing."""
        return "done"

    bench.provider.play(call("quiet", {}), done())
    result = await bench.engine(quiet).run("go")
    assert (result.end, result.text, result.deliveries, result.notices) == ("completed", "", (), ())


class Broken(Watching):
    """A surface with a mistake in it."""

    def grow(self, text: str) -> None:
        raise ZeroDivisionError("a mistake of the surface")


async def test_a_mistake_that_is_no_providers_error_propagates_and_the_channel_is_free(bench: Bench) -> None:
    """S5.5: nothing is swallowed."""
    bench.provider.play(say("Hello."), say("Fine."))
    engine = bench.engine()
    with pytest.raises(ZeroDivisionError):
        await engine.run("go", sink=Broken())
    assert (await engine.run("again")).text == "Fine."
