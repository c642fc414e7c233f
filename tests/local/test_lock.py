"""One process at a time, and none for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from turnkeeper.providers.local.lock import HeldError, exclusive

HOLD = """
import sys
from pathlib import Path
from turnkeeper.providers.local.lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_taker_is_refused_at_once_and_may_come_later(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"), pytest.raises(HeldError), exclusive(tmp_path / "lock"):
        pass
    with exclusive(tmp_path / "lock"):
        pass


def test_a_holder_that_is_killed_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HeldError), exclusive(path):
            pass
        holder.kill()
        holder.wait()
        with exclusive(path):
            pass
