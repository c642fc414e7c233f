"""`current_time`: what time it is, anywhere."""

from __future__ import annotations

import difflib
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime

from turnkeeper.tools.tool import Tool, tool


def current_time_tool(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Tool:
    """The tool, with a clock that tests can set."""

    @tool(
        read_only=True,
        triggers=("time", "date", "clock", "hour", "today", "o'clock"),
        examples=(
            ("What time is it in Berlin?", {"zone": "Europe/Berlin"}),
            ("what's the date today?", {"zone": "UTC"}),
            ("What time is it in New York?", {"zone": "America/New_York"}),
        ),
    )
    async def current_time(zone: str = "UTC") -> str:
        """The current date and time.

        Args:
            zone: A time zone such as Asia/Tokyo, or a city such as Tokyo.
        """
        found = _zone(zone)
        moment = now().astimezone(found)
        return moment.strftime(f"%A, %d %B %Y, %H:%M:%S ({found.key}, UTC%z)")

    return current_time


def _zone(name: str) -> zoneinfo.ZoneInfo:
    """A zone by its name, by its city, or without regard to case. Raises ValueError that names the nearest ones."""
    wanted = name.strip().replace(" ", "_")[:100]
    known = zoneinfo.available_timezones()
    for zone in sorted(known):
        if wanted.casefold() in (zone.casefold(), zone.rsplit("/", 1)[-1].casefold()):
            return zoneinfo.ZoneInfo(zone)
    cities = {zone.rsplit("/", 1)[-1]: zone for zone in sorted(known)}
    near = [cities[city] for city in difflib.get_close_matches(wanted.title(), cities, n=3, cutoff=0.6)]
    hint = f"did you mean {', '.join(near)}?" if near else "name one as in Europe/Berlin."
    raise ValueError(f"there is no time zone {name[:100]!r}; {hint}")
