# What must happen at the end of a turn, whatever happened in it (S2.3).
#
# Each step is bounded in time and independent: one that fails or hangs is logged and stops no other. A cancellation that
# arrives while a step runs ends that step, not the ones after it; it is passed on when all have had their turn.

"""Runs the steps that end a turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

_log = logging.getLogger(__name__)


class Step(NamedTuple):
    """One step: its name, for the log, and what it does."""

    name: str
    run: Callable[[], Awaitable[None]]


async def finalise(steps: list[Step], limit_s: float) -> None:
    """Runs `steps` in order, each for at most `limit_s` seconds. Raises CancelledError at the end if it came meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    for step in steps:
        try:
            async with asyncio.timeout(limit_s):
                await step.run()
        except asyncio.CancelledError as error:
            cancelled = error
        except TimeoutError:
            _log.warning("The end of a turn: %s took over %g seconds and was given up.", step.name, limit_s)
        except Exception:  # a step may fail in any way; the others must run all the same
            _log.exception("The end of a turn: %s failed.", step.name)
    if cancelled is not None:
        raise cancelled
