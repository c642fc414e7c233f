"""Comparing texts without blanks and case. Pure."""

from __future__ import annotations

_LONGEST_PERIOD = 60


class Plain:
    """A text without whitespace and in one case, and where each of its characters stood."""

    __slots__ = ("_places", "text")

    def __init__(self, text: str) -> None:
        characters: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text):
            if not character.isspace():
                folded = character.casefold()
                characters.append(folded)
                places += [place] * len(folded)
        self.text = "".join(characters)
        self._places = [*places, len(text)]

    def place(self, count: int) -> int:
        """Where in the original what follows the first `count` characters begins: right after the last of them."""
        return self._places[count - 1] + 1 if count else 0


def longest_overlap(shown: str, new: str) -> int:
    """The length of the longest end of `shown` that is a beginning of `new`."""
    most = min(len(shown), len(new))
    last = shown[-1:]
    for length in range(most, 0, -1):
        if new[length - 1] == last and shown.endswith(new[:length]):
            return length
    return 0


def repeating_stretch(text: str) -> int:
    """How long the end of `text` is that only repeats itself (`hahaha`); 0 where it does not.

    Inside such a stretch an overlap proves nothing: the text may simply go on repeating.
    """
    longest = 0
    for period in range(1, min(_LONGEST_PERIOD, len(text) // 2) + 1):
        same = 0
        while same + period < len(text) and text[-1 - same] == text[-1 - same - period]:
            same += 1
        if same >= period:
            longest = max(longest, same + period)
    return longest


def is_dense(character: str) -> bool:
    """Chinese, Japanese or Korean: written without blanks, a word in a character or two."""
    return (
        "\u2e80" <= character <= "\u9fff"
        or "\uac00" <= character <= "\ud7ff"
        or "\u1100" <= character <= "\u11ff"
        or "\uf900" <= character <= "\ufaff"
        or "\uff01" <= character <= "\uff9f"
        or "\U00020000" <= character <= "\U0003ffff"
    )
