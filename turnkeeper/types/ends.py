"""How a pass ended, one class an end, each with its own data."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from turnkeeper.types.calls import ToolCall
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import FinishReason, NativePart

StoppedBy: TypeAlias = Literal["user", "send_message_limit", "flush_limit"]


class Completed(Struct, frozen=True, tag=True):
    """The model said `shown` and had no more to ask for. `finish` is `length` where it was cut by its output limit."""

    shown: str
    finish: FinishReason


class AskedCall(Struct, frozen=True, tag=True):
    """One call of a pass, with the visible text that came before it in that pass (S4.3)."""

    call: ToolCall
    text_before: str = ""


class ToolCalls(Struct, frozen=True, tag=True):
    """The model asked for tools. `text_after` is what it said after the last call."""

    asked: tuple[AskedCall, ...]
    text_after: str = ""
    native: tuple[NativePart, ...] = ()

    @property
    def shown(self) -> str:
        """All visible text of the pass, in order."""
        return "".join([one.text_before for one in self.asked]) + self.text_after


class Paused(Struct, frozen=True, tag=True):
    """The server rests in the middle of its own tools' work, and goes on when it is sent what it has said (`pause_turn`)."""

    shown: str
    native: tuple[NativePart, ...] = ()


class Empty(Struct, frozen=True, tag=True):
    """The pass ended in an orderly way with nothing to show and nothing to do (S9.2, S9.4).

    reasoned: reasoning came, which is never shown as the answer.
    repeated: what came only said again what people had seen already (S9.4b).
    """

    finish: FinishReason
    reasoned: bool = False
    repeated: bool = False


class Failed(Struct, frozen=True, tag=True):
    """The provider refused or broke.

    lost_call: the tool whose call was cut off with the stream, and did not run.
    undelivered: nothing at all had come of the answer (S3.3d, S3.4a).
    """

    fault: Fault
    shown: str = ""
    lost_call: str | None = None
    undelivered: bool = False


class TimedOut(Struct, frozen=True, tag=True):
    """One of the two clocks of S5.1 ran out. `waited_s`: seconds since the last progress."""

    phase: Literal["first_token", "idle"]
    waited_s: float
    shown: str = ""


class Stopped(Struct, frozen=True, tag=True):
    """Someone, or a delivery limit (S14.3), ended the reply."""

    by: StoppedBy = "user"
    shown: str = ""


class FollowUp(Struct, frozen=True, tag=True):
    """A newer message of the same user ended the pass at a clean boundary (S5.4)."""

    shown: str = ""


PassEnd: TypeAlias = Completed | ToolCalls | Paused | Empty | Failed | TimedOut | Stopped | FollowUp
