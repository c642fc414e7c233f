"""Engines for tests, and what people saw of a turn."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from tests.loop.verbatim import conversation as in_text
from tests.neutral import conversation
from turnkeeper import Engine, Host, Model, Settings, Tool, TurnResult
from turnkeeper.delivery.sink import DeliveryUncertainError, Outgoing
from turnkeeper.journal.events import TurnEvent
from turnkeeper.journal.journal import Journal, MemoryJournal
from turnkeeper.surfaces.timeline import timeline
from turnkeeper.testing import ScriptedProvider
from turnkeeper.types.outcomes import Expression
from turnkeeper.types.turn import HistoryEntry, Notice

KEY = "sk-test-0123456789abcdef"


class Seen(Struct):
    """What can be seen of a turn from outside: one value to compare."""

    reads: str
    end: str
    requests: int
    ran: list[str]
    notices: list[str]


class Bench:
    """Makes engines against one scripted provider."""

    def __init__(self, provider: ScriptedProvider, family: str = "openai-chat") -> None:
        self.provider = provider
        self.family = family
        self.journal: Journal = MemoryJournal()
        self.strict_errors_expected = False
        self._engines: list[Engine] = []

    def model(self, name: str = "gpt-x", **options: Any) -> Model:
        """A model of the scripted provider."""
        if self.family != "verbatim":
            return Model(self.family, name, base_url=self.provider.base_url, **{"keys": [KEY]} | options)
        options["quirks"] = {"tools": "verbatim"} | options.get("quirks", {})
        return Model("openai-chat", name, base_url=self.provider.base_url, **{"keys": [KEY]} | options)

    def engine(
        self,
        *tools: Tool,
        models: list[Model] | None = None,
        journal: Journal | str | None = None,
        host: Host | None = None,
        **settings: Any,
    ) -> Engine:
        """An engine with these tools and settings."""
        made = Engine(
            models=models or [self.model()],
            tools=tools,
            settings=Settings(**settings),
            journal=journal if journal is not None else self.journal,
            host=host or Host(random=random.Random(7)),
        )
        self._engines.append(made)
        return made

    def seen(self, result: TurnResult) -> Seen:
        """What was seen of a turn."""
        return Seen(
            reads="\n".join(message.text for message in result.deliveries),
            end=result.end,
            requests=len(self.provider.requests),
            ran=[f"{entry.call.name} {type(entry.outcome).__name__}" for entry in result.history],
            notices=[notice.kind for notice in result.notices],
        )

    async def events(self, result: TurnResult) -> list[TurnEvent]:
        """The turn's events on record."""
        return [one.event for one in await self.journal.turn(result.turn_id)]

    async def timeline(self, result: TurnResult) -> str:
        """The turn as a failure should print it."""
        return "\n".join(timeline(await self.journal.turn(result.turn_id)))

    def messages(self, request: int = -1) -> list[dict[str, Any]]:
        """The messages of a request, as chat completions would have them."""
        seen = self.provider.requests[request]
        return in_text(seen) if self.family == "verbatim" else conversation(seen)

    async def aclose(self) -> None:
        """Closes all engines."""
        for engine in self._engines:
            await engine.aclose()


class Watching:
    """A sink that notes what it is told, and can be made slow or failing."""

    def __init__(self) -> None:
        self.text = ""
        self.log: list[str] = []
        self.posting: asyncio.Event | None = None
        self.posts = 0
        self.lose_expressions = False
        self._grown = asyncio.Condition()

    def grow(self, text: str) -> None:
        self.text += text
        self.log.append(f"grow {text}")

    def post(self, message: Outgoing) -> Any:
        self.posts += 1
        self.log.append(f"post {message.text}")
        return message.nonce if self.posting is None else self._post_later(message)

    async def _post_later(self, message: Outgoing) -> str:
        assert self.posting is not None
        await self.posting.wait()
        self.log.append(f"posted {message.text}")
        return message.nonce

    def express(self, expression: Expression, nonce: str) -> Any:
        self.log.append(f"express {expression.id}")
        if self.lose_expressions:
            raise DeliveryUncertainError
        return nonce

    def notice(self, notice: Notice) -> str:
        self.log.append(f"notice {notice.kind}")
        return ""

    def tool_started(self, name: str, arguments: str) -> None:
        self.log.append(f"tool {name}")

    def tool_finished(self, entry: HistoryEntry, took_s: float) -> None:
        self.log.append(f"tool {entry.call.name} {type(entry.outcome).__name__}")


async def until(condition: Any, turns: int = 20_000) -> None:
    """Lets the loop run until `condition()` is true; fails after `turns` rounds. Takes no time of the clock by itself."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("what was waited for did not come")


def tokens_of(deliveries: Iterable[Any]) -> list[str]:
    """The texts of deliveries."""
    return list(itertools.chain([one.text for one in deliveries]))
