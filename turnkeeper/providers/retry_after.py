# When a server wants to hear from us again (S3.3a).
#
# Rule 1: a time is kept however long it is, up to a year. One that has passed means now; nonsense is no time at all.
# Rule 2: there are times that are said to us (Retry-After, words and fields of the body) and buckets, which come with
# every answer and count only where a limit refused us. A bucket is exhausted, or known not to be, or silent about it.
# Rule 3: of several, an exhausted bucket's or what was said to us, the longer; else the longest of all but those of
# buckets that are known to hold something; else the longest.
# Nothing here knows a provider: a bucket is whatever has `ratelimit` and `reset` in its name, with `remaining` beside it.

"""The time that a server names for the next try (S3.3a)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

_UNIT = r"(?:milliseconds?|ms|[nuµ]s|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
_VALUE = r"\d{1,12}(?:\.\d{1,12})?"
_PART = re.compile(rf"({_VALUE}) ?({_UNIT})", re.IGNORECASE)
_SPAN = rf"(?:{_VALUE} ?{_UNIT}(?:, | and |,| )?){{1,5}}"
_DATE = r"\d{4}-\d\d-\d\d(?:T| at | )\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_AGAIN = r"\b(?:again|retry|retried|resets?|wait|available|access) "
_ABOUT = r"(?:(?:in|after|for|at least|about|approximately|around|~) ?){0,4}"
_IN_WORDS = re.compile(rf"{_AGAIN}{_ABOUT}({_SPAN})", re.IGNORECASE)
_AT_WORDS = re.compile(rf"{_AGAIN}(?:(?:at|on|after|until) ){{0,2}}({_DATE})", re.IGNORECASE)
_FIELDS = {
    "retryafter", "retryafters", "retryafterseconds", "retryinseconds", "retrydelay", "resetsat", "resetat", "resettime",
    "resetsinseconds", "resetinseconds", "resetsin", "resetafter", "resetafterseconds",
}  # fmt: skip
_FIELDS_MS = {"retryafterms", "retryaftermilliseconds"}
_LONGEST_S = 366 * 86400.0  # beyond a year a number is no time to wait
_EPOCH_S = 1e9  # a number from here on is a moment, in seconds since 1970; a span of 30 years is nonsense
_EPOCH_MS = 1e12  # and from here on one in milliseconds
_SPENT, _SILENT, _HOLDING = "spent", "silent", "holding"
_DEEPEST = 10
_LONGEST_TEXT = 4000


def retry_after_s(headers: Mapping[str, str], body: object, now: float | None, *, buckets: bool = True) -> float | None:
    """Seconds until the server wants to hear from us again, or None where it did not say or said nonsense.

    headers: names in lower case. body: the decoded body, or its text. now: wall clock, seconds since the epoch; None
    where it is not known, then only spans count. buckets: whether a limit refused us, so that its buckets matter.
    """
    said = [*_said(headers, now), *_in_body(body, now, 0)]
    found = [*_buckets(headers, now), *_body_buckets(body, now, 0)] if buckets else []
    spent, silent, holding = ([wait for state, wait in found if state == kind] for kind in (_SPENT, _SILENT, _HOLDING))
    if spent:
        return max(spent + said)
    return max(said + silent, default=max(holding, default=None))


def read_time(said: str, now: float | None) -> float | None:
    """Seconds from `now` to a time said as seconds, `6m0s`, `250ms`, an HTTP date, an ISO date, or an epoch in s or ms."""
    said = said.strip()[:100]
    number = _plain(said)
    if number is not None:
        return _number(number, now)
    if said[:1].isdigit() and re.fullmatch(_SPAN, said, re.IGNORECASE):
        return _span(said)
    moment = _date(said)
    return None if moment is None or now is None else _sane(moment - now)


def _said(headers: Mapping[str, str], now: float | None) -> list[float]:
    """Retry-After; where it also comes in milliseconds, those."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _plain(headers.get(name, ""))
        if milliseconds is not None and _sane(milliseconds / 1000) is not None:
            return [milliseconds / 1000]
    wait = read_time(headers.get("retry-after", ""), now)
    return [] if wait is None else [wait]


