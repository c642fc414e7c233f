"""Joining a continuation to what was shown (S3.4, S3.4b, S9.4b)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.delivery.stitcher import Stitcher, resume_point


def stitched(shown: str, output: str, *, native: bool = False, size: int = 0) -> str:
    stitcher = Stitcher(shown, native_prefill=native)
    pieces = [output[at : at + size] for at in range(0, len(output), size)] if size else [output]
    return shown + "".join(stitcher.feed(piece) for piece in pieces) + stitcher.close()


CASES = [
    ("goes on exactly", "The tide comes", " in twice a day.", "The tide comes in twice a day."),
    ("goes on inside a word", "The tide comes in twi", "ce a day.", "The tide comes in twice a day."),
    ("writes the last word again", "I thou", "thought so.", "I thought so."),
    ("writes a number again", "It costs 1,23", "1,234 in all.", "It costs 1,234 in all."),
    ("repeats the last sentence", "First. The tide comes in twice a day", "The tide comes in twice a day and goes.", "First. The tide comes in twice a day and goes."),
    ("repeats in other case and spacing", "The tide comes in  twice a day", "THE TIDE COMES IN twice a day and goes.", "The tide comes in  twice a day and goes."),
    ("begins again", "Once upon a time there was a tide that", "Once upon a time there was a tide that came in.", "Once upon a time there was a tide that came in."),
    ("announces itself", "The tide comes", "Sure, continuing from where I left off:\n\nin twice a day.", "The tide comesin twice a day."),
    ("announces itself and repeats", "Now the tide comes in", "Here is the rest of the message: Now the tide comes in twice a day.", "Now the tide comes in twice a day."),
    ("opens the fence again", "Look:\n```python\nx = 1\n", "```python\ny = 2\n```", "Look:\n```python\nx = 1\ny = 2\n```"),
    ("closes the fence", "Look:\n```python\nx = 1", "\n```\nDone.", "Look:\n```python\nx = 1\n```\nDone."),
    ("Japanese gets no blank", "潮は一日に二度", "満ちる。", "潮は一日に二度満ちる。"),
    ("Japanese repeats", "潮は一日に二度満ちる。そして", "二度満ちる。そして引く。", "潮は一日に二度満ちる。そして引く。"),
    ("a new sentence gets its blank", "The tide comes.", "It goes.", "The tide comes. It goes."),
    ("no doubled blank", "The tide ", " comes.", "The tide comes."),
    ("a list goes on", "1. one\n2. two\n", "3. three", "1. one\n2. two\n3. three"),
    ("an announcement in Japanese", "潮は一日に二度満ちて、", "はい、続きです：引いていく。", "潮は一日に二度満ちて、引いていく。"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shown", "output", "reads"), CASES, ids=[case[0] for case in CASES])
def test_what_the_reader_sees(name: str, shown: str, output: str, reads: str) -> None:
    """S3.4; the same at every chunking."""
    for size in (0, 1, 2, 3, 7):
        assert stitched(shown, output, size=size) == reads


@pytest.mark.parametrize("shown", ["The answer is:\n\n", "The answer is: ", "The answer is:\u00a0", "答えは\u3000"])
def test_a_prefill_sent_without_its_trailing_blanks_gives_them_once(shown: str) -> None:
    """S3.4b"""
    blanks = shown[len(shown.rstrip()) :]
    assert stitched(shown, blanks + "42.", native=True) == shown + "42."
    assert stitched(shown, "42.", native=True) == shown + "42."


@pytest.mark.parametrize(
    ("shown", "sent", "held"),
    [("I thou", "I", " thou"), ("Costs 1,23", "Costs", " 1,23"), ("see https://x.y/a", "see", " https://x.y/a"), ("Done.", "", "Done."), ("a b \n", "a b", " \n"), ("潮は一日", "潮は一日", "")],
)  # fmt: skip
def test_the_next_model_is_given_what_ends_at_the_last_blank(shown: str, sent: str, held: str) -> None:
    """S3.4b"""
    point = resume_point(shown)
    assert point.sent + point.held == shown
    if shown != "Done.":
        assert (point.sent, point.held) == (sent, held)


def test_a_pass_that_only_repeats_is_known_as_such() -> None:
    """S9.4b"""
    for output in ("The tide comes in twice a day.", "comes in twice a day.", "THE TIDE comes in twice"):
        stitcher = Stitcher("The tide comes in twice a day.")
        assert stitcher.feed(output) + stitcher.close() == ""
        assert stitcher.repeated_only


def test_only_what_is_undecided_is_held() -> None:
    stitcher = Stitcher("The tide comes in twice a day and")
    shown = stitcher.feed("then") + stitcher.feed(" it goes out")
    assert shown == "then it goes out"
    assert stitcher.feed(" again.") == " again."


ALPHABET = st.sampled_from(
    [
        "tide",
        "comes",
        "in",
        "out",
        "twice",
        "day",
        "again",
        "sea",
        "moon",
        "wave",
        "and",
        "the",
        "a",
        "of",
        "1,234",
        "é",
        "潮は",
        "満ちる。",
        "한국어",
        "🌊",
        "**bold**",
        "`code`",
        "\n",
    ]
)
TEXT = st.lists(ALPHABET, min_size=6, max_size=40).map(" ".join)


@given(TEXT, st.data())
@settings(max_examples=300, deadline=None)
def test_the_result_does_not_depend_on_the_chunking(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(text) - 1))
    back = data.draw(st.integers(0, cut))
    native = data.draw(st.booleans())
    output = text[cut - back :]
    whole = stitched(text[:cut], output, native=native)
    for size in (1, 2, 5):
        assert stitched(text[:cut], output, native=native, size=size) == whole


WORDS = [f"w{n}{'abcdefghij'[n % 10] * (n % 5)}" for n in range(400)]


def replacement(how: int, text: str, cut: int, chance: random.Random) -> str:
    shown, rest = text[:cut], text[cut:]
    match how:
        case 0:
            return rest
        case 1:
            return resume_point(shown).held.lstrip() + rest
        case 2:
            back = min(cut, chance.randint(16, 200))
            return shown[cut - back :] + rest
        case 3:
            return text
        case 4:
            return "Sure, continuing where I left off:\n" + resume_point(shown).held.lstrip() + rest
        case _:
            back = min(cut, chance.randint(20, 120))
            return shown[cut - back :].upper().replace(" ", "  ") + rest


def test_twenty_thousand_random_cuts_leave_at_most_twenty_seams_open() -> None:
    """S3.4: for any text, cut and way in which a replacement behaves, the reader's text is the whole reply, up to blanks."""
    chance = random.Random(20_000)
    wrong: list[tuple[int, str, str]] = []
    for _ in range(20_000):
        text = " ".join(chance.choices(WORDS, k=chance.randint(12, 60))) + "."
        cut = chance.randint(30, len(text) - 2)
        how = chance.randint(0, 5)
        reads = stitched(text[:cut], replacement(how, text, cut, chance))
        if "".join(reads.split()).casefold() != "".join(text.split()).casefold():
            wrong.append((how, text[:cut][-40:], reads[cut - 20 : cut + 40]))
    assert len(wrong) <= 20, wrong[:10]
