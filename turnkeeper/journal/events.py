"""The journal's events: all that happened in a turn, each a past participle (S15.1).

Everything else that wants to know (the timeline, the conversation, usage, later resume) is a fold over these.
Text deltas are not here; each delivered message is.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from turnkeeper.types.faults import Fault
from turnkeeper.types.outcomes import ContextItem
from turnkeeper.types.turn import Delivered, EndName, Notice
from turnkeeper.types.usage import Usage


class Admitted(Struct, frozen=True, tag=True):
    """A message began a turn. server: the server (guild, workspace) that the channel belongs to, "" for none."""

    channel: str
    user: str
    text: str
    server: str = ""


class AttemptStarted(Struct, frozen=True, tag=True):
    """A try with one model and one key began. `key`: its last four characters. `scope`: whose it is, "" the server's."""

    number: int
    model: str
    key: str
    scope: str = ""


class PassStarted(Struct, frozen=True, tag=True):
    """A request is about to be sent. `purpose`: why this pass is made (`loop.policy.Purpose`)."""

    number: int
    purpose: str
    request_bytes: int


class AskedFor(Struct, frozen=True):
    """A call as the model asked for it; `arguments` as it wrote them, bounded and without secrets."""

    id: str
    name: str
    arguments: str
    text_before: str = ""


class PassEnded(Struct, frozen=True, tag=True):
    """A pass is over.

    end: the class of `types.ends`. shown: its visible text. reasoning: the last 2,000 characters of it.
    first_progress_s: seconds from the request to the first progress, None where none came.
    """

    number: int
    end: str
    shown: str
    asked: tuple[AskedFor, ...] = ()
    text_after: str = ""
    usage: Usage | None = None
    reasoning: str = ""
    first_progress_s: float | None = None
    fault: Fault | None = None


class ToolStarted(Struct, frozen=True, tag=True):
    """A tool is about to be dispatched: stored before the dispatch, where the tool has effects (S15.1b)."""

    call_id: str
    name: str
    read_only: bool
    idempotent: bool


class ToolFinished(Struct, frozen=True, tag=True):
    """A call has its outcome.

    content: what the model reads. outcome: its class. kind: of a failure.
    identity: a keyed digest of the tool's name and the true arguments (S3.5a). attempt: the attempt that asked for it.
    ran_by: where it was answered from the record and not run, the attempt that had run it; else 0 (S3.5).
    """

    call_id: str
    name: str
    outcome: str
    content: str
    kind: str = ""
    took_s: float = 0.0
    identity: str = ""
    attempt: int = 1
    ran_by: int = 0


class Restarted(Struct, frozen=True, tag=True):
    """A tool's context item was taken up; its call leaves no history entry (S7.1)."""

    call_id: str
    name: str
    item: ContextItem


class Delivering(Struct, frozen=True, tag=True):
    """A message is about to be sent (S14.4)."""

    nonce: str
    text: str


class MessageDelivered(Struct, frozen=True, tag=True):
    """A message stands where people see it."""

    message: Delivered


class NoticeShown(Struct, frozen=True, tag=True):
    """We told people something beside the reply."""

    notice: Notice


class Thought(Struct, frozen=True, tag=True):
    """A line of the thought log (S15.3)."""

    line: str


class Ended(Struct, frozen=True, tag=True):
    """The turn is over."""

    end: EndName
    fault: Fault | None = None


class ContextEnded(Struct, frozen=True, tag=True):
    """`/new`: nothing before this is read by later turns (S2.6)."""

    user: str


TurnEvent: TypeAlias = (
    Admitted
    | AttemptStarted
    | PassStarted
    | PassEnded
    | ToolStarted
    | ToolFinished
    | Restarted
    | Delivering
    | MessageDelivered
    | NoticeShown
    | Thought
    | Ended
    | ContextEnded
)


class Recorded(Struct, frozen=True):
    """An event with its place: which turn and channel, and when (wall clock, seconds since the epoch)."""

    turn_id: str
    channel: str
    at: float
    event: TurnEvent


def kind_of(event: TurnEvent) -> str:
    """The event's name in the store."""
    return type(event).__name__
