# Reasoning that leaks into the text as tags (S12.3).
#
# `<think>`, `<thinking>`, `<thought>` and `<reasoning>`, with or without a namespace (`<seed:think>`), open a span that is
# reasoning; the same tag with a slash closes it. A tag may be split anywhere, so a piece of text that ends in what may
# become a tag is held until that is known: at most `_LONGEST` characters, so text is never held for long.
# A closing tag without an opening one is dropped: templates that open the span in the prompt leave only its end behind.
# A tag right after a backtick is quoted, not meant, and stays text.

"""Moves leaked reasoning out of visible text."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)(?:[A-Za-z][\w-]{0,15}:)?(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_MAYBE = re.compile(r"</?(?:[A-Za-z][\w-]{0,15}:?)?(?:[A-Za-z]{0,9})$")
_LONGEST = 32


class ReasoningTags:
    """A streaming filter: `feed` and `close` return visible text and reasoning, in that order of a pair."""

    __slots__ = ("_after_tick", "_held", "_inside", "_skip_blank")

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._after_tick = False  # the last released character was a backtick
        self._skip_blank = False  # a span just closed: the line breaks after it are not part of the answer

    @property
    def idle(self) -> bool:
        """True while text without `<`, and that does not end in a backtick, may pass by this filter untouched."""
        return not (self._held or self._inside or self._skip_blank or self._after_tick)

    def feed(self, text: str) -> tuple[str, str]:
        """Visible text and reasoning that are certain now."""
        text = self._held + text
        self._held = ""
        start = max(text.rfind("<"), 0)
        if len(text) - start <= _LONGEST and text[start : start + 1] == "<" and _MAYBE.fullmatch(text, start):
            self._held = text[start:]
            text = text[:start]
        return self._sort(text)

    def close(self) -> tuple[str, str]:
        """What is left when the stream ends: a held beginning was no tag."""
        held, self._held = self._held, ""
        return self._sort(held)

    def _sort(self, text: str) -> tuple[str, str]:
        visible: list[str] = []
        reasoning: list[str] = []
        position = 0
        for tag in _TAG.finditer(text):
            quoted = text[tag.start() - 1] == "`" if tag.start() else self._after_tick
            if quoted and not self._inside:
                continue
            self._put(text[position : tag.start()], visible, reasoning)
            position = tag.end()
            self._inside = not tag.group(1)
            self._skip_blank = not self._inside
        self._put(text[position:], visible, reasoning)
        if text:
            self._after_tick = text[-1] == "`"
        return "".join(visible), "".join(reasoning)

    def _put(self, text: str, visible: list[str], reasoning: list[str]) -> None:
        if self._inside:
            reasoning.append(text)
            return
        if self._skip_blank:
            text = text.lstrip()
            self._skip_blank = not text
        visible.append(text)
