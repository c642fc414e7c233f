# How a turn goes on, and how it ends.
#
# Rule 1: every reason to go on or to stop is decided here and nowhere else (S4, S5.4, S9).
# Rule 2: nothing here awaits, reads a clock, or knows a provider, a tool or a surface. It can run in a table test.
#
# Theory of operation. A chain is a row of passes. After each pass, and after each batch of outcomes, `next_step` is shown
# the whole state and answers with one step: StreamOnce, ExecuteTools, RestartWith or Finish. It has no memory.
# Where several apply: stop > follow-up > end_turn > guard ceilings > restart > pre-tool-text exit > go on. Stop is first
# because a person waits for silence; ceilings come before restart because restarts count as passes (S7.1).
# Not here: whether another key or model is tried (attempts/), what a notice says (delivery/notices.py), which calls may be
# dispatched (loop/admission.py).
# When a row changes, change docs/ends.md too: test_policy.py reads that table and fails if they differ.

"""The loop's decisions, pure."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from turnkeeper.loop.state import Beginning, Executed, LoopState, Restarted
from turnkeeper.settings import Settings
from turnkeeper.types.ends import Completed, Empty, Failed, FollowUp, Paused, Stopped, TimedOut, ToolCalls
from turnkeeper.types.faults import Fault
from turnkeeper.types.outcomes import ContextItem
from turnkeeper.types.turn import EndName, Notice

Purpose: TypeAlias = Literal["answer", "again", "again_shorter", "answer_please", "carry_on"]
"""Why a pass is made: the plain next one, a retry of an empty one (S9.4; with less context, where length was the reason),
one with a short instruction to answer (S9.4a), or one that carries on a text cut by its output limit (S9.4b)."""


class StreamOnce(Struct, frozen=True):
    """Make a request. `notice`: what people are told first."""

    purpose: Purpose = "answer"
    notice: Notice | None = None


class ExecuteTools(Struct, frozen=True):
    """Run the calls that the last pass asked for."""

    pass_end: ToolCalls


class RestartWith(Struct, frozen=True):
    """Take up a context item, and begin the pass again (S7.1)."""

    item: ContextItem


class Finish(Struct, frozen=True):
    """The turn is over."""

    end: EndName
    notice: Notice | None = None
    fault: Fault | None = None


Step: TypeAlias = StreamOnce | ExecuteTools | RestartWith | Finish


def next_step(state: LoopState, limits: Settings, *, stopped: bool = False, over_budget: Notice | None = None) -> Step:
    """The one step that follows from `state`.

    stopped: someone asked the turn to stop. over_budget: what people are told where no further pass may be paid for.
    """
    if stopped:
        return Finish("stopped_by_user")
    step = _next_step(state, limits)
    if over_budget is not None and isinstance(step, StreamOnce):  # a budget refuses only what would cost
        return Finish("error", over_budget)
    return step


def _next_step(state: LoopState, limits: Settings) -> Step:
    match state.at:
        case Beginning(unfinished=unfinished):
            return _stream(state, limits, "carry_on" if unfinished else "answer")
        case Restarted():
            return _stream(state, limits)
        case ToolCalls():
            return ExecuteTools(state.at)
        case Executed():
            return _after_tools(state, state.at, limits)
        case Paused():
            return _stream(state, limits)
        case Completed():
            return _after_text(state, state.at, limits)
        case Empty():
            return _after_nothing(state, state.at, limits)
        case Failed(fault=fault):  # S3.2: whether another key or model may answer is not decided here
            return Finish("error", Notice("failed", f"{str(fault).rstrip('.')}. {fault.advice}"), fault)
        case TimedOut(phase=phase):
            return Finish("timeout", Notice("timed_out", phase))
        case Stopped(by=by):  # S14.3: the operator's own limit is silent
            return Finish("stopped_by_user", Notice("flush_limit") if by == "flush_limit" else None)
        case FollowUp():
            return Finish("follow_up_interrupt")
        case _:
            assert_never(state.at)


def _after_tools(state: LoopState, executed: Executed, limits: Settings) -> Step:
    if executed.end_turn:  # S6.7
        return Finish("completed")
    if state.repetition.count >= limits.repeated_call_end:  # S4.2a
        return Finish("error", Notice("repeated_calls", executed.ran[-1].name))
    if state.tool_errors >= limits.max_tool_errors:  # S4.2
        return Finish("error", Notice("too_many_tool_errors", str(state.tool_errors)))
    if state.passes >= limits.max_passes:
        return _too_many_passes(limits)
    if executed.restart is not None:  # S7.1
        return RestartWith(executed.restart)
    if should_end_after_pre_tool_text(executed):  # S9.1
        return Finish("completed")
    return _stream(state, limits)


def _after_text(state: LoopState, end: Completed, limits: Settings) -> Step:
    if end.finish != "length":
        return Finish("completed")
    if state.continuations < limits.max_length_continuations:  # S9.4b
        return _stream(state, limits, "carry_on")
    return Finish("completed", Notice("length_limit"))


def _after_nothing(state: LoopState, end: Empty, limits: Settings) -> Step:
    if state.continuations:  # S9.4b: a continuation that adds nothing ends what it was to carry on
        return Finish("completed", None if end.repeated else Notice("length_limit"))
    if is_settled_after_tool(state, end):  # S9.2
        return Finish("completed")
    if state.ran:  # S9.4a
        if state.empties == 1:
            return _stream(state, limits, "again")
        if state.empties == 2:
            return _stream(state, limits, "answer_please")
        return Finish("empty_response", Notice("silent_after_tool", state.ran[-1].name))
    if state.empties <= limits.max_empty_retries:  # S9.4
        return _stream(state, limits, "again_shorter" if end.finish == "length" else "again")
    return Finish("empty_response", Notice("empty_response"))


def should_end_after_pre_tool_text(executed: Executed) -> bool:
    """S9.1: visible text came before tools that are silent and want nothing more to be said: the reply is complete."""
    return executed.text_before and all(ran.succeeded and ran.silent and not ran.follow_up for ran in executed.ran)


def is_settled_after_tool(state: LoopState, end: Empty) -> bool:
    """S9.2: an empty pass is the end of a reply, not a failure: people have an answer, or a tool asked for silence.

    Not where the output limit or a guard took the text away, and not where the tool wants to be followed up.
    """
    if not state.ran or end.finish == "length":
        return False
    if not all(ran.succeeded and not ran.follow_up for ran in state.ran):
        return False
    return state.shown_anything or any(ran.delivered for ran in state.ran) or all(ran.silent for ran in state.ran)


def _stream(state: LoopState, limits: Settings, purpose: Purpose = "answer") -> Step:
    if state.passes >= limits.max_passes:  # S4.2
        return _too_many_passes(limits)
    late = state.passes + 1 == limits.still_working_pass and limits.still_working_pass > 1
    return StreamOnce(purpose, Notice("still_working", str(state.passes + 1)) if late else None)


def _too_many_passes(limits: Settings) -> Finish:
    return Finish("timeout", Notice("too_many_passes", str(limits.max_passes)))
