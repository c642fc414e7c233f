"""Tokens and cost of a pass (S15.2)."""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, frozen=True, tag=True):
    """Tokens of one pass in disjoint parts: `input` was neither read from a cache nor written to one.

    cache_write_long: the part of `cache_write` that is kept for an hour, which has a price of its own.
    reasoning: the part of `output` that was reasoning.
    searches: web searches that the server itself made, where they have a price each.
    cost: US dollars, or None where no price is known: never 0 for unknown.
    estimated: true where the provider reported nothing, or was cut before it could.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float | None = None
    estimated: bool = False
    cache_write_long: int = 0
    searches: int = 0

    @property
    def prompt(self) -> int:
        """All tokens that the model read in this pass."""
        return self.input + self.cache_read + self.cache_write
