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
from typing import TypeAlias

from turnkeeper.delivery.overlap import weight

OPENING_CHARS = 80  # S3.4: an announcement ends within so many characters
_MARKUP = "*_#(["  # what an announcement may be set in
_MARKUP_CHARS = 6  # what may stand before its first letter
_FENCE_CHARS = 160  # the longest line that may reopen a fence
_LONG = 14 * 5  # the weight of an announcement that can't be taken for the end of a sentence that was cut

_YES_EN = (
    "|sure|sure thing|of course|certainly|okay|ok|alright|all right|absolutely|right|got it|no problem"
    "|sorry|sorry about that|apologies|apologies for that"
)
_WHERE_EN = (
    "/|the message|the reply|the response|my response|now/|from|exactly from|right from"
    "/|where|exactly where|right where|just where/|i|we|it|my message|the message"
    "/|left off|stopped|was cut off|got cut off|were cut off|broke off|was interrupted|had stopped"
)
_OF_EN = (
    "/|of the|of my|of your|of that|of this/|previous|last|original|interrupted|unfinished|cut off"
    "/|message|reply|response|answer|text|story|code|list|article|explanation|essay|poem|email|letter|script|document|sentence"
)

_PATTERNS: tuple[str, ...] = (
    # English
    f"{_YES_EN}/|i am|im/continuing|continued|continue|continuation|to continue|resuming|picking up|carrying on|going on"
    f"{_WHERE_EN}",
    f"{_YES_EN}/i will|ill|let me|lets|allow me to/continue|resume|pick up|carry on|go on{_WHERE_EN}",
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
    "/|以下|以下は|以下が|こちらが|メッセージの|返信の|回答の|文章の|前回の|先ほどの/続き|つづき|続けます|続きを書きます|続きから書きます|続きから"
    "/|です|は以下の通りです|は以下です|になります|は次の通りです|始めます|を書きます|を続けます",
    "|好的|好|当然|當然|可以|没问题|抱歉/|以下是|下面是|这是|這是/|我|让我|我来|我會|我将/继续|繼續|接上文|接上|接着|其余部分|剩余部分|剩下的部分|后续"
    "|续写/|的内容|写|輸出|输出|回答|上文|前文|刚才的内容|内容",
    "|네|예|물론입니다|물론이죠|알겠습니다|죄송합니다/|다음은|아래는|메시지의|답변의|이전/이어서|계속|계속해서|나머지|이어지는"
    "/|계속하겠습니다|작성하겠습니다|쓰겠습니다|하겠습니다|합니다|내용|부분|메시지|답변/|입니다",
)
_SENTENCE_ENDS = ".!?…。！？"
_END = re.compile(r"[:：\n\r\u2028\u2029]")
_FENCE_LINE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_REOPENED = re.compile(r"\s*(`{3,}|~{3,})([^`\n]*)\n")
_MAYBE_REOPENED = re.compile(r"\s*(?:`{1,2}|~{1,2}|`{3,}[^`\n]*|~{3,}[^~\n]*)?\Z")
_MARKER = re.compile(r"\s*(?:(\*{1,3}|_{1,3}|~~|`)(?=[^\W_])|(?:\.\.\.|…) ?(?=\w))")
_MAYBE_MARKER = re.compile(r"\s*(?:\*{1,3}|_{1,3}|~{1,2}|`|\.{1,3} ?|… ?)?\Z")

Slots: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Reopened:
    """The first `length` characters open again what is open. `certain`: even if no repeat follows them."""

    length: int
    certain: bool


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


_SLOTS: tuple[Slots, ...] = tuple(
    tuple(tuple(_letters(phrase) for phrase in slot.split("|")) for slot in pattern.split("/")) for pattern in _PATTERNS
)


def announcement_in(shown: str, text: str, *, final: bool) -> int | None:
    """How many characters at the beginning of `text` only announce what follows (S3.4). None: that can't be told yet."""
    start = len(text) - len(text.lstrip())
    head = text[start : start + OPENING_CHARS]
    if not any(char.isalnum() for char in head[:_MARKUP_CHARS]):
        return 0 if final or len(head) >= _MARKUP_CHARS else None
    for end in _END.finditer(head):
        letters = _letters(head[: end.start()])
        if _fits(letters, whole=True) and _announces(shown, head[: end.end()], letters):
            return _after_announcement(text, start + end.end())
    letters = _letters(head)
    if len(head) == OPENING_CHARS or not _fits(letters, whole=False):
        return 0
    if final:  # it broke off in the announcement, unless this was a sentence
        return len(text) if weight(letters) >= _LONG and head.rstrip()[-1].isalnum() else 0
    return None


def open_fence(text: str) -> str:
    """The fence of the code block that is open at the end of `text`, or "". A line that opens one does so when complete."""
    fence = ""
    for line in _FENCE_LINE.finditer(text):
        mark, words = line[1], line[2].strip()
        if not fence:
            opens = line.end() < len(text) and not (mark[0] == "`" and "`" in words)
            fence = mark if opens else ""
        elif mark.startswith(fence) and not words:
            fence = ""
    return fence


def reopened_in(shown: str, text: str, *, fence: str, final: bool) -> Reopened | None:
    """What at the beginning of `text` opens markup again that is open in `shown`. None: that can't be told yet."""
    if fence:
        again = _REOPENED.match(text)
        if again is not None and again[1].startswith(fence):  # without a language it may as well be the closing one
            return Reopened(again.end(), certain=bool(again[2].strip()))
        waits = _MAYBE_REOPENED.match(text)
    else:
        mark = _MARKER.match(text)
        if mark is not None and (not mark[1] or _open_emphasis(shown, mark[1])):
            after_blank = mark[1] in ("**", "***", "~~") and shown[-1].isspace()  # where no closing mark stands
            return Reopened(mark.end(), certain=after_blank)
        waits = _MAYBE_MARKER.match(text)
    return None if waits and len(text) < _FENCE_CHARS and not final else Reopened(0, certain=False)


def _open_emphasis(shown: str, mark: str) -> bool:
    paragraph = shown[shown.rfind("\n\n") + 1 :]
    is_open = False
    for run in re.finditer(re.escape(mark[0]) + "+", paragraph):
        before, after = paragraph[run.start() - 1 : run.start()], paragraph[run.end() : run.end() + 1]
        if run[0] == mark and is_open:
            is_open = before.isspace()
        elif run[0] == mark:
            is_open = not before.isalnum() and not after.isspace()
    return is_open


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


def _announces(shown: str, opening: str, letters: str) -> bool:
    """Whether it stands alone: `continued` after `to be`, `続きです` after `この` go on in a sentence."""
    first = next(char for char in opening if char.isalnum())
    if opening[0] in _MARKUP:  # "(continuing)", "**Continuing**"
        return True
    colon, between = opening[-1] in ":：", not shown[-1:].isalnum()
    if first.isupper():
        return weight(letters) >= _LONG or colon or "..." in opening or "…" in opening
    if first.islower():
        return weight(letters) >= _LONG and shown.rstrip()[-1:] in _SENTENCE_ENDS
    return weight(letters) >= _LONG or colon or between


def _after_announcement(text: str, place: int) -> int:
    if text.lstrip()[0] in _MARKUP:  # "**Continuing:**", "(continuing:)"
        place += len(text[place:]) - len(text[place:].lstrip("*_)]"))
    rest = text[place:]
    lines = rest[: len(rest) - len(rest.lstrip())].rfind("\n") + 1
    return place + lines
