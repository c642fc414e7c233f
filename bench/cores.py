"""Which process runs on which core."""

from __future__ import annotations

import os
from contextlib import suppress


def cores() -> list[int]:
    """The cores that we may use; empty where the system does not say."""
    affinity = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity else []


def server_core() -> int | None:
    """The first core."""
    return cores()[0] if cores() else None


def client_core() -> int | None:
    """The last core: the server's only where there is no other."""
    return cores()[-1] if cores() else None


def pin(core: int | None) -> None:
    """Keeps this process, and threads that it starts later, on `core`, before other work there where we may ask for that."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    with suppress(OSError):  # root only: without it, other work on the machine is part of the figures
        os.setpriority(os.PRIO_PROCESS, 0, -20)
