"""The Responses API's usage object in our disjoint parts (S15.2; cases.md, "Usage")."""

from __future__ import annotations

from turnkeeper.providers.counts import count, table_of
from turnkeeper.types.usage import Usage


def read_usage(value: object) -> Usage | None:
    """Usage from the provider's object, or None where it says nothing that can be used.

    `input_tokens` includes what was read from a cache and what was written to one, `output_tokens` includes reasoning.
    """
    said = table_of(value)
    prompt, output = count(said, "input_tokens"), count(said, "output_tokens")
    if prompt is None and output is None:
        return None
    prompt, output = prompt or 0, output or 0
    details = table_of(said.get("input_tokens_details"))
    cached = min(count(details, "cached_tokens") or 0, prompt)
    written = min(count(details, "cache_write_tokens") or 0, prompt - cached)
    reasoning = count(table_of(said.get("output_tokens_details")), "reasoning_tokens") or 0
    return Usage(
        input=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=output,
        reasoning=min(reasoning, output),
    )
