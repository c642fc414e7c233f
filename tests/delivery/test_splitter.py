"""The splitter (S14.1; the rows of cases.md on code blocks, tables, long words and emoji)."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from turnkeeper.delivery.splitter import Flush, Splitter

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


def split(text: str, limit: int, *, cuts: list[int] | None = None, flush: Flush = Flush.WHEN_FULL) -> list[str]:
    splitter = Splitter(limit=limit, flush=flush)
    borders = [0, *sorted({cut % (len(text) + 1) for cut in cuts or []}), len(text)]
    pieces = [piece for a, b in zip(borders, borders[1:], strict=False) for piece in splitter.feed(text[a:b])]
    return pieces + splitter.close()


WORDS = st.sampled_from(
    [
        "word", "tide", "A sentence.", "Why?", "**bold text**", "`code span`", "[a link](https://example.com/x)", "https://example.com/a/b?c=d",
        "<:wave:123456>", "<@123456>", "e\u0301\u0301", FAMILY, "\U0001f1ef\U0001f1f5", "潮は一日に二度満ちる。", "한국어", "שלום עולם", "مرحبا", "x" * 60, "||spoiler||",
    ]
)  # fmt: skip
LINE = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
FENCE = st.builds(
    lambda marks, info, lines, indent: "\n".join(
        [f"{indent}{marks}{info}", *[f"{indent}{line}" for line in lines], f"{indent}{marks}"]
    ),
    st.sampled_from(["```", "~~~", "````"]),
    st.sampled_from(["", "python", "py title=x"]),
    st.lists(st.sampled_from(["x = 1", "    return y", "", "print('a b c')", "# note", "z" * 30]), max_size=14),
    st.sampled_from(["", "  "]),
)
TABLE = st.integers(1, 14).map(
    lambda rows: "\n".join(["| n | square |", "|---|---|", *[f"| {n} | {n * n} |" for n in range(rows)]])
)
LIST = st.lists(LINE, min_size=1, max_size=5).map(lambda lines: "\n".join(f"- {line}" for line in lines))
QUOTE = st.lists(LINE, min_size=1, max_size=4).map(lambda lines: "\n".join(f"> {line}" for line in lines))
DOCUMENT = st.lists(st.one_of(LINE, FENCE, TABLE, LIST, QUOTE), max_size=8).map("\n\n".join)


def content(text: str) -> str:
    """Non-blank characters, without what a split may add: fence lines and repeated table heads; quote marks."""
    lines = [line for line in text.split("\n") if not re.match(r"^[\s>]*(`{3,}|~{3,})", line)]
    return "".join("".join(line for line in lines if line not in ("| n | square |", "|---|---|")).split()).replace(">", "")


@given(DOCUMENT, st.integers(60, 300), st.lists(st.integers(0, 5000), max_size=12))
@settings(max_examples=300, deadline=None)
def test_pieces_fit_are_never_blank_keep_all_content_and_do_not_depend_on_the_cuts(
    text: str, limit: int, cuts: list[int]
) -> None:
    """S14.1"""
    pieces = split(text, limit)
    assert split(text, limit, cuts=cuts) == pieces
    assert all(piece.strip() and len(piece) <= limit for piece in pieces)
    assert content("\n".join(pieces)) == content(text)


@given(DOCUMENT, st.integers(60, 300), st.lists(st.integers(0, 5000), max_size=12))
@settings(max_examples=200, deadline=None)
def test_released_at_boundaries_the_same_holds(text: str, limit: int, cuts: list[int]) -> None:
    """S14.2: many chat-like messages."""
    pieces = split(text, limit, flush=Flush.AT_BOUNDARY)
    assert split(text, limit, cuts=cuts, flush=Flush.AT_BOUNDARY) == pieces
    assert all(piece.strip() and len(piece) <= limit for piece in pieces)
    assert content("\n".join(pieces)) == content(text)


@given(st.lists(st.one_of(LINE, FENCE, TABLE), max_size=6).map("\n\n".join), st.integers(80, 300))
@settings(max_examples=200, deadline=None)
def test_every_piece_has_its_fences_balanced(text: str, limit: int) -> None:
    """S14.1; markdown-it is the judge: no code block of a piece runs to its end unclosed."""
    for piece in split(text, limit):
        for token in MarkdownIt("commonmark").parse(piece):
            if token.type == "fence":
                assert token.map is not None
                lines = piece.split("\n")[token.map[0] : token.map[1]]
                assert re.match(r"^\s*(`{3,}|~{3,})\s*$", lines[-1]), piece
                assert len(lines) > 1


def clusters_ok(before: str, after: str) -> bool:
    """No piece begins with something that belongs to the character before it; written apart from the splitter's own rule."""
    first = after[0]
    if unicodedata.category(first) in ("Mn", "Me") or first in "\u200d\ufe0f" or before.endswith("\u200d"):
        return False
    flags = re.search("[\U0001f1e6-\U0001f1ff]+$", before)
    return not ("\U0001f1e6" <= first <= "\U0001f1ff" and flags and len(flags.group()) % 2)


@given(
    st.lists(
        st.sampled_from([FAMILY, "\U0001f1ef\U0001f1f5", "e\u0301", "a", "か\u3099", "👍\U0001f3fd"]), min_size=30, max_size=200
    ).map("".join),
    st.integers(20, 60),
)
@settings(max_examples=150, deadline=None)
def test_no_character_is_cut_in_two(text: str, limit: int) -> None:
    """S14.1: grapheme clusters."""
    pieces = split(text, limit)
    assert "".join(pieces) == text
    assert all(clusters_ok(before, after) for before, after in zip(pieces, pieces[1:], strict=False))


