# One request to the endpoint, and all that its answer says. Bounded: in time, in bytes, in what it may write.

"""Asks an endpoint one thing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from turnkeeper.errors import ProviderError
from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.classify import fault_of_answer, protocol_fault
from turnkeeper.providers.families import find_family
from turnkeeper.providers.model import Model
from turnkeeper.providers.text_calls.prompt import TextPrompts
from turnkeeper.providers.transport import Answer, HttpRequest, Transport
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.faults import Fault
from turnkeeper.types.messages import Prompt
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from turnkeeper.types.usage import Usage

_MOST_BYTES = 2 * 2**20  # of one answer
_RAW_BYTES = 256 * 1024  # of it that are kept as they came


class Heard(Struct):
    """What came of a request.

    fault: why there is no answer, or why it broke off. status: of HTTP. raw: its first bytes as they came.
    streamed: it came as server-sent events. deltas: pieces of text. marked: it ended with a finish reason.
    first_s, last_s: seconds from the request to the first and the last piece of text or reasoning.
    """

    fault: Fault | None = None
    status: int = 200
    raw: bytes = b""
    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    usage: Usage | None = None
    streamed: bool = False
    deltas: int = 0
    marked: bool = False
    first_s: float | None = None
    last_s: float = 0.0


class Endpoint:
    """An endpoint that is asked.

    model: whom to ask, with its key and quirks. timeout_s: the longest that one answer may take, in seconds.
    now: the wall clock, seconds since the epoch.
    """

    def __init__(self, model: Model, transport: Transport, timeout_s: float, now: Callable[[], float]) -> None:
        self.model = model
        self._transport = transport
        self._timeout_s = timeout_s
        self._now = now
        self.requests = 0
        """How many requests were sent."""

    async def ask(
        self,
        prompt: Prompt,
        *,
        name: str = "",
        most: int = 256,
        extra: dict[str, Any] | None = None,
        quirks: dict[str, Any] | None = None,
    ) -> Heard:
        """Sends `prompt` and hears its answer out; raises nothing that an endpoint can cause.

        name: another model's name. most: tokens of the answer. extra: fields of the request's body. quirks: as in Model.
        """
        own = self.model
        asked = Model(
            own.family,
            name or own.name,
            own.base_url,
            own.keys,
            temperature=0.0,
            max_output_tokens=most,
            headers=own.headers,
            extra=own.extra | (extra or {}),
            quirks=own.quirks | (quirks or {}),
        )
        writer = find_family(asked.family).writer(asked)
        if asked.traits.tools == "verbatim":
            prompt = TextPrompts(worked=asked.traits.worked_examples).told(prompt)
        return await self.send(HttpRequest(asked.url + writer.path, writer.headers(self._key), writer.body(prompt)), asked)

    async def get(self, path: str) -> Heard:
        """Fetches a document below the base URL."""
        headers = find_family(self.model.family).writer(self.model).headers(self._key)
        return await self.send(HttpRequest(self.model.url + path, headers, method="GET"), None)

    async def send(self, request: HttpRequest, asked: Model | None) -> Heard:
        """Sends a request as it is. asked: the model whose family's answer is read; None for a document."""
        heard = Heard()
        self.requests += 1
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._hear(request, asked, heard)
        except TimeoutError:
            heard.fault = Fault("timeout", "model", said=f"no whole answer in {self._timeout_s:g} s", where=request.where)
        except ProviderError as problem:
            heard.fault = problem.fault
        return heard

    @property
    def _key(self) -> str:
        return self.model.keys[0] if self.model.keys else ""

    async def _hear(self, request: HttpRequest, asked: Model | None, heard: Heard) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with await self._transport.open(request) as answer:
            heard.status = answer.status
            if not 200 <= answer.status < 300:
                heard.raw = await answer.read_error()
                heard.fault = fault_of_answer(answer.status, answer.headers, heard.raw, where=request.where, now=self._now())
            elif asked is None:
                heard.raw = await _document(answer)
            else:
                heard.streamed = "event-stream" in answer.content_type
                parser = find_family(asked.family).parser(_options(asked, answer))
                read = 0
                while not parser.over and read < _MOST_BYTES:
                    data = await answer.read()
                    read += len(data)
                    heard.raw += data[: max(0, _RAW_BYTES - len(heard.raw))]
                    _take(heard, parser.feed(data) if data else parser.close(), loop.time() - begun)
                    if not data:
                        break


def _options(asked: Model, answer: Answer) -> AnswerOptions:
    return AnswerOptions(asked.name, "probe_", answer.content_type, ends_unmarked=asked.traits.ends_unmarked)


def _take(heard: Heard, events: list[StreamEvent], at_s: float) -> None:
    for event in events:
        match event:
            case TextDelta(text=text):
                heard.text += text
                heard.deltas += 1
            case ReasoningDelta(text=text):
                heard.reasoning += text
            case ToolCallReady(call=call):
                heard.calls.append(call)
            case UsageReported(usage=usage):
                heard.usage = usage
            case Finished(said=said):
                heard.marked = said is not None
            case FaultReported(fault=fault):
                heard.fault = fault
            case _:
                continue
        if isinstance(event, TextDelta | ReasoningDelta):
            heard.first_s = at_s if heard.first_s is None else heard.first_s
            heard.last_s = at_s


async def _document(answer: Answer) -> bytes:
    data = b""
    while len(data) < _MOST_BYTES and (more := await answer.read()):
        data += more
    if not data.lstrip().startswith((b"{", b"[")):
        raise ProviderError(protocol_fault(answer.content_type, data))
    return data
