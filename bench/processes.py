"""The processes that are measured, and the one that they talk to."""

from __future__ import annotations

import http.client
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from bench.scenarios import Scenario
from bench.server import Stats
from bench.worker import Command, Measured, SideName

_ANSWER_S = 120.0
_ROOT = Path(__file__).parent.parent


class BenchError(Exception):
    """The benchmark can't be run; the message says why."""


class _Process:
    """A Python module of ours as a child process. It ends when its input is closed."""

    def __init__(self, *arguments: str, errors: IO[str] | None = None) -> None:
        self._name = " ".join(arguments)
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=_ROOT,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def write(self, line: str) -> None:
        """Sends it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def read(self) -> str:
        """The next line of its output."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _ANSWER_S)
        if not ready:
            raise BenchError(f"`{self._name}` did not answer within {_ANSWER_S:g} seconds.")
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(f"`{self._name}` ended before it answered; its own words are above.")
        return line

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and waits for that."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ServerProcess(_Process):
    """The server, ready to be asked."""

    def __init__(self) -> None:
        super().__init__("bench.server")
        self.port = int(self.read())

    def __enter__(self) -> ServerProcess:
        return self

    def stats(self) -> Stats:
        """What it has done so far."""
        return msgspec.json.decode(self._ask("GET", "/stats"), type=Stats)

    def release(self) -> None:
        """Lets held answers go on."""
        self._ask("POST", "/release")

    def _ask(self, method: str, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            return connection.getresponse().read()
        finally:
            connection.close()


class WorkerProcess(_Process):
    """One side. options: `--profile`, which speaks on `errors` when the process ends."""

    def __init__(self, side: SideName, server: ServerProcess, *options: str, errors: IO[str] | None = None) -> None:
        super().__init__("bench.worker", side, str(server.port), *options, errors=errors)
        self.side = side

    def __enter__(self) -> WorkerProcess:
        return self

    def begin(self, scenario: Scenario, turns: int) -> None:
        """Has it run turns; `result` waits for them."""
        self.write(msgspec.json.encode(Command(scenario.name, turns, scenario.together)).decode())

    def result(self) -> Measured:
        """What the turns cost."""
        return msgspec.json.decode(self.read(), type=Measured)

    def run(self, scenario: Scenario, turns: int) -> Measured:
        """Runs turns and says what they cost."""
        self.begin(scenario, turns)
        return self.result()

    def resident_bytes(self) -> int:
        """The memory that it has in use now."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 1024 * int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(self.pid)], text=True))
