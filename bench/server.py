# The server that both sides talk to.
#
# Rule 1: nothing is rendered while it serves: each pass of each scenario is a row of ready HTTP chunks.
# Rule 2: each event is a write of its own, with TCP_NODELAY and a pause before the next one, so that the client reads them
# one by one, as over a network from a model that writes at its own pace. A mere yield between two writes would not do: the
# server would write faster than a slow client reads, and the slow client would be given several events in one read.
# Rule 3: it is never what is waited for: it spins on its core while a stream is open, rather than sleep until a timer is
# due (a timer's millisecond is ten chunks), and it counts how late it was.
#
# The request's model names the scenario, the number of its tool results says which pass it is; of a reply that breaks, whether
# the request holds what was said of it.

"""A pre-rendered chat-completions server on loopback: `python -m bench.server`. Prints its port; ends with its input."""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
import re
import socket
import sys
import time
from collections.abc import Iterator
from typing import cast

from msgspec import Struct
from msgspec.json import encode

from bench.cores import pin, server_core
from bench.scenarios import Scenario, all_scenarios

_MODEL = re.compile(rb'"model":\s*"([^"]+)"')
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"


class Stats(Struct):
    """What the server has seen and done so far."""

    requests: int = 0
    received: int = 0
    writes: int = 0
    late_s: float = 0.0
    held: int = 0
    cpu_s: float = 0.0


class Played(Struct, frozen=True):
    """A scenario as bytes: for each pass, its writes."""

    scenario: Scenario
    passes: tuple[tuple[bytes, ...], ...]


def render(scenario: Scenario) -> Played:
    """Each event as one HTTP chunk; the last one carries the end of the body with it."""
    passes: list[tuple[bytes, ...]] = []
    for events in scenario.passes:
        chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
        chunks[-1] += b"0\r\n\r\n"
        passes.append((b"".join(chunks),) if scenario.burst else tuple(chunks))
    return Played(scenario, tuple(passes))


class Stream(Struct):
    """An answer that is being written."""

    transport: asyncio.Transport
    writes: Iterator[bytes]
    left: int
    gap_s: float
    hold_left: int | None


class Player:
    """Writes what is due on all open streams."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: list[tuple[float, int, Stream]] = []
        self._held: list[Stream] = []
        self._order = itertools.count()
        self._spinning = False
        self._stats = Stats()

    def begin(self, played: Played, body: bytes, transport: asyncio.Transport) -> None:
        """Answers a request."""
        self._stats.requests += 1
        self._stats.received += len(body)
        scenario = played.scenario
        told = b'"role":"assistant"' if scenario.carried else b'"role":"tool"'
        number = min(body.count(told), len(played.passes) - 1)
        writes = played.passes[number]
        transport.write(_HEAD)
        self._schedule(Stream(transport, iter(writes), len(writes), scenario.gap_s, scenario.hold_at), time.perf_counter())

    def release(self) -> None:
        """Lets the held streams go on."""
        now = time.perf_counter()
        held, self._held = self._held, []
        for stream in held:
            self._schedule(stream, now)

    def stats(self) -> Stats:
        """What has been done so far."""
        self._stats.held = len(self._held)
        self._stats.cpu_s = time.process_time()
        return self._stats

    def _schedule(self, stream: Stream, now: float) -> None:
        heapq.heappush(self._due, (now + stream.gap_s, next(self._order), stream))
        if not self._spinning:
            self._spinning = True
            self._loop.call_soon(self._spin)

    def _spin(self) -> None:
        now = time.perf_counter()
        while self._due and self._due[0][0] <= now:
            due, _, stream = heapq.heappop(self._due)
            self._stats.late_s += now - due
            self._write_next(stream, now)
            now = time.perf_counter()
        self._spinning = bool(self._due)
        if self._spinning:
            self._loop.call_soon(self._spin)

    def _write_next(self, stream: Stream, now: float) -> None:
        if stream.transport.is_closing():
            return
        stream.transport.write(next(stream.writes))
        self._stats.writes += 1
        stream.left -= 1
        if stream.hold_left is not None:
            stream.hold_left -= 1
            if stream.hold_left == 0:
                self._held.append(stream)
                return
        if stream.left:
            self._schedule(stream, now)


class Connection(asyncio.Protocol):
    """One client's connection, kept alive. Requests come one after another."""

    def __init__(self, scenarios: dict[bytes, Played], player: Player) -> None:
        self._scenarios = scenarios
        self._player = player
        self._buffer = bytearray()
        self._head_ends = 0
        self._ends = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._ends and not self._read_head():
            return
        if len(self._buffer) < self._ends:
            return
        head, body = bytes(self._buffer[: self._head_ends]), bytes(self._buffer[self._head_ends : self._ends])
        del self._buffer[: self._ends]
        self._ends = 0
        self._answer(head, body)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        length = _LENGTH.search(self._buffer, 0, end + 2)
        self._head_ends = end + 4
        self._ends = self._head_ends + (int(length[1]) if length else 0)
        return True

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /stats"):
            self._say(b"200 OK", encode(self._player.stats()))
        elif head.startswith(b"POST /release"):
            self._player.release()
            self._say(b"200 OK", b"{}")
        else:
            model = _MODEL.search(body)
            played = self._scenarios.get(model[1]) if model else None
            if played is None:
                self._say(b"404 Not Found", b'{"error":{"message":"no such scenario"}}')
            else:
                self._player.begin(played, body, self._transport)

    def _say(self, status: bytes, body: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
        )


async def serve() -> None:
    """Serves until the standard input ends, which it does with the process that started this one."""
    scenarios = {scenario.name.encode(): render(scenario) for scenario in all_scenarios().values()}
    gc.collect()
    gc.freeze()
    loop = asyncio.get_running_loop()
    player = Player(loop)
    ended = loop.create_future()
    server = await loop.create_server(lambda: Connection(scenarios, player), "127.0.0.1", 0, backlog=1024)
    loop.add_reader(sys.stdin.fileno(), lambda: ended.done() or ended.set_result(None))
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended


if __name__ == "__main__":
    pin(server_core())
    asyncio.run(serve())
