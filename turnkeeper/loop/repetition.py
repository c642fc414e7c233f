"""The same call with the same result, again and again (S4.2a). Pure."""

from __future__ import annotations

import re
from hashlib import blake2b

from msgspec.json import encode

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


def identity(call: ToolCall) -> str:
    """A digest of a call's name and canonical arguments (keys sorted at every depth): equal calls have equal ones."""
    if isinstance(call.arguments, Parsed):
        arguments = encode(call.arguments.value, order="deterministic")
    else:
        arguments = call.text.encode("utf-8", "surrogatepass")
    return blake2b(call.name.encode("utf-8", "surrogatepass") + b"\0" + arguments, digest_size=16).hexdigest()


def result_digest(content: str) -> str:
    """A digest of a result, ids and times aside."""
    return blake2b(_VARYING.sub("", content).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def repeated(before: Repetition, call: ToolCall, content: str, *, refused: bool) -> Repetition:
    """How often in a row this call came with this result. `refused`: it was refused as a repeat, which counts too."""
    called = identity(call)
    if refused and called == before.identity:
        return Repetition(called, before.result, before.count + 1)
    result = result_digest(content)
    same = called == before.identity and result == before.result
    return Repetition(called, result, before.count + 1 if same else 1)
