"""Where keys and their health are kept, and the one who carries changes there (S3.3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from turnkeeper.errors import TurnkeeperError
from turnkeeper.keys.entry import Key, Rest
from turnkeeper.keys.health import Change

_log = logging.getLogger(__name__)


class KeyStore(Protocol):
    """Where keys are kept. Its methods may block: they are called in a thread, one at a time."""

    def load(self) -> tuple[list[Key], list[Rest]]:
        """All keys that can be read, and all rests on record. Raises TurnkeeperError where nothing can be read at all."""
        ...

    def save(self, rests: Sequence[Rest], ended: Sequence[Rest]) -> None:
        """Puts new or longer rests on record, and takes ended ones away. Raises TurnkeeperError where that fails."""
        ...


class Keeper:
    """Carries changes of health to a store, in order, beside the turns that they come from."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._waiting: list[Change] = []
        self._task: asyncio.Task[None] | None = None

    def note(self, change: Change) -> None:
        """Takes a change; it is stored soon."""
        self._waiting.append(change)
        if self._task is None:
            self._task = asyncio.create_task(self._carry(), name="key health")

    async def aclose(self) -> None:
        """Returns when all that was noted is stored, or could not be."""
        if self._task is not None:
            await self._task

    async def _carry(self) -> None:
        try:
            while self._waiting:
                changes, self._waiting = self._waiting, []
                rests: dict[tuple[str, str], Rest] = {}
                ended: dict[tuple[str, str], Rest] = {}
                for change in changes:  # the last word on each counts
                    for rest in change.ended:
                        rests.pop((rest.holder, rest.model), None)
                        ended[(rest.holder, rest.model)] = rest
                    for rest in change.rests:
                        ended.pop((rest.holder, rest.model), None)
                        rests[(rest.holder, rest.model)] = rest
                try:
                    await asyncio.to_thread(self._store.save, list(rests.values()), list(ended.values()))
                except TurnkeeperError as problem:  # the turns go on: what is lost is a cool-down after the next restart
                    _log.error("The health of keys can't be stored: %s", problem)
        finally:
            self._task = None
