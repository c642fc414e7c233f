# A local model as a server with an address, for as long as a `with` block.
#
# llama.cpp runs in a child process (serve.py), so that a crash or a kill of it is an error of one request, not the end of
# the bot, and so that its threads and memory go when the block ends. The child has a session of its own: Ctrl-C in the
# terminal reaches us only. It ends with us however we end, because it watches its standard input, which we hold.

"""`LocalServer`: one GGUF file behind llama.cpp's OpenAI-compatible HTTP server on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from turnkeeper.providers.local.weights import SERVED_CONTEXT, LocalModelError, Weights, check_gguf

# Between two batches of a prompt a closed connection is noticed and other answers get their next token. With llama.cpp's
# own 2,048 Qwen 1.5B (2 cores) worked on for over 5 s and other answers stood still for 6; with 64 it is 0.7 s each, and
# prompts take no longer. SmolLM2 needs 256 for its full speed and does that in 0.8 s.
_SMALL_MODEL_BYTES = 300_000_000
_SMALL_MODEL_BATCH = 256
_BATCH = 64

_SCRIPT = Path(__file__).with_name("serve.py")
_KEPT_LINES = 40
_LONGEST_LINE = 300
_LLAMA_PREFIX = re.compile(r"^[\d.]+ [A-Z] +")
_SIGNALS = {"SIGKILL": "most often too little memory", "SIGILL": "this processor lacks an instruction"}
_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class ServeOptions(Struct, frozen=True, kw_only=True):
    """How a model is served. The times are for slow disks and long answers; the sizes cost memory at once."""

    name: str = "local"  # as /v1/models lists it
    context_window: int = SERVED_CONTEXT  # tokens of one conversation
    parallel: int = 2  # requests answered at once, each with the whole window; further ones wait
    threads: int = 0  # 0 is as many as this process may use
    prompt_batch: int = _BATCH  # tokens of a prompt that are worked on in one go
    cache_mib: int = 256  # memory for the state of earlier prompts, so that a channel's next turn starts sooner
    start_timeout: float = 120.0  # seconds for loading
    close_timeout: float = 3.0  # seconds from the request to end until it is killed


class LocalServer:
    """A served model: `async with LocalServer(path) as server: server.base_url`."""

    def __init__(self, path: Path, options: ServeOptions | None = None) -> None:
        self.path = path
        self.options = options or ServeOptions(name=path.stem)
        self._running: _Running | None = None

    @classmethod
    def of(cls, weights: Weights) -> LocalServer:
        """A server for a model that `weights.locate` found, with the window of its catalogue entry."""
        model = weights.model
        batch = _SMALL_MODEL_BATCH if model.size_bytes < _SMALL_MODEL_BYTES else _BATCH
        options = ServeOptions(name=model.name, context_window=model.context_window, prompt_batch=batch)
        return cls(weights.path, options)

    @property
    def base_url(self) -> str:
        """Where the server answers, such as `http://127.0.0.1:40145/v1`; only within the block."""
        if self._running is None:
            raise RuntimeError("the local server has a base_url only inside its `async with` block")
        return self._running.address + "/v1"

    @property
    def pid(self) -> int | None:
        """The child's process id; None outside the block."""
        return self._running.process.pid if self._running else None

    def check(self) -> None:
        """Raises LocalModelError, with the server's last words, where it has ended by itself."""
        if self._running is not None and self._running.process.returncode is not None:
            raise LocalModelError(f"{self._running.last_words()}; start it again.")

    async def __aenter__(self) -> Self:
        """Start the child and wait until it answers.

        Raises LocalModelError where the file is no GGUF, xllamacpp is missing, loading fails or takes too long.
        """
        check_gguf(self.path)
        if importlib.util.find_spec("xllamacpp") is None:
            raise LocalModelError(
                "Local models need the package xllamacpp, which is missing; `pip install 'turnkeeper[local]'` brings it."
            )
        self._running = await _start(self.path, self.options)
        return self

    async def __aexit__(self, *_: object) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.close(self.options.close_timeout)


