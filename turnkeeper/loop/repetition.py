"""The same call with the same result, again and again (S4.2a). Pure."""

from __future__ import annotations

import re

from turnkeeper.loop.state import Repetition
from turnkeeper.types.calls import Parsed, ToolCall

# What differs between two results that say the same: times, ids, and numbers that are an epoch.
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{16,}\b"
    r"|\b1\d{9}(?:\d{3})?(?:\.\d+)?\b",
    re.IGNORECASE,
)


def is_same_call(one: ToolCall | None, other: ToolCall) -> bool:
    """Whether two calls ask for the same: the same name and equal arguments, whatever the order of their keys."""
    if one is None or one.name != other.name:
        return False
    return one.arguments == other.arguments and (isinstance(one.arguments, Parsed) or one.text == other.text)


def is_same_result(one: str, other: str) -> bool:
    """Whether two results say the same, ids and times aside."""
    return one == other or _VARYING.sub("", one) == _VARYING.sub("", other)


def repeated(before: Repetition, call: ToolCall, content: str, *, refused: bool) -> Repetition:
    """How often in a row this call came with this result. `refused`: it was refused as a repeat, which counts too."""
    if not is_same_call(before.call, call):
        return Repetition(call, content, 1)
    if refused:
        return Repetition(call, before.content, before.count + 1)
    return Repetition(call, content, before.count + 1 if is_same_result(before.content, content) else 1)
