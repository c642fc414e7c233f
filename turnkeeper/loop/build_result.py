"""Stage 4: what a turn came to, built in one place for every path (S8.1)."""

from __future__ import annotations

from turnkeeper.loop.policy import Finish
from turnkeeper.loop.state import LoopState
from turnkeeper.loop.turn import Turn
from turnkeeper.types.turn import AttemptRecord, TurnResult


def build_result(
    turn: Turn, state: LoopState, finish: Finish, attempts: tuple[AttemptRecord, ...], *, charged: str = ""
) -> TurnResult:
    """The result of a turn that ended with `finish`, with all of its attempts. charged: who pays for it (S3.8)."""
    return TurnResult(
        turn_id=turn.id,
        end=finish.end,
        text=state.text,
        deliveries=tuple(turn.delivery.messages),
        history=state.history,
        usage=state.usage,
        attempts=attempts,
        thought_log=state.thoughts,
        notices=tuple(turn.delivery.notices),
        fault=finish.fault,
        charged=charged,
    )
