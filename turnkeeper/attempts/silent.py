"""Models that stayed silent, and how long models take to their first token (S3.3c)."""

from __future__ import annotations

from turnkeeper.attempts.plan import place_of
from turnkeeper.providers.model import Model

_WEIGHT = 0.3  # of the newest measurement


class Pace:
    """What is known of how quickly models answer. memory_s: how long a timeout is remembered, in seconds."""

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._timed_out: dict[tuple[str, str], float] = {}
        self._first_token_s: dict[tuple[str, str], float] = {}

    def silent(self, now: float) -> frozenset[tuple[str, str]]:
        """The places of the models that timed out lately. now: seconds since the epoch."""
        if not self._timed_out:
            return frozenset()
        return frozenset(place for place, at in self._timed_out.items() if 0 <= now - at < self._memory_s)

    def timed_out(self, model: Model, now: float) -> None:
        """The model did not answer in time."""
        self._timed_out[place_of(model)] = now

    def answered(self, model: Model, first_token_s: float | None) -> None:
        """The model answered; it leads again. first_token_s: how long it took to its first token."""
        place = place_of(model)
        self._timed_out.pop(place, None)
        if first_token_s is not None:
            before = self._first_token_s.get(place, first_token_s)
            self._first_token_s[place] = before + _WEIGHT * (first_token_s - before)

    def usual_s(self, model: Model) -> float | None:
        """How long it usually takes to its first token; None where that is not known."""
        return self._first_token_s.get(place_of(model))
