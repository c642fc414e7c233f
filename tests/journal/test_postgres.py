"""The same journal on PostgreSQL."""

from __future__ import annotations

from tests.harness import Bench
from turnkeeper import tool
from turnkeeper.journal.folds import summaries
from turnkeeper.journal.sql import open_journal
from turnkeeper.surfaces.timeline import timeline
from turnkeeper.testing import call, say


@tool
async def act() -> str:
    """Acts."""
    return "done"


async def test_turns_are_recorded_read_back_and_carried_on_by_a_new_engine(postgres: str, bench: Bench) -> None:
    bench.provider.play(say("Wait.") + call("act", {}), say("Done — ça va, 潮."), say("Again."))
    first = bench.engine(act, journal=postgres)
    result = await first.run("go", channel="pg")
    await first.aclose()
    journal = open_journal(postgres)
    found = summaries(await journal.latest(5))
    assert [(one.turn_id, one.end, one.text) for one in found] == [(result.turn_id, "completed", "go")]
    assert any("tool act succeeded" in line for line in timeline(await journal.turn(result.turn_id[:12])))
    await journal.aclose()
    await bench.engine(act, journal=postgres).run("again", channel="pg")
    assert [m["role"] for m in bench.messages()] == ["user", "assistant", "tool", "assistant", "user"]
