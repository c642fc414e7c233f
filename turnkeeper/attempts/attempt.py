"""One attempt: a model with a key, from its preparation to what its end teaches."""

from __future__ import annotations

from msgspec.structs import replace

from turnkeeper.attempts.course import Ask
from turnkeeper.attempts.prepare import fitted, shorter
from turnkeeper.attempts.tier import Tier
from turnkeeper.journal.events import AttemptStarted
from turnkeeper.loop.state import Beginning, LoopState
from turnkeeper.loop.tool_loop import Finished, run_tool_loop
from turnkeeper.loop.turn import Attempt, Turn
from turnkeeper.loop.window import room_for
from turnkeeper.providers.provider import Provider
from turnkeeper.redaction import last_four
from turnkeeper.types.ends import Failed, TimedOut
from turnkeeper.types.turn import AttemptRecord


async def run_attempt(turn: Turn, tier: Tier, ask: Ask, state: LoopState, *, last: bool) -> tuple[AttemptRecord, Finished]:
    """Makes the attempt that `ask` names, from `state`. last: no other model could answer in this one's place.

    Returns its record, and the state and end that it came to.
    """
    model, key = ask.planned.model, ask.key
    began = tier.clock()
    tier.ring.picked(key, model, turn.channel, began)
    turn.recorder.note(AttemptStarted(state.attempt, model.name, last_four(key.secret), ask.planned.scope))
    provider = tier.provider(model, key.secret)
    measure = tier.measure(model)
    room = room_for(model, measure, tier.fixed_tokens)
    if state.attempt > 1 or not turn.fits(model):  # else the context was made to fit, and there is no chain yet
        state = fitted(turn, state, measure, room)
    first_token_s = _first_token_s(turn, tier, ask, began, last=last)
    attempt = Attempt(state.attempt, provider, room, tier.fixed_tokens, first_token_s, own_key=bool(ask.planned.scope))
    finished = await _run_and_mend(turn, attempt, state)
    tier.ring.belongs(key, provider.account)
    _learn(tier, ask, finished, state, began)
    end = finished.finish
    return AttemptRecord(model.name, last_four(key.secret), end.end, end.fault, ask.planned.scope), finished


def handed_on(state: LoopState) -> LoopState:
    """What the next attempt begins with: outcomes and texts stay, what was being written is to be carried on."""
    return replace(_again(state), attempt=state.attempt + 1)


def _again(state: LoopState) -> LoopState:
    shown = state.at.shown if isinstance(state.at, Failed | TimedOut) else ""
    lost = state.at.lost_call if isinstance(state.at, Failed) else None
    return replace(state, at=Beginning(unfinished=bool(shown.strip()) or state.continuations > 0, lost_call=lost), empties=0)


def _first_token_s(turn: Turn, tier: Tier, ask: Ask, now: float, *, last: bool) -> float:
    """S3.3c: a model that timed out lately has little time, where another could answer in its place."""
    usual = turn.settings.first_token_timeout
    silent = (ask.planned.model.url, ask.planned.model.name) in tier.pace.silent(now)
    return min(usual, turn.settings.silent_first_token_timeout) if silent and not last else usual


async def _run_and_mend(turn: Turn, attempt: Attempt, state: LoopState) -> Finished:
    """The attempt's loop; once more on the same key where that mends what stopped it before any byte came (`_mended`)."""
    finished = await run_tool_loop(turn, attempt, state)
    tried: set[str] = set()
    while not turn.signals.stopped:
        mended = _mended(turn, attempt.provider, finished.state, tried)
        if mended is None:
            break
        finished = await run_tool_loop(turn, attempt, mended)
    return finished


def _mended(turn: Turn, provider: Provider, state: LoopState, tried: set[str]) -> LoopState | None:
    """What the same key is asked once more, for each way of mending at most once; None where nothing is to be mended.

    tried: the ways that were tried in this attempt. A lost connection is tried again (S3.3d); a conversation that was too
    long, with the older half of its exchanges left out, or this turn's own results shortened where there are none; a
    prefill or picture that was refused, without it (S3.4b, S3.10a).
    """
    failed = state.at
    if not isinstance(failed, Failed) or not failed.undelivered:
        return None
    kind = failed.fault.kind
    if kind == "network" and "network" not in tried:
        tried.add("network")
        return _again(state)
    if kind == "context_length" and "context_length" not in tried:
        tried.add("context_length")
        older = len(turn.exchanges) - 1 - state.dropped
        if older > 0:
            return replace(_again(state), dropped=state.dropped + max(1, older // 2))
        shortened = shorter(turn, state)
        return None if shortened is state else _again(shortened)
    return _again(state) if provider.learn(failed.fault) else None


def _learn(tier: Tier, ask: Ask, finished: Finished, before: LoopState, began: float) -> None:
    """Tells those who keep count what the attempt's end says of key and model."""
    model, key, at = ask.planned.model, ask.key, finished.state.at
    passes = finished.state.usage[len(before.usage) :]
    if isinstance(at, Failed):
        tier.ring.refused(key, model, at.fault, tier.clock())
    elif isinstance(at, TimedOut):  # S3.3: neither credit nor blame for the key
        tier.pace.timed_out(model, tier.clock())
    elif passes and finished.finish.end not in ("stopped_by_user", "follow_up_interrupt"):
        tier.ring.succeeded(key, model, began)
        tier.pace.answered(model, passes[0].first_token_s)
