"""The loop: repeats passes and tools until the policy finishes the attempt."""

from __future__ import annotations

from msgspec import Struct

from turnkeeper.loop.context_restart import restart_with
from turnkeeper.loop.execute_tool import execute_tools
from turnkeeper.loop.policy import ExecuteTools, Finish, RestartWith, StreamOnce, next_step
from turnkeeper.loop.scope import Scope
from turnkeeper.loop.state import LoopState
from turnkeeper.loop.stream_once import stream_once
from turnkeeper.loop.turn import Attempt, Turn
from turnkeeper.types.turn import Notice


class Finished(Struct, frozen=True):
    """The state in which an attempt ended, and how."""

    state: LoopState
    finish: Finish


async def run_tool_loop(turn: Turn, attempt: Attempt, state: LoopState) -> Finished:
    """Runs one attempt from `state`, which is empty or what an earlier attempt left (S4.1)."""
    while True:
        over = turn.spending.refusal(own_key=attempt.own_key) if turn.spending is not None else None
        match next_step(state, turn.settings, stopped=turn.signals.stopped, over_budget=over):
            case StreamOnce(purpose=purpose, notice=notice):
                if notice is not None:
                    await _tell(turn, notice)
                state = await stream_once(turn, attempt, state, purpose)
            case ExecuteTools(pass_end=pass_end):
                state = await execute_tools(turn, state, pass_end)
            case RestartWith(item=item):
                state = restart_with(state, item)
            case Finish() as finish:
                return Finished(state, finish)


async def _tell(turn: Turn, notice: Notice) -> None:
    """A notice in the middle of a turn: it must hold up neither a stop nor, for long, the turn."""
    async with Scope(turn.signals, first_s=turn.settings.settle_timeout):
        await turn.delivery.notify(notice)
