"""The finaliser (S2.3)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.harness import Bench, Watching
from turnkeeper.channel.finaliser import Step, finalise
from turnkeeper.delivery.sink import Outgoing
from turnkeeper.errors import JournalError
from turnkeeper.journal.events import Ended, Recorded
from turnkeeper.journal.journal import MemoryJournal
from turnkeeper.testing import say
from turnkeeper.types.turn import Notice


@pytest.mark.looptime
@pytest.mark.parametrize("kind", ["raises", "hangs", "raises late"])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_step_that_fails_or_hangs_is_logged_and_stops_no_other(
    kind: str, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []

    async def good(number: int) -> None:
        ran.append(number)

    async def bad() -> None:
        if kind == "hangs":
            await asyncio.Event().wait()
        if kind == "raises late":
            await asyncio.sleep(1)
        raise OSError("disc full")

    steps = [Step(f"step {n}", (lambda n=n: good(n)) if n != place else bad) for n in range(3)]
    await finalise(steps, 5)
    assert ran == [n for n in range(3) if n != place]
    assert any(f"step {place}" in record.message for record in caplog.records)
    assert asyncio.get_running_loop().time() < 6


async def test_a_cancellation_in_a_step_lets_the_others_run_and_is_passed_on() -> None:
    ran: list[int] = []

    async def waits() -> None:
        ran.append(1)
        await asyncio.Event().wait()

    async def last() -> None:
        await asyncio.sleep(0)
        ran.append(2)

    task = asyncio.create_task(finalise([Step("waits", waits), Step("last", last)], 5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ran == [1, 2]


class Failing(Watching):
    """A surface on which everything fails at the end."""

    def post(self, message: Outgoing) -> str:
        raise OSError("404: the channel is gone")

    def notice(self, notice: Notice) -> str:
        raise OSError("404")


class Unwritable(MemoryJournal):
    def append(self, recorded: Recorded) -> None:
        if isinstance(recorded.event, Ended):
            raise OSError("disc full")
        super().append(recorded)

    async def stored(self, *, durable: bool = False) -> None:
        raise JournalError("disc full")


async def test_whatever_fails_at_a_turns_end_the_channel_is_free_again(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """S2.3: lock released, queue served."""
    caplog.set_level(logging.CRITICAL)
    engine = bench.engine(journal=Unwritable())
    bench.provider.play(say("One."), say("Two."))
    first = asyncio.create_task(engine.run("one", user="a", sink=Failing()))
    second = asyncio.create_task(engine.run("two", user="b"))
    done = await asyncio.gather(first, second, return_exceptions=True)
    assert getattr(done[1], "text", done[1]) == "Two."
