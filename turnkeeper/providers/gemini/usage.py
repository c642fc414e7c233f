"""Gemini's usage metadata in our disjoint parts (S15.2; cases.md, "Usage")."""

from __future__ import annotations

from turnkeeper.providers.counts import count, table_of
from turnkeeper.types.usage import Usage


def read_usage(value: object) -> Usage | None:
    """Usage from the provider's object, or None where it says nothing that can be used.

    `promptTokenCount` includes what was read from a cache; what the server's own tools read is counted beside it. Thoughts
    are counted apart from candidates: together they are the output.
    """
    said = table_of(value)
    prompt, written = count(said, "promptTokenCount"), count(said, "candidatesTokenCount")
    thoughts = count(said, "thoughtsTokenCount") or 0
    if prompt is None and written is None and not thoughts:
        return None
    prompt = prompt or 0
    cached = min(count(said, "cachedContentTokenCount") or 0, prompt)
    return Usage(
        input=prompt - cached + (count(said, "toolUsePromptTokenCount") or 0),
        cache_read=cached,
        output=(written or 0) + thoughts,
        reasoning=thoughts,
    )
