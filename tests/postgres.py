"""A PostgreSQL of our own, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _as_nobody_special(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database. Skips, saying so, where there is no PostgreSQL or no driver."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")
    found = sorted(str(path) for path in Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    elsewhere = shutil.which("initdb")
    found += [elsewhere] if elsewhere else []
    if not found:
        pytest.skip("PostgreSQL is not installed")
    binaries = Path(found[-1]).parent
    folder = Path(tempfile.mkdtemp(prefix="tk-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    made = subprocess.run(
        _as_nobody_special([str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "tk"]),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"PostgreSQL can't be started here: {made.stderr[-200:]!r}")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
    subprocess.run(
        _as_nobody_special(
            [str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start"]
        ),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    yield f"postgresql+psycopg://tk@127.0.0.1:{port}/postgres"
    subprocess.run(
        _as_nobody_special([str(binaries / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"]),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(folder, ignore_errors=True)
