"""The chat-completions usage object in our disjoint parts (S15.2; cases.md, "Usage")."""

from __future__ import annotations

from typing import Any, cast

from turnkeeper.types.usage import Usage

_TICKS = 10_000_000_000  # of xAI in a dollar


def read_usage(value: object) -> Usage | None:
    """Usage from the provider's object, or None where it says nothing that can be used.

    `prompt_tokens` includes what was read from a cache and what was written to one; `completion_tokens` includes reasoning
    on most servers, and leaves it out on some (xAI), which the total shows. Negative numbers and text are ignored.
    """
    if not isinstance(value, dict):
        return None
    said = cast(dict[str, Any], value)
    prompt, completion = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    if prompt is None and completion is None:
        return None
    prompt, completion = prompt or 0, completion or 0
    details = _table(said.get("prompt_tokens_details"))
    cached = _count(details, "cached_tokens")
    if cached is None:
        cached = _count(said, "prompt_cache_hit_tokens") or 0
    written = _count(details, "cache_write_tokens") or 0
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    reasoning = _count(_table(said.get("completion_tokens_details")), "reasoning_tokens") or 0
    if _count(said, "total_tokens") == prompt + completion + reasoning and reasoning:
        completion += reasoning
    return Usage(
        input=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=completion,
        reasoning=min(reasoning, completion),
        cost=_cost(said),
    )


def _cost(said: dict[str, Any]) -> float | None:
    """What the server itself says the answer cost, in dollars: OpenRouter, Perplexity, and xAI in ticks of its own."""
    cost: object = said.get("cost")
    if isinstance(cost, dict):
        cost = cast(dict[str, Any], cost).get("total_cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        return float(cost)
    ticks = _count(said, "cost_in_usd_ticks")
    return None if ticks is None else ticks / _TICKS


def _count(table: dict[str, Any], name: str) -> int | None:
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _table(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
