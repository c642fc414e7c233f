# The outer tier: which model and key is asked, and who is asked next.
#
# A failed attempt's messages stay, its tool outcomes are handed on, and the next attempt carries the reply on from what
# people have seen (S3.4). On `error` the model's next key is tried, on `timeout` the next model (S3.2). Notices of attempts
# that failed are held back: only the last failure is reported, and only if nothing answered (S3.6).

"""Runs a turn: its attempts, in order, until one ends it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.journal.events import AttemptStarted
from turnkeeper.loop.policy import Finish
from turnkeeper.loop.state import Beginning, LoopState
from turnkeeper.loop.tool_loop import Finished, run_tool_loop
from turnkeeper.loop.turn import Attempt, Turn
from turnkeeper.providers.model import Model
from turnkeeper.providers.provider import Provider
from turnkeeper.redaction import last_four
from turnkeeper.types.ends import Failed, TimedOut
from turnkeeper.types.turn import AttemptRecord


class Candidate(Struct, frozen=True):
    """A model with one of its keys, "" for none."""

    model: Model
    key: str


def plan(models: tuple[Model, ...]) -> list[Candidate]:
    """All that may be tried, in order: each model with each of its keys (S3.1)."""
    return [Candidate(model, key) for model in models for key in (model.keys or [""])]


class Attempted(Struct, frozen=True):
    """What a turn's attempts came to: the state they left, how the last one ended, and a record of each."""

    state: LoopState
    finish: Finish
    records: tuple[AttemptRecord, ...]


async def run_generation_turn(turn: Turn, candidates: list[Candidate], provider: Callable[[Model, str], Provider]) -> Attempted:
    """Tries `candidates` in order until one ends the turn. The last of the text, and the notice, are left to the turn's end."""
    state = LoopState()
    records: list[AttemptRecord] = []
    finished = Finished(state, Finish("error"))
    remaining = list(candidates)
    while remaining:
        candidate = remaining.pop(0)
        finished = await _attempt(turn, candidate, provider(candidate.model, candidate.key), state, len(records) + 1)
        finish = finished.finish
        records.append(AttemptRecord(candidate.model.name, last_four(candidate.key), finish.end, finish.fault))
        if not _retryable(finish) or turn.signals.stopped:
            break
        if finish.end == "timeout":  # S3.2: another key of a silent model would be silent too
            remaining = [one for one in remaining if one.model is not candidate.model]
        state = _handed_on(finished.state)
    return Attempted(finished.state, finished.finish, tuple(records))


async def _attempt(turn: Turn, candidate: Candidate, provider: Provider, state: LoopState, number: int) -> Finished:
    """One attempt; once more on the same key where that mends what stopped it before any byte came (`_mended`)."""
    turn.recorder.note(AttemptStarted(number, candidate.model.name, last_four(candidate.key)))
    attempt = Attempt(number, provider)
    finished = await run_tool_loop(turn, attempt, state)
    tried: set[str] = set()
    while not turn.signals.stopped:
        mended = _mended(turn, provider, finished.state, tried)
        if mended is None:
            break
        finished = await run_tool_loop(turn, attempt, mended)
    return finished


def _mended(turn: Turn, provider: Provider, state: LoopState, tried: set[str]) -> LoopState | None:
    """What the same key is asked once more, for each way of mending at most once; None where nothing is to be mended.

    tried: the ways that were tried in this attempt. A lost connection is tried again (S3.3d); a conversation that was too
    long, with the older half of its exchanges left out; a prefill or picture that was refused, without it (S3.4b, S3.10a).
    """
    failed = state.at
    if not isinstance(failed, Failed) or not failed.undelivered:
        return None
    kind = failed.fault.kind
    older = len(turn.exchanges) - 1 - state.dropped
    if kind == "network" and "network" not in tried:
        tried.add("network")
        return _handed_on(state)
    if kind == "context_length" and older > 0 and "context_length" not in tried:
        tried.add("context_length")
        return replace(_handed_on(state), dropped=state.dropped + max(1, older // 2))
    return _handed_on(state) if provider.learn(failed.fault) else None


def _handed_on(state: LoopState) -> LoopState:
    """What the next attempt begins with: outcomes and texts stay, what was being written is to be carried on."""
    shown = state.at.shown if isinstance(state.at, Failed | TimedOut) else ""
    lost = state.at.lost_call if isinstance(state.at, Failed) else None
    return replace(state, at=Beginning(unfinished=bool(shown.strip()) or state.continuations > 0, lost_call=lost), empties=0)


def _retryable(finish: Finish) -> bool:
    """S3.2: errors and timeouts of a provider; a guard's ceiling would be met again by any model."""
    if finish.end == "error":
        return finish.fault is not None and finish.fault.retryable
    return finish.end == "timeout" and finish.notice is not None and finish.notice.kind == "timed_out"
