"""Counts network reads, to see that both sides were given the events one by one. For information: it costs time itself."""

from __future__ import annotations

from asyncio import selector_events
from typing import Any


def count_reads() -> list[None]:
    """From now on, each read of a connection that is opened later appends to the returned list."""
    reads: list[None] = []
    transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    read = transport._read_ready

    def counted(self: Any) -> None:
        reads.append(None)
        read(self)

    transport._read_ready = counted
    return reads
