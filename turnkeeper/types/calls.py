"""Tool calls: what a model asked for."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct


class Parsed(Struct, frozen=True, tag=True):
    """The arguments are one JSON object: `value`."""

    value: dict[str, Any]


class Invalid(Struct, frozen=True, tag=True):
    """The arguments came whole but are not a JSON object; `problem` is a sentence that the model can act on (S12.3)."""

    problem: str


class Truncated(Struct, frozen=True, tag=True):
    """The stream ended inside the arguments. Never dispatched, even if a repair would parse (S6.1)."""


Arguments: TypeAlias = Parsed | Invalid | Truncated


class ToolCall(Struct, frozen=True, tag=True):
    """One call.

    id: unique within the turn; made by us where the server sent none or the same twice (S4.6).
    name: as the model wrote it; may be empty (S6 answers that) or unknown (S6.3).
    text: the arguments as the model wrote them.
    arguments: what became of that text.
    """

    id: str
    name: str
    text: str
    arguments: Arguments
