"""Our own tools, one file each. To add one: a file with a factory, and a line below."""

from __future__ import annotations

import random

from turnkeeper.tools.builtin.calculator import calculate_tool
from turnkeeper.tools.builtin.clock import current_time_tool
from turnkeeper.tools.builtin.dice import roll_dice_tool
from turnkeeper.tools.builtin.fetch import FetchLimits, fetch_url_tool
from turnkeeper.tools.builtin.files import read_file_tool
from turnkeeper.tools.builtin.memory import memory_tools
from turnkeeper.tools.builtin.search import Search, web_search_tool
from turnkeeper.tools.tool import Tool


def builtin_tools(
    *,
    online: bool = False,
    chance: random.Random | None = None,
    limits: FetchLimits | None = None,
    search: Search | None = None,
) -> list[Tool]:
    """Our tools: those that need no network, and with `online` those for the web too.

    chance: the source of the dice. limits: of fetches. search: the search engine.
    """
    offline = [
        current_time_tool(),
        calculate_tool(),
        roll_dice_tool(chance),
        *memory_tools(),
        read_file_tool(),
    ]
    return [*offline, fetch_url_tool(limits), web_search_tool(search)] if online else offline


__all__ = ["FetchLimits", "Search", "builtin_tools"]
