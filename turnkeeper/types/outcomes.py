"""Tool outcomes: what happened to a call, as data."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from turnkeeper.types.messages import Picture

FailureKind: TypeAlias = Literal[
    "tool_execution_failed",
    "invalid_arguments",
    "truncated_arguments",
    "no_name",
    "unknown_tool",
    "not_exposed",
    "not_available",
    "not_approved",
    "repeated_call",
    "too_many_calls",
    "journal_unavailable",
    "timed_out",
    "stopped",
]
"""Why a call gave no result. All but `stopped` count towards `max_tool_errors` (S4.2)."""


class ContextItem(Struct, frozen=True, tag=True):
    """Context that a tool found and the model should have had from the start (S7.1).

    text, pictures: what the model is given.
    key: for a heavy payload, its one-time name: the same key adds nothing a second time in a turn.
    """

    text: str
    pictures: tuple[Picture, ...] = ()
    key: str | None = None


class Continue(Struct, frozen=True, tag=True):
    """The chain goes on. `follow_up`: the model must still say something about the result (S9.2)."""

    follow_up: bool = False


class EndTurn(Struct, frozen=True, tag=True):
    """The turn is complete with this outcome (S6.7)."""


class RestartWith(Struct, frozen=True, tag=True):
    """The pass is begun again with `item` in the context; the call leaves no history entry (S7.1)."""

    item: ContextItem


Then: TypeAlias = Continue | EndTurn | RestartWith


class Expression(Struct, frozen=True, tag=True):
    """A sticker, a custom emoji or a sprite. name: what people and models call it; id: what the surface calls it (S6.6)."""

    kind: Literal["sticker", "emoji", "sprite"]
    name: str
    id: str

    def __str__(self) -> str:
        """What stands for it in a conversation (S2.5a)."""
        return f"[sent {self.kind} {self.name}]"


class Succeeded(Struct, frozen=True, tag=True):
    """The tool ran. A tool function may return this instead of a bare value, to say more than the value.

    data: the value, as JSON values (text and bytes that are no JSON are put into words).
    message: a sentence for the model beside the data, such as what to do with it; kept with it (S4.4).
    delivered: text that the tool itself put into the channel: the answer is there already (S6.7); None for none.
    then: how the turn goes on.
    pictures: pictures for the model to look at.
    expression: to be shown to people at once; what became of it takes the place of `data` (S6.6).
    """

    data: Any = None
    message: str = ""
    delivered: str | None = None
    then: Then = Continue()
    pictures: tuple[Picture, ...] = ()
    expression: Expression | None = None


class Failed(Struct, frozen=True, tag=True):
    """The tool did not run, or broke. `reason` and `hint` are what the model reads: what happened, what to do."""

    kind: FailureKind
    reason: str
    hint: str = ""


class Rejected(Struct, frozen=True, tag=True):
    """A reviewer asked for a correction: nothing ran and it is no error (S11.6)."""

    findings: tuple[str, ...]


class Unknown(Struct, frozen=True, tag=True):
    """The call was dispatched and its end was not seen: it may or may not have had its effect (S15.1)."""

    reason: str


ToolOutcome: TypeAlias = Succeeded | Failed | Rejected | Unknown
