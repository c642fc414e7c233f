# What some models write before they carry on.
#
# Two kinds. An announcement ("Sure, continuing:") is dropped where it fits a pattern below (S3.4). Markup that is open in
# what was shown and is opened once more (```python inside the code block) is dropped too, so that it does not nest.
#
# A pattern is a row of slots, each a choice of phrases, an empty choice where the slot may be missing. Only letters and
# digits are compared, so that "Sure! Here's the rest:" and "**sure, here’s the rest**:" are the same. To tell early that a
# text is no announcement, all positions that the slots so far can reach are kept; what no next phrase fits is none.
# To add a language: its patterns go into `_PATTERNS`, slots between slashes, choices between bars.

"""Recognises what stands before a continuation and is no part of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

OPENING_CHARS = 80  # S3.4: an announcement ends within so many characters
_FENCE_CHARS = 160  # the longest line that may reopen a fence

_WHERE_EN = "|from|exactly from|right from/|where|exactly where|right where|the point where/|i|we|it|my message|the message"
_WHERE_EN += "/|left off|stopped|was cut off|got cut off|were cut off|broke off|was interrupted|had stopped"
_YES_EN = "|sure|sure thing|of course|certainly|okay|ok|alright|all right|absolutely|right|got it|sorry|apologies|no problem"
_OF_EN = "/|of the|of my|of your|of that|of this/|previous|last|original|interrupted|unfinished|cut off/|message|reply|response"
_OF_EN += "|answer|text|story|code|list|article|explanation|essay|poem|email|letter|script|document|sentence"

_PATTERNS: tuple[str, ...] = (
    # English
    f"{_YES_EN}/|i will|ill|i am|im|let me|lets|allow me to/continuing|continued|continue|to continue|resuming|picking up"
    f"|pick up|carrying on|carry on|going on/|the message|my message|the reply|the response|my response|the text|now{_WHERE_EN}",
    f"{_YES_EN}/|continuing|to continue/here is|heres|here are|here comes|below is|this is|/the|my|your"
    f"/rest|remainder|continuation|remaining part|remaining text|remaining|next part{_OF_EN}",
    # German
    "|klar|gerne|gern|natürlich|sicher|okay|ok|alles klar|entschuldigung/|ich/fortsetzung|weiter gehts|es geht weiter"
    "|hier geht es weiter|hier gehts weiter|hier ist der rest|hier ist die fortsetzung|hier der rest|hier die fortsetzung"
    "|hier kommt der rest|fahre fort|setze fort|weiter/|der nachricht|der antwort|meiner antwort|des textes|von oben|im text"
    "|mit dem text|da wo ich aufgehört habe|wo ich aufgehört habe|dort wo ich aufgehört habe",
    # French
    "|bien sûr|daccord|certainement|oui|ok|désolé/je continue|je poursuis|je reprends|continuons|suite|la suite|voici la suite"
    "|voici le reste|poursuivons/|du message|de la réponse|de ma réponse|du texte|de mon message|là où je métais arrêté"
    "|là où je me suis arrêté|où je métais arrêté",
    # Spanish
    "|claro|por supuesto|desde luego|sí|ok|vale|perdón/continúo|continuando|sigo|continuación|continuamos|aquí está el resto"
    "|aquí está la continuación|aquí tienes el resto|aquí tienes la continuación|este es el resto"
    "/|del mensaje|de la respuesta|de mi respuesta|del texto|con el mensaje|donde lo dejé|desde donde lo dejé|donde me quedé"
    "|desde donde me quedé",
    # Portuguese, Italian
    "|claro|com certeza|sim|ok|desculpe/continuando|continuação|aqui está o resto|aqui está a continuação|segue o resto"
    "|segue a continuação/|da mensagem|da resposta|do texto|de onde parei",
    "|certo|certamente|ok|va bene|scusa/continuo|continuando|proseguo|continuazione|ecco il resto|ecco la continuazione"
    "|ecco il seguito/|del messaggio|della risposta|del testo|da dove mi ero fermato|da dove ero rimasto",
    # Japanese, Chinese, Korean
    "|はい|了解です|了解しました|承知しました|わかりました|分かりました|もちろん|もちろんです|失礼しました|すみません/|では|それでは"
    "/|以下は|以下が|こちらが|メッセージの|返信の|回答の|文章の|前回の|先ほどの/続き|つづき|続けます|続きを書きます|続きから書きます|続きから"
    "/|です|は以下の通りです|は以下です|になります|は次の通りです|始めます|を書きます|を続けます",
    "|好的|好|当然|當然|可以|没问题|抱歉/|以下是|下面是|这是|這是/|我|让我|我来|我會|我将/继续|繼續|接上文|接上|接着|续|其余部分|剩余部分|剩下的部分|后续"
    "|续写/|写|輸出|输出|回答|上文|前文|刚才的内容|内容",
    "|네|예|물론입니다|물론이죠|알겠습니다|죄송합니다/|다음은|아래는|메시지의|답변의|이전/이어서|계속|계속해서|나머지|이어지는"
    "/|계속하겠습니다|작성하겠습니다|쓰겠습니다|하겠습니다|합니다|내용|부분|메시지|답변/|입니다",
)
_END = re.compile(r"[:：\n\r\u2028\u2029]")
_FENCE_LINE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_REOPENED = re.compile(r"\s*(?:`{3,}|~{3,})([^`\n]*)\n")
_MAYBE_REOPENED = re.compile(r"\s*(?:`{1,}[^`\n]*|~{1,}[^~\n]*)?\Z")
_MARKER = re.compile(r"\s*(\.\.\.|…|\*{1,3}|_{1,3}|~~|`)(?=\w)")
_MAYBE_MARKER = re.compile(r"\s*(?:\.{1,3}|…|\*{1,3}|_{1,3}|~{1,2}|`)?\Z")

Slots: TypeAlias = tuple[tuple[str, ...], ...]
Certainty: TypeAlias = Literal["sure", "if it repeats"]


@dataclass(frozen=True, slots=True)
class Reopened:
    """The first `length` characters open again what is open. `certainty`: or only if a repeat follows them."""

    length: int
    certainty: Certainty


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


_SLOTS: tuple[Slots, ...] = tuple(
    tuple(tuple(_letters(phrase) for phrase in slot.split("|")) for slot in pattern.split("/")) for pattern in _PATTERNS
)


def announcement_in(text: str, *, final: bool) -> int | None:
    """How many characters at the beginning of `text` only announce what follows (S3.4). None: that can't be told yet."""
    start = len(text) - len(text.lstrip())
    head = text[start : start + OPENING_CHARS]
    for end in _END.finditer(head):
        letters = _letters(head[: end.start()])
        if _fits(letters, whole=True) and _begins_like_a_sentence(head):
            return _after_announcement(text, start + end.end())
    if final or len(head) == OPENING_CHARS:
        return 0
    return None if _fits(_letters(head), whole=False) else 0


