"""Writes a turn into a terminal, or a file: plain text, with colour where the terminal has it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from turnkeeper.delivery.notices import Language, words
from turnkeeper.delivery.sink import Outgoing
from turnkeeper.types.outcomes import Expression, Failed, Succeeded
from turnkeeper.types.turn import HistoryEntry, Notice

# What a model or a tool wrote must not move the cursor, ring, or set the title: only line feeds and tabs pass.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RESULT_CHARS = 120


def has_colour(env: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether escape codes for colour are wanted: in a terminal that knows them, and NO_COLOR is not set."""
    return terminal and not env.get("NO_COLOR") and env.get("TERM", "dumb") != "dumb"


class Painter:
    """The sink of a terminal.

    write: takes text that may hold half a line. colour: whether escape codes are understood.
    language: of notices. tools: whether a line is written for each tool call.
    aside: where lines go that are about the reply, not of it, such as which model answered; None for `write`.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        colour: bool = False,
        language: Language = "en",
        tools: bool = True,
        aside: Callable[[str], None] | None = None,
    ) -> None:
        self._write = write
        self._aside = aside
        self._colour = colour
        self._language: Language = language
        self._tools = tools
        self._open = False  # the line that is being written has text

    def grow(self, text: str) -> None:
        """Writes text at once."""
        clean = printable(text)
        self._write(clean)
        self._open = not clean.endswith("\n") if clean else self._open

    def post(self, message: Outgoing) -> str:
        """The message is complete: its text stands already."""
        self.end_line()
        return message.nonce

    def express(self, expression: Expression, nonce: str) -> str:
        """Writes an expression in words."""
        self._line(str(expression), "35")
        return nonce

    def notice(self, notice: Notice) -> str:
        """Writes a notice on a line of its own; how the reply came about in dim letters, with what failed below (S3.7)."""
        if notice.kind != "answered_by":
            self._line(words(notice, self._language), "33")
            return ""
        lines = [words(notice, self._language), *[f"  {line}" for line in notice.fold]]
        if self._aside is not None:
            self.end_line()
            self._aside("".join(f"{printable(line)}\n" for line in lines))
        else:
            for line in lines:
                self._line(line, "2")
        return ""

    def tool_started(self, name: str, arguments: str) -> None:
        """The line comes when the tool has ended, with its outcome."""

    def tool_finished(self, entry: HistoryEntry, took_s: float) -> None:
        """Writes one line: what was called, with what, what came of it, and how long it took."""
        if self._tools:
            self._line(f"[{describe_call(entry)} · {took_s:.1f} s]", "36")

    def end_line(self) -> None:
        """Begins a new line where the present one has text."""
        if self._open:
            self._write("\n")
            self._open = False

    def _line(self, text: str, code: str) -> None:
        self.end_line()
        text = printable(text)
        self._write(f"\x1b[{code}m{text}\x1b[0m\n" if self._colour else f"{text}\n")


def describe_call(entry: HistoryEntry) -> str:
    """A call and its outcome, in one short line."""
    arguments = _one_line(entry.call.text if entry.call.text not in ("", "{}") else "")
    name = entry.call.name or "(a call without a name)"
    match entry.outcome:
        case Succeeded():
            return f"{name}({arguments}) → {_one_line(entry.content)}"
        case Failed(reason=reason):
            return f"{name}({arguments}) failed: {_one_line(reason)}"
        case _:
            return f"{name}({arguments}): {_one_line(entry.content)}"


def printable(text: str) -> str:
    """Text without control characters; half characters become U+FFFD, so that any terminal takes it."""
    text = _CONTROL.sub("", text)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def width_of(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _RESULT_CHARS else text[: _RESULT_CHARS - 1] + "…"
