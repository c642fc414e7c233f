# Stage 1: one request to the provider, streamed to its end.
#
# What happens to a network read, in this order: the parser makes events of it, `Reading` sorts them, text goes to delivery,
# messages that became complete are sent. Whatever ends the pass (its own end, a stop, a clock, a newer message, a limit, an
# error) is found in one place, `_end_of`, from what is known then; nothing is decided about what follows (policy.py).

"""Makes one pass."""

from __future__ import annotations

from msgspec.structs import replace

from turnkeeper.delivery.delivery import Delivery
from turnkeeper.delivery.repeats import RepeatFilter
from turnkeeper.delivery.stitcher import Stitcher, resume_point
from turnkeeper.errors import ProviderError
from turnkeeper.journal.events import AskedFor, PassEnded, PassStarted
from turnkeeper.loop.policy import Purpose
from turnkeeper.loop.reading import Reading, TextFilter
from turnkeeper.loop.scope import Scope
from turnkeeper.loop.state import Beginning, LoopState
from turnkeeper.loop.turn import Attempt, Turn, shown_arguments
from turnkeeper.loop.window import shortened
from turnkeeper.providers.classify import protocol_fault
from turnkeeper.providers.families import OpenAnswer
from turnkeeper.providers.identifiers import fit_tool_name
from turnkeeper.providers.tokens import estimate_tokens
from turnkeeper.providers.transport import HttpRequest
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.ends import Completed, Empty, Failed, FollowUp, PassEnd, Paused, Stopped, TimedOut, ToolCalls
from turnkeeper.types.faults import Fault
from turnkeeper.types.messages import AssistantMessage, Prompt
from turnkeeper.types.turn import PassUsage
from turnkeeper.types.usage import Usage

_LINGER_S = 0.25  # how long the connection's own end is waited for, so that it can be used again
_ANSWER_PLEASE = "You have the results of the tools. Answer the person now, in words."
_LOST_CALL = "Your call of {name} was cut off on its way and did not run. Call it again if it is still needed."
_REASONING_KEPT = 2000
_REST_SHARE = 4  # a chain that is shortened gets so much of its room back at once, and then rests (S3.10b)


async def stream_once(turn: Turn, attempt: Attempt, state: LoopState, purpose: Purpose) -> LoopState:
    """Makes one pass. Returns the state with its end; raises nothing that a provider can cause."""
    if purpose == "again_shorter":
        state = replace(state, dropped=state.dropped + 1)
    if state.history:
        turn.signals.clear_follow_up()  # S5.4: a tool chain goes on; the message stays queued
    state = _with_room(turn, attempt, state)
    carried_on = purpose == "carry_on"
    turn.delivery.begin_pass(carried_on=carried_on)
    before = len(turn.delivery.shown)
    request = attempt.provider.request(_prompt(turn, attempt, state, purpose))
    number = state.passes + 1
    turn.recorder.note(PassStarted(number, purpose, len(request.body)))

    text_filter = _text_filter(turn, attempt, state, purpose)
    reading = Reading(turn.delivery, text_filter, turn.signals, number)
    scope = Scope(
        turn.signals,
        first_s=attempt.first_token_s or turn.settings.first_token_timeout,
        idle_s=turn.settings.idle_timeout,
        may_yield=lambda: reading.reached_boundary() if reading.begun else not state.history,
    )
    fault: Fault | None = None
    try:
        async with scope:
            await _read_answer(turn, attempt, request, reading, scope)
            scope.rest()
            await _deliver_rest(turn.delivery, reading)
    except ProviderError as problem:
        fault = problem.fault
    if scope.reason is not None:
        await _settle(turn, scope)

    fault = fault or reading.fault
    if fault is not None:  # S16.2a: servers quote keys in their errors
        fault = replace(fault, said=turn.redactor.text(fault.said))
    reading.calls = _as_recorded(turn, state, reading)
    end = _end_of(turn.delivery, reading, scope, fault, shown=turn.delivery.shown[before:])
    usage = await attempt.provider.priced(_usage(reading, request))
    turn.recorder.note(_pass_ended(turn, end, usage, reading, scope))
    if turn.spending is not None:
        turn.spending.add(attempt.provider.model.name, usage, own_key=attempt.own_key)
    entry = PassUsage.of(attempt.provider.model.name, usage, scope.first_progress_s)
    return state.after_pass(end, entry, _thoughts(reading), carried_on=carried_on)


