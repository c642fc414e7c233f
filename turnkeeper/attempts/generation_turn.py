# The outer tier: one turn, however many models and keys it takes.
#
# Rule 1: who is asked next is decided in course.py; here it is done, and what came of it is told to those who keep count.
# Rule 2: a failed attempt's messages stay, its outcomes are handed on, and the next attempt carries the reply on from what
# people have seen (S3.4, S3.5).
# Rule 3: notices of attempts that failed are held back; the last failure is reported once, if nothing answered (S3.6).

"""Runs a turn: its attempts, until one ends it."""

from __future__ import annotations

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.attempts.attempt import handed_on, run_attempt
from turnkeeper.attempts.course import Ask, Course, NextModel, NobodyLeft, Try, Wait, after, next_try
from turnkeeper.attempts.failures import all_resting, failure_notice
from turnkeeper.attempts.plan import Plan, place_of
from turnkeeper.attempts.tier import Tier
from turnkeeper.journal.events import Thought
from turnkeeper.loop.policy import Finish
from turnkeeper.loop.scope import Scope
from turnkeeper.loop.state import LoopState
from turnkeeper.loop.tool_loop import Finished
from turnkeeper.loop.turn import Turn
from turnkeeper.types.faults import span
from turnkeeper.types.turn import AttemptRecord


class Attempted(Struct, frozen=True):
    """What a turn's attempts came to: the state they left, how the last one ended, a record of each, and who pays."""

    state: LoopState
    finish: Finish
    records: tuple[AttemptRecord, ...]
    charged: str = ""


async def run_generation_turn(turn: Turn, plan: Plan, tier: Tier) -> Attempted:
    """Tries whom `plan` names until one ends the turn. The last of the text, and the notice, are left to the turn's end."""
    course = Course(plan.planned)
    state = LoopState()
    finished = Finished(state, Finish("error"))
    records: list[AttemptRecord] = []
    while not turn.signals.stopped:
        match _look(turn, course, tier):
            case Ask() as ask:
                record, finished = await run_attempt(turn, tier, ask, state, last=_is_last(course))
                records.append(record)
                went_on = after(course, ask, finished.finish, finished.state.at, finished.state.texts)
                if went_on is None:
                    break
                course, state = went_on, handed_on(finished.state)
            case Wait() as wait:
                await _wait(turn, wait)
            case NextModel(resting=resting):
                if resting is not None and course.resting is None:
                    course = replace(course, resting=(course.left[0], resting))
                course = course.at_next_model()
            case NobodyLeft():
                if not plan.loan or course.extended:
                    break
                course = _extended(turn, plan, course, tier)
    return _attempted(turn, course, finished, records, tier)


def _look(turn: Turn, course: Course, tier: Tier) -> Try:
    """Who is asked next, by what the pool of the present model has at this moment."""
    now = tier.clock()
    if not course.left:
        return next_try(course, None, None, turn.settings, now=now, next_s=None)
    (model, scope), ring = (course.left[0].model, course.left[0].scope), tier.ring
    look = ring.look(model, scope, turn.channel, now, course.tried)
    least = ring.least_resting(model, scope, now, course.tried)
    next_s = tier.pace.usual_s(course.left[1].model) if len(course.left) > 1 else None
    return next_try(course, look, least, turn.settings, now=now, next_s=next_s)


async def _wait(turn: Turn, wait: Wait) -> None:
    """Waits for a key; a stop ends the wait at once."""
    said = f"all keys of {wait.planned.model.name} rest ({wait.rest.kind}); waiting {span(wait.seconds)} for the first"
    turn.recorder.note(Thought(said))
    async with Scope(turn.signals):
        await asyncio.sleep(max(0.001, wait.seconds))


def _is_last(course: Course) -> bool:
    """Whether no other model could answer in the place of the present one."""
    return len({place_of(planned.model) for planned in course.left}) <= 1


def _extended(turn: Turn, plan: Plan, course: Course, tier: Tier) -> Course:
    """S3.8: all that was planned has failed: the server's models are added, once, where the user may be lent them."""
    refusal = tier.lender.refusal(turn.user, tier.clock())
    said = "the server's models are lent" if refusal is None else f"the server's models are not lent: {refusal}"
    turn.recorder.note(Thought(f"the user's own keys have failed; {said}"))
    return replace(course, left=plan.loan if refusal is None else (), extended=True, refusal=refusal or "")


def _attempted(turn: Turn, course: Course, finished: Finished, records: list[AttemptRecord], tier: Tier) -> Attempted:
    finish = finished.finish
    if turn.signals.stopped:
        finish = Finish("stopped_by_user")
    elif not records:
        finish = all_resting(course, tier.clock(), lends=turn.settings.lend_models)
    elif turn.settings.failure_notice and finish.end == "completed" and not turn.signals.follow_up:
        finish = replace(finish, notice=finish.notice or failure_notice(records))  # S3.7
    if course.refusal and finish.notice is not None and finish.end != "completed":
        finish = replace(finish, notice=replace(finish.notice, detail=f"{finish.notice.detail} {course.refusal}"))
    scope = records[-1].scope if records else ""
    if course.extended and finish.end == "completed" and finished.state.shown_anything:
        tier.lender.lent(turn.user, tier.clock())
    return Attempted(finished.state, finish, tuple(records), scope)
