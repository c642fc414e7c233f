"""Events as bytes: line ends, byte order mark, compression, and the cuts between writes. Without I/O."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from itertools import cycle
from typing import Protocol, cast

from turnkeeper.testing.steps import Framing
from turnkeeper.testing.wire import SseEvent


class Framer:
    """Lays out one body. What it gives is to be sent in order; `close` gives the rest."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._ends = cycle(_line_ends(framing))
        self._started = False
        self._held = b""  # the blank line after the last event, where it is only sent if another follows
        self._compress = _compressor(framing)

    @property
    def encoding(self) -> str:
        """The body's `Content-Encoding`, "" for none."""
        return "gzip" if self._framing.gzip else "br" if self._framing.brotli else ""

    def event(self, event: SseEvent) -> bytes:
        """An event. Its data may have several lines."""
        end = next(self._ends)
        lines = [f"event: {event.name}"] if event.name else []
        lines += [f"data: {line}" for line in event.data.split("\n")]
        text = "".join(line + end for line in lines).encode()
        if not self._framing.no_blank_at_end:
            return self._lay(text + end.encode())
        before, self._held = self._held, end.encode()
        return self._lay(before + text)

    def comment(self, text: str) -> bytes:
        """A comment line and a blank one."""
        end = next(self._ends)
        return self.raw(f":{text}{end}{end}".encode())

    def raw(self, data: bytes) -> bytes:
        """Bytes as they are."""
        before, self._held = self._held, b""
        return self._lay(before + data)

    def close(self) -> bytes:
        """What is left at the end of the body."""
        return self._compress(b"", True)

    def pieces(self, data: bytes) -> list[bytes]:
        """The writes in which the bytes go out."""
        size = self._framing.chunk_bytes or len(data) or 1
        return [data[start : start + size] for start in range(0, len(data), size)]

    def _lay(self, data: bytes) -> bytes:
        if self._framing.bom and not self._started:
            data = b"\xef\xbb\xbf" + data
        self._started = True
        return self._compress(data, False)


_Compress = Callable[[bytes, bool], bytes]
"""The bytes so far, readable at once; True at the end."""


def _line_ends(framing: Framing) -> tuple[str, ...]:
    match framing.crlf, framing.cr:
        case True, True:
            return "\n", "\r\n", "\r"
        case True, False:
            return ("\r\n",)
        case False, True:
            return ("\r",)
        case _:
            return ("\n",)


def _compressor(framing: Framing) -> _Compress:
    if framing.gzip:
        deflate = zlib.compressobj(wbits=31)
        return lambda data, last: deflate.compress(data) + deflate.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    if framing.brotli:
        brotli = _brotli()
        return lambda data, last: brotli.process(data) + (brotli.finish() if last else brotli.flush())
    return lambda data, last: data


class _Brotli(Protocol):
    """What we use of `brotli.Compressor`, which is not typed."""

    def process(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...
    def finish(self) -> bytes: ...


def _brotli() -> _Brotli:
    return cast(_Brotli, import_module("brotli").Compressor())
