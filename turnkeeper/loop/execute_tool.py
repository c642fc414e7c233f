# Stage 2: runs the calls of a pass.
#
# Each call gets exactly one outcome, in call order, whatever happens (S4.5, S4.6): refusals are outcomes already, a stop
# gives one to every call that had not begun. Read-only tools that stand together run together, others one by one.

"""Executes a pass's tool calls."""

from __future__ import annotations

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.errors import JournalError
from turnkeeper.journal.events import Restarted, Thought, ToolFinished, ToolStarted
from turnkeeper.loop.admission import Admission, Admitted, Refused, Reused, admit
from turnkeeper.loop.dispatch import dispatch
from turnkeeper.loop.expression import express
from turnkeeper.loop.identity import canonical, digest
from turnkeeper.loop.repetition import repeated
from turnkeeper.loop.results import HEADLINE, batch_messages, content_of, ran_tool
from turnkeeper.loop.scope import Scope
from turnkeeper.loop.state import Batch, Executed, LoopState, Repetition
from turnkeeper.loop.turn import Approval, Turn, shown_arguments
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.ends import ToolCalls
from turnkeeper.types.messages import Picture
from turnkeeper.types.outcomes import EndTurn, Failed, RestartWith, Succeeded, ToolOutcome
from turnkeeper.types.turn import HistoryEntry

_HINT = "You have called this {count} times in a row with the same result; use it, or do something else."


class Done(Struct, frozen=True):
    """A call, its outcome, what the model reads of it, and how long it took."""

    admission: Admission
    outcome: ToolOutcome
    content: str
    took_s: float = 0.0
    pictures: tuple[Picture, ...] = ()

    @property
    def call(self) -> ToolCall:
        """The call."""
        return self.admission.asked.call


async def execute_tools(turn: Turn, state: LoopState, pass_end: ToolCalls) -> LoopState:
    """Runs the calls of `pass_end`. Returns the state with their outcomes."""
    admitted = [admit(turn, state, asked, position=place) for place, asked in enumerate(pass_end.asked)]
    done = await _run_batch(turn, state, admitted)
    return state.with_results(_batch(turn, state, pass_end, done))


async def _run_batch(turn: Turn, state: LoopState, admissions: list[Admission]) -> list[Done]:
    """The outcomes, in call order. Read-only tools in a row run together (S4.5)."""
    done: list[Done] = []
    group: list[Admission] = []
    for admission in admissions:
        if isinstance(admission, Admitted) and admission.tool.options.read_only:
            group.append(admission)
            continue
        done += await _run_together(turn, state, group)
        group = []
        done.append(await _run_one(turn, state, admission))
    return done + await _run_together(turn, state, group)


async def _run_together(turn: Turn, state: LoopState, group: list[Admission]) -> list[Done]:
    if len(group) < 2:
        return [await _run_one(turn, state, admission) for admission in group]
    room = asyncio.Semaphore(turn.settings.parallel_tools)

    async def run(admission: Admission) -> Done:
        async with room:
            return await _run_one(turn, state, admission)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(run(one), name=f"tool {one.asked.call.name[:40]}") for one in group]
    return [task.result() for task in running]


async def _run_one(turn: Turn, state: LoopState, admission: Admission) -> Done:
    """One call, from its announcement to its outcome on record."""
    call = admission.asked.call
    if isinstance(admission, Reused):  # S3.5: nothing runs, and people see nothing twice
        entry = admission.entry
        content, pictures = entry.content, entry.outcome.pictures if isinstance(entry.outcome, Succeeded) else ()
        turn.recorder.note(_finished(turn, state, admission, entry.outcome, content))
        return Done(admission, entry.outcome, content, 0.0, pictures)
    turn.sink.tool_started(call.name, shown_arguments(turn, call))
    clock = asyncio.get_running_loop().time
    begun = clock()
    outcome = admission.outcome if isinstance(admission, Refused) else await _run_admitted(turn, admission)
    took_s = clock() - begun
    outcome, content, pictures = content_of(turn, outcome)
    turn.recorder.note(replace(_finished(turn, state, admission, outcome, content), took_s=took_s))
    done = Done(admission, outcome, content, took_s, pictures)
    turn.sink.tool_finished(HistoryEntry(0, call, outcome, content), took_s)
    return done


def _finished(turn: Turn, state: LoopState, admission: Admission, outcome: ToolOutcome, content: str) -> ToolFinished:
    """The journal's line of an outcome."""
    call = admission.asked.call
    whole = canonical(admission.tool.name, call) if not isinstance(admission, Refused) else None
    return ToolFinished(
        call.id,
        call.name,
        type(outcome).__name__,
        content,
        kind=outcome.kind if isinstance(outcome, Failed) else "",
        identity=digest(whole, turn.identity_key) if whole is not None else "",
        attempt=state.attempt,
        ran_by=admission.entry.attempt if isinstance(admission, Reused) else 0,
    )


