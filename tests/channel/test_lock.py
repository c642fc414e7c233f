"""The lock and queue of a channel, as a stateful property: many users, stops, cancellations, in any order (S2.2, S13.1)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.channel.lock import ChannelLock
from turnkeeper.loop.signals import TurnSignals

MOVES = st.lists(st.tuples(st.sampled_from(["arrive", "finish", "cancel", "stop", "breathe"]), st.integers(0, 5)), max_size=40)


class Visit:
    """One turn that wants the channel."""

    def __init__(self, lock: ChannelLock, user: str, inside: list[Visit]) -> None:
        self.signals = TurnSignals()
        self.done = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(lock, user, inside))

    async def _run(self, lock: ChannelLock, user: str, inside: list[Visit]) -> str:
        if not await lock.acquire(user, self.signals):
            return "dropped"
        inside.append(self)
        try:
            assert len(inside) == 1, "two turns in one channel"
            self.signals.listen(lambda: self.done.set() if self.signals.stopped else None)
            await self.done.wait()
        finally:
            inside.remove(self)
            lock.release()
        return "served"


async def play(moves: list[tuple[str, int]]) -> None:
    lock = ChannelLock(max_waiting=100, max_follow_ups=3)
    inside: list[Visit] = []
    visits: list[Visit] = []
    for move, number in moves:
        open_ = [visit for visit in visits if not visit.task.done()]
        match move:
            case "arrive":
                visits.append(Visit(lock, f"u{number}", inside))
            case "finish" if inside:
                inside[0].done.set()
            case "cancel" if open_:
                open_[number % len(open_)].task.cancel()
            case "stop":
                lock.stop()
            case _:
                pass
        if number % 2:
            await asyncio.sleep(0)
    for _ in range(200):
        if inside:
            inside[0].done.set()
        await asyncio.sleep(0)
    assert all(visit.task.done() for visit in visits), "somebody waits for ever"
    assert not lock.busy
    for visit in visits:
        if not visit.task.cancelled():
            assert visit.task.result() in ("served", "dropped")


@given(MOVES)
@settings(max_examples=200)
def test_whatever_happens_one_turn_at_a_time_and_nobody_waits_for_ever(moves: list[tuple[str, int]]) -> None:
    asyncio.run(play(moves))


async def test_turns_are_served_in_the_order_in_which_they_came() -> None:
    lock = ChannelLock(max_waiting=100, max_follow_ups=3)
    order: list[int] = []

    async def visit(number: int) -> None:
        assert await lock.acquire(f"u{number}", TurnSignals())
        order.append(number)
        await asyncio.sleep(0)
        lock.release()

    await asyncio.gather(*[visit(number) for number in range(20)])
    assert order == list(range(20))


async def test_a_stop_with_nothing_running_says_so() -> None:
    """S5.3a"""
    assert not ChannelLock(max_waiting=1, max_follow_ups=1).stop()


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_the_follow_up_counter_begins_anew_when_the_channel_was_idle(most: int) -> None:
    """S5.4"""
    lock = ChannelLock(max_waiting=100, max_follow_ups=most)
    for _ in range(2):
        signals = [TurnSignals() for _ in range(6)]
        assert await lock.acquire("u", signals[0])
        waiting = [asyncio.ensure_future(lock.acquire("u", one)) for one in signals[1:]]
        interrupted = 0
        for place, _ in enumerate(waiting):
            await asyncio.sleep(0)
            interrupted += signals[place].follow_up
            lock.release()
        await asyncio.gather(*waiting)
        lock.release()
        assert (interrupted > 0) == (most > 0)
        assert not lock.busy
