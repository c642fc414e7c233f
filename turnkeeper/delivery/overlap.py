# What of a text the reader has seen already.
#
# Rule 1: every answer is a function of the text so far, and once given it holds for each longer text: so nothing depends on
# where the stream was cut into pieces.
# Rule 2: a false "seen already" loses text for ever, a missed one shows a few words twice. What is not proved was not seen.
#
# Theory of operation. Texts are compared as they are, then without blanks and case (`plain`). A repeat is a beginning of
# the new text that is an end of what was shown. While all of the new text occurs in what was shown, it may become one; at
# the first character for which that fails, the longest repeat is known, and what it proves is weighed: 12 characters, or 5
# where they are dense (CJK, Hangul), without those in a stretch that repeats itself, where going on looks like a repeat.
# A restart is a beginning of the new text that is the beginning of what was shown. From `_RESTART` on, where that beginning
# occurs only once, it is certain: `Restart` then follows it without keeping it. If it strays, the end of what was shown is
# looked for in the rest; where it is not found, what follows is new.

"""Finds the part of a continuation that repeats what was shown."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

LOOK_BACK = 4000  # S3.4: characters of the end of what was shown that are compared
LOOK_AHEAD = LOOK_BACK + 80  # S3.4: the most that is held back for a repeat

WIDE = (  # written without blanks between words: Chinese, Japanese, and their punctuation and wide forms
    "\u2e80-\u312f\u31a0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001b000-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0003ffff"
)
_DENSE = re.compile(f"[{WIDE}\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(rf"[^\s{WIDE}]*\Z")

# A dense character weighs 12, another one 5, so that 12 plain ones and 5 dense ones are the same proof, and mixtures too.
_PROOF = 12 * 5  # S3.4: a repeat; twice that after a native prefill
_WHOLE = 1 * 5  # all of what was shown, if it has a letter: `**` or `1` may well come twice
_RESTART = 40 * 5  # without blanks: a restart that may yet stray; twice that after a native prefill
_REFRAIN = 24 * 5  # a whole pass that was seen before, where that comes more than once
_VISIBLE = 6 * 5  # of an exact repeat, without its blanks: the same indentation is no proof
_CONTEXT = 4  # characters before a repeat that tell what it follows
_STRETCH = 6  # a shorter stretch that repeats itself is found in any text ("this is")
_MARK = 24  # by so many characters the end of what was shown is known again after a restart has strayed
_REMEMBERED = 64  # of a restart: enough to find where its last word began


class Restarted:
    """The text certainly begins from the beginning of what was shown; `Restart` follows it."""


class Shown:
    """What the reader has seen, prepared for comparison.

    held: what of it the model was not given. native_prefill: whether it goes on exactly, and so is taken at its word longer.
    """

    def __init__(self, text: str, *, held: str, native_prefill: bool) -> None:
        self._held = plain(held)
        self._native = native_prefill
        self._tail = text[-LOOK_BACK:]
        self.plain = plain(text)
        """All of it, without blanks and case."""

    def repeat_in(self, text: str, *, final: bool) -> int | Restarted | None:
        """How many characters at the beginning of `text` repeat what was shown. None: that can't be told yet.

        final: nothing follows `text`.
        """
        cut = text[:LOOK_AHEAD]
        said = plain(cut)
        from_start = self.plain.startswith(said)
        if self._certain(said[: _same(said, self.plain)]):
            return Restarted()
        if not final and len(text) < LOOK_AHEAD and (from_start or said in self._plain_tail):
            return None
        complete = final and len(text) <= LOOK_AHEAD
        if complete and self._seen_before(said):
            return len(cut)
        all_said = said if complete else ""
        return self._exact(cut, all_said) or self._loose(cut, said, all_said)

    def _certain(self, beginning: str) -> bool:
        need = _RESTART * 2 if self._native else _RESTART
        return weight(beginning) >= need and self._occurs_once(beginning)

    def _occurs_once(self, said: str) -> bool:
        """Whether this beginning of what was shown is found there only once: a refrain may come again."""
        return self.plain.find(said, 1) < 0

    def _seen_before(self, said: str) -> bool:
        """S9.4b: whether a whole pass says nothing new; it may have broken off before it came to where the reader is."""
        at = self.plain.find(said)
        given = self.plain[: len(self.plain) - len(self._held)]
        if at < 0 or any(words[-_CONTEXT:] + said in self.plain for words in (self.plain, given)):
            return False  # it was not seen, or there too it followed the same words: then the text repeats itself
        proof = said[: max(len(self.plain) - self._plain_stretch - at, 0)]
        return weight(proof) >= (_PROOF if self.plain.find(said, at + 1) < 0 else _REFRAIN)

    def _exact(self, text: str, all_said: str) -> int:
        length = _longest_repeat(self._tail, text)
        repeated = text[:length]
        proof = repeated[: max(length - self._stretch, 0)] if length else ""
        need = self._need(plain(repeated), all_said)
        proved = weight(proof) >= need and weight(plain(proof)) >= min(_VISIBLE, need)
        return len(repeated.rstrip()) if proved else 0

    def _loose(self, text: str, said: str, all_said: str) -> int:
        length = _longest_repeat(self._plain_tail, said)
        if not length or length <= self._plain_stretch:
            return 0
        proof = text[: end_of_first(text, length - self._plain_stretch)]  # of one text, for blanks are characters too
        shown = self._tail[_start_of_last(self._tail, length) : _start_of_last(self._tail, self._plain_stretch)]
        proved = max(weight(" ".join(proof.split())), weight(" ".join(shown.split())))
        return end_of_first(text, length) if proved >= self._need(said[:length], all_said) else 0

    def _need(self, repeated: str, all_said: str) -> int:
        """The proof that is needed. all_said: the whole of the pass, where it is over."""
        if repeated == self.plain and _LETTER.search(repeated):
            return _WHOLE
        return _PROOF * 2 if self._native and repeated != all_said else _PROOF

    @cached_property
    def _plain_tail(self) -> str:
        return plain(self._tail)

    @cached_property
    def _stretch(self) -> int:
        return repeated_stretch(self._tail)

    @cached_property
    def _plain_stretch(self) -> int:
        return repeated_stretch(self._plain_tail)


class Restart:
    """Follows a text that has begun again from the beginning, up to where the reader is."""

    def __init__(self, shown: Shown) -> None:
        self._plain = shown.plain
        self._at = 0
        self._last = ""
        self._strayed: str | None = None

    @property
    def strayed(self) -> bool:
        """Whether the text has left what was shown before its end."""
        return self._strayed is not None

    def feed(self, text: str) -> str | None:
        """What follows the shown part, as soon as that is known."""
        if self._strayed is not None:
            self._strayed += text
            return self._found_again(self._strayed)
        said = plain(text)
        same = _same(said, self._plain, self._at)
        self._at += same
        if self._at == len(self._plain):
            return text[end_of_first(text, same) :]
        if same == len(said):
            self._last = (self._last + text)[-_REMEMBERED:]
            return None
        place = end_of_first(text, same + 1) - 1
        word = _WORD.search((self._last + text[:place])[-_REMEMBERED:])
        self._strayed = (word[0] if word else "") + text[place:]
        return self._found_again(self._strayed)

    def close(self) -> str:
        """What is new when the text has ended: nothing, unless it has strayed."""
        return self._strayed or ""

    def _found_again(self, strayed: str) -> str | None:
        missed = len(self._plain) - self._at
        if missed < _MARK:
            return strayed
        most = min(missed * 5 // 4 + 80, LOOK_AHEAD)
        place = plain(strayed[:most]).find(self._plain[-_MARK:])
        if place >= 0:
            return strayed[end_of_first(strayed, place + _MARK) :]
        return strayed if len(strayed) >= most else None


def plain(text: str) -> str:
    """`text` without blanks and case. Of two texts joined it is the two plain ones joined."""
    return "".join(text.casefold().split())


def weight(text: str) -> int:
    """How much a repeat of `text` proves."""
    return 5 * len(text) + 7 * len(_DENSE.findall(text))


def repeated_stretch(text: str) -> int:
    """The length of the longest end of `text` that is one thing twice or more (`ha ha ha`); 0 where it is but short."""
    backwards = text[::-1]
    borders = [0] * (len(text) + 1)  # of each beginning of `backwards`: its longest end that is also its beginning
    longest = border = 0
    for place in range(1, len(text)):
        while border and backwards[place] != backwards[border]:
            border = borders[border]
        if backwards[place] == backwards[border]:
            border += 1
        borders[place + 1] = border
        if border * 2 > place:  # what is left without the border is the period, and fits twice
            longest = place + 1
    return longest if longest >= _STRETCH or longest == len(text) else 0


def end_of_first(text: str, count: int) -> int:
    """Where in `text` its first `count` plain characters end."""
    return bisect_left(range(len(text)), count, key=lambda place: len(plain(text[:place])))


def _start_of_last(text: str, count: int) -> int:
    """Where in `text` its last `count` plain characters begin."""
    return len(text) - bisect_left(range(len(text)), count, key=lambda size: len(plain(text[len(text) - size :])))


def _same(text: str, shown: str, at: int = 0) -> int:
    """How many characters of `text` are also those of `shown` from `at` on."""
    if shown.startswith(text, at):
        return len(text)
    return bisect_left(range(len(text)), True, key=lambda count: not shown.startswith(text[: count + 1], at))


def _longest_repeat(tail: str, text: str) -> int:
    for length in range(min(len(tail), len(text)), 0, -1):
        if tail.endswith(text[:length]):
            return length
    return 0
