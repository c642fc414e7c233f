# Which calls may be dispatched: S6's checks, in S6's order. A refusal is already an outcome, worded for the model.

"""Admits tool calls, or answers them without running anything."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from msgspec import Struct

from turnkeeper.loop.identity import canonical
from turnkeeper.loop.repetition import is_same_call
from turnkeeper.loop.state import LoopState, Repetition
from turnkeeper.loop.turn import Turn
from turnkeeper.redaction import MASK
from turnkeeper.tools.tool import Bound, Problems, Tool
from turnkeeper.tools.toolbox import Missing
from turnkeeper.types.calls import Invalid, Parsed, ToolCall, Truncated
from turnkeeper.types.ends import AskedCall
from turnkeeper.types.outcomes import Failed, Succeeded
from turnkeeper.types.turn import HistoryEntry


class Admitted(Struct, frozen=True):
    """A call that may run: its tool, and its arguments as the tool wants them."""

    asked: AskedCall
    tool: Tool
    bound: Bound


class Refused(Struct, frozen=True):
    """A call that is answered without running anything."""

    asked: AskedCall
    outcome: Failed


class Reused(Struct, frozen=True):
    """A call that an earlier attempt of this turn has run already: answered from the record (S3.5)."""

    asked: AskedCall
    tool: Tool
    entry: HistoryEntry


Admission: TypeAlias = Admitted | Refused | Reused


def admit(turn: Turn, state: LoopState, asked: AskedCall, *, position: int) -> Admission:
    """Checks one call (S6). `position`: its place among the pass's calls, from 0."""
    checked = _check(turn, state, asked.call, position)
    if isinstance(checked, Failed):
        return Refused(asked, checked)
    tool, bound = checked
    entry = _on_record(turn, state, tool, asked.call)
    return Reused(asked, tool, entry) if entry is not None else Admitted(asked, tool, bound)


def _on_record(turn: Turn, state: LoopState, tool: Tool, call: ToolCall) -> HistoryEntry | None:
    """The entry of the same call of an earlier attempt, where it succeeded (S3.5). Inside one attempt a call may be repeated.

    A call that changes nothing may be wanted anew: the record answers it once for each time that it was run.
    """
    if all(entry.attempt == state.attempt for entry in state.history):
        return None
    own = canonical(tool.name, call)
    same = [entry for entry in state.history if _name_of(turn, entry) == tool.name and canonical(tool.name, entry.call) == own]
    ran = [entry for entry in same if isinstance(entry.outcome, Succeeded) and not entry.reused]
    earlier = [entry for entry in ran if entry.attempt < state.attempt]
    answered = sum(entry.reused and entry.attempt == state.attempt for entry in same)
    if not earlier or (tool.options.read_only and answered >= len(earlier)):
        return None
    return earlier[min(answered, len(earlier) - 1)]


def _name_of(turn: Turn, entry: HistoryEntry) -> str:
    found = turn.toolbox.find(entry.call.name)
    return found.name if isinstance(found, Tool) else ""


def _check(turn: Turn, state: LoopState, call: ToolCall, position: int) -> Failed | tuple[Tool, Bound]:
    if not call.name.strip():
        return Failed("no_name", "The call has no tool name, so nothing was run.", _available(turn))
    if turn.signals.stopped:
        return Failed("stopped", "The person stopped the turn before this call began.")
    if isinstance(call.arguments, Truncated):
        return Failed(
            "truncated_arguments",
            f"The arguments of {call.name} were cut off before their end, so it was not run.",
            "Call it again with shorter arguments, or in several calls.",
        )
    tool = _find(turn, state, call.name)
    if isinstance(tool, Failed):
        return tool
    bound = _bind(tool, call)
    if isinstance(bound, Failed):
        return bound
    return _allowed(turn, state, call, position) or (tool, bound)


def _find(turn: Turn, state: LoopState, name: str) -> Tool | Failed:
    found = turn.toolbox.find(name)
    if isinstance(found, Missing):
        meant = f" Did you mean {found.nearest}?" if found.nearest else ""
        return Failed("unknown_tool", f"There is no tool named {name[:80]!r}.{meant}", _available(turn))
    if found.name not in turn.offered:  # S6.2
        return Failed("not_exposed", f"The tool {found.name} is not offered in this turn.", _available(turn))
    if found.name in state.switched_off:  # S7.1
        return Failed("not_available", f"The tool {found.name} has done its work; it can't be used again in this turn.")
    unavailable = found.options.available() if found.options.available is not None else None
    if unavailable:  # S6.3: "not this turn", and not "this provider can't"
        return Failed("not_available", f"The tool {found.name} can't be used in this turn: {unavailable}.")
    return found


def _bind(tool: Tool, call: ToolCall) -> Bound | Failed:
    match call.arguments:
        case Parsed(value=value):
            bound = tool.bind(value)
            if isinstance(bound, Problems):
                return Failed(
                    "invalid_arguments", f"{tool.name} was not run: {'; '.join(bound.lines)}.", "Mend them and call it again."
                )
            return bound
        case Invalid(problem=problem):
            return Failed("invalid_arguments", f"{tool.name} was not run: {problem}")
        case Truncated():
            return Failed("truncated_arguments", f"The arguments of {tool.name} were cut off, so it was not run.")
        case _:
            assert_never(call.arguments)


def _allowed(turn: Turn, state: LoopState, call: ToolCall, position: int) -> Failed | None:
    if position >= turn.settings.max_calls_per_pass:
        return Failed("too_many_calls", f"Only {turn.settings.max_calls_per_pass} calls of one message are run.")
    if MASK in call.text:  # S3.5a: a mask is no value; running with it would do something nobody asked for
        return Failed("invalid_arguments", f"The arguments hold {MASK}, which stands for a secret that was removed.")
    if _is_refused_repeat(state.repetition, call, turn.settings.repeated_call_refusal):
        return Failed(
            "repeated_call",
            f"{call.name} was called with these arguments {state.repetition.count} times in a row, with the same result.",
            "Do not call it so again: use the result that you have, or try something else.",
        )
    return None


def _is_refused_repeat(repetition: Repetition, call: ToolCall, refusal: int) -> bool:
    return repetition.count >= refusal - 1 and is_same_call(repetition.call, call)


def _available(turn: Turn) -> str:
    names = sorted(turn.offered)
    return f"Available: {', '.join(names[:50])}." if names else "No tools are available in this turn."
