"""Servers on loopback that answer as Ollama, llama.cpp and LM Studio do, and others that answer nonsense."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from turnkeeper.providers.local.discover import PLACES, Found, Place, discover

LISTING = {"ollama": "/api/tags", "llama.cpp": "/v1/models", "lm-studio": "/v1/models"}


async def elsewhere(_: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": "far"}]})


Serve = Callable[..., Coroutine[Any, Any, Place]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve this answer on a free port, as this kind of server."""
    async with AsyncExitStack() as stack:

        async def start(kind: str, body: bytes | str, status: int = 200, headers: dict[str, str] | None = None) -> Place:
            async def handle(_: web.Request) -> web.Response:
                data = body.encode() if isinstance(body, str) else body
                return web.Response(body=data, status=status, headers=headers)

            app = web.Application()
            app.router.add_get(LISTING[kind], handle)
            app.router.add_get("/moved", elsewhere)
            server = await stack.enter_async_context(TestServer(app, host="127.0.0.1"))
            return Place(kind, str(server.make_url("")).rstrip("/"), LISTING[kind])  # type: ignore[arg-type]

        yield start


def closed_place() -> Place:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Place("llama.cpp", f"http://127.0.0.1:{free.getsockname()[1]}", "/v1/models")


def test_the_places_are_on_loopback() -> None:
    assert [(place.kind, place.address) for place in PLACES] == [
        ("ollama", "http://127.0.0.1:11434"),
        ("llama.cpp", "http://127.0.0.1:8080"),
        ("lm-studio", "http://127.0.0.1:1234"),
    ]


async def test_ollama_is_found_by_its_tags(serve: Serve) -> None:
    place = await serve("ollama", '{"models":[{"name":"qwen3:4b","size":1},{"name":"nomic-embed-text:latest"}]}')
    assert await discover([place], limit_s=5) == Found("ollama", place.address + "/v1", ("qwen3:4b",))


async def test_llama_cpp_and_lm_studio_are_found_by_their_models(serve: Serve) -> None:
    body = '{"object":"list","data":[{"id":"text-embedding-x"},{"id":"tide","object":"model"},{"id":"sea"}]}'
    for kind in ("llama.cpp", "lm-studio"):
        place = await serve(kind, body)
        assert await discover([place], limit_s=5) == Found(kind, place.address + "/v1", ("tide", "sea"))


async def test_the_first_of_the_places_that_answers_is_taken(serve: Serve) -> None:
    first = await serve("ollama", '{"models":[]}')
    second = await serve("llama.cpp", '{"data":[{"id":"tide"}]}')
    third = await serve("lm-studio", '{"data":[{"id":"sea"}]}')
    found = await discover([closed_place(), first, second, third], limit_s=5)
    assert found
    assert (found.kind, found.models) == ("llama.cpp", ("tide",))


NONSENSE = [
    ("a page", "<!doctype html><title>My router</title>", 200),
    ("an error", '{"data":[{"id":"tide"}]}', 500),
    ("no access", '{"data":[{"id":"tide"}]}', 401),
    ("nothing", "", 200),
    ("another JSON", '{"hello": "world"}', 200),
    ("a list", '[{"id":"tide"}]', 200),
    ("no models", '{"data":[]}', 200),
    ("null", '{"data":null}', 200),
    ("names that are numbers", '{"data":[{"id":7}]}', 200),
    ("a name for no terminal", '{"data":[{"id":"\\u001b[2Jtide"}]}', 200),
    ("an empty name", '{"data":[{"id":""}]}', 200),
    ("only embeddings", '{"data":[{"id":"nomic-embed-text"}]}', 200),
    ("deep JSON", '{"data":' + "[" * 100_000, 200),
    ("not UTF-8", b'{"data":[{"id":"\xff"}]}', 200),
    ("over 1 MB", '{"data":[{"id":"tide"}],"x":"' + "y" * 1_000_000 + '"}', 200),
]


@pytest.mark.parametrize(("body", "status"), [case[1:] for case in NONSENSE], ids=[case[0] for case in NONSENSE])
async def test_nonsense_counts_as_not_found(serve: Serve, body: bytes | str, status: int) -> None:
    assert await discover([await serve("llama.cpp", body, status)], limit_s=5) is None


async def test_a_redirect_is_not_followed(serve: Serve) -> None:
    place = await serve("llama.cpp", "", 302, {"Location": "/moved"})
    assert await discover([place], limit_s=5) is None


async def test_a_packed_answer_is_not_unpacked(serve: Serve) -> None:
    place = await serve("llama.cpp", gzip.compress(b'{"data":[{"id":"tide"}]}'), headers={"Content-Encoding": "gzip"})
    assert await discover([place], limit_s=5) is None


async def test_nobody_there_is_none() -> None:
    assert await discover([closed_place(), closed_place()]) is None


async def test_what_is_no_http_is_none() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await discover([Place("lm-studio", f"http://127.0.0.1:{port}", "/v1/models")], limit_s=5) is None


async def test_silent_servers_cost_the_limit_once(serve: Serve) -> None:
    """All are asked at once, and one that accepts and says nothing does not hide another that answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = Place("ollama", f"http://127.0.0.1:{silent.getsockname()[1]}", "/api/tags")
        good = await serve("lm-studio", '{"data":[{"id":"sea"}]}')
        start = time.monotonic()
        found = await discover([mute] * 5 + [good], limit_s=1.0)
        waited = time.monotonic() - start
    assert found
    assert found.kind == "lm-studio"
    assert waited < 3.0
