"""What every wire family does alike: it writes requests and reads answers. A new family is a package and a row here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from turnkeeper.errors import ConfigurationError, ProviderError
from turnkeeper.providers.classify import fault_of_answer
from turnkeeper.providers.model import Model
from turnkeeper.providers.openai_chat.parser import ChatParser
from turnkeeper.providers.openai_chat.request import RequestWriter
from turnkeeper.providers.transport import Answer, HttpRequest, Transport
from turnkeeper.settings import Settings
from turnkeeper.types.messages import Prompt
from turnkeeper.types.stream import StreamEvent


class Parser(Protocol):
    """Bytes in, stream events out; no I/O. What comes out never depends on where the bytes were cut."""

    over: bool
    """True once the answer has ended; later bytes are ignored."""

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Events that are certain with these bytes."""
        ...

    def close(self) -> list[StreamEvent]:
        """Events that the end of the bytes makes certain."""
        ...

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that was being written last, None for none."""
        ...


class Writer(Protocol):
    """Writes the requests of one attempt; what was encoded for a pass serves the next."""

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        ...

    @property
    def native_prefill(self) -> bool:
        """Whether an unfinished reply is sent as such (S3.4)."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request with `key`, "" for none."""
        ...

    def body(self, prompt: Prompt) -> bytes:
        """A request's body."""
        ...


class Provider:
    """One model with one key, ready to be asked. Made for an attempt; the transport is shared.

    clock: the wall clock, seconds since the epoch, for times that a server names (S3.3a).
    """

    def __init__(
        self, model: Model, key: str, transport: Transport, settings: Settings, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.model = model
        self.key = key
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._writer = _writer(model)

    @property
    def native_prefill(self) -> bool:
        """Whether an unfinished reply is sent as such, rather than with an instruction (S3.4)."""
        return self._writer.native_prefill

    def request(self, prompt: Prompt) -> HttpRequest:
        """The request for `prompt`."""
        return HttpRequest(self.model.url + self._writer.path, self._writer.headers(self.key), self._writer.body(prompt))

    async def open(self, request: HttpRequest) -> Answer:
        """Sends a request. Raises ProviderError when no answer can be had, or when it is an error's."""
        answer = await self._transport.open(request)
        if answer.status == 200:
            return answer
        async with answer:
            body = await answer.read_error()
        raise ProviderError(fault_of_answer(answer.status, answer.headers, body, where=request.where, now=self._clock()))

    def parser(self, content_type: str, id_prefix: str) -> Parser:
        """A parser for one answer. `id_prefix`: unique in the turn, for call ids made by us."""
        limit, unmarked = self._settings.max_event_bytes, self.model.traits.ends_unmarked
        return parser(self.model.family, AnswerOptions(self.model.name, id_prefix, content_type, limit, unmarked))


class AnswerOptions(Struct, frozen=True):
    """What is known of an answer before its first byte.

    model: who makes it, for native parts. id_prefix: what call ids made by us begin with, unique in the turn.
    content_type: "" where unknown. max_event_bytes: the largest event taken.
    ends_unmarked: this server never says that it has finished.
    """

    model: str = ""
    id_prefix: str = "call_"
    content_type: str = ""
    max_event_bytes: int = 16 * 2**20
    ends_unmarked: bool = False


def parser(family: str, options: AnswerOptions | None = None) -> Parser:
    """A parser of a wire family by its name. Raises ConfigurationError for an unknown one."""
    if family != "openai-chat":
        raise ConfigurationError(f"Unknown family {family!r}; known: openai-chat.")
    known = options or AnswerOptions()
    return ChatParser(
        known.model,
        id_prefix=known.id_prefix,
        content_type=known.content_type,
        max_event_bytes=known.max_event_bytes,
        ends_unmarked=known.ends_unmarked,
    )


def _writer(model: Model) -> Writer:
    return RequestWriter(model)
