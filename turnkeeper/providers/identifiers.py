# Call ids and tool names in the letters that a server takes (S3.10a).
#
# The record keeps the originals; only what is sent is fitted. The same original gives the same identifier in every request
# of every process, so that a request extends the one before it (S3.10b), and two originals never share one: what does not
# fit as it is carries a digest of the whole original.

"""Fits identifiers into a server's alphabet, one to one."""

from __future__ import annotations

import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Literal, TypeAlias

CallIds: TypeAlias = Literal["usual", "nine"]
"""Which call ids a server takes: `usual` 1 to 64 of `[A-Za-z0-9_-]`, `nine` exactly 9 letters or digits (Mistral)."""

_SHAPES: dict[CallIds, tuple[re.Pattern[str], int]] = {
    "usual": (re.compile(r"[A-Za-z0-9_-]{1,64}"), 24),
    "nine": (re.compile(r"[A-Za-z0-9]{9}"), 9),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MARK_CHARS = 8  # of the digest that makes a fitted name its own
_NAME_CHARS = 64


def fit_call_id(original: str, ids: CallIds = "usual") -> str:
    """The call's id as this server takes it: the original where that fits."""
    shape, length = _SHAPES[ids]
    return original if shape.fullmatch(original) else _digest(original, length)


def unique_call_id(said: str, taken: Collection[str], prefix: str) -> str:
    """The id that the server gave a call, where it gave one that no other call has; else one of ours (S4.6).

    prefix: what ids of ours begin with, unique to the pass, so that they are unique in the turn.
    """
    if said and said not in taken:
        return said
    number = len(taken)
    while f"{prefix}{number}" in taken:
        number += 1
    return f"{prefix}{number}"


def fit_tool_name(original: str) -> str:
    """The tool's name as all servers take it: the original where that fits, else as much of it as can be read."""
    if _NAME.fullmatch(original):
        return original
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", original).strip("_-")
    if not readable or not (readable[0].isalpha() or readable[0] == "_"):
        readable = f"tool_{readable}"
    return f"{readable[: _NAME_CHARS - _MARK_CHARS - 1]}_{_digest(original, _MARK_CHARS)}"


def _digest(original: str, length: int) -> str:
    number = int.from_bytes(blake2b(original.encode("utf-8", "surrogatepass"), digest_size=32).digest(), "big")
    letters: list[str] = []
    for _ in range(length):
        number, place = divmod(number, len(_DIGITS))
        letters.append(_DIGITS[place])
    return "".join(letters)
