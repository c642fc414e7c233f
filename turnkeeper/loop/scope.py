# A part of a turn that may be ended from outside: by a stop, by a clock, or by a newer message.
#
# Rule 1: the work inside is cancelled, never the turn around it. Leaving the scope turns that cancellation into `reason`.
# Rule 2: a cancellation that is not ours passes through, always.
# Rule 3: one timer a scope, however many chunks. Progress is a note of the time; the timer looks at it when it fires and
# arms itself again when it fired too early.
# The bookkeeping of `cancelling` and `uncancel` is that of asyncio.Timeout, whose cases it shares.

"""Scopes that a stop or a clock can end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Literal, TypeAlias

from turnkeeper.loop.signals import TurnSignals

Reason: TypeAlias = Literal["stopped", "follow_up", "first_token", "idle", "lingered"]

_EARLY_S = 0.001  # timers may fire this much before their time


class Scope:
    """`async with Scope(signals) as scope:` runs its body until it ends or is ended; then `scope.reason` says by what.

    first_s, idle_s: the two clocks of S5.1, in seconds; None for none.
    may_yield: asked when a newer message waits: whether the body can be ended for it at this very moment.
    """

    def __init__(
        self,
        signals: TurnSignals,
        *,
        first_s: float | None = None,
        idle_s: float | None = None,
        may_yield: Callable[[], bool] | None = None,
    ) -> None:
        self._signals = signals
        self._limit_s = first_s
        self._idle_s = idle_s
        self._may_yield = may_yield
        self._phase: Literal["first_token", "idle", "lingered"] = "first_token"
        self._loop = asyncio.get_running_loop()
        self._begun = self._last = self._loop.time()
        self._first: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.reason: Reason | None = None
        """What ended the body; None where it ended by itself."""
        self.waited_s = 0.0
        """Where a clock ended the body: seconds since the last progress."""

    @property
    def first_progress_s(self) -> float | None:
        """Seconds from the scope's beginning to the first progress."""
        return self._first

    def progressed(self) -> None:
        """Notes a sign of progress (S5.1)."""
        self._last = self._loop.time()
        if self._first is None:
            self._first = self._last - self._begun
            self._limit_s = self._idle_s
            self._phase = "idle"
            if self._idle_s is not None:  # the timer was set for the longer wait
                self._arm(self._idle_s)

    def linger(self, limit_s: float) -> None:
        """All that matters has come: from now on the body has `limit_s` seconds to end."""
        self._last = self._loop.time()
        self._limit_s = limit_s
        self._phase = "lingered"
        self._arm(limit_s)

    def rest(self) -> None:
        """Stops the clocks: what follows is not the provider's time."""
        self._limit_s = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def __aenter__(self) -> Scope:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a Scope works inside a task only")
        self._task = task
        self._cancelling = task.cancelling()
        if self._limit_s is not None:
            self._arm(self._limit_s)
        self._signals.listen(self._heard)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._signals.unlisten(self._heard)
        if self._timer is not None:
            self._timer.cancel()
        if self.reason is None or self._task is None:
            return False
        if kind is None:  # the body ended before our cancellation reached it: it would hit the next await
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                kind = asyncio.CancelledError
        foreign = self._task.uncancel() > self._cancelling
        return kind is not None and issubclass(kind, asyncio.CancelledError) and not foreign

    def _heard(self) -> None:
        if self._signals.stopped:
            self._end("stopped")
        elif self._signals.follow_up and self._may_yield is not None and self._may_yield():
            self._end("follow_up")

    def _end(self, reason: Reason) -> None:
        if self.reason is None and self._task is not None:
            self.reason = reason
            self._task.cancel()

    def _arm(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._limit_s is None:
            return
        left = self._last + self._limit_s - self._loop.time()
        if left > _EARLY_S:
            self._arm(left)
        else:
            self.waited_s = self._loop.time() - self._last
            self._end(self._phase)
