# Which tools a turn is told of (S6.2).
#
# In the ordinary mode all of them. In deliberate mode a tool with trigger words is told of only when one of them stands in
# the message, or when it was used in one of the channel's last turns; tools without trigger words always are.

"""Chooses the tools that are exposed in a turn."""

from __future__ import annotations

import re

from msgspec import Struct

from turnkeeper.settings import Settings
from turnkeeper.tools.toolbox import Toolbox


class Exposed(Struct, frozen=True):
    """The exposed tools' names, and a line for the thought log for each that a trigger exposed."""

    names: frozenset[str]
    notes: tuple[str, ...] = ()


class Exposure:
    """Remembers per channel which tools were used, for as many turns as the settings say."""

    def __init__(self, toolbox: Toolbox, settings: Settings) -> None:
        self._toolbox = toolbox
        self._settings = settings
        self._all = frozenset(spec.name for spec in toolbox.specs if spec.name != "read_more")  # S6.5: see Turn.offered
        self._recent: dict[str, dict[str, int]] = {}

    def choose(self, channel: str, text: str) -> Exposed:
        """The tools for a turn in `channel` that `text` begins."""
        if self._settings.tool_mode == "all":
            return Exposed(self._all)
        recent = self._recent.get(channel, {})
        names: set[str] = set()
        notes: list[str] = []
        for tool in self._toolbox.tools:
            if tool.name not in self._all:
                continue
            word = _trigger(tool.options.triggers, text)
            if not tool.options.triggers or recent.get(tool.name):
                names.add(tool.name)
            elif word is not None:
                names.add(tool.name)
                notes.append(f"{tool.name} was exposed by the word {word!r}")
        return Exposed(frozenset(names), tuple(notes))

    def used(self, channel: str, names: set[str]) -> None:
        """A turn of `channel` has ended in which the tools `names` ran."""
        if self._settings.tool_mode == "all":
            return
        recent = {name: left - 1 for name, left in self._recent.get(channel, {}).items() if left > 1}
        recent |= dict.fromkeys(names, self._settings.exposed_turns)
        self._recent[channel] = recent


def _trigger(words: tuple[str, ...], text: str) -> str | None:
    return next((word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)), None)
