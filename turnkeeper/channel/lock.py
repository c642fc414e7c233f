# One turn at a time in a channel; the rest wait in the order in which they came (S2.2, S13.1).
#
# The lock is released without awaiting, so nothing can cut off its release. Ownership is handed to the next waiter in the
# same step: no newcomer can slip in between.

"""The lock and queue of one channel."""

from __future__ import annotations

import asyncio
from collections import deque

from turnkeeper.errors import TurnkeeperError
from turnkeeper.loop.signals import TurnSignals


class ChannelLock:
    """Holds one channel. max_waiting: how many may wait. max_follow_ups: interruptions before the channel has been idle."""

    def __init__(self, *, max_waiting: int, max_follow_ups: int) -> None:
        self._max_waiting = max_waiting
        self._max_follow_ups = max_follow_ups
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._holder: TurnSignals | None = None
        self._holder_user = ""
        self._follow_ups = 0

    @property
    def busy(self) -> bool:
        """Whether a turn runs here."""
        return self._holder is not None

    async def acquire(self, user: str, signals: TurnSignals) -> bool:
        """Waits for the channel. Returns False where a stop drained the queue before this turn's time came.

        A newer message of the user whose turn runs asks that turn to make way (S5.4), at most `max_follow_ups` times.
        Raises TurnkeeperError where too many wait already.
        """
        if self._holder is None:
            self._hold(user, signals)
            return True
        if len(self._waiting) >= self._max_waiting:
            raise TurnkeeperError(
                f"{len(self._waiting)} messages wait in this channel already; try again when they are answered."
            )
        if user == self._holder_user and self._follow_ups < self._max_follow_ups:
            self._follow_ups += 1
            self._holder.interrupt()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            served = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.release()  # it became ours at the very moment at which we were cancelled
            raise
        if served:
            self._hold(user, signals)
        return served

    def release(self) -> None:
        """Lets the next one in."""
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():
                following.set_result(True)
                return
        self._holder = None
        self._holder_user = ""
        self._follow_ups = 0

    def stop(self) -> bool:
        """Stops the turn that runs here and drains the queue. Returns whether there was anything to stop (S13.2)."""
        if self._holder is None:
            return False
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():
                following.set_result(False)
        self._holder.stop()
        return True

    def _hold(self, user: str, signals: TurnSignals) -> None:
        self._holder = signals
        self._holder_user = user
