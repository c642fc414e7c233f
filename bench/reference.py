# The bare reference: the least that a correct client does, with the fastest parts of the language. No events, no clocks, no
# stop, no journal, no messages to people, no retry, no error but a crash. What the engine costs beyond it is what those cost.

"""The reference that the engine is measured against."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct
from msgspec.json import encode

from bench.scenarios import Call, Outcome
from bench.tools import TOOLS_JSON, ToolFunction

_READ = 2**18


class _Function(Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(Struct):
    index: int
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(Struct):
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(Struct):
    choices: list[_Choice]
    usage: dict[str, int] | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _Pass:
    """What one answer brought."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: list[tuple[str, str, list[str]]] = []
        self._tail = b""

    def feed(self, body: bytes) -> None:
        """Takes bytes of the event stream."""
        *events, self._tail = (self._tail + body).split(b"\n\n")
        for event in events:
            if event != b"data: [DONE]":
                for choice in _decode(event[6:]).choices:
                    self._take(choice.delta)

    def _take(self, delta: _Delta) -> None:
        if delta.content:
            self.text.append(delta.content)
        for call in delta.tool_calls or ():
            if call.id and call.function:
                self.calls.append((call.id, call.function.name or "", []))
            if call.function and call.function.arguments:
                self.calls[call.index][2].append(call.function.arguments)


def dechunk(data: bytes) -> tuple[bytes, bytes, bool]:
    """The body bytes in `data`, what is left of it, and whether the body has ended."""
    body, at = [], 0
    while (line := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:line], 16)
        if len(data) < line + size + 4:
            break
        if not size:
            return b"".join(body), b"", True
        body.append(data[line + 2 : line + 2 + size])
        at = line + size + 4
    return b"".join(body), data[at:], False


class Reference:
    """Runs turns against the server at `port`."""

    def __init__(self, port: int, functions: list[ToolFunction]) -> None:
        self._port = port
        self._tools = {function.__name__: function for function in functions}
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def turn(self, model: str, prompt: str) -> Outcome:
        """A turn from the prompt to the last text."""
        start = b'{"model":"%b","stream":true,"stream_options":{"include_usage":true},"tools":' % model.encode()
        body = bytearray(start + TOOLS_JSON + b',"messages":[' + encode({"role": "user", "content": prompt}))
        texts: list[str] = []
        made: list[Call] = []
        while True:
            answer = await self._stream(body)
            text = "".join(answer.text)
            if text:
                texts.append(text)
            if not answer.calls:
                return Outcome("completed", "\n\n".join(texts), tuple(made))
            calls = [(key, name, "".join(pieces)) for key, name, pieces in answer.calls]
            asked = [{"id": key, "type": "function", "function": {"name": name, "arguments": a}} for key, name, a in calls]
            body += b"," + encode({"role": "assistant", "content": text or None, "tool_calls": asked})
            for key, name, arguments in calls:
                result = await self._tools[name](**msgspec.json.decode(arguments))
                made.append(Call(name, arguments, result))
                body += b"," + encode({"role": "tool", "tool_call_id": key, "content": result})

    async def _stream(self, body: bytearray) -> _Pass:
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port, limit=_READ)
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sk-bench-0123456789abcdef\r\n"
            f"Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: {len(body) + 2}\r\n\r\n"
        )
        writer.writelines([head.encode(), body, b"]}"])
        status = await reader.readuntil(b"\r\n\r\n")
        if not status.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(status.decode())
        answer, rest, over = _Pass(), b"", False
        while not over:
            read = await reader.read(_READ)
            if not read:
                raise ConnectionError("the server closed the connection in the middle of an answer")
            data, rest, over = dechunk(rest + read)
            answer.feed(data)
        self._idle.append((reader, writer))
        return answer

    async def close(self) -> None:
        """Closes the connections."""
        for _, writer in self._idle:
            writer.close()
