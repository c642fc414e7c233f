# One answer on its connection.
#
# Theory of operation. The head goes out by itself as soon as `open` is called. Before each further write the loop makes a
# few turns, so that a client that runs in it sees one network read a write: what it gets does not depend on how quick the
# kernel is. Before the connection is cut the loop makes more of them, because a reset overtakes what the client has not
# yet taken out of its own buffers: real clients lose that text, but not the same text in each run.
#
# RST needs SO_LINGER with a time of 0: `transport.abort` alone closes the socket, and the client sees a FIN.

"""Writes an answer's bytes, and ends its connection in each of the ways that servers do."""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from turnkeeper.testing.framing import Framer
from turnkeeper.testing.seen import SeenRequest

_TURNS = 3  # of the loop, for the client to read a write
_TURNS_BEFORE_CUT = 20


class LimitError(Exception):
    """The body has as many bytes as it was to have."""


class Body:
    """The answer to one request. limit: after so many bytes a write stops and raises LimitError."""

    def __init__(self, request: web.Request, seen: SeenRequest, framer: Framer, *, limit: int | None = None) -> None:
        self._request = request
        self._seen = seen
        self._framer = framer
        self._limit = limit
        self._sent = 0
        self._writer: AbstractStreamWriter | None = None
        self.response: web.StreamResponse = web.Response()

    async def open(self, content_type: str | None, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Sends the head, once. content_type: None for none."""
        if self._writer is not None:
            return
        self.response = web.StreamResponse(status=status, headers={"Content-Type": content_type or ""} | (headers or {}))
        if self._framer.encoding:
            self.response.headers["Content-Encoding"] = self._framer.encoding
        self.response.enable_chunked_encoding()
        self._writer = await self.response.prepare(self._request)
        assert self._writer is not None
        self._writer.send_headers()
        self._seen.status = status

    async def write(self, data: bytes) -> None:
        """Sends bytes that the framer has laid out. `open` comes first. Raises LimitError."""
        allowed = len(data) if self._limit is None else self._limit - self._sent
        for piece in self._framer.pieces(data[:allowed]):
            await _turns(_TURNS)
            await self.response.write(piece)
        self._sent += min(len(data), allowed)
        if len(data) > allowed:
            raise LimitError

    async def close(self) -> None:
        """The orderly end of the body; of the connection, if there was no head."""
        rest = self._framer.close()
        if self._writer is None:
            self._seen.finished = True
            self._transport.close()
            return
        if rest:
            await self.write(rest)
        self._seen.finished = True
        await self.response.write_eof()

    async def cut(self, *, reset: bool) -> None:
        """The loss of the connection, after all bytes so far have gone out."""
        transport = self._transport
        if self._writer is not None:
            transport.set_write_buffer_limits(high=0)
            await self._writer.drain()
        await _turns(_TURNS_BEFORE_CUT)
        self._seen.finished = True
        if reset:
            give_up(self._request)
        else:
            transport.close()

    @property
    def _transport(self) -> asyncio.Transport:
        if self._request.transport is None:
            raise ConnectionResetError("the client has left")
        assert isinstance(self._request.transport, asyncio.Transport)
        return self._request.transport


def give_up(request: web.Request) -> None:
    """Resets the request's connection, whatever is still to be sent."""
    transport = request.transport
    if transport is None:
        return
    raw = transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert isinstance(transport, asyncio.Transport)
    transport.abort()


async def _turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)