async def _run_admitted(turn: Turn, admitted: Admitted) -> ToolOutcome:
    tool, call = admitted.tool, admitted.asked.call
    if turn.signals.stopped:
        return Failed("stopped", "The person stopped the turn before this call began.")
    if tool.options.approval and not await _approved(turn, tool.name, call):
        return Failed("not_approved", f"A person did not allow {tool.name} to run.", "Do not ask for it again; say so.")
    turn.recorder.note(ToolStarted(call.id, tool.name, tool.options.read_only, tool.options.idempotent))
    if not tool.options.read_only:  # an effect stands between two journal lines (S15.1b)
        try:
            await turn.recorder.stored(durable=True)
        except JournalError:
            return Failed("journal_unavailable", f"{tool.name} was not run, for its start could not be put on record.")
    if turn.signals.stopped:
        return Failed("stopped", "The person stopped the turn before this call began.")
    outcome = await dispatch(turn, admitted)
    if isinstance(outcome, Succeeded) and outcome.expression is not None:
        return await express(turn, outcome)
    return outcome


async def _approved(turn: Turn, name: str, call: ToolCall) -> bool:
    """Asks a person. A stop, a failure to ask, and anything but a plain yes refuse."""
    ask = turn.services.approve
    if ask is None:
        return False
    answer: object = False
    async with Scope(turn.signals):
        try:
            answer = await ask(Approval(turn.channel, turn.user, name, shown_arguments(turn, call)))
        except Exception as problem:  # the asker is the application's: whatever it raises is no permission
            turn.recorder.note(Thought(f"asking for approval of {name} failed: {type(problem).__name__}"))
    return answer is True


def _batch(turn: Turn, state: LoopState, pass_end: ToolCalls, done: list[Done]) -> Batch:
    """What the outcomes add to the state: entries and messages in call order, and the counters."""
    repetition, errors = state.repetition, state.tool_errors
    thoughts: list[str] = []
    counted: list[Done] = []
    for one in done:
        refused = isinstance(one.outcome, Failed) and one.outcome.kind == "repeated_call"
        repetition = repeated(repetition, one.call, one.content, refused=refused)
        errors = _errors_after(one.outcome, errors)
        counted.append(_with_hint(turn, one, repetition))
        if isinstance(one.outcome, Failed):
            thoughts.append(_failure_line(turn, one, one.outcome))
    restarts = [one for one in counted if _restart_of(one) is not None]
    kept = [one for one in counted if _restart_of(one) is None]
    for one in restarts:
        signal = _restart_of(one)
        if signal is not None:
            turn.recorder.note(Restarted(one.call.id, one.call.name, signal.item))
    first = _restart_of(restarts[0]) if restarts else None
    return Batch(
        executed=Executed(
            ran=tuple(ran_tool(one.admission, one.outcome) for one in counted),
            text_before=any(asked.text_before for asked in pass_end.asked),
            end_turn=any(_ends_turn(one) for one in counted),
            restart=first.item if first is not None else None,
        ),
        entries=_entries(state, pass_end, kept),
        messages=batch_messages(pass_end, state.text_of_pass, {one.call.id: (one.content, one.pictures) for one in kept}),
        repetition=Repetition() if restarts else repetition,
        tool_errors=errors,
        thoughts=tuple(thoughts),
        delivered_texts=_delivered(counted),
        switched_off=frozenset(one.call.name for one in restarts),
    )


def _entries(state: LoopState, pass_end: ToolCalls, kept: list[Done]) -> tuple[HistoryEntry, ...]:
    """The history entries; the pass's native parts go with its first call, its last words with its last (S4.3)."""
    last = len(kept) - 1
    return tuple(
        HistoryEntry(
            pass_number=state.passes,
            call=one.call,
            outcome=one.outcome,
            content=one.content,
            text_before=one.admission.asked.text_before,
            text_after=pass_end.text_after if place == last else "",
            native=pass_end.native if place == 0 else (),
            attempt=state.attempt,
            reused=isinstance(one.admission, Reused),
        )
        for place, one in enumerate(kept)
    )


def _errors_after(outcome: ToolOutcome, errors: int) -> int:
    """S4.2: failed calls in a row; refused and truncated ones count, a success begins anew, a stop is no failure."""
    match outcome:
        case Succeeded():
            return 0
        case Failed(kind=kind):
            return errors if kind == "stopped" else errors + 1
        case _:
            return errors


def _with_hint(turn: Turn, one: Done, repetition: Repetition) -> Done:
    if not isinstance(one.outcome, Succeeded) or repetition.count < turn.settings.repeated_call_hint:
        return one
    hint = _HINT.format(count=repetition.count)  # S4.2a
    return Done(one.admission, one.outcome, f"{one.content}\n\n{hint}", one.took_s, one.pictures)


def _failure_line(turn: Turn, one: Done, outcome: Failed) -> str:
    """S6.8: the line that a failed call leaves in the thought log."""
    line = f"{one.call.name or '(no name)'}({shown_arguments(turn, one.call)}): {HEADLINE[outcome.kind]}: {outcome.reason}"
    line = turn.redactor.text(line)
    turn.recorder.note(Thought(line))
    return line


def _restart_of(one: Done) -> RestartWith | None:
    then = one.outcome.then if isinstance(one.outcome, Succeeded) else None
    return then if isinstance(then, RestartWith) else None


def _ends_turn(one: Done) -> bool:
    return isinstance(one.outcome, Succeeded) and isinstance(one.outcome.then, EndTurn)


def _delivered(done: list[Done]) -> tuple[str, ...]:
    texts = [one.outcome.delivered for one in done if isinstance(one.outcome, Succeeded) and one.outcome.delivered]
    return tuple(texts)