async def _read_answer(turn: Turn, attempt: Attempt, request: HttpRequest, reading: Reading, scope: Scope) -> None:
    """Reads the answer until it ends, or until nothing more of it is wanted."""
    delivery = turn.delivery
    left = turn.settings.max_answer_bytes
    async with await attempt.provider.open(request) as answer:
        parser = attempt.provider.parser(answer.content_type, _id_prefix(turn, reading.number))
        reading.parser = parser
        while not parser.over:
            data = await answer.read()
            left -= len(data)
            events = parser.feed(data) if data else parser.close()
            if reading.take(events):
                scope.progressed()
            if delivery.due:
                await delivery.flush()
                scope.progressed()
            if left < 0:
                reading.fault = protocol_fault(f"an answer larger than {turn.settings.max_answer_bytes:,} bytes", b"")
            if left < 0 or delivery.limit is not None or reading.interrupted or not data:
                return
        await _read_to_end(answer, scope)


async def _read_to_end(answer: OpenAnswer, scope: Scope) -> None:
    """Takes what follows the answer's end, so that the connection can serve the next pass; not for long."""
    if not answer.at_end:
        scope.linger(_LINGER_S)
        while await answer.read():
            pass


async def _deliver_rest(delivery: Delivery, reading: Reading) -> None:
    reading.close()
    if not reading.unfinished:  # S3.4, S9.4b: a text that may be carried on stays one message
        delivery.end_message()
    await delivery.flush()


async def _settle(turn: Turn, scope: Scope) -> None:
    """After the pass was ended from outside: what people have seen becomes a message on record.

    S5.2: a timeout waits for a send in flight, and leaves the message open, for another model may carry it on; a stop waits
    for nothing here (the turn's end does, bounded).
    """
    if scope.reason not in ("first_token", "idle"):
        turn.delivery.end_message()
    elif not turn.signals.stopped:
        wait = Scope(turn.signals)
        async with wait:
            await turn.delivery.settle(turn.settings.settle_timeout)


def _as_recorded(turn: Turn, state: LoopState, reading: Reading) -> list[ToolCall]:
    """The pass's calls under the tools' own names, and ids that no other call of the conversation has (S4.6, S3.10a)."""
    if not reading.calls:
        return []
    names = {fit_tool_name(spec.name): spec.name for spec in turn.toolbox.specs}
    messages = (*turn.context, *state.messages)
    used = {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.calls}
    calls: list[ToolCall] = []
    for place, call in enumerate(reading.calls):
        own_id = call.id if call.id not in used else f"{_id_prefix(turn, reading.number)}again_{place}"
        calls.append(replace(call, id=own_id, name=names.get(call.name, call.name)))
    return calls


def _id_prefix(turn: Turn, number: int) -> str:
    """What ids made by us in a pass begin with."""
    return f"call_{turn.id[-8:]}_{number}_"


def _end_of(delivery: Delivery, reading: Reading, scope: Scope, fault: Fault | None, shown: str) -> PassEnd:
    if scope.reason == "stopped":
        return Stopped("user", shown)
    if scope.reason == "follow_up" or reading.interrupted:
        return FollowUp(shown)
    if delivery.limit is not None:
        return Stopped(delivery.limit, shown)
    if scope.reason in ("first_token", "idle"):
        return TimedOut(scope.reason, scope.waited_s, shown)
    if fault is not None:
        return Failed(fault, shown, reading.lost_call, undelivered=scope.first_progress_s is None)
    if reading.calls:
        return ToolCalls(reading.asked(), reading.text_after(), tuple(reading.native))
    if reading.finish == "content_filter":
        return Failed(Fault("content_blocked", "request", said="the provider's filter stopped the answer"), shown)
    if reading.finish == "pause":
        return Paused(shown, tuple(reading.native))
    if shown.strip():
        return Completed(shown, reading.finish)
    return Empty(reading.finish, reasoned=bool(reading.reasoning), repeated=reading.repeated)


