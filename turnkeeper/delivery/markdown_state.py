# The blocks of a text, line by line: as much of Markdown as a chat shows.
#
# Only what matters for a cut is known: fences (with the prefix that a list or a quote gives them), tables, quotes, and
# plain lines. Nothing is remembered between calls; a text is scanned when it has to be cut, and never more than one
# message of it.

"""Scans a text for its blocks. Pure."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

BlockKind: TypeAlias = Literal["fence", "table", "quote", "text"]

_FENCE = re.compile(r"^((?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t])*)(`{3,}|~{3,})(.*)$")
_DELIMITER_ROW = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_QUOTE = re.compile(r"^[ \t]{0,3}>")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_LONGEST_INFO = 60


class Fence(Struct, frozen=True):
    """An open code fence. prefix: what stands before its marks on each line: indentation, `>`."""

    prefix: str
    marks: str
    info: str

    @property
    def closing(self) -> str:
        """The line that closes it."""
        return f"{self.prefix}{self.marks}"

    def reopening(self, limit: int) -> str:
        """The line that opens it again in the next message: with its language, where that is not too long."""
        info = self.info.strip()
        if len(info) > min(_LONGEST_INFO, limit // 4):
            info = info.split()[0] if info.split() and len(info.split()[0]) <= min(_LONGEST_INFO, limit // 4) else ""
        return f"{self.prefix}{self.marks}{info}"

    def closed_by(self, line: str) -> bool:
        """Whether `line` closes it."""
        found = _FENCE.match(line)
        return bool(found) and found.group(2).startswith(self.marks) and not found.group(3).strip() if found else False


class Block(Struct, frozen=True):
    """A block of a text: where it begins and ends, in characters. open: the text ends before it does.

    rows: for a table, where each row ends. head: for a table, where its delimiter row ends.
    """

    kind: BlockKind
    begin: int
    end: int
    open: bool = False
    fence: Fence | None = None
    head: int = 0


def blocks_of(text: str, *, whole: bool = False) -> list[Block]:
    """The blocks of `text` in order; together they cover it.

    whole: nothing follows. Otherwise a fence or table that has no end yet is open.
    """
    lines = _lines(text)
    blocks: list[Block] = []
    place = 0
    while place < len(lines):
        begin, line = lines[place]
        fence = _opened(line)
        if fence is not None:
            block, place = _fence_block(lines, place, fence, len(text))
        elif _begins_table(lines, place):
            block, place = _table_block(lines, place, len(text), whole=whole)
        elif _QUOTE.match(line):
            block, place = _run(lines, place, "quote", len(text))
        else:
            end = lines[place + 1][0] if place + 1 < len(lines) else len(text)
            block, place = Block("text", begin, end), place + 1
            if blocks and blocks[-1].kind == "text":
                block = Block("text", blocks.pop().begin, end)
        blocks.append(block)
    return blocks


def is_item(line: str) -> bool:
    """Whether a line begins a list item."""
    return bool(_ITEM.match(line))


def _lines(text: str) -> list[tuple[int, str]]:
    """Each line with the place where it begins; line ends are not part of it."""
    found: list[tuple[int, str]] = []
    begin = 0
    for line in text.split("\n"):
        found.append((begin, line.rstrip("\r")))
        begin += len(line) + 1
    if found and not found[-1][1]:
        found.pop()
    return found


def _opened(line: str) -> Fence | None:
    found = _FENCE.match(line)
    if found is None or ("`" in found.group(2) and "`" in found.group(3)):  # ```code``` on one line is no block
        return None
    prefix = re.sub(r"[-*+\d.)]", " ", found.group(1))
    return Fence(prefix, found.group(2), found.group(3))


def _fence_block(lines: list[tuple[int, str]], place: int, fence: Fence, length: int) -> tuple[Block, int]:
    begin = lines[place][0]
    for following in range(place + 1, len(lines)):
        if fence.closed_by(lines[following][1]):
            end = lines[following + 1][0] if following + 1 < len(lines) else length
            return Block("fence", begin, end, fence=fence), following + 1
    return Block("fence", begin, length, open=True, fence=fence), len(lines)


def _begins_table(lines: list[tuple[int, str]], place: int) -> bool:
    line = lines[place][1]
    if "|" not in line:
        return False
    following = lines[place + 1][1] if place + 1 < len(lines) else None
    if following is None:
        return line.lstrip().startswith("|")  # a head whose delimiter row may be still to come
    return "-" in following and bool(_DELIMITER_ROW.match(following))


def _table_block(lines: list[tuple[int, str]], place: int, length: int, *, whole: bool) -> tuple[Block, int]:
    begin = lines[place][0]
    following = place + 1
    while following < len(lines) and "|" in lines[following][1]:
        following += 1
    end = lines[following][0] if following < len(lines) else length
    head = lines[place + 2][0] if place + 2 < len(lines) else length
    return Block("table", begin, end, open=following >= len(lines) and not whole, head=head), following


def _run(lines: list[tuple[int, str]], place: int, kind: BlockKind, length: int) -> tuple[Block, int]:
    begin = lines[place][0]
    while place < len(lines) and _QUOTE.match(lines[place][1]) and _opened(lines[place][1]) is None:
        place += 1
    end = lines[place][0] if place < len(lines) else length
    return Block(kind, begin, end), place