def test_a_reply_of_12_000_characters_is_cut_between_paragraphs() -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "The tide comes in twice a day. " * 12 for n in range(30))
    pieces = split(text, 2000)
    assert all(piece.startswith("Paragraph") and piece.endswith(".") for piece in pieces)


def test_a_word_of_5_000_characters_is_cut_at_the_limit() -> None:
    assert [len(piece) for piece in split("x" * 5000, 2000)] == [2000, 2000, 1000]


def test_a_code_block_of_300_lines_is_closed_and_opened_again_with_its_language() -> None:
    text = "```python\n" + "\n".join(f"line_{n} = {n}" for n in range(300)) + "\n```"
    pieces = split(text, 2000)
    assert len(pieces) > 1
    assert all(piece.startswith("```python\n") and piece.endswith("\n```") for piece in pieces)
    lines = [line for piece in pieces for line in piece.split("\n") if not line.startswith("```")]
    assert lines == [f"line_{n} = {n}" for n in range(300)]


@pytest.mark.parametrize("marks", ["~~~", "````", "`````"])
def test_other_fences_are_opened_again_in_the_same_form(marks: str) -> None:
    pieces = split(f"{marks}py\n" + "x = 1\n" * 60 + marks, 120)
    assert all(piece.startswith(f"{marks}py\n") and piece.endswith(f"\n{marks}") for piece in pieces)


def test_a_fence_in_a_list_item_keeps_its_indentation_and_one_in_a_quote_its_mark() -> None:
    listed = split("- see:\n  ```py\n" + "  x = 1\n" * 40 + "  ```\n- next", 120)
    assert listed[1].startswith("  ```py\n  x = 1")
    quoted = split("> ```py\n" + "> x = 1\n" * 40 + "> ```", 120)
    assert all(piece.startswith("> ```py\n> x = 1") and piece.endswith("\n> ```") for piece in quoted)


def test_a_long_info_string_is_not_repeated() -> None:
    text = "```python " + "meta" * 40 + "\n" + "x = 1\n" * 100 + "```"
    pieces = split(text, 400)
    assert pieces[1].startswith("```python\n")


def test_a_block_that_fits_a_message_but_not_this_one_moves_whole() -> None:
    code = "```py\n" + "x = 1\n" * 20 + "```"
    assert split("Some words before it, quite a few of them.\n\n" + code + "\n\nAfter.", 150)[1].startswith(code)
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n} |" for n in range(10))
    assert split("Some words before it, quite a few of them.\n\n" + table, 140)[1] == table


def test_a_table_too_long_for_a_message_is_cut_between_rows_with_its_head_repeated() -> None:
    pieces = split("| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n} |" for n in range(80)), 200)
    assert all(piece.startswith("| a | b |\n|---|---|\n|") for piece in pieces)


def test_a_padded_table_in_a_fence_is_code() -> None:
    pieces = split("```\n" + "| a    | b    |\n" * 40 + "```", 200)
    assert all(piece.startswith("```\n") and piece.endswith("\n```") for piece in pieces)


@pytest.mark.parametrize(
    "span",
    [
        "[a link with words](https://example.com/a)",
        "`code span with words`",
        "**bold text with words**",
        "<:wave:1234567890>",
        "https://example.com/aaaaaaaaaaaaaaaaaaaaa",
    ],
)
def test_links_code_emphasis_tags_and_addresses_are_not_cut(span: str) -> None:
    """S14.1"""
    for before in range(20, 100, 3):
        text = ("word " * 40)[:before].rstrip() + " " + span + " and more words " * 10
        assert any(span in piece for piece in split(text, 100)), before


def test_japanese_is_cut_after_a_sentence() -> None:
    pieces = split("潮は一日に二度満ちて、二度引く。" * 20, 100)
    assert all(piece.endswith("。") for piece in pieces)


def test_300_emoji_and_right_to_left_text_are_kept() -> None:
    assert "".join(split("😀" * 300, 100)) == "😀" * 300
    text = "שלום עולם " * 60
    assert content("".join(split(text, 100))) == content(text)


def test_whitespace_alone_gives_no_piece() -> None:
    """S14.1"""
    for text in ("", " ", "\n" * 500, " \n " * 300):
        assert split(text, 100) == []


def test_the_growing_piece_can_be_shown_with_its_fence_closed() -> None:
    splitter = Splitter()
    splitter.feed("Look:\n```py\nx = 1\n")
    assert splitter.open == "Look:\n```py\nx = 1\n```"
    assert splitter.close() == ["Look:\n```py\nx = 1\n```"]


def test_at_boundaries_a_heading_stays_with_what_follows_and_a_list_stays_whole() -> None:
    text = "First paragraph.\n\n# Heading\n\nIts text.\n\n- one\n\n- two\n\nLast.\n\nEnd."
    assert split(text, 2000, flush=Flush.AT_BOUNDARY) == [
        "First paragraph.",
        "# Heading\n\nIts text.",
        "- one\n\n- two",
        "Last.",
        "End.",
    ]


def test_the_work_is_linear_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """S14.1: characters scanned, counted where the scanning is done."""
    from turnkeeper.delivery import splitter as module

    scanned = 0
    real = module.blocks_of

    def counted(text: str, *, whole: bool = False) -> object:
        nonlocal scanned
        scanned += len(text)
        return real(text, whole=whole)

    monkeypatch.setattr(module, "blocks_of", counted)
    costs: list[float] = []
    for size in (50_000, 400_000):
        scanned = 0
        splitter = Splitter()
        for _ in range(size // 5):
            splitter.feed("word ")
        splitter.close()
        costs.append(scanned / size)
    assert costs[1] <= costs[0] * 1.2
