"""A turn while it runs, and one attempt at it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from turnkeeper.delivery.delivery import Delivery
from turnkeeper.delivery.sink import Sink
from turnkeeper.ledger.ledger import Spending
from turnkeeper.loop.recorder import Recorder
from turnkeeper.loop.signals import TurnSignals
from turnkeeper.providers.model import Model
from turnkeeper.providers.provider import Provider
from turnkeeper.redaction import Redactor
from turnkeeper.settings import Settings
from turnkeeper.tools.context import Notes
from turnkeeper.tools.results import Results
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.messages import Message, ToolSpec


class Approval(Struct, frozen=True):
    """What a person is asked before a tool that demands it runs. `arguments`: bounded and without secrets."""

    channel: str
    user: str
    tool: str
    arguments: str


READ_MORE = "read_more"
"""The tool that pages through a result that was cut (S6.5)."""

Approve = Callable[[Approval], Awaitable[bool]]
"""Asks a person; anything but True, an exception included, refuses."""


@dataclass(frozen=True, slots=True)
class ToolServices:
    """What tools may use, and who is asked before some run.

    notes: the short-term memory. results: whole texts of results that were cut (S6.5).
    attachments: files that came with the message, by name. approve: None where nobody can be asked.
    """

    notes: Notes
    results: Results
    folders: tuple[Path, ...] = ()
    attachments: dict[str, bytes] = field(default_factory=dict[str, bytes])
    approve: Approve | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """All that a turn's stages share. The state of its chain is elsewhere (`loop.state`), and is passed along.

    context: the conversation up to the trigger, which is its last message. exchanges: where in it each exchange begins.
    fitted_to: the model whose window the context was fitted to.
    identity_key: what digests of calls are keyed with (S3.5a).
    exposed: names of the tools that the model is told of (S6.2).
    spending: what the turn uses, and what it may (S15.2); None for no budgets.
    """

    id: str
    channel: str
    user: str
    settings: Settings
    system: str
    context: tuple[Message, ...]
    exchanges: tuple[int, ...]
    toolbox: Toolbox
    exposed: frozenset[str]
    services: ToolServices
    signals: TurnSignals
    sink: Sink
    delivery: Delivery
    recorder: Recorder
    redactor: Redactor
    abandoned: set[asyncio.Future[object]]
    fitted_to: Model | None = None
    identity_key: bytes = b""
    spending: Spending | None = None

    def fits(self, model: Model) -> bool:
        """Whether the context was made to fit this model's window."""
        return model is self.fitted_to

    def keep(self, text: str) -> str:
        """Keeps the whole text of a result that is cut, and returns its handle (S6.5)."""
        return self.services.results.keeper(self.channel)(text)

    @property
    def offered(self) -> frozenset[str]:
        """The tools that may be called now: the exposed ones, and `read_more` once a result of this channel was cut."""
        return self.exposed | {READ_MORE} if self.services.results.any(self.channel) else self.exposed

    def specs(self, without: frozenset[str]) -> tuple[ToolSpec, ...]:
        """The tools that the model is told of, in one fixed order (S3.10b). `without`: those that were switched off."""
        offered = self.offered - without
        if len(offered) == len(self.toolbox.specs):
            return self.toolbox.specs
        return tuple(spec for spec in self.toolbox.specs if spec.name in offered)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try with one model and one key.

    number: counts the turn's attempts from 1. room: tokens of the model's window that the conversation may take;
    0 where that is not known. fixed: tokens of what its requests hold besides.
    first_token_s: the longest wait for the first progress of a pass (S5.1, S3.3c); None for the setting's.
    own_key: a user's own key is asked with.
    """

    number: int
    provider: Provider
    room: int = 0
    fixed: int = 0
    first_token_s: float | None = None
    own_key: bool = False


def shown_arguments(turn: Turn, call: ToolCall, limit: int = 300) -> str:
    """A call's arguments as people and logs may see them: without secrets, in one line, cut."""
    text = " ".join(turn.redactor.text(call.text[: 4 * limit]).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