def open_fence(text: str) -> bool:
    """Whether a code fence is open at the end of `text`."""
    fence = ""
    for line in _FENCE_LINE.finditer(text):
        mark, words = line[1], line[2].strip()
        if not fence:
            fence = "" if mark[0] == "`" and "`" in words else mark
        elif mark.startswith(fence) and not words:
            fence = ""
    return bool(fence)


def reopened_in(shown: str, text: str, *, in_fence: bool, final: bool) -> Reopened | None:
    """What at the beginning of `text` opens markup again that is open in `shown`. None: that can't be told yet."""
    nothing = Reopened(0, "sure")
    if in_fence:
        fence = _REOPENED.match(text)
        if fence is not None:  # without a language it may as well be the closing one
            return Reopened(fence.end(), "sure" if fence[1].strip() else "if it repeats")
        waits = _MAYBE_REOPENED.match(text) and len(text) < _FENCE_CHARS
    else:
        mark = _MARKER.match(text)
        if mark is not None and (mark[1][0] in ".…" or _open_emphasis(shown, mark[1])):
            reopens = shown[-1:].isspace() and mark[1][0] not in ".…"  # no closing mark stands after a blank
            return Reopened(mark.end(), "sure" if reopens else "if it repeats")
        waits = _MAYBE_MARKER.match(text) and len(text) < _FENCE_CHARS
    return None if waits and not final else nothing


def _open_emphasis(shown: str, mark: str) -> bool:
    paragraph = shown[shown.rfind("\n\n") + 1 :]
    runs = re.findall(re.escape(mark[0]) + "+", paragraph)
    return runs.count(mark) % 2 == 1


def _fits(letters: str, *, whole: bool) -> bool:
    return any(_fits_slots(letters, slots, whole=whole) for slots in _SLOTS)


def _fits_slots(letters: str, slots: Slots, *, whole: bool) -> bool:
    """Whether the slots make `letters`; or, where it need not be whole, something that begins with them."""
    reached = {0}
    for slot in slots:
        if not whole and any(phrase.startswith(letters[place:]) for place in reached for phrase in slot):
            return True
        reached = {place + len(phrase) for place in reached for phrase in slot if letters.startswith(phrase, place)}
    return len(letters) in reached and bool(letters)


def _begins_like_a_sentence(text: str) -> bool:
    """Text that goes on in the middle of one ("to be" + "continued:") is no announcement."""
    first = next(char for char in text if char.isalnum())
    return not first.islower() or not text.startswith(first)


def _after_announcement(text: str, place: int) -> int:
    if not text.lstrip()[0].isalnum():  # "**Continuing:**", "(continuing:)"
        place += len(text[place:]) - len(text[place:].lstrip("*_)]"))
    rest = text[place:]
    lines = rest[: len(rest) - len(rest.lstrip())].rfind("\n") + 1
    return place + lines
