# Joins a reply to what the reader has of it.
#
# Rule 1: pure. What is shown is a function of the text, whatever pieces it comes in: the seam is looked for in all that has
# come so far, and is taken only when no longer text could change it.
# Rule 2: only what is undecided is held, and not much of it (`LOOK_AHEAD`); behind the seam, text passes untouched.
# Rule 3: the stitcher takes away and adds blanks. It changes no word, number or mark.
#
# Theory of operation. The reader has `shown`. A native prefill has given the model the same without its trailing blanks; in
# the instruction form it was given `resume_point(shown).sent`, which ends before a word that may be cut. So a model goes on
# after what it was given; or says the last word, sentence or all of it again first; or announces that it goes on. `_seek`
# asks in this order: a repeat or restart (overlap.py); the same after an announcement, and after markup that is opened again
# (openings.py); the word that was held back; else all is new. `_follow` skips a restart. `_join` waits for the first visible
# character after the seam and puts the blanks there right. Each is a state, entered in this order, and `None` is the last.
#
# Blanks at the seam. Trailing blanks of `shown` stand. Where the model writes them again they are not doubled; where it
# writes more (a paragraph), the rest is added. Where there are none, those that the model wrote stand. Where it was told to
# begin in the middle of a line, it often leaves the first one out: it is put back where a sentence or phrase has ended, or
# where a line of a list must begin; never where the word may go on, in code, or in Chinese and Japanese.

