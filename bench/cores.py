"""Which process runs on which core."""

from __future__ import annotations

import os
from pathlib import Path


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


def busy_s(core: int | None) -> float:
    """Seconds for which `core` was busy since the system began, with whatever; 0.0 where the system does not say."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return 0.0
    fields = next((line.split()[1:] for line in lines if line.startswith(f"cpu{core} ")), ["0"])
    ticks = [int(field) for field in fields]
    idle = sum(ticks[3:5])  # idle, and waiting for a disc
    return (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK")
