"""What a journal does, and the one that forgets when the process ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from turnkeeper.journal.events import Admitted, Ended, Recorded, TurnEvent, kind_of


class Journal(Protocol):
    """An append-only list of events. Readers see what was stored."""

    def append(self, recorded: Recorded) -> None:
        """Adds an event. Never blocks and never raises: a store that can't write says so in `stored` and `broken`."""
        ...

    async def stored(self, *, durable: bool = False) -> None:
        """Returns once all that was appended is stored; with `durable`, on the disk itself.

        Raises JournalError when it can't be.
        """
        ...

    @property
    def broken(self) -> str | None:
        """Why the last write failed, None while writing works (S15.1b)."""
        ...

    async def turn(self, turn_id: str) -> list[Recorded]:
        """A turn's events, in order. `turn_id` may be the beginning of an id where that is unique."""
        ...

    async def channel(self, channel: str, turns: int) -> list[Recorded]:
        """The events of the channel's last `turns` turns, in order."""
        ...

    async def latest(self, limit: int) -> list[Recorded]:
        """The `Admitted` and `Ended` events of the last `limit` turns, newest turn first."""
        ...

    async def since(self, at: float, kinds: Sequence[str]) -> list[Recorded]:
        """The events of some kinds (their classes' names) from `at` on, seconds since the epoch, in order."""
        ...

    async def aclose(self) -> None:
        """Stores what is left and lets go of the file."""
        ...


class MemoryJournal:
    """Keeps the last `limit` events, for engines that were given no journal, and for tests."""

    def __init__(self, limit: int = 100_000) -> None:
        self._events: deque[Recorded] = deque(maxlen=limit)

    def append(self, recorded: Recorded) -> None:
        self._events.append(recorded)

    async def stored(self, *, durable: bool = False) -> None:
        return None

    @property
    def broken(self) -> str | None:
        return None

    async def turn(self, turn_id: str) -> list[Recorded]:
        return [one for one in self._events if one.turn_id.startswith(turn_id)]

    async def channel(self, channel: str, turns: int) -> list[Recorded]:
        return last_turns([one for one in self._events if one.channel == channel], turns)

    async def latest(self, limit: int) -> list[Recorded]:
        ids = list(dict.fromkeys(one.turn_id for one in reversed(self._events) if isinstance(one.event, Admitted)))[:limit]
        return [one for turn in ids for one in self._events if one.turn_id == turn and isinstance(one.event, Admitted | Ended)]

    async def since(self, at: float, kinds: Sequence[str]) -> list[Recorded]:
        return [one for one in self._events if one.at >= at and kind_of(one.event) in kinds]

    async def aclose(self) -> None:
        return None


def last_turns(events: Iterable[Recorded], turns: int) -> list[Recorded]:
    """The events of the last `turns` turns among `events`."""
    events = list(events)
    ids = list(dict.fromkeys(one.turn_id for one in events))
    kept = set(ids[-turns:] if turns else ())
    return [one for one in events if one.turn_id in kept]


def recorded(turn_id: str, channel: str, at: float, event: TurnEvent) -> Recorded:
    """An event with its place."""
    return Recorded(turn_id, channel, at, event)
