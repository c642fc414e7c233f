"""A turn and its result."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from turnkeeper.types.calls import ToolCall
from turnkeeper.types.faults import Fault
from turnkeeper.types.outcomes import ToolOutcome
from turnkeeper.types.stream import NativePart
from turnkeeper.types.usage import Usage

EndName: TypeAlias = Literal["completed", "empty_response", "error", "timeout", "stopped_by_user", "follow_up_interrupt"]
"""How a turn ends (spec, section 1)."""

NoticeKind: TypeAlias = Literal[
    "still_working",
    "too_many_passes",
    "too_many_tool_errors",
    "repeated_calls",
    "timed_out",
    "failed",
    "answered_by",
    "empty_response",
    "silent_after_tool",
    "length_limit",
    "flush_limit",
    "history_healed",
    "journal_unavailable",
    "over_budget",
]


class Notice(Struct, frozen=True, tag=True):
    """Something we, not the model, tell people.

    detail: fills the kind's sentence: a tool's name, a number, a fault. fold: lines that a surface shows on request (S3.7).
    """

    kind: NoticeKind
    detail: str = ""
    fold: tuple[str, ...] = ()


class HistoryEntry(Struct, frozen=True, tag=True):
    """One call with its one outcome.

    pass_number: the pass it was asked for in, from 1; entries of one pass go back to the model together.
    text_before: visible text of this pass before this call (S4.3).
    text_after: for the pass's last call, the visible text after it.
    native: for the pass's first call, the parts to send back unchanged.
    content: the result as the model reads it, bounded (S6.5).
    attempt: the attempt that asked for it, from 1.
    reused: it was not run, but answered from the record of an earlier attempt (S3.5).
    """

    pass_number: int
    call: ToolCall
    outcome: ToolOutcome
    content: str
    text_before: str = ""
    text_after: str = ""
    native: tuple[NativePart, ...] = ()
    attempt: int = 1
    reused: bool = False


class Delivered(Struct, frozen=True, tag=True):
    """A message as people saw it.

    reference: the surface's id for it. nonce: our own key for it (S14.4). at: wall clock, seconds since the epoch.
    confirmed: the surface confirmed that the final text stands.
    """

    reference: str
    text: str
    nonce: str
    at: float
    confirmed: bool = True


class PassUsage(Struct, frozen=True):
    """The ledger's entry for one pass (S15.2). `first_token_s`: from the request to the first progress, in seconds."""

    model: str
    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int
    cost: float | None
    estimated: bool
    first_token_s: float | None = None

    @classmethod
    def of(cls, model: str, usage: Usage, first_token_s: float | None = None) -> PassUsage:
        """The entry for `usage` reported by `model`."""
        return cls(
            model=model,
            input=usage.input,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            output=usage.output,
            reasoning=usage.reasoning,
            cost=usage.cost,
            estimated=usage.estimated,
            first_token_s=first_token_s,
        )


class AttemptRecord(Struct, frozen=True):
    """One try with one model and one key.

    key: its last four characters, "" for none. end: how it ended. scope: whose key it was: a user's, or "" the server's.
    """

    model: str
    key: str
    end: EndName
    fault: Fault | None = None
    scope: str = ""


class TurnResult(Struct, frozen=True):
    """What a turn came to: built in one place, for every path (S8.1).

    turn_id: its name in the journal.
    end: how it ended.
    text: the visible text of all its passes; passes are joined by a blank line.
    deliveries: the messages as people saw them.
    history: the tool calls with their outcomes, in order.
    usage: one entry a pass.
    attempts: one entry a try.
    thought_log: reasoning and tool failures, a line each (S15.3).
    notices: what we told people beside the reply.
    fault: the provider's failure, where `end` is `error` or `timeout` because of one.
    charged: who pays for the reply: a user, whose own key answered; or "", the server (S3.8).
    """

    turn_id: str
    end: EndName
    text: str
    deliveries: tuple[Delivered, ...]
    history: tuple[HistoryEntry, ...]
    usage: tuple[PassUsage, ...]
    attempts: tuple[AttemptRecord, ...]
    thought_log: tuple[str, ...]
    notices: tuple[Notice, ...] = ()
    fault: Fault | None = None
    charged: str = ""
