"""`turnkeeper usage`: what was used, and what it cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from turnkeeper.errors import JournalError
from turnkeeper.journal.sql import open_journal
from turnkeeper.ledger.entries import KINDS, Entry, Spent, entries, summed
from turnkeeper.ledger.ledger import DAY_S
from turnkeeper.providers.local.weights import user_data_folder
from turnkeeper.settings import environment
from turnkeeper.surfaces.terminal.command import journal_url
from turnkeeper.surfaces.terminal.painter import printable

BY: dict[str, Callable[[Entry], str]] = {
    "day": lambda entry: datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d"),
    "model": lambda entry: entry.model,
    "user": lambda entry: entry.user,
    "channel": lambda entry: entry.channel,
    "server": lambda entry: entry.server,
    "payer": lambda entry: f"own key of {entry.scope}" if entry.scope else "the server's keys",
}
"""What sums can be made by."""


def usage_command(days: int, by: str, journal: str, *, as_json: bool) -> int:
    """Prints what was used in the last `days` days (UTC), today included, summed `by` a key of BY."""
    url = journal or journal_url(user_data_folder(environment()))
    path = url.removeprefix("sqlite:///")
    if url.startswith("sqlite:///") and not Path(path).exists():
        raise JournalError(f"There is no journal {path} yet; a chat begins one, or name another with --journal.")
    now = time.time()
    found = asyncio.run(_entries(url, now - now % DAY_S - (days - 1) * DAY_S))
    sums = summed(found, BY[by])
    if as_json:
        rows = [{by: name, **msgspec.structs.asdict(spent)} for name, spent in sums.items()]
        click.echo(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return 0
    if not sums:
        click.echo("Nothing was used in that time.")
        return 0
    width = max(len(name) for name in [*sums, by, "all"])
    click.echo(f"{by:<{width}}  {'passes':>8}  {'tokens':>14}  {'cost':>12}")
    every = summed(found, lambda _: "all") if len(sums) > 1 else {}
    for name, spent in [*sums.items(), *every.items()]:
        click.echo(printable(f"{name or '—':<{width}}  {spent.passes:>8,}  {spent.tokens:>14,}  {_cost(spent):>12}"))
    total = next(iter(summed(found, lambda _: "").values()))
    if total.unpriced:
        click.echo(f"The price of {total.unpriced:,} of these tokens is not known; they are not in the cost.")
    if total.estimated:
        click.echo(f"{total.estimated:,} of these tokens are estimated, for the provider reported nothing.")
    return 0


async def _entries(url: str, since: float) -> list[Entry]:
    journal = open_journal(url)
    try:
        events = await journal.since(since - DAY_S, KINDS)  # a turn that began the day before may have passes in the first
        return [entry for entry in entries(events) if entry.at >= since]
    finally:
        await journal.aclose()


def _cost(spent: Spent) -> str:
    if spent.unpriced == spent.tokens:
        return "unknown"
    return f"${spent.cost:,.4f}" + ("+" if spent.unpriced else "")
