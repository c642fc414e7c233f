"""How a model's window is measured (S3.10a)."""

from __future__ import annotations

import pytest

from turnkeeper.loop.window import Weight, WindowMeasure, picture_tokens, weigh
from turnkeeper.types.messages import Picture, UserMessage


def test_chinese_weighs_a_token_a_character_and_english_a_quarter() -> None:
    assert weigh(UserMessage("\u5929" * 400)).text == 404
    assert weigh(UserMessage("word" * 100)).text == 104


@pytest.mark.parametrize(
    ("family", "sides", "tokens"),
    [
        ("anthropic", (1092, 1092), 1590),
        ("anthropic", (4000, 4000), 3279),
        ("gemini", (300, 200), 258),
        ("gemini", (1536, 1000), 1032),
        ("openai-chat", (512, 512), 255),
        ("openai-chat", (2048, 4096), 1105),
        ("openai-chat", (1024, 1024), 765),
        ("openai-chat", None, 1000),
    ],
)
def test_a_picture_weighs_what_the_providers_own_rule_says(family: str, sides: tuple[int, int] | None, tokens: int) -> None:
    assert picture_tokens(family, sides) == tokens


def test_a_picture_that_can_not_be_read_has_no_sides() -> None:
    assert weigh(UserMessage("", (Picture(b"\x89PNG\r\n\x1a\n", "image/png"),))).pictures == (None,)


def test_the_estimate_is_corrected_by_what_the_model_last_reported() -> None:
    measure = WindowMeasure("openai-chat", 32_768)
    assert measure.observe(Weight(4_000), 5_000) is None
    assert measure.tokens(Weight(4_000)) == 5_000
    assert measure.observe(Weight(4_000), 3_000) is None
    assert measure.tokens(Weight(4_000)) == 3_000


def test_a_report_far_below_the_least_possible_teaches_the_real_window_once_and_corrects_nothing() -> None:
    measure = WindowMeasure("openai-chat", 32_768)
    said = measure.observe(Weight(9_000), 2_051)
    assert said is not None
    assert "only 2,051 of about 9,000 tokens" in said
    assert "num_ctx" in said
    assert "quirks.context_window = 2051" in said
    assert measure.window == 2_051
    assert measure.tokens(Weight(9_000)) == 9_000
    assert measure.observe(Weight(9_000), 2_051) is None


def test_a_short_prompt_teaches_nothing() -> None:
    measure = WindowMeasure("openai-chat", 32_768)
    assert measure.observe(Weight(900), 10) is None
    assert (measure.window, measure.tokens(Weight(900))) == (32_768, 900)
