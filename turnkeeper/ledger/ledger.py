# Budgets: what a turn, and in a day a user, a channel, a server and all together may use, in tokens and in money.
#
# Sums are kept in memory and read back from the journal at the first use: a restart forgets nothing. A day begins at 00:00
# UTC. A pass counts when it has ended, however it ended: a stopped one too. So a budget may be exceeded by what was running
# when it was used up, one pass a turn; the next pass is refused. What a user's own key pays counts for the turn alone.

"""Keeps count of what turns use, and refuses what is over a budget."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from turnkeeper.journal.journal import Journal
from turnkeeper.ledger.entries import KINDS, Spent, entries
from turnkeeper.settings import Settings
from turnkeeper.types.turn import Notice
from turnkeeper.types.usage import Usage

DAY_S = 86_400
_LONGEST_TURN_S = 6 * 3600  # how far before the day a turn may have begun whose passes count in it
_DAYS_KEPT = 3  # so that a clock that jumps and comes back finds its day again

Scope: TypeAlias = Literal["turn", "user", "channel", "server", "day"]
_log = logging.getLogger(__name__)


class Payer(Struct, frozen=True):
    """Whom a turn's use is counted for. server: "" for none."""

    user: str
    channel: str
    server: str = ""


class Limit(Struct, frozen=True):
    """A budget; 0 for none. tokens: read and written. cost: US dollars."""

    tokens: int
    cost: float

    def exceeded(self, spent: Spent) -> str:
        """Which budget is used up, such as `1000 tokens` or `2.5 usd`; "" for none."""
        if self.tokens and spent.tokens >= self.tokens:
            return f"{self.tokens} tokens"
        if self.cost and spent.cost >= self.cost:
            return f"{self.cost:g} usd"
        return ""

    def __bool__(self) -> bool:
        return bool(self.tokens or self.cost)


class Ledger:
    """What is used by whom, and how much may be.

    journal: where what was used today stands. clock: the wall clock, seconds since the epoch.
    """

    def __init__(self, settings: Settings, journal: Journal, clock: Callable[[], float]) -> None:
        self.turn_limit = Limit(settings.turn_tokens, settings.turn_cost)
        limits: dict[Scope, Limit] = {
            "user": Limit(settings.user_day_tokens, settings.user_day_cost),
            "channel": Limit(settings.channel_day_tokens, settings.channel_day_cost),
            "server": Limit(settings.server_day_tokens, settings.server_day_cost),
            "day": Limit(settings.day_tokens, settings.day_cost),
        }
        self.limits: dict[Scope, Limit] = {scope: limit for scope, limit in limits.items() if limit}
        self._journal = journal
        self._clock = clock
        self._days: OrderedDict[int, dict[tuple[Scope, str], Spent]] = OrderedDict()
        self._reading: asyncio.Task[None] | None = None
        self._unpriced: set[str] = set()

    async def open(self) -> None:
        """Reads back what was used today, once, where there is a budget for it. Raises JournalError where that fails."""
        if not self.limits or self._days:
            return
        reading = self._reading
        if reading is None or reading.done():  # one for all turns that begin at once; another one where the last one failed
            reading = self._reading = asyncio.create_task(self._read_back(), name="budgets")
        await asyncio.shield(reading)

    def spending(self, payer: Payer) -> Spending:
        """What a turn for `payer` uses; `open` must have returned."""
        return Spending(self, payer)

    def add(self, payer: Payer, model: str, usage: Usage, at: float | None = None) -> None:
        """Counts a pass that ended at `at`, seconds since the epoch; None for now."""
        if not self.limits:
            return
        sums = self._sums(self._clock() if at is None else at)
        for place in self._places(payer):
            sums[place] = sums.get(place, Spent()).plus(usage)
        if usage.cost is None and model not in self._unpriced and any(limit.cost for limit in self.limits.values()):
            self._unpriced.add(model)
            _log.warning(
                "The price of %s is not known, so it does not count in budgets of money; give it with `prices`.", model
            )

    def refusal(self, payer: Payer) -> Notice | None:
        """Why nothing more may be used for `payer` today; None where more may be."""
        if not self.limits:
            return None
        now = self._clock()
        sums = self._sums(now)
        for scope, name in self._places(payer):
            exceeded = self.limits[scope].exceeded(sums.get((scope, name), Spent()))
            if exceeded:
                return Notice("over_budget", f"{scope} {exceeded} {DAY_S - now % DAY_S:.0f}")
        return None

    def _places(self, payer: Payer) -> list[tuple[Scope, str]]:
        names: dict[Scope, str] = {"user": payer.user, "channel": payer.channel, "server": payer.server, "day": "all"}
        return [(scope, names[scope]) for scope in self.limits if names[scope]]

    def _sums(self, at: float) -> dict[tuple[Scope, str], Spent]:
        day = int(at // DAY_S)
        sums = self._days.setdefault(day, {})
        self._days.move_to_end(day)
        if len(self._days) > _DAYS_KEPT:
            self._days.popitem(last=False)
        return sums

    async def _read_back(self) -> None:
        now = self._clock()
        day_began = now - now % DAY_S
        await self._journal.stored()
        events = await self._journal.since(day_began - _LONGEST_TURN_S, KINDS)
        self._sums(now)
        for entry in entries(events):
            if entry.at >= day_began and not entry.scope:
                self.add(Payer(entry.user, entry.channel, entry.server), entry.model, entry.usage, entry.at)


class Spending:
    """What one turn uses."""

    def __init__(self, ledger: Ledger, payer: Payer) -> None:
        self._ledger = ledger
        self._payer = payer
        self._spent = Spent()

    def add(self, model: str, usage: Usage, *, own_key: bool) -> None:
        """Counts a pass that ended now. own_key: a user's own key paid for it."""
        self._spent = self._spent.plus(usage)
        if not own_key:
            self._ledger.add(self._payer, model, usage)

    def refusal(self, *, own_key: bool) -> Notice | None:
        """Why the turn may make no further pass; None where it may. own_key: a user's own key would pay for it."""
        exceeded = self._ledger.turn_limit.exceeded(self._spent)
        if exceeded:
            return Notice("over_budget", f"turn {exceeded} 0")
        return None if own_key else self._ledger.refusal(self._payer)
