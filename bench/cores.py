"""Which process runs on which core."""

from __future__ import annotations

import os


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
    """Keeps this process, and threads that it starts later, on `core`."""
    if core is not None:
        os.sched_setaffinity(0, {core})