"""Stitches a continuation to what was shown before it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from turnkeeper.delivery.openings import announcement_in, open_fence, reopened_in
from turnkeeper.delivery.overlap import WIDE, Restart, Restarted, Shown, end_of_first, plain

_HELD = 300  # S3.4b: the longest word or link that is held back
_UNSPACED = f"{WIDE}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # and Thai, Lao, Burmese, Khmer: a cut needs no blank
_LAST_WORD = re.compile(rf"[^\s{_UNSPACED}]+\Z")
_LINK = re.compile(r"://|www\.|\w@\w|\]\(|\w\.\w.*\.\Z|\A[a-z]\.\Z")  # or a dotted name, or half of `e.g.`
_FLAGS = re.compile(r"[\U0001f1e6-\U0001f1ff]*\Z")
_JOINERS = "-'’_/\\@#&=%+~^$€£\u200d"  # after which a word, number, link or emoji may go on
_BLANKS = 400  # as many blanks as are kept at a seam
_SHORT = 12  # a repeat that is no longer, all of what was shown, may be the first letters of an announcement
_MARKS = 10  # so many characters say what begins behind the seam
_BARE = 3  # a word that is written again without its opening marks has so many characters
_OPENING_MARKS = "*_~`\"'“‘«„([{¿¡"

_WIDE = re.compile(f"[{WIDE}]")
_PHRASE_END = re.compile(r"(?:[.!?…,;:)\]}”»%]|[^\W_][\"*_~`]+)[\"'”’»)\]*_~`]*\Z")
_SENTENCE_END = re.compile(r"[^\W\d_]{2}[.!?…][\"'”’»)\]*_~]*\Z")
_LINE = re.compile(r"#{1,6} |`{3,9}\w|[-*+] |\d{1,3}[.)] |> |\|")
_MAYBE_LINE = re.compile(r"#{1,6}|`{1,9}|[-*+>]|\d{1,3}[.)]?")

_Model: TypeAlias = Literal["repeats", "restarts", "goes on", "begins"]
"""What the model does at the seam: it has said what the reader knows, up to here; it says all of that again; it goes on
after what it was given; it begins something, after an announcement or a restart that has strayed."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where the next model is to go on in the instruction form (S3.4b).

    sent: what it is given as its own unfinished turn. held: what the reader has seen beyond that. Together: what was shown.
    """

    sent: str
    held: str


@dataclass(frozen=True, slots=True)
class _Seam:
    place: int  # in the held text: what comes before it is not shown
    model: _Model


def resume_point(shown: str) -> ResumePoint:
    """What the next model is given in the instruction form, and the tail that joins it (S3.4b).

    Ends at the last blank where the cut may be inside a word, number or link. Trailing whitespace is never sent.
    """
    sent = shown[: len(shown) - len(_cut_word(shown))].rstrip() or shown.rstrip()
    return ResumePoint(sent, shown[len(sent) :])


class Stitcher:
    """Joins the output of a pass that carries on `shown` to it, for a reader who has already seen `shown` (S3.4).

    native_prefill: the model was given `shown` itself, not `resume_point(shown).sent` and an instruction.
    """

    def __init__(self, shown: str, *, native_prefill: bool = False) -> None:
        self._text = shown
        self._native = native_prefill
        self._word = "" if native_prefill else _cut_word(shown)
        self._shown = Shown(shown, held=self._word, native_prefill=native_prefill)
        self._held = ""
        self._restart = Restart(self._shown)
        self._model: _Model = "goes on"
        self._state: Callable[[str, bool], str] | None = self._seek if shown.strip() else None
        self._repeated_only = False

    @property
    def repeated_only(self) -> bool:
        """After `close`: the pass only said again what was shown (S9.4b)."""
        return self._repeated_only

    def feed(self, text: str) -> str:
        """What can be shown now, to be appended to what was shown; "" while that is undecided."""
        return text if self._state is None else self._state(text, False)

    def close(self) -> str:
        """The rest, when the pass has ended."""
        return "" if self._state is None else self._state("", True)

    def _seek(self, text: str, final: bool) -> str:
        self._held = _bounded(self._held + text)
        seam = self._seam(self._held, final=final) if self._held.strip() else None
        if seam is None:
            return ""
        rest, self._held = self._held[seam.place :], ""
        self._model = seam.model
        self._state = self._follow if seam.model == "restarts" else self._join
        return self._state(rest, final)

    def _follow(self, text: str, final: bool) -> str:
        rest = self._restart.feed(text)
        if rest is None and final:
            rest = self._restart.close()
        if rest is None:
            return ""
        self._model = "begins" if self._restart.strayed else "repeats"
        self._state = self._join
        return self._join(rest, final)

    def _join(self, text: str, final: bool) -> str:
        self._held = _bounded(self._held + text)
        visible = self._held.lstrip()
        if not final and (not visible or (self._model != "repeats" and _undecided(visible))):
            return ""
        self._state = None
        self._repeated_only = not visible and self._model == "repeats"
        return self._blanks_before(visible, self._held[: len(self._held) - len(visible)]) + visible if visible else ""

    def _seam(self, held: str, *, final: bool) -> _Seam | None:
        """Where in the held text begins what the reader has not seen. None: that can't be told yet."""
        seam = self._repeat(held, 0, final=final)
        if seam is None or seam.model == "restarts" or seam.place > _SHORT:
            return seam
        place = announcement_in(self._text, held, final=final)
        if place is None:
            return None
        if place:
            seam = self._repeat(held, place, final=final)
            if seam is None or seam.model != "goes on":
                return seam
        elif seam.place:
            return seam
        return self._seam_after_markup(held, place, final=final)

    def _seam_after_markup(self, held: str, place: int, *, final: bool) -> _Seam | None:
        markup = reopened_in(self._text, held[place:], fence=self._fence, final=final)
        if markup is None:
            return None
        if markup.length:
            inside = place + markup.length
            seam = self._repeat(held, inside, final=final)
            if seam is not None and seam.model == "goes on":
                seam = self._word_again(held, inside, final=final)
            if seam is None or seam.model != "goes on" or (markup.certain and not self._native):
                return seam
        seam = self._word_again(held, place, final=final)
        return _Seam(place, "begins") if place and seam is not None and seam.model == "goes on" else seam

    def _repeat(self, held: str, place: int, *, final: bool) -> _Seam | None:
        repeat = self._shown.repeat_in(held[place:], final=final)
        if repeat is None:
            return None
        if isinstance(repeat, Restarted):
            return _Seam(place, "restarts")
        return _Seam(place + repeat, "repeats" if repeat else "goes on")

    def _word_again(self, held: str, place: int, *, final: bool) -> _Seam | None:
        """S3.4b: the word that was not sent, or only its beginning, is written once more, perhaps without its markup."""
        text = held[place:]
        said = plain(text)
        bare = plain(self._word.lstrip(_OPENING_MARKS))
        for word in (plain(self._word), bare if len(bare) >= _BARE else ""):
            if word and said.startswith(word):
                return _Seam(place + end_of_first(text, len(word)), "repeats")
            if word.startswith(said) and word and not final:
                return None
        return _Seam(place, "goes on")

    def _blanks_before(self, visible: str, written: str) -> str:
        """What stands between what was shown and `visible`, where the model wrote `written`."""
        stands = self._text[len(self._text.rstrip()) :]
        if stands:
            return _not_yet_there(stands, written, exact=self._native or bool(self._fence))
        if self._model == "begins":
            return self._missing_blank(visible)
        if written:
            return "" if written == " " and _wide_seam(self._text[-1], visible[0]) else written
        if self._model == "repeats":
            return ""
        if not self._native:
            return self._missing_blank(visible)
        sentence = visible[0].isupper() and not self._in_code and _SENTENCE_END.search(self._text[-16:])
        return " " if sentence else ""

    def _missing_blank(self, text: str) -> str:
        """The blank, or line break, that a model left out which began in the middle of a line."""
        before, after = self._text[-1], text[0]
        if self._in_code:
            return "\n" if self._fence and before in ";{}" and after.isalpha() else ""
        if self._begins_line(text):
            return "\n"
        first = text[:_MARKS].lstrip(_OPENING_MARKS)[:1]
        if not first.isalnum() or _WIDE.match(before) or _WIDE.match(first) or (before in ")]" and after in "(["):
            return ""
        ended = bool(_PHRASE_END.search(self._text[-16:]))
        if self._word:  # it may go on, unless a new one certainly begins
            return " " if after.isupper() and (ended or before.islower()) else ""
        return " " if ended or unicodedata.category(before) == "So" or before == "\ufe0f" else ""

    def _begins_line(self, text: str) -> bool:
        """Whether `text` is the next line of what was shown: of its list, quotation or table; or a heading or code block."""
        mark = _LINE.match(text)
        if mark is None:
            return False
        line = self._text[self._text.rfind("\n") + 1 :].strip()
        if text[0] == "#":
            return not self._word
        if text[0] == "`":
            return True
        if text[0] in ">|":
            return line.startswith(text[0])
        own = _LINE.match(line)
        return line.endswith(":") or (own is not None and own[0][0].isdigit() == text[0].isdigit() and own[0][0] not in "#`>|")

    @cached_property
    def _fence(self) -> str:
        return open_fence(self._text)

    @cached_property
    def _in_code(self) -> bool:
        return bool(self._fence) or self._text[self._text.rfind("\n") + 1 :].count("`") % 2 == 1


