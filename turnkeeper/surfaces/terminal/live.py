# A prompt that stays while the reply is written above it.
#
# The terminal's last line is the person's. Text that is still growing is shown as the first lines of the prompt itself, so
# that it can change in place; a line that is complete, or as wide as the window, goes above for good.

"""The reply's growing text, above a prompt that can be typed into."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from turnkeeper.surfaces.terminal.painter import width_of


class LiveText:
    """Text on its way into a terminal that shows a prompt.

    above: writes whole lines above the prompt. changed: draws the prompt again.
    """

    def __init__(self, above: Callable[[str], None], changed: Callable[[], None]) -> None:
        self._above = above
        self._changed = changed
        self.open = ""
        """The line that is still growing; the prompt shows it."""

    def write(self, text: str) -> None:
        """Takes text; lines that are complete go above."""
        self.open += text
        columns = max(20, shutil.get_terminal_size().columns)
        done: list[str] = []
        while True:
            line, end, rest = self.open.partition("\n")
            if end:
                done.append(line)
                self.open = rest
            elif width_of(line) >= columns:
                kept = _fold_at(line, columns)
                done.append(line[:kept].rstrip())
                self.open = line[kept:].lstrip(" ")
            else:
                break
        if done:
            self._above("\n".join(done) + "\n")
        self._changed()


def _fold_at(line: str, columns: int) -> int:
    """How many characters of a line fit, broken at a blank where there is one."""
    used = 0
    fits = 0
    for place, character in enumerate(line):
        used += width_of(character)
        if used >= columns:
            fits = place
            break
    blank = line.rfind(" ", 0, fits + 1)
    return blank + 1 if blank > 0 else max(1, fits)
