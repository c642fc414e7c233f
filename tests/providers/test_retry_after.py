"""The time that a server names is read in every form, and nonsense in none (S3.3a)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.providers.retry_after import read_time, retry_after_s

NOW = 1_796_126_400.0  # 2026-12-01T12:00:00Z
EPOCH = int(NOW)

TIMES = [
    ("seconds", "20", 20),
    ("now", "0", 0),
    ("parts of a second", "1.5", 1.5),
    ("minutes and seconds", "6m0s", 360),
    ("milliseconds", "250ms", 0.25),
    ("hours, minutes and seconds", "1h2m3s", 3723),
    ("minutes and parts of a second", "2m59.56s", 179.56),
    ("a day", "1d", 86400),
    ("microseconds", "588µs", 0.000588),
    ("an HTTP date", "Tue, 01 Dec 2026 12:05:00 GMT", 300),
    ("an ISO date", "2026-12-01T12:05:00Z", 300),
    ("an ISO date with an offset", "2026-12-01T13:05:00+01:00", 300),
    ("a date without a zone is UTC", "2026-12-01 12:05:00", 300),
    ("an epoch in seconds", str(EPOCH + 90), 90),
    ("an epoch in milliseconds", str((EPOCH + 90) * 1000), 90),
    ("long is kept", "500000", 500000),
    ("past is now", "Mon, 30 Nov 2026 12:00:00 GMT", 0),
    ("a past epoch is now", str(EPOCH - 90), 0),
    ("words are no time", "soon", None),
    ("nothing is no time", "", None),
    ("negative is nonsense", "-5", None),
    ("over a year is nonsense", "40000000", None),
    ("a date beyond a year is nonsense", "2031-01-01T00:00:00Z", None),
    ("a number beyond all", "9" * 30, None),
    ("no number", "nan", None),
    ("no date", "2026-13-45T99:00:00Z", None),
    ("digits of another script", "２０", None),
]


@pytest.mark.parametrize(("text", "seconds"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_a_time_is_read_in_every_form(text: str, seconds: float | None) -> None:
    assert read_time(text, NOW) == (pytest.approx(seconds) if seconds is not None else None)


HEADERS = [
    ("nothing", {}, None),
    ("milliseconds go before seconds", {"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ("unless they are nonsense", {"retry-after-ms": "soon", "retry-after": "9"}, 9),
    ("Azure: milliseconds under another name", {"x-ms-retry-after-ms": "1200"}, 1.2),
    ("OpenAI: the exhausted bucket's", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, 1),
    ("OpenAI: of two exhausted the longer", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360),
    ("OpenAI: of two that do not say, the longer", {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360),
    ("OpenAI: of two that hold something, the longer", {"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "20ms", "x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "2s"}, 2),
    ("what was said to us goes before a bucket that holds something", {"retry-after": "20", "x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "6m0s"}, 20),
    ("an exhausted bucket never shortens what was said to us", {"retry-after": "20", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2s"}, 20),
    ("Anthropic: the exhausted bucket's", {"anthropic-ratelimit-requests-remaining": "49", "anthropic-ratelimit-requests-reset": "2026-12-01T13:00:00Z", "anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2026-12-01T12:05:00Z"}, 300),
    ("Anthropic: silent", {"anthropic-ratelimit-tokens-reset": "2026-12-01T12:05:00Z"}, 300),
    ("Anthropic: the account's window", {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": str(EPOCH + 60), "anthropic-ratelimit-unified-7d-status": "allowed", "anthropic-ratelimit-unified-7d-reset": str(EPOCH + 9999)}, 60),
    ("OpenRouter: an epoch in milliseconds", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str((EPOCH + 5) * 1000)}, 5),
    ("an epoch in seconds", {"x-ratelimit-reset": str(EPOCH + 5)}, 5),
    ("seconds, by the draft of a standard", {"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30),
    ("Cerebras: buckets of the day and the minute", {"x-ratelimit-remaining-requests-day": "12", "x-ratelimit-reset-requests-day": "33011.38", "x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "11.38"}, 11.38),
    ("a bucket's nonsense is ignored", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "never", "retry-after": "3"}, 3),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "seconds"), [row[1:] for row in HEADERS], ids=[row[0] for row in HEADERS])
def test_headers_name_a_time(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, None, NOW) == (pytest.approx(seconds) if seconds is not None else None)


BODIES = [
    ("minutes, about", "Limited: try again in ~162 min", 9720),
    ("a span of Go", "Please try again in 6m0s. Visit https://x.example", 360),
    ("parts of a second", "Limit 3, Used 3. Please try again in 1.5s.", 1.5),
    ("milliseconds", "Please try again in 20ms.", 0.02),
    ("seconds in words", "Try again in 60 seconds. Passed model=m", 60),
    ("after", "Please retry after 6 seconds.", 6),
    ("wait", "Please wait at least 10 s before the next request", 10),
    ("resets in", "Your limit resets in about 2 hours and 5 minutes", 7500),
    ("over a line break", "Please try\nagain in\n5 minutes", 300),
    ("will reset at", "Your limit will reset at 2026-12-01 13:30:06", 5406),
    ("a day and an hour apart", "You will regain access on 2026-12-02 at 00:00 UTC.", 43200),
    ("a moment with a zone", "Available again at 2026-12-01T12:01:00+00:00", 60),
    ("Gemini in words", "* Quota exceeded\nPlease retry in 34.07s.", 34.07),
    ("Gemini in a field", [{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}], 34),
    ("ChatGPT: seconds", {"error": {"resets_in_seconds": 500000}}, 500000),
    ("an epoch", {"error": {"resets_at": EPOCH + 10}}, 10),
    ("an ISO date", {"error": {"resets_at": "2026-12-01T12:00:10Z"}}, 10),
    ("a plain field", {"retry_after": 7.5}, 7.5),
    ("a plain field of milliseconds", {"retry_after_ms": 700}, 0.7),
    ("OpenRouter: the headers of a maker", {"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str((EPOCH + 5) * 1000)}}}}, 5),
    ("of several the longest", {"message": "Please try again in 5s", "retry_after": 9}, 9),
    ("a limit is no time", "Limit 3 per min, 5 minutes long", None),
    ("a negative field", {"retry_after": -3}, None),
    ("a field over a year", {"resets_in_seconds": 40_000_000}, None),
    ("a field that is no time", {"retry_after": True, "resets_at": None, "retryDelay": ["34"]}, None),
    ("a past moment", {"resets_at": EPOCH - 10}, 0),
    ("only a number's worth of nonsense", {"resets_at": 10**400}, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "seconds"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_bodies_name_a_time(body: Any, seconds: float | None) -> None:
    assert retry_after_s({}, body, NOW) == (pytest.approx(seconds) if seconds is not None else None)


def test_buckets_count_only_where_a_limit_refused() -> None:
    """They come with every answer."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}
    assert retry_after_s(headers, None, NOW, buckets=False) is None
    assert retry_after_s(headers | {"retry-after": "3"}, None, NOW, buckets=False) == 3


def test_without_a_clock_only_spans_are_read() -> None:
    assert retry_after_s({"retry-after": "20"}, {"resets_at": EPOCH}, None) == 20
    assert retry_after_s({"retry-after": "Tue, 01 Dec 2026 12:05:00 GMT"}, "will reset at 2026-12-01 13:30:06", None) is None


def test_the_longer_of_header_and_body_stands() -> None:
    assert retry_after_s({"retry-after": "20"}, {"resets_in_seconds": 500000}, NOW) == 500000


NAMES = st.sampled_from(
    ["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining", "anthropic-ratelimit-unified-reset"]
)
VALUES = st.text() | st.integers().map(str) | st.floats().map(str) | st.datetimes().map(str) | st.timedeltas().map(str)
FIELDS = st.sampled_from(["retry_after", "resets_at", "retryDelay", "retry_after_ms", "X-RateLimit-Reset", "message"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | VALUES | st.text().map("try again in ".__add__),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(NAMES, VALUES), JSON, st.none() | st.just(NOW))
def test_nothing_makes_it_fail_or_wait_for_ever(headers: dict[str, str], body: Any, now: float | None) -> None:
    seconds = retry_after_s(headers, body, now)
    assert seconds is None or 0 <= seconds <= 366 * 86400
