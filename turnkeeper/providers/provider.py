"""One model with one key, ready to be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from turnkeeper.errors import ProviderError
from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.classify import fault_of_answer
from turnkeeper.providers.families import OpenAnswer, Parser, find_family
from turnkeeper.providers.learned import Learned
from turnkeeper.providers.model import Model
from turnkeeper.providers.prices import Prices
from turnkeeper.providers.text_calls.parser import CallsInText
from turnkeeper.providers.text_calls.prompt import TextPrompts
from turnkeeper.providers.text_calls.shapes import Shape, shapes_of
from turnkeeper.providers.transport import Answer, HttpRequest, Transport
from turnkeeper.settings import Settings
from turnkeeper.types.faults import Fault
from turnkeeper.types.messages import Prompt, ToolSpec
from turnkeeper.types.usage import Usage

_ACCOUNTS = ("anthropic-organization-id", "openai-organization")
"""Headers of answers that say whose key was used."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all providers of an engine share.

    clock: the wall clock, seconds since the epoch, for times that a server names (S3.3a). learned: from refusals.
    """

    transport: Transport
    settings: Settings
    clock: Callable[[], float]
    learned: Learned


class Provider:
    """One model with one key, ready to be asked. Made for an attempt."""

    def __init__(self, model: Model, key: str, shared: Shared) -> None:
        self.model = model
        self.key = key
        self._shared = shared
        self._family = find_family(model.family)
        self._writer = self._family.writer(shared.learned.fitted(model))
        self.account = ""
        """The account that the key belongs to, as far as an answer has said so (S3.3a)."""
        self._asked: Prompt | None = None
        self._in_text = TextPrompts(worked=model.traits.worked_examples) if model.traits.tools == "verbatim" else None
        self._shapes: tuple[tuple[ToolSpec, ...], dict[str, Shape]] = ((), {})
        self._prices = Prices(model.url, model.name, model.own_price)

    @property
    def native_prefill(self) -> bool:
        """Whether an unfinished reply is sent as such, rather than with an instruction (S3.4)."""
        return self._writer.native_prefill

    def request(self, prompt: Prompt) -> HttpRequest:
        """The request for `prompt`."""
        prompt = self._asked = self._shared.learned.told(prompt)
        if self._in_text is not None:
            prompt = self._in_text.told(prompt)
        return HttpRequest(self.model.url + self._writer.path, self._writer.headers(self.key), self._writer.body(prompt))

    def learn(self, fault: Fault) -> bool:
        """Takes what a refusal teaches. Returns whether the same may be asked once more, in another manner, at once."""
        learned = self._shared.learned
        if fault.prefill and self.native_prefill:  # S3.4b
            learned.refuses_prefill(self.model)
            self._writer = self._family.writer(learned.fitted(self.model))
            return True
        return fault.picture and self._asked is not None and learned.refuses_pictures(self._asked)  # S3.10a

    async def open(self, request: HttpRequest) -> OpenAnswer:
        """Sends a request. Raises ProviderError when no answer can be had, or when it is an error's."""
        self._prices.look_up()
        answer = await self._open(request)
        session = self._family.session
        return answer if session is None else session(answer, request, self.model, self._open)

    async def _open(self, request: HttpRequest) -> Answer:
        answer = await self._shared.transport.open(request)
        self.account = answer.header(_ACCOUNTS) or self.account
        if 200 <= answer.status < 300:
            return answer
        async with answer:
            body = await answer.read_error()
        raise ProviderError(fault_of_answer(answer.status, answer.headers, body, where=request.where, now=self._shared.clock()))

    async def priced(self, usage: Usage) -> Usage:
        """`usage` with what it cost, where that is known (S15.2)."""
        return await self._prices.priced(usage)

    def parser(self, content_type: str, id_prefix: str) -> Parser:
        """A parser for one answer. `id_prefix`: unique in the turn, for call ids made by us."""
        limit, unmarked = self._shared.settings.max_event_bytes, self.model.traits.ends_unmarked
        now = self._shared.clock()
        own = self._family.parser(AnswerOptions(self.model.name, id_prefix, content_type, limit, unmarked, now))
        tools = self._asked.tools if self._asked is not None else ()
        if not tools or self.model.traits.tools == "none":
            return own
        if self._shapes[0] is not tools:
            self._shapes = (tools, shapes_of(tools))
        return CallsInText(own, self._shapes[1], verbatim=self._in_text is not None, id_prefix=id_prefix)
