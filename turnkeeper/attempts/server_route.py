# A user whose own keys have failed may be lent the server's models (S3.8).

"""Who may be lent the server's models."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from turnkeeper.settings import Settings
from turnkeeper.types.faults import span

_DAY_S = 86_400.0
_USERS = 10_000  # whose loans are remembered


class Lender:
    """Decides about loans, and keeps count of those that came to a reply.

    opted_out: whether a user wants none. Loans of the last day are counted in memory.
    """

    def __init__(self, settings: Settings, opted_out: Callable[[str], bool] = lambda _: False) -> None:
        self._settings = settings
        self._opted_out = opted_out
        self._lent: OrderedDict[str, deque[float]] = OrderedDict()

    def refusal(self, user: str, now: float) -> str | None:
        """Why `user` is lent nothing at `now`, as a sentence; None where the models are lent."""
        if not self._settings.lend_models:
            return "This bot lends no models of its own."
        if self._opted_out(user):
            return "You chose to use your own keys only."
        lent = self._lent.get(user)
        while lent and not 0 <= now - lent[0] < _DAY_S:
            lent.popleft()
        if not lent:
            return None
        if self._settings.lend_quota and len(lent) >= self._settings.lend_quota:
            back = span(lent[0] + _DAY_S - now)
            return f"The {self._settings.lend_quota} replies a day that this bot lends are used up; the next is free in {back}."
        left_s = lent[-1] + self._settings.lend_cooldown - now
        return f"This bot lends its models again in {span(left_s)}." if left_s > 0 else None

    def lent(self, user: str, now: float) -> None:
        """A reply came of a loan: only now it counts."""
        self._lent.setdefault(user, deque()).append(now)
        self._lent.move_to_end(user)
        if len(self._lent) > _USERS:
            self._lent.popitem(last=False)