def _buckets(headers: Mapping[str, str], now: float | None) -> Iterable[tuple[str, float]]:
    for name, value in headers.items():
        if "reset" not in name or "ratelimit" not in name.replace("-", ""):
            continue
        wait = read_time(value, now)
        if wait is not None:
            yield _state(headers, name), wait


def _state(headers: Mapping[str, str], name: str) -> str:
    status = headers.get(name.replace("reset", "status"), "")
    if status:
        return _SPENT if status == "rejected" else _HOLDING
    remaining = headers.get(name.replace("reset", "remaining"), "").strip()
    if remaining.startswith("-"):
        return _SPENT
    left = _plain(remaining)
    return _SILENT if left is None else _SPENT if left == 0 else _HOLDING


def _in_body(value: object, now: float | None, depth: int) -> Iterable[float]:
    """All times that the fields and texts of a body name."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield from _in_text(value[:_LONGEST_TEXT], now)
    elif isinstance(value, list):
        for item in cast(list[object], value):
            yield from _in_body(item, now, depth + 1)
    elif isinstance(value, dict):
        for name, item in cast(dict[Any, Any], value).items():
            wait = _field(str(name), item, now)
            if wait is not None:
                yield wait
            else:
                yield from _in_body(item, now, depth + 1)


def _in_text(text: str, now: float | None) -> Iterable[float]:
    text = " ".join(text.split())
    for match in _IN_WORDS.finditer(text):
        wait = _span(match[1])
        if wait is not None:
            yield wait
    for match in _AT_WORDS.finditer(text):
        wait = read_time(match[1].replace(" at ", " "), now)
        if wait is not None:
            yield wait


def _field(name: str, value: object, now: float | None) -> float | None:
    name = re.sub(r"[-_ ]", "", name.lower())
    if name not in _FIELDS and name not in _FIELDS_MS:
        return None
    text = str(value) if _small(value) else value
    if not isinstance(text, str):
        return None
    if name in _FIELDS:
        return read_time(text, now)
    milliseconds = _plain(text)
    return None if milliseconds is None else _sane(milliseconds / 1000)


def _body_buckets(value: object, now: float | None, depth: int) -> Iterable[tuple[str, float]]:
    """The headers of a server behind the one that answered, which it passed on in the body (OpenRouter)."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in cast(list[object], value):
            yield from _body_buckets(item, now, depth + 1)
    elif isinstance(value, dict):
        table = cast(dict[Any, Any], value)
        headers = {str(name).lower(): str(item) for name, item in table.items() if isinstance(item, str) or _small(item)}
        yield from _buckets(headers, now)
        for item in table.values():
            yield from _body_buckets(item, now, depth + 1)


def _small(value: object) -> bool:
    """Whether this is a number that reads as one when it is printed."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _plain(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,30}(?:\.\d{1,30})?\s*", text, re.ASCII) else None


def _number(number: float, now: float | None) -> float | None:
    if number < _EPOCH_S:
        return _sane(number) if number >= 0 else None
    if now is None:
        return None
    return _sane((number / 1000 if number >= _EPOCH_MS else number) - now)


def _span(text: str) -> float | None:
    parts = _PART.findall(text.lower())
    return _sane(sum(float(value) * _unit_s(unit) for value, unit in parts)) if parts else None


def _unit_s(unit: str) -> float:
    if unit.startswith(("ms", "milli")):
        return 0.001
    return {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}[unit[0]]


def _date(said: str) -> float | None:
    iso = re.sub(r" ?(?:UTC|GMT)$", "+00:00", said) if said[:4].isdigit() else said
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(iso)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
    return None


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) and seconds <= _LONGEST_S else None
