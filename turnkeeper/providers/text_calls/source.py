# Text that comes in pieces, read once by a generator.
#
# A reader is a generator: it yields where it needs more text, and takes up where it was when there is some. So a grammar is
# written as if all of the text were there, what it reads never depends on the cuts, and no character is read twice.

"""A source of text for readers that wait for more."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")

Reader: TypeAlias = Generator[None, None, _T]
"""Reads from a source; yields to wait for more of it."""


class NotACallError(Exception):
    """What was read is no call: it is released as text, and looked at again from behind its sign."""


class NoCallInItError(NotACallError):
    """What was read is no call, and there is none in it either: it need not be looked at again."""


class Source:
    """The text from `at` of `piece` on, and what `give` adds to it.

    limit: the most characters that may be taken; more raise NotACallError.
    """

    __slots__ = ("_earlier", "_limit", "_read", "_start", "at", "ended", "piece")

    def __init__(self, piece: str, at: int, *, limit: int) -> None:
        self.piece = piece
        self.at = at
        self.ended = False
        self._start = at
        self._earlier: list[str] = []  # pieces that have been read to their end
        self._read = 0
        self._limit = limit

    def give(self, piece: str) -> None:
        """Adds a piece; all before it must have been read."""
        self._earlier.append(self.piece[self._start :])
        self._read += len(self.piece) - self._start
        self.piece, self.at, self._start = piece, 0, 0

    @property
    def over_limit(self) -> bool:
        """More was taken than may be."""
        return self.taken > self._limit

    def push_back(self, text: str) -> None:
        """Puts text back, to be read before what follows."""
        self.piece, self.at, self._start = text + self.piece[self.at :], 0, 0

    @property
    def taken(self) -> int:
        """How many characters were taken."""
        return self._read + self.at - self._start

    def all(self) -> tuple[str, int]:
        """The present piece with all that was read of earlier ones before it, and where the source began in it."""
        if not self._earlier:
            return self.piece, self._start
        return "".join([*self._earlier, self.piece]), 0

    def peek(self) -> Reader[str]:
        """The next character, which stays; "" at the end of the text."""
        while self.at == len(self.piece):
            if self.ended:
                return ""
            if self.over_limit:
                raise NotACallError
            yield
        return self.piece[self.at]

    def take(self) -> Reader[str]:
        """The next character; "" at the end of the text."""
        while self.at == len(self.piece):
            if self.ended:
                return ""
            if self.over_limit:
                raise NotACallError
            yield
        self.at += 1
        return self.piece[self.at - 1]

    def run(self, pattern: re.Pattern[str]) -> Reader[str]:
        """As many characters as fit `pattern`, which is of the form `[...]*`."""
        taken: list[str] = []
        while (yield from self.peek()):
            found = pattern.match(self.piece, self.at)
            end = found.end() if found else self.at
            taken.append(self.piece[self.at : end])
            self.at = end
            if end < len(self.piece):
                break
        return "".join(taken)

    def until(self, pattern: re.Pattern[str], overlap: int) -> Reader[tuple[str, bool]]:
        """The text up to the end of the first match of `pattern`, which is at most `overlap` characters long; True with it.

        Where the text ends before that: all of it, and False.
        """
        taken: list[str] = []
        tail = ""
        while (yield from self.peek()):
            looked = tail + self.piece[self.at :]
            found = pattern.search(looked)
            if found is not None:
                end = self.at + found.end() - len(tail)
                taken.append(self.piece[self.at : end])
                self.at = end
                return "".join(taken), True
            taken.append(self.piece[self.at :])
            tail = looked[-overlap:]
            self.at = len(self.piece)
        return "".join(taken), False
