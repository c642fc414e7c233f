# Splits a growing text into messages (S14.1).
#
# Rule 1: what a piece is depends on the text alone, never on how it came: a cut is decided from the first `limit` + 1
# characters of what is left (the window), whether they came one by one or all at once.
# Rule 2: what was released is final. Nothing of it is looked at again, so the whole costs time linear in the text.
# Rule 3: the ordinary `feed` appends to a list and compares a length. Structure is looked at only when a message is full.
#
# Theory of operation. A full window is scanned for its blocks. A block that began in it and does not end in it moves whole
# to the next message; one that fills a message from its beginning is cut at a line, a code block with its fence closed here
# and opened again there, a table with its head repeated there. Otherwise the best natural boundary is taken
# (boundaries.py). `_lead` is what we put before a piece: a reopened fence, a table's head, a quote mark. `_trim` says which
# blanks are dropped before a piece's first character: they may come later than the cut whose place they had.

"""The message splitter, pure and incremental."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from turnkeeper.delivery.boundaries import best_cut
from turnkeeper.delivery.graphemes import last_break
from turnkeeper.delivery.markdown_state import Block, Fence, blocks_of, is_item

_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]|^\*\*[^*\n]+\*\*:?$")
_LINES = "\n"  # at a line's beginning: empty lines are dropped
_BLANKS = " \n"  # inside a line: blanks are dropped, and empty lines after them


class Flush(Enum):
    """When a piece is released: when the message is full (it grows by edits until then), or at each finished block."""

    WHEN_FULL = "when_full"
    AT_BOUNDARY = "at_boundary"


class _Cut(NamedTuple):
    """A piece, what follows it, what is put before that, and which of its first blanks are dropped."""

    piece: str
    rest: str
    lead: str = ""
    trim: str = ""


class Splitter:
    """Takes text as it comes, gives back messages of at most `limit` Unicode code points (S14.1).

    limit: at least 20. flush: when a piece is released.
    Pieces are never blank; whitespace is lost at their borders only.
    """

    def __init__(self, *, limit: int = 2000, flush: Flush = Flush.WHEN_FULL) -> None:
        self._limit = max(20, limit)
        self._at_boundary = flush is Flush.AT_BOUNDARY
        self._parts: list[str] = []
        self._size = 0
        self._lead = ""
        self._trim = _LINES

    def feed(self, text: str) -> list[str]:
        """Takes text. Returns the pieces that are final now, in order."""
        if self._trim:
            text = self._trimmed(text)
        self._parts.append(text)
        self._size += len(text)
        if self._size > self._limit or (self._at_boundary and "\n" in text):
            return self._release()
        return []

    def close(self) -> list[str]:
        """Returns what is left, as pieces. The splitter is empty then, and can be used again."""
        pieces = self._release(ended=True)
        text = self._take()
        last = _open_fence(text)
        if last is not None and last.fence is not None and len(text) + len(last.fence.closing) + 1 > self._limit:
            cut = self._cut_fence(text, last.begin, last.fence)  # there is no room to close it here
            pieces += self._final(cut.piece)
            self._put(cut)
            text = self._take()
        pieces += self._final(_closed(text))
        self._lead, self._trim = "", _LINES
        return pieces

    @property
    def open(self) -> str:
        """The piece that is growing, as it may be shown now: with an open code fence closed."""
        text = "".join(self._parts)
        if not text[len(self._lead) :].strip():
            return ""
        closed = _strip(_closed(text))
        return closed if len(closed) <= self._limit else _strip(text)

    def _take(self) -> str:
        text = "".join(self._parts)
        self._parts, self._size = [], 0
        return text

    def _put(self, cut: _Cut) -> None:
        self._lead, self._trim = cut.lead, cut.trim
        text = self._trimmed(cut.rest) if cut.trim else cut.rest
        self._parts = [cut.lead, text]
        self._size = len(cut.lead) + len(text)

    def _trimmed(self, text: str) -> str:
        """`text` without the blanks that are to be dropped: to the end of the line, then empty lines; never indentation."""
        if self._trim == _BLANKS:
            text = text.lstrip(" \t\r")
            if text[:1] == "\n":
                self._trim = _LINES
        if self._trim == _LINES:
            text = text.lstrip("\r\n")
        if text:
            self._trim = ""
        return text

    def _final(self, piece: str) -> list[str]:
        """The piece as it is released: none where it is blank but for what we put before it."""
        lead = self._lead
        if lead and piece.startswith(lead):
            fence = _open_fence(lead)
            line, _, rest = piece[len(lead) :].partition("\n")
            if fence is not None and fence.fence is not None and fence.fence.closed_by(line):
                piece, lead = rest, ""  # a fence that was opened again only to be closed at once
        body = piece[len(lead) :] if piece.startswith(lead) else piece
        return [_strip(piece)] if body.strip() else []

    def _release(self, *, ended: bool = False) -> list[str]:
        """All pieces that are final."""
        pieces: list[str] = []
        while (cut := self._next_cut(ended=ended)) is not None:
            pieces += self._final(cut.piece)
            self._put(cut)
        return pieces

    def _next_cut(self, *, ended: bool) -> _Cut | None:
        text = "".join(self._parts)
        self._parts = [text]
        window = text[: self._limit + 1]
        if self._at_boundary:
            place = _finished(window + "\n" if ended and len(window) <= self._limit else window)
            if place:
                return _Cut(text[:place], text[place:], trim=_LINES)
        if self._size <= self._limit:
            return None
        if not window[len(self._lead) :].strip():  # only blanks: nothing to show
            return _Cut("", text[self._limit + 1 :])
        return self._cut(text, window)

    def _cut(self, text: str, window: str) -> _Cut:
        blocks = blocks_of(window)
        last = blocks[-1]
        crosses = last.open or last.end > self._limit
        if crosses and last.kind in ("fence", "table"):
            if window[len(self._lead) : last.begin].strip() and last.begin > len(self._lead):
                return _Cut(window[: last.begin], text[last.begin :])  # moves whole to the next message
            if last.fence is not None:
                return self._cut_fence(text, last.begin, last.fence)
            cut = self._cut_table(text, last)
            if cut is not None:
                return cut
        place = best_cut(window, self._limit, blocks)
        trim = _LINES if window[place - 1] == "\n" else _BLANKS
        return _Cut(text[:place], text[place:], _quote_lead(window, place), trim)

    def _cut_fence(self, text: str, begin: int, fence: Fence) -> _Cut:
        """At a line's end, with the fence closed here and opened again there."""
        closing = "\n" + fence.closing
        room = self._limit - len(closing)
        first_line = text.find("\n", begin, self._limit + 1) + 1
        lead = fence.reopening(self._limit) + "\n"
        if first_line == 0 or first_line >= room:  # an opening line that fills the message is shown as the text that it is
            place = max(1, last_break(text, self._limit))
            return _Cut(text[:place], text[place:])
        place = text.rfind("\n", first_line, room + 1)
        if place > max(first_line, len(self._lead)):
            return _Cut(text[:place] + closing, text[place + 1 :], lead)
        place = max(first_line + 1, last_break(text, room))
        return _Cut(text[:place] + closing, text[place:], lead)

    def _cut_table(self, text: str, block: Block) -> _Cut | None:
        """Between two rows, with the head repeated; None where not even one row fits."""
        place = text.rfind("\n", block.head, self._limit + 1)
        head = text[block.begin : block.head]
        if place <= max(block.head, len(self._lead)) or len(head) > self._limit // 2:
            return None
        return _Cut(text[:place], text[place + 1 :], head)