def _cut_word(shown: str) -> str:
    """The last word, number or link, where the cut may be inside it; else ""."""
    last = _LAST_WORD.search(shown[-_HELD - 1 :])
    word = last[0] if last else ""
    if not word or len(word) > _HELD:
        return ""
    goes_on = word[-1].isalnum() or word[-1] in _JOINERS or unicodedata.category(word[-1]).startswith("M")
    number = word[-1] in ".,:" and word[-2:-1].isdigit()
    flags = _FLAGS.search(word)
    half_a_flag = flags is not None and len(flags[0]) % 2 == 1
    return word if goes_on or number or half_a_flag or _LINK.search(word) else ""


def _bounded(text: str) -> str:
    blanks = len(text) - len(text.lstrip())
    return text if blanks <= _BLANKS else text[:_BLANKS] + text[blanks:]


def _undecided(visible: str) -> bool:
    """Whether these first characters may yet become a word or the beginning of a line."""
    only_marks = len(visible) < _MARKS and not visible.lstrip(_OPENING_MARKS)
    return only_marks or _MAYBE_LINE.fullmatch(visible) is not None


def _wide_seam(before: str, after: str) -> bool:
    return bool(_WIDE.match(before) and _WIDE.match(after))


def _not_yet_there(stands: str, written: str, *, exact: bool) -> str:
    """What of the blanks that the model wrote is more than what stands. `exact`: each one was meant."""
    if written.startswith(stands) and (exact or "\n" in stands):
        return written[len(stands) :]
    indent, standing_indent = written.rpartition("\n")[2], stands.rpartition("\n")[2]
    more_lines = written.count("\n") - stands.count("\n")
    if more_lines > 0:
        return "\n" * more_lines + indent
    more = indent[len(standing_indent) :] if "\n" in stands and indent.startswith(standing_indent) else ""
    return "" if more == " " and not exact else more
