"""From an outcome to what the model reads, and from a batch to the messages that carry it (S4.4, S4.6)."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from turnkeeper.loop.admission import Admission, Refused
from turnkeeper.loop.state import RanTool
from turnkeeper.loop.turn import Turn
from turnkeeper.tools.results import read
from turnkeeper.types.ends import ToolCalls
from turnkeeper.types.messages import AssistantMessage, Message, Picture, ToolMessage
from turnkeeper.types.outcomes import Continue, Failed, FailureKind, Rejected, Succeeded, ToolOutcome, Unknown

HEADLINE: dict[FailureKind, str] = {
    "tool_execution_failed": "tool_execution_failed",
    "invalid_arguments": "invalid_arguments",
    "truncated_arguments": "tool_execution_failed",
    "no_name": "error",
    "unknown_tool": "unknown_tool",
    "not_exposed": "not_exposed",
    "not_available": "not_available_this_turn",
    "not_approved": "not_approved",
    "repeated_call": "repeated_call",
    "too_many_calls": "too_many_calls",
    "journal_unavailable": "tool_execution_failed",
    "timed_out": "timed_out",
    "stopped": "stopped",
}
"""The word that a failure begins with where the model, or the thought log, reads it."""


def content_of(turn: Turn, outcome: ToolOutcome) -> tuple[ToolOutcome, str, tuple[Picture, ...]]:
    """The outcome with its data as JSON values, what the model reads of it (bounded, S6.5), and its pictures."""
    match outcome:
        case Succeeded():
            readable = read(outcome.data, turn.settings.max_result_bytes, turn.services.results.keeper(turn.channel))
            text = turn.redactor.text(readable.text)
            pictures = outcome.pictures + readable.pictures
            content = f"{text}\n\n{outcome.message}" if outcome.message else text
            return replace(outcome, data=readable.data, pictures=pictures), content, pictures
        case Failed(kind=kind, reason=reason, hint=hint):
            return outcome, turn.redactor.text(f"{HEADLINE[kind]}: {reason} {hint}".rstrip()), ()
        case Rejected(findings=findings):
            return outcome, "review_rejected: nothing was run. " + " ".join(findings), ()
        case Unknown(reason=reason):
            return outcome, f"outcome_unknown: {reason}", ()
        case _:
            assert_never(outcome)


def batch_messages(pass_end: ToolCalls, text: str, results: dict[str, tuple[str, tuple[Picture, ...]]]) -> tuple[Message, ...]:
    """The messages of a pass's calls: what the model said and asked for, and each call's one result, in call order.

    text: the visible text of the pass, with what it carried on. results: by call id, what the model reads and sees; a call
    without one leaves no trace (S7.1), and text that people saw stays.
    """
    calls = tuple(asked.call for asked in pass_end.asked if asked.call.id in results)
    said = AssistantMessage(text, calls, pass_end.native if calls else ())
    if not calls:
        return (said,) if said.text.strip() else ()
    answers = [ToolMessage(call.id, call.name, *results[call.id]) for call in calls]
    return (said, *answers)


def ran_tool(admission: Admission, outcome: ToolOutcome) -> RanTool:
    """What the policy needs to know of a call."""
    name = admission.asked.call.name
    if isinstance(admission, Refused) or not isinstance(outcome, Succeeded):
        return RanTool(name, succeeded=False)
    options = admission.tool.options
    follow_up = options.requires_follow_up or (isinstance(outcome.then, Continue) and outcome.then.follow_up)
    return RanTool(name, True, options.silent, follow_up, outcome.delivered is not None)
