# A row of fragments as one answer (S12.5).
#
# The service ends a fragment after about 150 tokens, in the middle of a sentence. The session asks for the next one with
# the text so far, until the model stops by itself, the reply is over by its text, or the one output budget is spent. To the
# loop it is one answer: the bytes of the fragments in a row, and at last an event of the session's own that says why it
# ended. An error of a later fragment ends the answer as a lost connection would: what came stands.

"""Joins NovelAI's fragments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType

from msgspec.json import decode, encode

from turnkeeper.errors import ProviderError
from turnkeeper.providers.counts import table_of, text_of
from turnkeeper.providers.model import Model
from turnkeeper.providers.novelai.parser import NovelParser, decode_token
from turnkeeper.providers.novelai.request import FRAGMENT_TOKENS, NovelWriter
from turnkeeper.providers.sse import SseParser
from turnkeeper.providers.transport import Answer, HttpRequest

_BETWEEN = b"\n\n"  # so that a fragment whose last event has no blank line after it can't run into the next one

OUTPUT_TOKENS = 600
"""The budget of a reply where the model names none."""


class FragmentSession:
    """An answer made of fragments; it is read as a transport's answer is.

    open_next: sends the request for the next fragment.
    """

    def __init__(
        self, first: Answer, request: HttpRequest, model: Model, open_next: Callable[[HttpRequest], Awaitable[Answer]]
    ) -> None:
        self._answer = first
        self._request = request
        self._writer = NovelWriter(model)
        self._open_next = open_next
        self._left = model.max_output_tokens or OUTPUT_TOKENS
        self._asked = FRAGMENT_TOKENS
        self._text = text_of(table_of(decode(request.body)).get("input"))
        self._watch = NovelParser()
        self._sse = SseParser()
        self._tokens: list[str] = []  # of the fragment that is being read
        self._whole = False  # the fragment has ended as it should
        self.content_type = first.content_type
        self.at_end = False
        """All fragments have been read."""

    async def read(self) -> bytes:
        """The bytes that came since the last call, b"" at the end."""
        if self.at_end or self._watch.over:  # the reply is over by its text: no more is asked for
            self.at_end = True
            return b""
        data = await self._answer.read()
        if data:
            self._see(data)
            return data
        if self._answer.broken or not self._whole:
            self.at_end = True
            return b""
        return await self._go_on()

    async def __aenter__(self) -> FragmentSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._answer.__aexit__(kind, error, trace)

    def _see(self, data: bytes) -> None:
        """Follows what the fragment says, to know whether another is to be asked for."""
        self._watch.feed(data)
        for event in self._sse.feed(data):
            token = decode_token(event.data)
            if token is not None and token.token:
                self._tokens.append(token.token)
            if token is not None and token.final:
                self._whole = True

    async def _go_on(self) -> bytes:
        """The next fragment's first bytes, or the session's last event."""
        said = len(self._tokens)
        self._left -= said
        self._text += "".join(self._tokens)
        self._tokens = []
        if said < self._asked:
            return self._end("stop")
        if self._left <= 0:
            return self._end("length")
        await self._answer.__aexit__(None, None, None)
        self._asked = min(FRAGMENT_TOKENS, self._left)
        self._whole = False
        body = self._writer.fragment(self._text, self._asked)
        try:
            self._answer = await self._open_next(HttpRequest(self._request.url, self._request.headers, body))
        except ProviderError as problem:
            self.at_end = True
            fault = problem.fault
            return (
                _BETWEEN + b"event: error\ndata: " + encode({"message": fault.said or str(fault), "code": fault.kind}) + b"\n\n"
            )
        self._sse.feed(_BETWEEN)
        return _BETWEEN + await self.read()

    def _end(self, finish: str) -> bytes:
        self.at_end = True
        return _BETWEEN + b"data: " + encode({"finish": finish}) + b"\n\n"