class _Running:
    """The child, and the task that keeps its last lines."""

    def __init__(self, process: asyncio.subprocess.Process, path: Path) -> None:
        self.process = process
        self.address = ""
        self._path = path
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reader = asyncio.create_task(self._keep_lines(), name=f"stderr of local server {process.pid}")

    async def ready(self) -> None:
        """Wait until the weights are loaded and /health answers."""
        assert self.process.stdout
        self.address = (await self.process.stdout.readline()).decode().strip()
        if not self.address:
            await self._ended()
            raise LocalModelError(f"{self.last_words()}; another .gguf file, or a smaller one, may do.")
        await _expect_health(self.address)

    async def close(self, limit_s: float) -> None:
        """End the child: asked first, killed after the limit. In any case it has been told when this is cancelled."""
        try:
            self._tell("terminate")
            async with asyncio.timeout(limit_s):
                await self._ended()
        except TimeoutError:
            self._tell("kill")
            await self._ended()
        except asyncio.CancelledError:
            self._tell("kill")
            raise
        finally:
            self._reader.cancel()

    def last_words(self) -> str:
        """How the child ended, with the first and the last line that it wrote to standard error."""
        code = self.process.returncode
        how = f"exit code {code}" if code is None or code >= 0 else _signal_name(-code)
        ends = dict.fromkeys((self._lines[0], self._lines[-1])) if self._lines else ["it said nothing"]
        return f"The server of {self._path} ended ({how}): {' ... '.join(ends)}"

    async def _ended(self) -> None:
        await self.process.wait()
        await asyncio.wait([self._reader], timeout=1)

    def _tell(self, what: str) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        if self.process.returncode is None:
            self.process.terminate() if what == "terminate" else self.process.kill()

    async def _keep_lines(self) -> None:
        assert self.process.stderr
        while True:
            try:
                line = await self.process.stderr.readline()
            except ValueError:  # longer than the reader's limit: nothing that a person would read
                continue
            if not line:
                return
            if text := _LLAMA_PREFIX.sub("", line.decode(errors="replace")).strip():
                self._lines.append(text[:_LONGEST_LINE])


async def _start(path: Path, options: ServeOptions) -> _Running:
    argument = msgspec.json.encode(
        {
            "path": str(path),
            "name": options.name,
            "context_window": options.context_window,
            "parallel": options.parallel,
            "threads": options.threads or usable_cores(),
            "prompt_batch": options.prompt_batch,
            "cache_mib": options.cache_mib,
        }
    ).decode()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(_SCRIPT), argument),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **_own_session(),
    )
    running = _Running(process, path)
    try:
        async with asyncio.timeout(options.start_timeout):
            await running.ready()
    except TimeoutError:
        await running.close(options.close_timeout)
        raise LocalModelError(
            f"The server of {path} was not ready after {options.start_timeout:g} s; "
            "try a smaller model, or give it longer (start_timeout)."
        ) from None
    except BaseException:  # cancelled, or it died: no child stays behind
        await running.close(options.close_timeout)
        raise
    return running


async def _expect_health(address: str) -> None:
    import aiohttp

    try:
        async with aiohttp.ClientSession() as session, session.get(f"{address}/health") as answer:
            if answer.status == 200:
                return
            raise LocalModelError(f"The local server at {address} answers /health with {answer.status}; start it again.")
    except aiohttp.ClientError as problem:
        raise LocalModelError(f"The local server at {address} does not answer ({problem}); start it again.") from None


def usable_cores() -> int:
    """The cores that this process may use: by its affinity, and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = _CGROUP_QUOTA.read_text().split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no cgroup here, or no quota ("max")
        return cores


def _own_session() -> dict[str, Any]:
    """So that Ctrl-C in the terminal does not reach the child."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def _signal_name(number: int) -> str:
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return f"{name}, {_SIGNALS[name]}" if name in _SIGNALS else name