def _finished(window: str) -> int:
    """Where the part of a window ends that can be released, 0 for none: a blank line outside of blocks, whose next line is
    whole, so that it is known not to belong to what came before."""
    for block in blocks_of(window):
        if block.kind != "text":
            continue
        for gap in re.finditer(r"(?:^|\n)[ \t]*\n+(?=\S)", window[block.begin : block.end]):
            place = block.begin + gap.end()
            line_end = window.find("\n", place)
            if line_end < 0:
                return 0
            before = window[:place].strip()
            if before and not _stays_together(before, window[place:line_end]):
                return place
        if block.end < len(window) and _ends_blank(window, block.end) and "\n" in window[block.end :]:
            before = window[: block.end].strip()
            if before and not _stays_together(before, window[block.end :].split("\n", 1)[0]):
                return block.end
    return 0


def _stays_together(before: str, after: str) -> bool:
    """A heading, or what announces something, stays with what follows; a list stays whole."""
    lines = before.splitlines()
    if _HEADING.match(lines[-1]) or before.endswith(":"):
        return True
    return is_item(after) and any(is_item(line) for line in lines[-6:])


def _ends_blank(window: str, place: int) -> bool:
    return window[:place].rstrip(" \t\r").endswith("\n\n")


def _open_fence(text: str) -> Block | None:
    """The code block that `text` ends in."""
    blocks = blocks_of(text) if "```" in text or "~~~" in text else []
    return blocks[-1] if blocks and blocks[-1].open and blocks[-1].fence is not None else None


def _closed(text: str) -> str:
    """`text` with its open code fence closed."""
    last = _open_fence(text)
    return text.rstrip("\n") + "\n" + last.fence.closing if last is not None and last.fence is not None else text


def _quote_lead(window: str, place: int) -> str:
    """`> ` where a quote is cut inside a line, as far as the window can tell."""
    if window[place - 1] == "\n" or window[place:].lstrip(" \t")[:1] == "\n":
        return ""
    quoted = re.match(r"[ \t]{0,3}(?:>[ \t]?)+", window[window.rfind("\n", 0, place) + 1 : place])
    return quoted.group() if quoted else ""


def _strip(piece: str) -> str:
    """A piece without blank lines around it; the first line keeps its indentation."""
    return re.sub(r"^(?:[ \t\r]*\n)+", "", piece).rstrip()
