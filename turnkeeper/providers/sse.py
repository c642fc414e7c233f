# Server-sent events: bytes in, events out.
#
# Rule 1: no sockets, no clock, no awaiting. What comes out never depends on where the bytes were cut.
# Rule 2: linear time. A line that arrives in a thousand pieces is joined once.
#
# Theory of operation. `feed` is given whatever the network gave. Bytes after the last line end wait in `_tail`, a list of
# pieces. A carriage return ends its line at once; a line feed that follows it, even in the next piece, is then skipped. So
# nothing is held back for a byte that may never come. Only CR, LF and CRLF end a line (S12.1): the splitting is on bytes,
# and U+2028, U+0085, VT and FS are ordinary content. An event is dispatched at the blank line after it; `close` dispatches
# what had no blank line, which browsers drop and real servers send (cases.md).

"""The event-stream format of the WHATWG HTML standard, section 9.2, without I/O."""

from __future__ import annotations

from typing import NamedTuple


class ServerSentEvent(NamedTuple):
    """One event. `name` is its `event:` field, `data` its data lines joined by LF; a comment has neither."""

    name: bytes
    data: bytes


COMMENT = ServerSentEvent(b"", b"")
"""Stands for a comment line: the connection lives, nothing was said (S5.1)."""


class TooLargeError(Exception):
    """An event was larger than the limit given to the parser."""


class SseParser:
    """Turns the bytes of an event stream into events.

    max_event_bytes: the largest event taken; above it `feed` raises TooLargeError.
    """

    __slots__ = ("_data", "_held", "_max", "_name", "_skip_lf", "_started", "_tail")

    def __init__(self, max_event_bytes: int = 16 * 2**20) -> None:
        self._max = max_event_bytes
        self._tail: list[bytes] = []  # the beginning of a line whose end has not come
        self._held = 0  # bytes in _tail and _data
        self._data: list[bytes] = []
        self._name = b""
        self._skip_lf = False
        self._started = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Events that are complete with these bytes. Raises TooLargeError."""
        if not self._started:
            data = self._strip_mark(data)
        if self._skip_lf and data:
            data = data[1:] if data[0] == 0x0A else data
            self._skip_lf = False
        if b"\r" in data:
            self._skip_lf = data[-1] == 0x0D
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            if data:
                self._hold(self._tail, data)
            return []
        lines = data.split(b"\n")
        if self._tail:
            lines[0] = self._take_tail(lines[0])
        last = lines.pop()
        if last:
            self._hold(self._tail, last)
        return self._read(lines)

    @property
    def idle(self) -> bool:
        """Whether nothing is open: the next byte begins a new event."""
        return self._started and not (self._tail or self._data or self._name or self._skip_lf)

    def whole(self, data: bytes) -> list[bytes] | None:
        """The data of each event in `data`, where it is nothing but whole events of one data line each, and nothing is open.

        That is what a network read nearly always is. None otherwise: then `feed` has to read it, for this reads nothing.
        """
        if self._tail or self._data or self._name or self._skip_lf:
            return None
        if data[:6] != b"data: " or data[-2:] != b"\n\n" or len(data) > self._max:
            return None
        found = data[6:-2].split(b"\n\ndata: ")
        if data.count(b"\n") != 2 * len(found) or b"\r" in data:
            return None
        self._started = True
        return found

    def whole_named(self, data: bytes) -> list[bytes] | None:
        """As `whole`, for events that have a name before their data; the names are left out."""
        if self._tail or self._data or self._name or self._skip_lf:
            return None
        if data[:7] != b"event: " or data[-2:] != b"\n\n" or len(data) > self._max or b"\r" in data:
            return None
        found = [part.partition(b"\ndata: ")[2] for part in data[:-2].split(b"\n\n")]
        ends = data.count(b"\n") == 3 * len(found) and data.count(b"\n\nevent: ") == len(found) - 1
        if not ends or data.count(b"\ndata: ") != len(found) or not all(found):
            return None
        self._started = True
        return found

    def close(self) -> list[ServerSentEvent]:
        """The event that the stream ended in, if it had begun one."""
        lines = [self._take_tail(b"")] if self._tail else []
        return self._read([*lines, b""])

    def _read(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._held += len(value)
                if self._held > self._max:
                    raise TooLargeError
                data.append(value)
            elif not line:
                if data:
                    events.append(ServerSentEvent(self._name, data[0] if len(data) == 1 else b"\n".join(data)))
                    data.clear()
                    self._held = 0
                self._name = b""
            elif line[0] == 0x3A:  # a colon: a comment
                events.append(COMMENT)
            else:
                self._read_field(line)
        return events

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"event":
            self._name = value
        elif name == b"data":  # the field without a colon is an empty data line
            self._hold(self._data, value)
        # `id` and `retry` steer a reconnecting browser; other names are to be ignored.

    def _hold(self, where: list[bytes], piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._max:
            raise TooLargeError
        where.append(piece)

    def _take_tail(self, end: bytes) -> bytes:
        self._tail.append(end)
        line = b"".join(self._tail)
        self._tail.clear()
        self._held -= len(line) - len(end)
        return line

    def _strip_mark(self, data: bytes) -> bytes:
        """Without the byte order mark, which may itself come in pieces."""
        held = b"".join(self._tail) + data
        mark = b"\xef\xbb\xbf"
        if len(held) < len(mark) and mark.startswith(held):
            self._tail = [held] if held else []
            return b""
        self._tail = []
        self._held = 0
        self._started = True
        return held.removeprefix(mark)
