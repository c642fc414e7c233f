"""What the tests of local models share."""

from __future__ import annotations

from pathlib import Path

import pytest

from .wheels_on_disk import WheelsOnDisk


@pytest.fixture
def wheels(tmp_path: Path) -> WheelsOnDisk:
    return WheelsOnDisk(tmp_path / "index")
