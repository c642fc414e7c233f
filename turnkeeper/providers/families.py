# What every wire family does alike: it writes requests and reads answers. A new family is a package and a row in `find_family`.
#
# A family's modules are imported when the family is first used.

"""The wire families, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol

from msgspec import Struct

from turnkeeper.errors import ConfigurationError
from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.model import FAMILIES, Model
from turnkeeper.providers.transport import Answer, HttpRequest
from turnkeeper.types.messages import Prompt
from turnkeeper.types.stream import StreamEvent


class Parser(Protocol):
    """Bytes in, stream events out; no I/O. What comes out never depends on where the bytes were cut."""

    @property
    def over(self) -> bool:
        """True once the answer has ended; later bytes are ignored."""
        ...

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


class OpenAnswer(Protocol):
    """An answer that is being read."""

    @property
    def content_type(self) -> str:
        """The media type, in lower case, "" for none."""
        ...

    @property
    def at_end(self) -> bool:
        """Whether all of it has been read."""
        ...

    async def read(self) -> bytes:
        """The bytes that came since the last call, b"" at the end."""
        ...

    async def __aenter__(self) -> OpenAnswer: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


OpenNext = Callable[[HttpRequest], Awaitable[Answer]]
Session = Callable[[Answer, HttpRequest, Model, OpenNext], OpenAnswer]
"""Makes one answer of several, for a service that answers in fragments: of the first, its request, the model, and a way to
ask for more."""


class Family(Struct, frozen=True):
    """How a family is read and written."""

    parser: Callable[[AnswerOptions | None], Parser]
    writer: Callable[[Model], Writer]
    session: Session | None = None


def find_family(name: str) -> Family:
    """The family of this name. Raises ConfigurationError for an unknown one."""
    match name:
        case "openai-chat":
            from turnkeeper.providers.openai_chat.parser import ChatParser
            from turnkeeper.providers.openai_chat.request import RequestWriter

            return Family(ChatParser, RequestWriter)
        case "anthropic":
            from turnkeeper.providers.anthropic.parser import MessagesParser
            from turnkeeper.providers.anthropic.request import MessagesWriter

            return Family(MessagesParser, MessagesWriter)
        case "openai-responses":
            from turnkeeper.providers.openai_responses.parser import ResponsesParser
            from turnkeeper.providers.openai_responses.request import ResponsesWriter

            return Family(ResponsesParser, ResponsesWriter)
        case "gemini":
            from turnkeeper.providers.gemini.parser import GeminiParser
            from turnkeeper.providers.gemini.request import GeminiWriter

            return Family(GeminiParser, GeminiWriter)
        case "novelai":
            from turnkeeper.providers.novelai.parser import NovelParser
            from turnkeeper.providers.novelai.request import NovelWriter
            from turnkeeper.providers.novelai.session import FragmentSession

            return Family(NovelParser, NovelWriter, FragmentSession)
        case _:
            raise ConfigurationError(f"Unknown family {name!r}; known: {', '.join(FAMILIES)}.")
