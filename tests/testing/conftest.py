"""A plain client for the scripted provider's own tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from turnkeeper.testing import ScriptedProvider

HELLO = {"model": "gpt-x", "stream": True, "messages": [{"role": "user", "content": "hello"}]}


@dataclass
class Reply:
    """What a client got."""

    status: int
    headers: dict[str, str]
    reads: list[bytes] = field(default_factory=list)
    lost: str = ""
    """The error that ended the body, by its class."""

    @property
    def data(self) -> bytes:
        return b"".join(self.reads)

    @property
    def chunks(self) -> list[Any]:
        """The data of each event: JSON, or its text."""
        events = [block for block in self.data.decode().split("\n\n") if block.startswith("data: ")]
        return [json.loads(event[6:]) if event[6:7] == "{" else event[6:] for event in events]

    @property
    def text(self) -> str:
        deltas = [c["choices"][0]["delta"] for c in self.chunks if isinstance(c, dict) and c.get("choices")]
        return "".join(delta.get("content") or "" for delta in deltas)

    @property
    def finish(self) -> list[str]:
        reasons = [c["choices"][0]["finish_reason"] for c in self.chunks if isinstance(c, dict) and c.get("choices")]
        return [reason for reason in reasons if reason is not None]


class Client:
    """Asks a provider, and reads to the end."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    def open(
        self, provider: ScriptedProvider, body: Any = HELLO, **headers: str
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._open(f"{provider.base_url}/chat/completions", body, headers)

    async def ask(self, provider: ScriptedProvider, body: Any = HELLO, **headers: str) -> Reply:
        return await self.post(f"{provider.base_url}/chat/completions", body, **headers)

    async def post(self, url: str, body: Any, **headers: str) -> Reply:
        async with self._open(url, body, headers) as response:
            reply = Reply(response.status, {name.lower(): value for name, value in response.headers.items()})
            try:
                while data := await response.content.readany():
                    reply.reads.append(data)
            except aiohttp.ClientError as error:
                reply.lost = type(error).__name__
            return reply

    def _open(self, url: str, body: Any, headers: dict[str, str]) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._session.post(url, data=data, headers=named)

    async def get(self, url: str, **headers: str) -> tuple[int, Any]:
        async with self._session.get(url, headers=headers) as response:
            return response.status, await response.json()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield Client(session)


@pytest.fixture
def hello() -> dict[str, Any]:
    """A valid request for a stream."""
    return json.loads(json.dumps(HELLO))
