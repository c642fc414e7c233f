"""Secrets are removed at every way out (S16.2a)."""

from __future__ import annotations

import base64
import logging
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.redaction import MASK, RedactingFilter, Redactor, last_four

KEY = "zq-9f8e7d6c5b4a+/=xyz"
SHAPES = [
    "sk-" + "a1B2" * 6,
    "sk-ant-api03-" + "a1_B2-" * 6,
    "gsk_" + "a1B2" * 8,
    "ghp_" + "a1B2" * 9,
    "xoxb-123456789012-abcdefghijkl",
    "hf_" + "a1B2" * 8,
    "AIza" + "a1B2" * 9,
    "AKIA" + "ABCD1234" * 2,
    "MTE4NDY1MjQ5MzA0NTg4MjkxMA.GxYzAb.abcdefghijklmnopqrstuvwxyz0123",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fw",
]
IN_CONTEXT = [
    ("https://discord.com/api/webhooks/123456/abc-DEF_ghi", "https://discord.com/api/webhooks/123456/" + MASK),
    ("https://x.example/?a=1&api_key=abcdef123&b=2", "https://x.example/?a=1&api_key=" + MASK + "&b=2"),
    ("{'Authorization': 'Bearer abcdef123456'}", "{'Authorization': 'Bearer " + MASK + "'}"),
    ("curl -H authorization:Basic\u0020dXNlcjpwYXNz", "curl -H authorization:Basic " + MASK),
]


def streamed(redactor: Redactor, text: str, size: int) -> str:
    stream = redactor.stream()
    return "".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size)) + stream.close()


@pytest.mark.parametrize("secret", [KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode().rstrip("=")])
def test_a_configured_secret_is_removed_in_every_form(secret: str) -> None:
    redactor = Redactor([KEY])
    assert redactor.text(f"it is {secret} here") == f"it is {MASK} here"
    for size in (1, 2, 3, 7, 100):
        assert streamed(redactor, f"it is {secret} here", size) == f"it is {MASK} here"


@pytest.mark.parametrize("secret", SHAPES)
def test_what_looks_like_a_secret_is_removed_whoevers_it_is(secret: str) -> None:
    for text in (f"key {secret} end", f'"{secret}"', f"({secret})", secret):
        found = Redactor().text(text)
        assert secret not in found
        assert MASK in found
    for size in (1, 3, 8):
        assert streamed(Redactor(), f"key {secret} end", size) == f"key {MASK} end"


@pytest.mark.parametrize(("text", "clean"), IN_CONTEXT)
def test_secrets_known_by_their_place_are_removed_and_the_place_stays(text: str, clean: str) -> None:
    assert Redactor().text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "Ask the sky-blue task-list for a risk-free disk.",
        "Now, Monday or Not.",
        "https://example.com/a?b=c",
        "E = mc2",
        "eyJ is a prefix",
    ],
)
def test_ordinary_text_passes_untouched_at_every_chunking(text: str) -> None:
    for size in (1, 2, 5, 50):
        assert streamed(Redactor([KEY]), text, size) == text


@given(st.text(max_size=60), st.integers(1, 9))
def test_text_without_secrets_comes_out_whole_at_every_chunking(text: str, size: int) -> None:
    redactor = Redactor([KEY])
    if redactor.text(text) == text:
        assert streamed(redactor, text, size) == text


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 30))
def test_a_configured_secret_never_leaves_at_any_chunking(before: str, after: str, size: int) -> None:
    assert KEY not in streamed(Redactor([KEY]), before + KEY + after, size)


def test_short_values_are_not_looked_for() -> None:
    """A value like `test` would be found in ordinary words."""
    assert Redactor(["test"]).text("a test") == "a test"


def test_log_records_are_cleaned_with_their_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """aiohttp's exceptions show request headers in their repr."""
    record_filter = RedactingFilter(Redactor([KEY]))
    try:
        raise RuntimeError(f"headers: Authorization: Bearer {KEY}")
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed with %s", (KEY,), __import__("sys").exc_info())
    record_filter.filter(record)
    text = logging.Formatter().format(record)
    assert KEY not in text
    assert "Traceback" in text


def test_of_a_key_four_characters_may_be_shown_and_of_a_short_one_none() -> None:
    assert last_four("sk-test-0123456789abcdef") == "cdef"
    assert last_four("short") == ""
