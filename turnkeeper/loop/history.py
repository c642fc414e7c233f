# A conversation that any server accepts, whatever happened in it (S2.5, S2.5a, S4.6).

"""Heals a conversation and fits it into a window. Pure."""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.types.messages import AssistantMessage, Message, ToolMessage, UserMessage

LOST_RESULT = "The result is not known: the turn ended before this call was answered. It may or may not have had its effect."
"""What stands for the result of a call that has none."""

_KEPT_SHARE = 0.6  # a trim cuts to this share of the window at once and then rests (S3.10b)


class Healed(Struct, frozen=True):
    """A valid conversation, and what had to be mended, a sentence each."""

    messages: tuple[Message, ...]
    repairs: tuple[str, ...] = ()


def heal(messages: tuple[Message, ...]) -> Healed:
    """The conversation with each call followed by exactly one result, no result without its call, and nothing empty."""
    healed: list[Message] = []
    repairs: list[str] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        match message:
            case ToolMessage():
                repairs.append(f"a result of {message.name or 'a tool'} without its call was left out")
            case UserMessage():
                if message.text.strip() or message.pictures:
                    healed.append(message)
            case AssistantMessage():
                results: list[ToolMessage] = []
                while position < len(messages) and isinstance(result := messages[position], ToolMessage):
                    results.append(result)
                    position += 1
                batch = _batch(message, results, repairs)
                if batch and healed and isinstance(before := healed[-1], AssistantMessage) and not before.calls:
                    said = f"{before.text.rstrip()}\n\n{message.text.lstrip()}".strip()  # what a paused pass had said
                    healed[-1:], batch = [], [replace(message, text=said, native=()), *batch[1:]]
                healed += batch
            case _:
                assert_never(message)
    return Healed(tuple(healed), tuple(repairs))


def _batch(message: AssistantMessage, results: list[ToolMessage], repairs: list[str]) -> list[Message]:
    if not message.calls:
        if results:
            repairs.append(f"{len(results)} results without a call were left out")
        return [message] if message.text.strip() else []  # S2.5a
    by_id: dict[str, ToolMessage] = {}
    known = {call.id for call in message.calls}
    for result in results:
        if result.call_id not in known:
            repairs.append(f"a result of {result.name or 'a tool'} without its call was left out")
        elif result.call_id in by_id:
            repairs.append(f"a second result of {result.name} was left out")
        else:
            by_id[result.call_id] = result
    answers: list[Message] = []
    for call in message.calls:
        if call.id not in by_id:
            repairs.append(f"the call of {call.name} had no result and was given one that says so")
        answers.append(by_id.get(call.id) or ToolMessage(call.id, call.name, LOST_RESULT))
    return [message, *answers]


def exchanges_to_drop(sizes: list[int], window: int) -> int:
    """How many of the oldest exchanges to leave out so that the rest fits `window` tokens; the last one always stays.

    Nothing while all fits. Else a large step at once, so that the next turns extend the same request (S3.10b).
    """
    total = sum(sizes)
    if total <= window:
        return 0
    drop = 0
    while drop < len(sizes) - 1 and total > window * _KEPT_SHARE:
        total -= sizes[drop]
        drop += 1
    return drop
