"""Where a reply goes: the contract between the engine and a surface."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from msgspec import Struct

from turnkeeper.types.outcomes import Expression
from turnkeeper.types.turn import HistoryEntry, Notice


class Outgoing(Struct, frozen=True):
    """A message with its final text. `nonce`: our own key for it, the same whenever this message is sent (S14.4)."""

    text: str
    nonce: str


class DeliveryUncertainError(Exception):
    """A send was begun and its answer was lost: the message may stand or not (S14.4)."""


class Sink(Protocol):
    """A surface's side of one turn. All calls of a turn come one after another, in the order in which people should see them.

    A method that returns an awaitable may take its time; the engine waits for it before the next pass. It is never
    cancelled by /kill, only abandoned after the settling time (S5.2).
    """

    def grow(self, text: str) -> None:
        """More text of the message that is being written.

        Called for each network read: it must not block and must not raise. A surface may show the text at once or
        collect it and edit its message when its rate limit allows (S14.2).
        """
        ...

    def post(self, message: Outgoing) -> str | Awaitable[str]:
        """The message that has been growing is complete: show `message.text`, which `grow` has given piece by piece, as its
        final text. Text that `grow` gave beyond it belongs to the next message.

        Returns the surface's reference to it, at once or later. Called again with the same nonce it must not post twice.
        A lost answer raises DeliveryUncertainError, never returns.
        """
        ...

    def express(self, expression: Expression, nonce: str) -> str | Awaitable[str]:
        """Shows a sticker, an emoji or a sprite, after what was posted before it; as `post` does. A surface that has no such
        thing shows its words, `str(expression)`."""
        ...

    def notice(self, notice: Notice) -> str | Awaitable[str]:
        """Tells people something that the model did not say, in their language. It keeps its place among the messages."""
        ...

    def tool_started(self, name: str, arguments: str) -> None:
        """A tool is about to run; `arguments` bounded and without secrets. Must not block and must not raise."""
        ...

    def tool_finished(self, entry: HistoryEntry, took_s: float) -> None:
        """A call has its outcome. Must not block and must not raise."""
        ...


class Collecting:
    """The sink of `Engine.run`: keeps nothing, for the result holds all of it."""

    def grow(self, text: str) -> None:
        """Nothing to show."""

    def post(self, message: Outgoing) -> str:
        """The nonce serves as reference."""
        return message.nonce

    def express(self, expression: Expression, nonce: str) -> str:
        """The nonce serves as reference."""
        return nonce

    def notice(self, notice: Notice) -> str:
        """Nothing to show."""
        return ""

    def tool_started(self, name: str, arguments: str) -> None:
        """Nothing to show."""

    def tool_finished(self, entry: HistoryEntry, took_s: float) -> None:
        """Nothing to show."""
