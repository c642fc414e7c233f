"""Server-sent events (cases.md, "Server-sent events"; S12.1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.providers.sse import COMMENT, ServerSentEvent, SseParser, TooLargeError


def parse(pieces: list[bytes]) -> list[ServerSentEvent]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in zip(borders, borders[1:], strict=False)]


def data(*texts: str) -> list[ServerSentEvent]:
    return [ServerSentEvent(b"", text.encode()) for text in texts]


CASES = [
    ("one event", b"data: a\n\n", data("a")),
    ("without the space", b"data:a\n\n", data("a")),
    ("only one space is taken away", b"data:  a\n\n", data(" a")),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")),
    ("lone CR", b"data: a\r\rdata: b\r\r", data("a", "b")),
    ("mixed line ends", b"data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", data("a", "b", "c")),
    ("a byte order mark first", b"\xef\xbb\xbfdata: a\n\n", data("a")),
    ("several data lines are one event", b"data: a\ndata: b\n\n", data("a\nb")),
    ("a data line without colon is empty", b"data\ndata: b\n\n", data("\nb")),
    ("event, id and retry lines", b"event: x\nid: 1\nretry: 9\ndata: a\n\n", [ServerSentEvent(b"x", b"a")]),
    ("a name without data is dropped", b"event: x\n\ndata: a\n\n", data("a")),
    ("unknown fields are ignored", b"foo: bar\nbaz\ndata: a\n\n", data("a")),
    ("comments", b": OPENROUTER PROCESSING\n\n:\ndata: a\n\n", [COMMENT, COMMENT, *data("a")]),
    ("no blank line after the last event", b"data: a\n\ndata: b", data("a", "b")),
    ("no line end after the last event", b"data: a\n\ndata: b\n", data("a", "b")),
    ("U+2028, U+0085, VT and FS are text", "data: a\u2028b\u0085c\x0bd\x1ce\n\n".encode(), data("a\u2028b\u0085c\x0bd\x1ce")),
    ("UTF-8 of two to four bytes", "data: é€😀\n\n".encode(), data("é€😀")),
    ("nothing", b"", []),
    ("only line ends", b"\n\r\n\r\n\n", []),
]


@pytest.mark.parametrize(("name", "body", "expected"), CASES, ids=[case[0] for case in CASES])
def test_an_event_stream_is_read_the_same_at_every_cut(name: str, body: bytes, expected: list[ServerSentEvent]) -> None:
    """S12.1: whole, byte by byte, and cut in two at every place."""
    assert parse([body]) == expected
    assert parse([body[i : i + 1] for i in range(len(body))]) == expected
    for place in range(len(body) + 1):
        assert parse([body[:place], body[place:]]) == expected, place


LINES = st.lists(
    st.sampled_from(["data: x", "data:", 'data: {"a": 1}', ": hi", "event: e", "id: 3", "junk", "", "", "data: \u2028é😀"]),
    max_size=30,
)


@given(LINES, st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=30, max_size=30), st.lists(st.integers(0, 999)))
def test_random_streams_do_not_depend_on_the_cuts(lines: list[str], ends: list[str], places: list[int]) -> None:
    body = "".join(line + end for line, end in zip(lines, ends, strict=False)).encode()
    assert parse(cut(body, places)) == parse([body])


@given(st.binary(max_size=300), st.lists(st.integers(0, 999)))
def test_arbitrary_bytes_never_raise_and_do_not_depend_on_the_cuts(body: bytes, places: list[int]) -> None:
    assert parse(cut(body, places)) == parse([body])


def test_an_event_over_the_limit_is_refused_whether_it_comes_in_one_line_or_many() -> None:
    """Every outside input has a size limit."""
    for body in (b"data: " + b"x" * 200, b"data: xxxxxxxxxx\n" * 20, b"x" * 200):
        parser = SseParser(max_event_bytes=100)
        with pytest.raises(TooLargeError):
            for piece in cut(body, list(range(0, 400, 7))):
                parser.feed(piece)


def test_many_small_events_are_not_taken_for_one_large_one() -> None:
    parser = SseParser(max_event_bytes=100)
    assert len(parser.feed(b"data: 0123456789\n\n" * 1000)) == 1000
