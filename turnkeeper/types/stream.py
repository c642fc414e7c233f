"""Stream events: what a provider's answer says, in the order in which it says it (S12.1).

A parser turns bytes into these. The loop handles one network read's events as a batch.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from turnkeeper.types.calls import ToolCall
from turnkeeper.types.faults import Fault
from turnkeeper.types.usage import Usage

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "pause", "unknown"]
"""Why the model stopped, in our words; `Finished.said` keeps the provider's."""


class TextDelta(Struct, frozen=True, tag=True):
    """Visible text."""

    text: str


class TextRevised(Struct, frozen=True, tag=True):
    """The server's last word on text that it had streamed otherwise: `before` is now `after`. What was shown stands."""

    before: str
    after: str


class ReasoningDelta(Struct, frozen=True, tag=True):
    """Reasoning: kept, sometimes sent back, never shown as the answer (S9.4a)."""

    text: str


class ToolCallStarted(Struct, frozen=True, tag=True):
    """A call began. `position` counts the calls of this pass from 0."""

    position: int
    id: str
    name: str


class ToolCallArguments(Struct, frozen=True, tag=True):
    """More of a call's arguments: progress, and for those who show them while they stream."""

    position: int
    text: str


class ToolCallReady(Struct, frozen=True, tag=True):
    """A call is complete, or will never be: its arguments say which."""

    position: int
    call: ToolCall


class NativePart(Struct, frozen=True, tag=True):
    """A part of the assistant's message that its own provider wants back unchanged.

    family: the wire family; model: the model that made it: the part goes back to no other (S3.10).
    data: the part as JSON values.
    """

    family: str
    model: str
    data: dict[str, Any]


class UsageReported(Struct, frozen=True, tag=True):
    """The provider's count so far. A later report replaces an earlier one, nothing is added (S15.2).

    said: the report as the provider words it.
    """

    usage: Usage
    said: dict[str, Any]


class Finished(Struct, frozen=True, tag=True):
    """The answer ended in an orderly way. `said` is the finish reason as the provider words it."""

    reason: FinishReason
    said: str | None = None


class FaultReported(Struct, frozen=True, tag=True):
    """The answer broke: an error inside a 200 stream, or an end without a finish. What came before it stands.

    said: the error as the provider words it, where it sent one.
    foreign: the stream is well formed, and another family's: nothing in it says that anything is wrong.
    """

    fault: Fault
    said: Any = None
    foreign: bool = False


class StartedOver(Struct, frozen=True, tag=True):
    """The server began its answer anew: calls, reasoning and native parts so far are void. Text that was shown stands."""


class Heartbeat(Struct, frozen=True, tag=True):
    """The connection lives, the model says nothing. Not progress (S5.1)."""


StreamEvent: TypeAlias = (
    TextDelta
    | TextRevised
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallArguments
    | ToolCallReady
    | NativePart
    | UsageReported
    | Finished
    | FaultReported
    | StartedOver
    | Heartbeat
)
