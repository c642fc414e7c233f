"""Where a text may be cut without cutting a character that people see as one. Pure."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"


def is_break(text: str, place: int) -> bool:
    """Whether `text` may be cut before `text[place]`: not inside an emoji family, a flag, a letter with its marks, or CRLF.

    Follows the grapheme clusters of Unicode's annex 29, but for the conjuncts of Indic scripts.
    """
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if after.isascii() and before.isascii():
        return not (before == "\r" and after == "\n")
    if _extends(after) or before == _JOINER:
        return False
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, place) % 2 == 0
    return not _is_hangul_pair(before, after)


def last_break(text: str, place: int) -> int:
    """The last place at or before `place` where the text may be cut; `place` itself where there is none after 0."""
    for candidate in range(place, max(0, place - 200), -1):
        if is_break(text, candidate):
            return candidate
    return place


def _extends(character: str) -> bool:
    if character == _JOINER or "\ufe00" <= character <= "\ufe0f" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    if "\U000e0020" <= character <= "\U000e007f" or character == "\u200c":
        return True
    return unicodedata.category(character) in ("Mn", "Me", "Mc")


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, place: int) -> int:
    count = 0
    while count < place and _is_flag(text[place - 1 - count]):
        count += 1
    return count


def _is_hangul_pair(before: str, after: str) -> bool:
    """Jamo that make one syllable."""
    leading = "\u1100" <= before <= "\u115f"
    vowel = "\u1160" <= before <= "\u11a7"
    syllable = "\uac00" <= before <= "\ud7a3"
    if leading:
        return "\u1100" <= after <= "\u11a7" or "\uac00" <= after <= "\ud7a3"
    return ((vowel or syllable) and "\u1160" <= after <= "\u11ff") or (
        "\u11a8" <= before <= "\u11ff" and "\u11a8" <= after <= "\u11ff"
    )
