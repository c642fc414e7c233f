"""Model servers that already run on this machine: Ollama, llama.cpp, LM Studio.

To add one: a row in PLACES.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from aiohttp import ClientSession

ServerKind: TypeAlias = Literal["ollama", "llama.cpp", "lm-studio"]

_ANSWER_BYTES = 1_000_000
_LONGEST_NAME = 200


class Place(Struct, frozen=True):
    """Where a server of this kind listens, and the path that lists its models."""

    kind: ServerKind
    address: str
    listing: str


class Found(Struct, frozen=True):
    """A server that answered, with the models that can chat; the first is its own first."""

    kind: ServerKind
    base_url: str
    models: tuple[str, ...]


PLACES: tuple[Place, ...] = (
    Place("ollama", "http://127.0.0.1:11434", "/api/tags"),
    Place("llama.cpp", "http://127.0.0.1:8080", "/v1/models"),
    Place("lm-studio", "http://127.0.0.1:1234", "/v1/models"),
)


class _Tag(Struct):
    name: str


class _Tags(Struct):
    models: list[_Tag]


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


async def discover(places: Sequence[Place] = PLACES, *, limit_s: float = 0.2) -> Found | None:
    """The first of `places` that lists a model within the limit; all are asked at once. None where none does.

    An answer that is no list of models (another program's page, an error, more than 1 MB) counts as none.
    """
    import aiohttp  # before the clock starts: the import itself takes about as long as the limit

    async with aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
        asked = [_ask(session, place, limit_s) for place in places]
        answers = await asyncio.gather(*asked)
    return next((found for found in answers if found), None)


async def _ask(session: ClientSession, place: Place, limit_s: float) -> Found | None:
    from aiohttp import ClientError

    try:
        async with (
            asyncio.timeout(limit_s),
            session.get(place.address + place.listing, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                return None
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > _ANSWER_BYTES:
                    return None
    except (ClientError, TimeoutError, OSError, ValueError):  # ValueError: bytes that are no HTTP
        return None
    models = tuple(name for name in _names(place, bytes(body)) if _can_chat(name))
    return Found(place.kind, place.address + "/v1", models) if models else None


def _names(place: Place, body: bytes) -> list[str]:
    try:
        if place.listing == "/api/tags":
            return [tag.name for tag in msgspec.json.decode(body, type=_Tags).models]
        return [model.id for model in msgspec.json.decode(body, type=_Models).data]
    except (msgspec.DecodeError, RecursionError):
        return []


def _can_chat(name: str) -> bool:
    """Not an embedding model, by the custom of their names; and a name that can be shown in a terminal."""
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and "embed" not in name.lower()
