"""One turn, from its trigger to its finaliser."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from turnkeeper.attempts.generation_turn import Attempted, run_generation_turn
from turnkeeper.attempts.plan import Plan
from turnkeeper.attempts.tier import Tier
from turnkeeper.channel.conversation import Context, Conversation
from turnkeeper.channel.finaliser import Step, finalise
from turnkeeper.journal.events import Admitted, Ended, Thought
from turnkeeper.loop.build_result import build_result
from turnkeeper.loop.recorder import Recorder
from turnkeeper.loop.turn import Turn
from turnkeeper.loop.window import WindowMeasure, room_for
from turnkeeper.providers.model import Model
from turnkeeper.tools.exposure import Exposed
from turnkeeper.types.messages import UserMessage
from turnkeeper.types.turn import EndName, TurnResult

_SHARE = 0.8  # of the finaliser's time that a send in flight may take, so that giving it up is part of the same step


class Trigger(Struct, frozen=True):
    """The message that began a turn. attachments: the files that came with it, by name. server: where the channel is."""

    turn_id: str
    channel: str
    user: str
    text: str
    attachments: dict[str, bytes] = field(default_factory=dict[str, bytes])
    server: str = ""


def with_attachments(text: str, files: Mapping[str, bytes]) -> str:
    """The message with a line for each file that came with it, so that a model knows what it may read."""
    lines = [f"[attached file: {name}, {max(1, len(data) // 1024)} KB]" for name, data in files.items()]
    return "\n".join([text, *lines]).strip() if lines else text


async def run_turn(
    turn: Turn,
    trigger: Trigger,
    conversation: Conversation,
    plan: Plan,
    tier: Tier,
) -> TurnResult:
    """Runs `turn` and its finaliser, which runs once on every path (S2.3).

    Raises only what is nobody's to answer: the cancellation of the caller, or a mistake of ours.
    """
    end: EndName = "stopped_by_user"
    attempted: Attempted | None = None
    try:
        attempted = await run_generation_turn(turn, plan, tier)
        end = attempted.finish.end
    except Exception:
        end = "error"
        raise
    finally:
        fault = attempted.finish.fault if attempted is not None else None
        await finalise(
            [
                Step("delivering the rest", lambda: _deliver_rest(turn)),
                Step("giving the notice", lambda: _give_notice(turn, attempted)),
                Step("recording the end", lambda: _record_end(turn, Ended(end, fault))),
            ],
            turn.settings.finaliser_timeout,
        )
        turn.signals.close()
    assert attempted is not None  # else an exception has left this function
    conversation.add(UserMessage(trigger.text), attempted.state.final_messages())
    return build_result(turn, attempted.state, attempted.finish, attempted.records, charged=attempted.charged)


def note_beginning(recorder: Recorder, trigger: Trigger, conversation: Conversation, exposed: Exposed) -> None:
    """Puts on record what is known when a turn begins."""
    recorder.note(Admitted(trigger.channel, trigger.user, trigger.text, trigger.server))
    for repair in conversation.repairs:
        recorder.note(Thought(f"history healed: {repair}"))
    conversation.repairs.clear()
    for line in exposed.notes:
        recorder.note(Thought(line))


def context_for(conversation: Conversation, trigger: Trigger, model: Model, measure: WindowMeasure, fixed: int) -> Context:
    """The conversation as `model` can read it. `fixed`: tokens of what its requests hold besides (system prompt, tools)."""
    return conversation.context(UserMessage(trigger.text), measure, room_for(model, measure, fixed))


async def _deliver_rest(turn: Turn) -> None:
    await turn.delivery.finish(turn.settings.finaliser_timeout * _SHARE / 2)


async def _give_notice(turn: Turn, attempted: Attempted | None) -> None:
    """The one report of how the turn ended, where there is something to report (S3.6)."""
    if attempted is not None and attempted.finish.notice is not None:
        await turn.delivery.notify(attempted.finish.notice)


async def _record_end(turn: Turn, ended: Ended) -> None:
    turn.recorder.note(ended)
    await turn.recorder.stored()