def _with_room(turn: Turn, attempt: Attempt, state: LoopState) -> LoopState:
    """S3.10a: where the chain has grown out of the window, by what the model reported, its oldest results are shortened."""
    last = state.usage[-1] if state.usage and state.messages else None
    if last is None or not attempt.room or last.model != attempt.provider.model.name:
        return state
    over = last.input + last.cache_read + last.cache_write + last.output - attempt.room - attempt.fixed
    if over <= 0:
        return state
    return replace(state, messages=shortened(state.messages, over + attempt.room // _REST_SHARE, turn.keep))


def _prompt(turn: Turn, attempt: Attempt, state: LoopState, purpose: Purpose) -> Prompt:
    context = turn.context
    if state.dropped:  # S9.4: the oldest exchanges make room; the trigger stays
        starts = turn.exchanges
        context = context[starts[min(state.dropped, len(starts) - 1)] :]
    prefill = ""
    if purpose == "carry_on":
        shown = turn.delivery.shown
        prefill = shown if attempt.provider.native_prefill else resume_point(shown).sent
    return Prompt(
        system=turn.system,
        messages=context + state.messages,
        tools=turn.specs(state.switched_off),
        tail=_tail(state, purpose),
        prefill=prefill,
    )


def _tail(state: LoopState, purpose: Purpose) -> str:
    """What is said to the model in this pass only."""
    if purpose == "answer_please":
        return _ANSWER_PLEASE
    lost = state.at.lost_call if isinstance(state.at, Beginning) else None
    return _LOST_CALL.format(name=lost) if lost else ""  # S3.4a


def _text_filter(turn: Turn, attempt: Attempt, state: LoopState, purpose: Purpose) -> TextFilter | None:
    if purpose == "carry_on":
        return Stitcher(turn.delivery.shown, native_prefill=attempt.provider.native_prefill)
    return RepeatFilter(state.delivered_texts) if state.ran else None


def _usage(reading: Reading, request: HttpRequest) -> Usage:
    """What the provider reported, or an estimate, marked, where it reported nothing or was cut before it could (S15.2)."""
    reported = reading.reported()
    if reported is not None and reading.ended:
        return reported
    written = estimate_tokens(reading.text) + estimate_tokens("".join(reading.reasoning))
    written += sum(estimate_tokens(call.text) for call in reading.calls)
    if reported is not None:  # a count of what it read is one, whatever came later
        return replace(reported, output=max(written, reported.output), estimated=True)
    return Usage(input=len(request.body) // 4, output=written, estimated=True)


def _thoughts(reading: Reading) -> tuple[str, ...]:
    text = "".join(reading.reasoning).strip()
    scenes = [scene for part in reading.native for scene in part.data.get("scene", ())]
    details = (f"NovelAI details: {'; '.join(scenes)}",) if scenes else ()  # S8.1
    return ((text[-_REASONING_KEPT:],) if text else ()) + details


def _pass_ended(turn: Turn, end: PassEnd, usage: Usage, reading: Reading, scope: Scope) -> PassEnded:
    asked = end.asked if isinstance(end, ToolCalls) else ()
    return PassEnded(
        number=reading.number,
        end=type(end).__name__,
        shown="" if isinstance(end, Empty) else end.shown,
        asked=tuple(
            AskedFor(one.call.id, one.call.name, shown_arguments(turn, one.call, 4000), one.text_before) for one in asked
        ),
        text_after=end.text_after if isinstance(end, ToolCalls) else "",
        usage=usage,
        reasoning="".join(reading.reasoning)[-_REASONING_KEPT:],
        first_progress_s=scope.first_progress_s,
        fault=end.fault if isinstance(end, Failed) else None,
    )
