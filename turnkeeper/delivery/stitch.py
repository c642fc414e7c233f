# Joins a continuation to the text that a reader has seen (S3.4, S3.4b, S9.4b).
#
# Rule 1: pure, and never dependent on how the continuation was cut into pieces.
# Rule 2: only what is undecided is held; from the moment of the decision on, text passes untouched.
# Rule 3: nothing is shown twice, and nothing is dropped without proof: an overlap counts only from a length on that chance
# does not reach, and in a text that repeats itself only beyond the stretch that does.
#
# Theory of operation. A continuation may go on exactly; or say the last word, sentence or page again; or begin again at the
# beginning; or announce itself first ("Sure, continuing:"). Both texts are compared without blanks and case. While all that
# has come stands somewhere in what was shown, it may still turn out to be a repeat that reaches the end, and is held. As
# soon as it stands nowhere in it, the longest end of the shown text that is a beginning of the new one is taken off.
# A restart that departs from what was shown is skipped until it comes to where the shown text ends.
# Not here: what the next model is sent (`resume_point` says it; loop/stream_once.py sends it).

"""Stitches a continuation to what was shown before it."""

from __future__ import annotations

import re

from msgspec import Struct

from turnkeeper.delivery.plain import Plain, is_dense, longest_overlap, repeating_stretch

_LEAST = 12  # S3.4: characters of an overlap that prove a repeat
_LEAST_DENSE = 5  # where they are Chinese, Japanese or Korean
_TAIL = 4000  # characters of the shown text in which a repeat is looked for
_OPENING_CHARS = 80
_RESTART_LEAST = 24  # characters from the beginning that prove a restart

_OPENING = re.compile(
    r"\s*(?:(?:sure|certainly|of course|okay|ok|alright|absolutely|sorry|apologies)\b[^:\n]{0,20}?[,.!—-]?\s*)?"
    r"(?:here(?:'s|’s| is| are| comes)? (?:is )?(?:the )?(?:rest|continuation|remainder)|continu(?:ing|ed|ation)\b"
    r"|let me (?:continue|go on|pick up)|i(?:'ll|’ll| will) (?:continue|go on|pick up)|picking up|to continue|resuming"
    r"|(?:natürlich|klar|gerne)?,? ?(?:hier (?:ist|kommt|geht)|ich fahre fort|fortsetzung)"
    r"|(?:bien sûr|d'accord)?,? ?(?:voici la suite|je continue|suite)"
    r"|(?:claro|por supuesto)?,? ?(?:aquí (?:está|sigue)|continú|continuación)"
    r"|(?:はい|では|承知しました)?[、。]?\s?(?:続き|続けます|以下))[^:：\n]{0,60}[:：\n]\s*",
    re.IGNORECASE,
)
_OPENING_WORDS = (
    "sure", "certainly", "of course", "okay", "ok", "alright", "absolutely", "sorry", "apologies", "here", "continu", "let me",
    "i'll", "i’ll", "i will", "picking up", "to continue", "resuming", "natürlich", "klar", "gerne", "hier", "ich fahre",
    "fortsetzung", "bien sûr", "d'accord", "voici", "je continue", "suite", "claro", "por supuesto", "aquí", "はい", "では",
    "承知しました", "続", "以下",
)  # fmt: skip
_FENCE = re.compile(r"^[ >]*(`{3,}|~{3,})", re.MULTILINE)
_REOPENED = re.compile(r"\s*(?:`{3,}|~{3,})[\w+#.-]+[^\n`]*\n")
_NO_BLANK_BEFORE = ".,;:!?)]}%…”’»"


class ResumePoint(Struct, frozen=True):
    """Where a continuation begins. sent: what the next model is given as its own text. held: what the reader has beyond it."""

    sent: str
    held: str


def resume_point(shown: str) -> ResumePoint:
    """What to send in the instruction form (S3.4b): the shown text without its last, perhaps unfinished, word.

    Trailing whitespace is not sent. Text that ends in Chinese, Japanese or Korean, or after a blank, is sent whole.
    """
    sent = shown.rstrip()
    if sent != shown or not sent or is_dense(sent[-1]) or not (sent[-1].isalnum() or sent[-1] in "/_-.,:'’&=%#@+"):
        return ResumePoint(sent, shown[len(sent) :])
    place = max(sent.rfind(blank) for blank in (" ", "\n", "\t", "\u3000"))
    word = sent[place + 1 :]
    if place < 0 or len(word) > 200 or any(is_dense(character) for character in word):
        return ResumePoint(sent, "")
    kept = sent[: place + 1].rstrip()
    return ResumePoint(kept, shown[len(kept) :])


