# Natural places to cut a text that stands outside of fences and tables.
#
# A place has a rank: a paragraph's end is better than a line's, a line's better than a sentence's. Of the places of the
# best rank the last one is taken, if it does not leave the message too empty; else the next rank is tried. Places inside a
# link, code, emphasis, a tag or an address are none, as long as that span is not itself too long to stay whole.

"""Finds where a text is best cut. Pure."""

from __future__ import annotations

import re

from turnkeeper.delivery.graphemes import is_break, last_break
from turnkeeper.delivery.markdown_state import Block, is_item

_SPANS = re.compile(
    r"(?P<ticks>`+)(?!`)(?:[^`]|(?!(?P=ticks)(?!`))`)*(?P=ticks)(?!`)"  # inline code
    r"|!?\[[^\]\n]*\]\([^)\n]*\)"  # links and pictures
    r"|<a?:\w+:\d+>|<(?:@[!&]?|\#)\d+>|<t:-?\d+(?::\w)?>|<https?://[^>\s]*>"  # emoji, mentions, times, addresses
    r"|https?://[^\s<]+"
    r"|(?P<mark>\*\*\*|\*\*|\*|___|__|(?<!\w)_|~~|\|\|)(?=\S)(?:(?!(?P=mark)|\n[ \t]*\n)[\s\S])+?(?<=\S)(?P=mark)"
)
_UNENDED = re.compile(
    r"(?:(?<!`)`+[^`\n]*|!?\[[^\]\n]*(?:\](?:\([^)\n]*)?)?|<[@#:at]?[^>\s]{0,60}|(?<!\w)(?:\*\*\*|\*\*|\*|__|_|~~|\|\|)(?=\S)[^*_~|\n]{0,300})$"
)
_MARKS = ("`", "[", "<", "*", "_", "~~", "||", "://")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]+[」』）”’]*")
_CLAUSE = re.compile(r"[,;:](?=\s)|[、，；：]|\s[–—](?=\s)")
_DENSE = r"\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
_WORD = re.compile(rf"(?<=\S)(?=\s)|(?<=[{_DENSE}])(?=[{_DENSE}])")
_FILL = {"paragraph": 0.3, "item": 0.4, "line": 0.4, "sentence": 0.4, "clause": 0.5, "word": 0.0}


def best_cut(text: str, limit: int, blocks: list[Block]) -> int:
    """Where to cut `text` so that what stands before is at most `limit` characters; always more than 0.

    blocks: of `text`; places inside a fence, table or quote are none.
    """
    closed = _closed_spans(text, limit, blocks)
    last: dict[str, int | None] = {}
    for rank, least in _FILL.items():  # a rank's places are looked for only when no better rank has one
        found = last[rank] = _last_free(_places(rank, text, limit, blocks), closed, text)
        if found is not None and found >= limit * least:
            return found
    for found in last.values():
        if found:
            return found
    return max(1, last_break(text, limit))


def _places(rank: str, text: str, limit: int, blocks: list[Block]) -> list[int]:
    """The places of one rank, in order, none beyond `limit`."""
    match rank:
        case "sentence":
            return [found.end() for found in _SENTENCE.finditer(text, 0, limit + 1) if found.end() <= limit]
        case "clause":
            return [found.end() for found in _CLAUSE.finditer(text, 0, limit + 1) if found.end() <= limit]
        case "word":
            return [found.start() for found in _WORD.finditer(text, 0, limit + 1) if 0 < found.start() <= limit]
        case _:
            return _line_places(rank, text, limit, blocks)


def _line_places(rank: str, text: str, limit: int, blocks: list[Block]) -> list[int]:
    """The line ends of one rank; a finished block ends like a paragraph."""
    places = [block.end for block in blocks if block.end <= limit and block.kind != "text" and not block.open]
    places = places if rank == "paragraph" else []
    for found in re.finditer(r"\n", text[:limit]):
        after = found.end()
        end = text.find("\n", after)
        line = text[after : end if end >= 0 else len(text)]
        blank = not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
        if rank == ("paragraph" if blank or not line.strip() else "item" if is_item(line) else "line"):
            places.append(after)
    return sorted(places)


def _closed_spans(text: str, limit: int, blocks: list[Block]) -> list[tuple[int, int]]:
    """What must not be cut: spans that could stay whole, and whole blocks."""
    spans: list[tuple[int, int]] = []
    for block in blocks:
        if block.kind != "text":
            if block.begin > 0 or block.end <= limit:
                spans.append((block.begin, block.end))
            continue
        part = text[block.begin : block.end]
        if not any(mark in part for mark in _MARKS):
            continue
        for found in _SPANS.finditer(part):
            if found.end() - found.start() <= limit:
                spans.append((block.begin + found.start(), block.begin + found.end()))
        unended = _UNENDED.search(part, max(0, len(part) - 400)) if block is blocks[-1] else None
        if unended and block.begin + unended.start() > 0:
            spans.append((block.begin + unended.start(), len(text) + 1))
    return spans


def _last_free(places: list[int], closed: list[tuple[int, int]], text: str) -> int | None:
    for place in reversed(places):
        if not any(begin < place < end for begin, end in closed) and is_break(text, place) and text[:place].strip():
            return place
    return None
