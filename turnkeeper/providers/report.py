"""What a parser makes of a recorded answer, as one JSON object: for bug reports, and for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from turnkeeper.providers.families import find_family
from turnkeeper.types.calls import Invalid, Parsed, ToolCall, Truncated
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    Heartbeat,
    NativePart,
    ReasoningDelta,
    StartedOver,
    StreamEvent,
    TextDelta,
    TextRevised,
    ToolCallArguments,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)


def report(family: str, pieces: Iterable[bytes]) -> dict[str, Any]:
    """Feeds `pieces` to the family's parser and folds its events.

    Returns text, reasoning, tool_calls, finish (our word), finish_reason (the provider's), usage (as the provider reports
    it), tokens (ours, in disjoint parts), error (as the provider words it, else our sentence; null where the provider said
    nothing wrong, in another family's words), fault (our reading of it). Raises ConfigurationError.
    """
    reader = find_family(family).parser(None)
    events: list[StreamEvent] = []
    for piece in pieces:
        events += reader.feed(piece)
    events += reader.close()
    return fold(events)


def fold(events: Iterable[StreamEvent]) -> dict[str, Any]:
    """The report of an answer's events."""
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    found: dict[str, Any] = {"finish": None, "finish_reason": None, "usage": None, "tokens": None, "error": None, "fault": None}
    for event in events:
        match event:
            case TextDelta(text=piece):
                text.append(piece)
            case TextRevised(before=before, after=after):
                text = ["".join(text).removesuffix(before), after]
            case ReasoningDelta(text=piece):
                reasoning.append(piece)
            case ToolCallReady(call=call):
                calls.append(_call(call))
            case Finished(reason=reason, said=said):
                found |= {"finish": reason, "finish_reason": said}
            case UsageReported(usage=usage, said=said):
                found |= {"usage": said, "tokens": {name: getattr(usage, name) for name in usage.__struct_fields__}}
            case FaultReported(fault=fault, said=said):
                found["fault"] = {"kind": fault.kind, "message": str(fault)}
                ours = None if event.foreign else {"message": str(fault), "type": fault.kind}
                found["error"] = ours if said is None else said
            case StartedOver():
                reasoning.clear()
                calls.clear()
            case ToolCallStarted() | ToolCallArguments() | NativePart() | Heartbeat():
                pass
            case _:
                assert_never(event)
    return {"text": "".join(text), "reasoning": "".join(reasoning), "tool_calls": calls} | found


def _call(call: ToolCall) -> dict[str, Any]:
    """A call; where its arguments can't be dispatched, they are as the model wrote them, with the problem beside them."""
    known: dict[str, Any] = {"id": call.id, "name": call.name}
    match call.arguments:
        case Parsed(value=value):
            return known | {"arguments": value}
        case Invalid(problem=problem):
            return known | {"arguments": call.text, "problem": problem}
        case Truncated():
            return known | {"arguments": call.text, "problem": "cut off before its end"}
        case _:
            assert_never(call.arguments)
