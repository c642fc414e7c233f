"""What people outside a turn may ask of it: to stop, or to make way for a newer message (S5.3, S5.4)."""

from __future__ import annotations

from collections.abc import Callable


class TurnSignals:
    """The signals of one turn. A stop is never taken back; a follow-up is, when a tool chain goes on (S5.4)."""

    def __init__(self) -> None:
        self._stopped = False
        self._follow_up = False
        self._over = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def stopped(self) -> bool:
        """A stop was asked for. It stays true until the turn is over (S5.3a)."""
        return self._stopped

    @property
    def follow_up(self) -> bool:
        """A newer message of the same user waits."""
        return self._follow_up

    def stop(self) -> bool:
        """Asks the turn to stop now. Returns whether this was the first time."""
        first = not self._stopped
        self._stopped = True
        self._tell()
        return first

    def interrupt(self) -> None:
        """Says that a newer message of the same user waits."""
        self._follow_up = True
        self._tell()

    def clear_follow_up(self) -> None:
        """The chain goes on; the message stays queued (S5.4)."""
        self._follow_up = False

    def close(self) -> None:
        """The turn is over: what still runs of it may do nothing more in its name (S2.3)."""
        self._over = True

    @property
    def over(self) -> bool:
        """The turn has been stopped or has ended."""
        return self._over or self._stopped

    def listen(self, listener: Callable[[], None]) -> None:
        """`listener` is called at each signal, and at once if the turn has been stopped already."""
        self._listeners.append(listener)
        if self._stopped:
            listener()

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Ends what `listen` began."""
        self._listeners.remove(listener)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()
