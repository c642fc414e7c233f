"""Splits a growing text into messages (S14.1). First working version; the API stands."""

from __future__ import annotations

from enum import Enum


class Flush(Enum):
    """When a piece is released."""

    WHEN_FULL = "when_full"
    AT_BOUNDARY = "at_boundary"


class Splitter:
    """Takes text as it comes, gives back pieces of at most `limit` code points (S14.1)."""

    def __init__(self, *, limit: int = 2000, flush: Flush = Flush.WHEN_FULL) -> None:
        self._limit = limit
        self._flush = flush
        self._text = ""

    def feed(self, text: str) -> list[str]:
        """Takes text. Returns the pieces that are finished, in order."""
        self._text += text
        pieces: list[str] = []
        while len(self._text) > self._limit:
            pieces.append(self._cut())
        return [piece for piece in pieces if piece.strip()]

    def close(self) -> list[str]:
        """Returns what is left, as pieces. The splitter is empty and usable again."""
        piece, self._text = self._text.strip(), ""
        return [piece] if piece else []

    @property
    def open(self) -> str:
        """The text of the growing piece."""
        return self._text.strip()

    def _cut(self) -> str:
        at = max(self._text.rfind(mark, 1, self._limit) for mark in ("\n", " "))
        at = at if at > 0 else self._limit
        piece, self._text = self._text[:at].rstrip(), self._text[at:].lstrip("\n ")
        return piece
