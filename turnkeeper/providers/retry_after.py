"""The time that a server names for the next try (S3.3a)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST_S = 366 * 86400.0  # beyond a year a number is no time to wait
_EPOCH_MS = 100_000_000_000.0  # numbers above are milliseconds since the epoch, not seconds


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until the server wants to hear from us again, or None where it did not say or said nonsense.

    headers: names in lower case. now: wall clock, seconds since the epoch. A time that has passed is 0.
    """
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        waited = _number(milliseconds)
        if waited is not None:
            return _sane(waited / 1000)
    said = headers.get("retry-after")
    return None if said is None else read_time(said, now)


def read_time(said: str, now: float) -> float | None:
    """Seconds from `now` to a time said as seconds, `6m0s`, `250ms`, an HTTP date, an ISO date, or an epoch in s or ms."""
    said = said.strip()
    number = _number(said)
    if number is not None:
        if number > _EPOCH_MS:
            return _sane(number / 1000 - now)
        return _sane(number - now if number > _LONGEST_S else number)
    parts = _DURATION.findall(said)
    if parts and "".join(a + b for a, b in parts) == said:
        return _sane(sum(float(value) * _UNITS[unit] for value, unit in parts))
    moment = _date(said)
    return None if moment is None else _sane(moment.timestamp() - now)


def _date(said: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(said)
        except (ValueError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _number(said: str) -> float | None:
    return float(said) if re.fullmatch(r"\s*\d+(?:\.\d+)?\s*", said) else None


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if seconds <= _LONGEST_S else None
