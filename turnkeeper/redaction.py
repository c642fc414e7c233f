# Secrets are removed at every way out, here and nowhere else (S16.2a).
#
# By value: each key that is configured, also URL-encoded and in base64. By shape: what looks like a provider's key, a bot
# token, a webhook's address, an Authorization header or a secret in a URL's query, whoever's it is.
# Text that streams is the hard case: a secret may come in pieces. No secret holds a blank, so only the last word of what
# has come can be the beginning of one, and only if it begins as one does: then that word waits for its end (`_LONGEST`
# characters at most). All other text passes at the cost of a match against its last word.

"""Removes secrets from text, whole or streamed."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

MASK = "[redacted]"
"""Stands where a secret stood."""

_SHORTEST = 8  # a configured value shorter than this would be found in ordinary words
_SHORTEST_SHAPE = 12  # what has a secret's shape, with what it is known by, is at least this long
_LONGEST = 400
_STARTS = (
    "sk-", "gsk_", "xai-", "AIza", "ghp_", "gho_", "ghs_", "github_pat_", "hf_", "xoxb-", "xoxp-", "xoxa-", "AKIA", "pplx-",
    "eyJ", "glpat-", "npm_", "pypi-",
)  # fmt: skip
_SHAPES = (
    r"(?<![A-Za-z0-9])(?:sk-|gsk_|xai-|ghp_|gho_|ghs_|github_pat_|hf_|xox[abp]-|pplx-|glpat-|npm_|pypi-)[\w-]{16,}",
    r"(?<![A-Za-z0-9])AIza[\w-]{30,}",
    r"(?<![A-Za-z0-9])AKIA[0-9A-Z]{16}",
    r"(?<![A-Za-z0-9])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}",
    r"(?<![\w-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}",
)
_LONG_WORD = re.compile(r"\S{14}")
_BOT_TOKEN = re.compile(r"\.[\w-]{6}\.[\w-]{27,}")
_MARKS = (
    "api/webhooks/", "uthorization", "UTHORIZATION", "earer", "EARER", "key=", "KEY=", "Key=", "oken=", "OKEN=", "ecret=",
    "ECRET=", "assword=", "ASSWORD=", "ignature=", "IGNATURE=",
)  # fmt: skip
_KEEP_FIRST = (
    r"(discord(?:app)?\.com/api/webhooks/\d+/)[\w-]+",
    r"([?&][\w-]*(?:key|token|secret|password|signature)=)[^&\s\"'<>\\]+",
    r"(authorization[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?)[^\s\"',}\\]{6,}",
    r"(\bbearer\s+)[\w.~+/-]{16,}=*",
)


class Redactor:
    """Removes secrets.

    values: the configured secrets, in any order; short ones (under 8 characters) are not looked for.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._marks = (*_STARTS, *_MARKS)
        self._tails = re.compile("|".join(_KEEP_FIRST), re.IGNORECASE)
        self._look_for(values)

    def learn(self, values: Iterable[str]) -> None:
        """Takes up secrets that became known later; texts that stream at this moment do not look for them yet."""
        self._look_for([*self._given, *values])

    def _look_for(self, values: Iterable[str]) -> None:
        self._given = tuple(values)
        self.values = tuple(
            sorted({form for value in self._given if len(value) >= _SHORTEST for form in _forms(value)}, key=len)
        )
        exact = [re.escape(value) for value in reversed(self.values)]  # the longest first
        self._whole = re.compile("|".join([*exact, *_SHAPES]))

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if not self._suspicious(text):
            return text
        text = self._whole.sub(MASK, text)
        return self._tails.sub(_keep_first, text)

    def _suspicious(self, text: str) -> bool:
        """Whether a look with the patterns is worth its time: each of them needs a long word, and one of the marks."""
        for value in self.values:  # plain loops: this is asked of every event on record
            if value in text:
                return True
        if _LONG_WORD.search(text) is None:
            return False
        for mark in self._marks:
            if mark in text:
                return True
        return "." in text and bool(_BOT_TOKEN.search(text))

    def json(self, data: bytes) -> bytes:
        """Encoded JSON without secrets."""
        text = data.decode("utf-8", "surrogatepass")
        clean = self.text(text)
        return data if clean == text else clean.encode("utf-8", "surrogatepass")

    def stream(self) -> RedactedStream:
        """A filter for one streamed text."""
        return RedactedStream(self)


class RedactedStream:
    """Removes secrets from text that comes in pieces."""

    __slots__ = ("_firsts", "_held", "_redactor", "_values")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._values = redactor.values
        self._firsts = frozenset(value[0] for value in redactor.values)
        self._held = ""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        look = len(text) >= _SHORTEST_SHAPE
        if self._held:
            text = self._held + text
            self._held = ""
            look = True
        word_at = max(text.rfind(" "), text.rfind("\n")) + 1
        held_at = self._held_from(text, word_at)
        if held_at < len(text) and len(text) - held_at <= _LONGEST:
            self._held = text[held_at:]
            text = text[:held_at]
        return self._redactor.text(text) if look or self._has_value(text) else text

    def close(self) -> str:
        """What is left when the text has ended."""
        if not self._held:
            return ""
        held, self._held = self._held, ""
        return self._redactor.text(held)

    def _has_value(self, text: str) -> bool:
        """Whether a short piece is, by itself, a configured secret; shapes are longer, or were held."""
        return any(value in text for value in self._values)

    def _held_from(self, text: str, word_at: int) -> int:
        """Where the part begins that may be the beginning of a secret; the text's length where there is none."""
        if text[word_at : word_at + 1] in _RISKY_FIRST and _RISKY.match(text, word_at):
            return word_at
        earliest = len(text)
        for first in self._firsts:
            place = text.find(first, word_at, earliest)
            while place >= 0:
                end = text[place:]
                if any(value.startswith(end) or end.startswith(value) for value in self._values):
                    earliest = place
                    break
                place = text.find(first, place + 1, earliest)
        return earliest


class RedactingFilter(logging.Filter):
    """Removes secrets from log records, over the formatted text with its traceback.

    For handlers: aiohttp's exceptions show request headers in their `repr`, so it is the formatted text that must be clean.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record; lets all through."""
        record.msg, record.args = self._redactor.text(record.getMessage()), None
        if record.exc_info:
            record.exc_text = self._redactor.text(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


def last_four(key: str) -> str:
    """What may be shown of a key: its last four characters, nothing of a short one."""
    return key[-4:] if len(key) >= 2 * _SHORTEST else ""


def _forms(value: str) -> tuple[str, ...]:
    encoded = b64encode(value.encode()).decode().rstrip("=")
    return (value, quote(value, safe=""), encoded)


def _keep_first(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group is not None) + MASK


def _risky() -> re.Pattern[str]:
    """Matches a last word that may be growing into a secret: an unfinished start, or a start and what may follow it."""
    forms = [r"[MNO][\w-]*(?:\.[\w-]*){0,2}$", r"(?:\S*[\"'(`<=])?h(?:t(?:t(?:p(?:s?(?::(?:/\S*)?)?)?)?)?)?$"]
    for start in _STARTS:
        prefixes = "|".join(re.escape(start[:n]) for n in range(len(start) - 1, 0, -1))
        forms.append(rf"[\"'(`<=:]?(?:{re.escape(start)}[\w.-]*|{prefixes})$")
    return re.compile("|".join(forms))


_RISKY = _risky()
_RISKY_FIRST = frozenset([start[0] for start in _STARTS] + list("MNOh\"'(`<=:["))