class Stitcher:
    """Joins the output of a pass that carries on `shown` to it, for a reader who has already seen `shown` (S3.4).

    native_prefill: the model was given `shown` as its own unfinished message, rather than an instruction: it follows such a
    text exactly, so a repeat must be twice as long to count.
    """

    def __init__(self, shown: str, *, native_prefill: bool = False) -> None:
        self._shown = shown
        self._tail = Plain(shown[-_TAIL:]).text
        self._whole = Plain(shown).text
        self._held = "" if native_prefill else Plain(resume_point(shown).held).text
        dense = bool(self._tail) and is_dense(self._tail[-1])
        least = _LEAST_DENSE if dense else _LEAST
        self._least_whole = least
        self._least = least * 2 if native_prefill else least
        self._stretch = repeating_stretch(self._tail)
        self._buffer = ""
        self._passing = False
        self._skipping = False
        self.repeated_only = False
        """After `close`: the pass only said again what was shown (S9.4b)."""

    def feed(self, text: str) -> str:
        """What to show now, to be appended to what was shown; "" while that is undecided."""
        if self._passing:
            return text
        self._buffer += text
        if self._may_be_opening(self._buffer):
            return ""
        return self._decide(final=False)

    def close(self) -> str:
        """The rest, when the pass has ended."""
        return "" if self._passing else self._decide(final=True)

    def _decide(self, *, final: bool) -> str:
        body = self._without_opening(self._buffer)
        new = Plain(body)
        if not new.text:
            return ""
        if self._skipping:
            return self._skip(body, new, final=final)
        if not final and self._undecided(new.text):
            return ""
        if final and self._is_repeat(new.text):
            self.repeated_only = True
            return ""
        if self._restarted(new.text):
            self._skipping = True
            return self._skip(body, new, final=final)
        return self._pass_on(body[new.place(self._overlap(new.text, final=final)) :])

    def _undecided(self, new: str) -> bool:
        """All of it stands in what was shown: it may be a repeat, and what matters is what comes after."""
        return new in self._tail or self._whole.startswith(new) or self._held.startswith(new)

    def _is_repeat(self, new: str) -> bool:
        """The whole pass, now complete, was seen before."""
        if new == self._held and self._held:
            return True
        long_enough = len(new) >= self._least_whole and len(new) > self._stretch
        return long_enough and (new in self._tail or self._whole.startswith(new))

    def _overlap(self, new: str, *, final: bool) -> int:
        """How many of the new text's (plain) characters people have seen as the end of the shown text."""
        overlap = longest_overlap(self._tail, new)
        whole = final and overlap == len(new)
        if overlap >= (self._least_whole if whole else self._least) and overlap > self._stretch:
            return overlap
        if self._held and new.startswith(self._held):  # S3.4b: the word that was held back is written again
            return len(self._held)
        return 0

    def _restarted(self, new: str) -> bool:
        """It began again at the beginning, and then went another way before it came to the end of what was shown."""
        if len(self._whole) < _RESTART_LEAST or new.startswith(self._whole):
            return False
        return new.startswith(self._whole[:_RESTART_LEAST]) and longest_overlap(self._tail, new) < self._least

    def _skip(self, body: str, new: Plain, *, final: bool) -> str:
        """Drops a restart up to where the shown text ends: at the words it ends with, or else at its length."""
        end = self._whole[-_LEAST:]
        at = new.text.find(end, _RESTART_LEAST)
        if at >= 0:
            return self._pass_on(body[new.place(at + len(end)) :])
        if not final and len(new.text) < len(self._whole) * 5 // 4 + _OPENING_CHARS:
            return ""
        if len(new.text) <= len(self._whole):
            self.repeated_only = True
            return ""
        rest = body[new.place(len(self._whole)) :]
        sentence = re.search(r"[.!?。！？\n]\s*", rest)
        return self._pass_on(rest[sentence.end() :] if sentence else rest)

    def _pass_on(self, text: str) -> str:
        self._passing = True
        self._buffer = ""
        return _joined(self._shown, text)

    def _may_be_opening(self, text: str) -> bool:
        """Whether what has come may still become an announcement that is to be dropped."""
        start = text.lstrip().casefold()
        if len(text) > _OPENING_CHARS or _OPENING.match(text):
            return False
        if not start:
            return True
        if any(end in start for end in ":：\n"):
            return False
        return any(start.startswith(word) or word.startswith(start) for word in _OPENING_WORDS)

    def _without_opening(self, text: str) -> str:
        found = _OPENING.match(text[: _OPENING_CHARS + 20])
        if found and found.end() <= _OPENING_CHARS + 10 and not self._shows(found.group()):
            text = text[found.end() :]
        if len(_FENCE.findall(self._shown)) % 2:  # an open code block is carried on, not opened again
            text = _REOPENED.sub("", text, count=1) if _REOPENED.match(text) else text
        return text

    def _shows(self, opening: str) -> bool:
        """The shown text itself has these words: then they are a repeat, not an announcement."""
        return Plain(opening).text in self._whole


def _joined(shown: str, text: str) -> str:
    """`text` with the blanks at the seam put right."""
    if not text or not shown:
        return text
    if shown[-1].isspace():
        if shown[-1] == "\n":
            return text.lstrip("\r\n") if text.lstrip("\r\n") else ""
        return text.lstrip(" \t\u3000\u00a0")
    before, after = shown[-1], text[0]
    if after.isspace() or is_dense(before) or is_dense(after) or after in _NO_BLANK_BEFORE:
        return text
    sentence_ended = before in ".!?" and after.isalpha() and (len(shown) < 2 or not shown[-2].isdigit())
    new_word = before.islower() and after.isupper()
    return f" {text}" if sentence_ended or new_word or before in ",;:" and after.isalpha() else text
