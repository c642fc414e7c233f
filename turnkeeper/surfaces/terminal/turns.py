"""`turnkeeper turns`: what is on record."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import click

from turnkeeper.errors import JournalError
from turnkeeper.journal.folds import TurnSummary, summaries
from turnkeeper.journal.sql import open_journal
from turnkeeper.providers.local.weights import user_data_folder
from turnkeeper.settings import environment
from turnkeeper.surfaces.terminal.command import journal_url
from turnkeeper.surfaces.terminal.painter import printable
from turnkeeper.surfaces.timeline import timeline

_TEXT_CHARS = 60


def turns_command(turn_id: str | None, limit: int, journal: str) -> int:
    """Lists the last turns, or shows one. Returns the exit code."""
    url = journal or journal_url(user_data_folder(environment()))
    path = url.removeprefix("sqlite:///")
    if url.startswith("sqlite:///") and not Path(path).exists():
        raise JournalError(f"There is no journal {path} yet; a chat begins one, or name another with --journal.")
    for line in asyncio.run(_lines(url, turn_id, limit)):
        click.echo(printable(line))
    return 0


async def _lines(url: str, turn_id: str | None, limit: int) -> list[str]:
    journal = open_journal(url)
    try:
        if turn_id:
            return timeline(await journal.turn(turn_id))
        found = summaries(await journal.latest(limit))
        return [_line(one) for one in found] or ["No turns are on record yet."]
    finally:
        await journal.aclose()


def _line(turn: TurnSummary) -> str:
    when = datetime.fromtimestamp(turn.at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    took = f"{turn.took_s:6.1f} s" if turn.took_s is not None else "       —"
    text = " ".join(turn.text.split())
    text = text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"
    return f"{turn.turn_id}  {when}  {took}  {turn.end or 'not ended':<19}  {turn.channel}/{turn.user}: {text}"
