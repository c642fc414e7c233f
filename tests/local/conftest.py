"""What the tests of local models share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .wheels_on_disk import WheelsOnDisk


@pytest.fixture(scope="session", autouse=True)
def _no_stray_loop() -> None:
    """looptime asks for the current event loop in plain tests too, and Python 3.11 makes one that nobody closes."""
    asyncio.set_event_loop(None)


@pytest.fixture
def wheels(tmp_path: Path) -> WheelsOnDisk:
    return WheelsOnDisk(tmp_path / "index")
