# Text that is not to be shown a second time, or not at all.
#
# After tools, some models write "(no response)" where they mean silence (S9.4a), and some repeat what a tool has put into
# the channel already (cases.md, "Tools and turns"). Such a pass is held only while its text may still become one of the
# known phrases: the first character that differs releases all of it.

"""Holds back a pass's beginning while it may be a known phrase."""

from __future__ import annotations

from collections.abc import Iterable

_SILENCE = (
    "(no response)",
    "(no response needed)",
    "(no output)",
    "(no text)",
    "(empty)",
    "(silence)",
    "[no response]",
    "[no output]",
    "no response.",
    "*no response*",
)


class RepeatFilter:
    """A streaming filter for one pass.

    already: texts that people have seen and that this pass may only be saying again.
    """

    def __init__(self, already: Iterable[str] = ()) -> None:
        self._already = tuple(_plain(text) for text in already if text.strip())
        self._open = True
        self._held = ""
        self.repeated = False
        """After `close`: the pass only said again what people had seen."""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        if not self._open:
            return text
        self._held += text
        so_far = _plain(self._held)
        if any(phrase.startswith(so_far) for phrase in (*_SILENCE, *self._already)):
            return ""
        return self._release(so_far)

    def close(self) -> str:
        """What is left when the pass has ended: nothing, where all of it was a known phrase."""
        if not self._open:
            return ""
        self._open = False
        so_far = _plain(self._held)
        self.repeated = bool(so_far) and so_far in self._already
        return "" if self.repeated or so_far in _SILENCE else self._held

    def _release(self, so_far: str) -> str:
        self._open = False
        for phrase in self._already:
            if so_far.startswith(phrase):  # what was seen already, and then more: only the more is new
                return _after(self._held, len(phrase))
        return self._held


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _after(text: str, plain_chars: int) -> str:
    """What follows in `text` after its first `plain_chars` characters as `_plain` counts them."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if len(_plain(text[:middle])) < plain_chars:
            low = middle + 1
        else:
            high = middle
    return text[low:]
