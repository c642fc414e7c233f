# HTTP, and nothing that knows what is in it.
#
# One aiohttp session an engine. An answer is a context manager: leaving it closes the connection, unless the answer was
# read to its end. No time limits here but the one on connecting: the two clocks of a pass belong to the loop (S5.1).
# No POST is ever repeated here (S3.3d).

"""The one place that opens connections to providers."""

from __future__ import annotations

import os
import re
import ssl
from types import TracebackType
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from turnkeeper.errors import ProviderError
from turnkeeper.providers.classify import network_fault

if TYPE_CHECKING:
    import aiohttp

_READ_BUFFER = 2**18  # one network read stays one batch of events
_LOOPBACK = re.compile(r"https?://(?:127\.|localhost[:/]|\[::1\])")
_ERROR_BYTES = 64 * 1024  # of an error answer that is read


class HttpRequest(Struct, frozen=True):
    """A request. `url` without secrets: it is named in errors, but for its query."""

    url: str
    headers: dict[str, str]
    body: bytes = b""
    method: Literal["POST", "GET"] = "POST"

    @property
    def where(self) -> str:
        """Host and path, for people."""
        return place(self.url)


def place(url: str) -> str:
    """Host and path of a URL: what may be shown of it."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


class Answer:
    """An answer whose head has come. Made by `Transport.open`."""

    def __init__(self, response: aiohttp.ClientResponse, lost: tuple[type[BaseException], ...]) -> None:
        self._response = response
        self._content = response.content
        self._lost = lost  # what a lost connection raises
        self.status = response.status
        self.broken = False
        """The connection was lost in the middle of the body."""

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers, names in lower case."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    def header(self, names: tuple[str, ...]) -> str:
        """The first of these headers that the answer has, "" for none."""
        return next((value for name in names if (value := self._response.headers.get(name))), "")

    @property
    def content_type(self) -> str:
        """The media type, in lower case, "" for none."""
        return self._response.headers.get("Content-Type", "").lower()

    @property
    def at_end(self) -> bool:
        """Whether all of the body has been read."""
        return self._content.at_eof()

    async def read(self) -> bytes:
        """The bytes that came since the last call, b"" at the end. A lost connection is an end, and sets `broken`."""
        try:
            return await self._content.readany()
        except self._lost:
            if self.broken:
                return b""
            self.broken = True
            return _buffered(self._content)

    async def read_error(self) -> bytes:
        """The first 64 KiB of an error answer's body."""
        body = b""
        while len(body) < _ERROR_BYTES:
            data = await self.read()
            if not data:
                break
            body += data
        return body[:_ERROR_BYTES]

    async def __aenter__(self) -> Answer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.at_end and not self.broken:
            self._response.release()
        else:
            self._response.close()


class Transport:
    """A pool of connections, made when the first request needs it.

    connect_timeout_s: the longest that opening a connection may take.
    """

    def __init__(self, *, connect_timeout_s: float = 30.0) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether the environment's proxies are asked

    async def open(self, request: HttpRequest) -> Answer:
        """Sends the request and waits for the head of its answer.

        Raises ProviderError (network) with one sentence when no answer can be had. Cancelling closes the connection.
        """
        import aiohttp

        outside = not _LOOPBACK.match(request.url)
        session = self._sessions.get(outside) or self._start(outside)
        try:
            data = request.body if request.method == "POST" else None
            response = await session.request(
                request.method, request.url, data=data, headers=request.headers, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise ProviderError(network_fault(_said(problem, self._connect_timeout_s), where=request.where)) from None
        # llama.cpp announces that it keeps the connection, and closes it: the next POST on it would be lost. aiohttp gives a
        # connection back as soon as the body has come, so it must be told before that.
        if response.headers.get("Server", "").startswith("llama.cpp") and response.connection is not None:
            protocol = response.connection.protocol
            if protocol is not None:
                protocol.force_close()
        return Answer(response, (aiohttp.ClientError, ConnectionError))

    async def aclose(self) -> None:
        """Closes all connections."""
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    def _start(self, outside: bool) -> aiohttp.ClientSession:
        """outside: the server is not on this machine, so a proxy of the environment may lead to it."""
        import aiohttp

        # asyncio reads into a block of 256 KiB. Until glibc has seen a larger one freed, it maps and unmaps memory for each
        # read, which costs more than the read itself.
        bytearray(2 * _READ_BUFFER)
        session = self._sessions[outside] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
            max_field_size=64 * 1024,
            skip_auto_headers=("User-Agent",),
            headers={"User-Agent": "turnkeeper"},
            trust_env=outside,
        )
        return session


def _buffered(content: aiohttp.StreamReader) -> bytes:
    """What had come before the connection was lost. aiohttp raises before it hands that out; people should still see it."""
    rest = b"".join(content._buffer)  # pyright: ignore[reportPrivateUsage]
    content._buffer.clear()  # pyright: ignore[reportPrivateUsage]
    return rest


def _said(problem: Exception, connect_timeout_s: float) -> str:
    """What happened, without addresses of memory and without headers (aiohttp shows those in `repr`)."""
    import aiohttp

    match problem:
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            reason = getattr(problem, "certificate_error", problem)
            return f"the server's TLS certificate was not accepted ({getattr(reason, 'verify_message', '') or 'invalid'})"
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            return "TLS failed: the server may speak plain http, or an old TLS version"
        case aiohttp.ClientConnectorDNSError():
            return "the host name was not found"
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return f"no connection within {connect_timeout_s:g} seconds"
        case aiohttp.ClientConnectorError():
            number = problem.os_error.errno
            return f"no connection ({os.strerror(number).lower() if number else 'refused'})"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError() | aiohttp.ClientOSError():
            return "the server closed the connection before it answered"
        case aiohttp.InvalidURL():
            return "the address is not valid"
        case aiohttp.ClientResponseError():
            return "the server's answer was not valid HTTP"
        case _:
            return f"the request failed ({type(problem).__name__})"
