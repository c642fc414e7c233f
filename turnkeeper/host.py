"""What an application gives to its engine."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from turnkeeper.keys.store import KeyStore
from turnkeeper.loop.turn import Approve
from turnkeeper.tools.context import MemoryNotes, Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What an application gives to its engine; all of it has a default.

    system_prompt: what the model is told first.
    approve: asks a person before a tool that demands it runs; where there is none, such tools are refused.
    folders: where tools may read files.
    notes: the short-term memory.
    keys: where API keys and their health are kept; the models' own keys are used in any case.
    opted_out: whether a user wants to be lent no models when their own keys have failed (S3.8).
    server_of: which server (guild, workspace) a channel belongs to, "" for none: its budget counts there.
    clock: the wall clock, seconds since the epoch.
    random: the source of ids and of other chance.
    """

    system_prompt: str = ""
    approve: Approve | None = None
    folders: tuple[Path, ...] = ()
    notes: Notes = field(default_factory=MemoryNotes)
    keys: KeyStore | None = None
    opted_out: Callable[[str], bool] = lambda _: False
    server_of: Callable[[str], str] = lambda _: ""
    clock: Callable[[], float] = time.time
    random: random.Random = field(default_factory=random.SystemRandom)
