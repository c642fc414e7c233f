"""The chat-completions parser (cases.md, "OpenAI chat completions and its relatives", "Usage"; S12)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.openai_chat.parser import ChatParser
from turnkeeper.providers.report import fold
from turnkeeper.types.stream import FaultReported, Heartbeat, NativePart, StreamEvent, ToolCallStarted, UsageReported


def event(**chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def delta(finish: str | None = None, usage: Any = None, **fields: Any) -> bytes:
    chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
    return event(**chunk | ({"usage": usage} if usage is not None else {}))


def part(index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None) -> dict[str, Any]:  # noqa: A002
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    return {key: value for key, value in (("index", index), ("id", id), ("function", function)) if value is not None}


def calls(*parts: dict[str, Any], finish: str | None = None) -> bytes:
    return delta(finish, tool_calls=list(parts))


DONE = b"data: [DONE]\n\n"


def events_of(pieces: list[bytes], **options: Any) -> list[StreamEvent]:
    parser = ChatParser(AnswerOptions("m", **options))
    return [one for piece in pieces for one in parser.feed(piece)] + parser.close()


def read(body: bytes, **options: Any) -> dict[str, Any]:
    """The report of a body; the same whole, byte by byte, and cut in two at any place."""
    whole = fold(events_of([body], **options))
    assert fold(events_of([body[i : i + 1] for i in range(len(body))], **options)) == whole
    step = max(1, len(body) // 40)
    for place in range(0, len(body), step):
        assert fold(events_of([body[:place], body[place:]], **options)) == whole
    return whole


def called(body: bytes) -> list[tuple[str, Any]]:
    return [(call["name"], call["arguments"]) for call in read(body)["tool_calls"]]


CALLS = [
    (
        "no index: told apart by id",
        calls(part(id="a", name="f", args='{"x":1}')) + calls(part(id="b", name="f", args='{"x":2}')),
        [("f", {"x": 1}), ("f", {"x": 2})],
    ),
    (
        "no index, no id: told apart by a new name",
        calls(part(name="f", args='{"x":1}')) + calls(part(name="g", args="{}")),
        [("f", {"x": 1}), ("g", {})],
    ),
    (
        "no index, no id, no name: goes on with the last",
        calls(part(name="f", args='{"x"')) + calls(part(args=":1}")),
        [("f", {"x": 1})],
    ),
    (
        "every parallel call with index 0 but different ids",
        calls(part(0, "a", "f", '{"x":'))
        + calls(part(0, args="1}"))
        + calls(part(0, "b", "g", '{"y":'))
        + calls(part(0, args="2}")),
        [("f", {"x": 1}), ("g", {"y": 2})],
    ),
    ("indexes from 1, with gaps", calls(part(1, "a", "f", "{}")) + calls(part(7, "b", "g", "{}")), [("f", {}), ("g", {})]),
    (
        "name repeated in each delta",
        calls(part(0, "a", "f", '{"x"')) + calls(part(0, "a", "f", ":1")) + calls(part(0, "a", "f", "}")),
        [("f", {"x": 1})],
    ),
    (
        "name split over deltas",
        calls(part(0, "a", "get_")) + calls(part(0, None, "weather")) + calls(part(0, args="{}")),
        [("get_weather", {})],
    ),
    ("name that grows", calls(part(0, "a", "get")) + calls(part(0, "a", "get_weather", "{}")), [("get_weather", {})]),
    ("id only in the second delta", calls(part(0, None, "f")) + calls(part(0, "a", None, "{}")), [("f", {})]),
    ("arguments as an object", calls(part(0, "a", "f", {"x": {"y": [1]}})), [("f", {"x": {"y": [1]}})]),
    ("arguments empty", calls(part(0, "a", "f", "")), [("f", {})]),
    ("arguments null as text", calls(part(0, "a", "f", "null")), [("f", {})]),
    ("arguments blank", calls(part(0, "a", "f", " \n")), [("f", {})]),
    (
        "arguments said twice: the last object counts",
        calls(part(0, "a", "f", "{}")) + calls(part(0, args='{"a":1}')),
        [("f", {"a": 1})],
    ),
    (
        "Ollama: whole calls, all index 0, ids missing, the same name twice",
        calls(part(0, None, "f", '{"x":1}')) + calls(part(0, None, "f", '{"x":2}')) + calls(part(0, "", "f", '{"x":3}')),
        [("f", {"x": 1}), ("f", {"x": 2}), ("f", {"x": 3})],
    ),
    (
        "interleaved fragments of two indexes, ids only on the first",
        calls(part(0, "a", "f", '{"x"'), part(1, "b", "g", '{"y"')) + calls(part(1, args=":2}")) + calls(part(0, args=":1}")),
        [("f", {"x": 1}), ("g", {"y": 2})],
    ),
    (
        "the id changes in a later fragment without a name: the first stays",
        calls(part(0, "a", "f", '{"x"')) + calls(part(0, "zz", None, ":1}")),
        [("f", {"x": 1})],
    ),
    (
        "llama.cpp: first calls with empty arguments, the last whole",
        calls(part(0, "a", "f", "")) + calls(part(1, "b", "f", "")) + calls(part(2, "c", "f", '{"x":1}')),
        [("f", {}), ("f", {}), ("f", {"x": 1})],
    ),
    (
        "two calls, each whole with its own finish reason, then an empty delta",
        calls(part(0, "a", "f", "{}"), finish="tool_calls") + calls(part(1, "b", "g", "{}"), finish="tool_calls"),
        [("f", {}), ("g", {})],
    ),
    (
        "legacy function_call",
        delta(function_call={"name": "f", "arguments": '{"x"'}) + delta(function_call={"arguments": ":1}"}),
        [("f", {"x": 1})],
    ),
    ("an index as text", calls({"index": "0", "id": "a", "function": {"name": "f", "arguments": "{}"}}), [("f", {})]),
]


@pytest.mark.parametrize(("name", "body", "expected"), CALLS, ids=[case[0] for case in CALLS])
def test_calls_are_told_apart_and_put_together(name: str, body: bytes, expected: list[tuple[str, Any]]) -> None:
    """cases.md: the servers' ways of sending calls."""
    assert called(body + delta("stop") + DONE) == expected


def test_ids_are_unique_where_the_server_sends_none_or_the_same_twice() -> None:
    """S4.6"""
    body = calls(part(0, "x", "f", "{}"), part(1, "x", "g", "{}"), part(2, "", "h", "{}"), part(3, None, "i", "{}"))
    ids = [call["id"] for call in read(body + delta("tool_calls") + DONE, id_prefix="p_")["tool_calls"]]
    assert ids[0] == "x"
    assert len(set(ids)) == 4
    assert all(ids)


@pytest.mark.parametrize("text", ['{"x":1} thanks', "{'x': 1}", '```json\n{"x":1}\n```', "[1]", '"x"', "3", '{"x": NaN}'])
def test_arguments_that_are_no_object_are_invalid_and_never_guessed(text: str) -> None:
    """S6.1, S12.3: the model gets the problem and can mend it."""
    call = read(calls(part(0, "a", "f", text)) + delta("tool_calls") + DONE)["tool_calls"][0]
    assert call["arguments"] == text
    assert call["problem"]


def test_arguments_cut_by_the_output_limit_are_truncated() -> None:
    """S6.1"""
    call = read(calls(part(0, "a", "f", '{"x": "ab')) + delta("length") + DONE)["tool_calls"][0]
    assert call["problem"] == "cut off before its end"


def test_whole_arguments_without_any_finish_reason_run_where_the_stream_says_that_it_is_done() -> None:
    """S3.4a; and the same cut before the closing brace is truncated."""
    assert called(calls(part(0, "a", "f", '{"x":1}')) + DONE) == [("f", {"x": 1})]
    cut = read(calls(part(0, "a", "f", '{"x":1')) + DONE)["tool_calls"][0]
    assert cut["problem"] == "cut off before its end"


def test_whole_arguments_with_neither_finish_reason_nor_done_are_a_dropped_connection() -> None:
    """S3.4a: the call does not run, but for servers known never to send either."""
    body = calls(part(0, "a", "f", '{"x":1}'))
    dropped = read(body)
    assert dropped["tool_calls"] == []
    assert dropped["error"]["type"] == "network"
    assert read(body, ends_unmarked=True)["tool_calls"][0]["arguments"] == {"x": 1}


FINISHES = [
    ("stop", "stop"), ("eos", "stop"), ("end_turn", "stop"), ("length", "length"), ("max_tokens", "length"),
    ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), ("content_filter", "content_filter"), ("weird", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "ours"), FINISHES)
def test_finish_reasons_are_mapped_and_kept(said: str, ours: str) -> None:
    found = read(delta(content="hi") + delta(said) + DONE)
    assert (found["finish"], found["finish_reason"]) == (ours, said)


@pytest.mark.parametrize("said", ["", None])
def test_without_a_finish_reason_the_end_of_the_stream_decides(said: str | None) -> None:
    found = read(delta(content="hi") + delta(said) + DONE)
    assert (found["text"], found["finish"], found["error"]) == ("hi", "stop", None)


def test_native_finish_reason_is_read_too() -> None:
    """S12.1"""
    body = event(
        choices=[{"index": 0, "delta": {"content": "hi"}, "finish_reason": None, "native_finish_reason": "MAX_TOKENS"}]
    )
    assert read(body + DONE)["finish"] == "length"


def test_text_and_calls_in_one_message_are_both_kept() -> None:
    found = read(calls(part(0, "a", "f", "{}")) + delta(content="after") + delta("stop") + DONE)
    assert (found["text"], len(found["tool_calls"])) == ("after", 1)


def test_one_delta_may_hold_reasoning_text_call_finish_and_usage() -> None:
    """S12.1: every field of every delta is read."""
    body = delta(
        "tool_calls",
        usage={"prompt_tokens": 3, "completion_tokens": 2},
        reasoning="r",
        content="t",
        tool_calls=[part(0, "a", "f", "{}")],
    )
    found = read(body + DONE)
    assert (found["reasoning"], found["text"], found["finish"], found["tokens"]["input"]) == ("r", "t", "tool_calls", 3)
    assert found["tool_calls"][0]["name"] == "f"


ODD = [
    ("content null", delta(content=None) + delta(content="a") + delta("stop"), "a"),
    ("content empty", delta(content="") + delta(content="a") + delta("stop"), "a"),
    ("content a list of parts", delta(content=[{"type": "text", "text": "a"}, "b"]) + delta("stop"), "ab"),
    ("role in every delta", delta(role="assistant", content="a") + delta("stop", role="assistant", content="b"), "ab"),
    ("delta null", event(choices=[{"index": 0, "delta": None}]) + delta("stop", content="a"), "a"),
    ("delta missing", event(choices=[{"index": 0}]) + delta("stop", content="a"), "a"),
    (
        "more than one choice: only 0",
        event(choices=[{"index": 1, "delta": {"content": "no"}}]) + delta("stop", content="a"),
        "a",
    ),
    (
        "two choices in one event",
        event(choices=[{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "a"}}]) + delta("stop"),
        "a",
    ),
    ("a number as content", delta(content=5) + delta("stop"), "5"),
    ("no choices at all", event(id="x") + delta("stop", content="a"), "a"),
    ("unknown fields", event(choices=[{"index": 0, "delta": {"content": "a", "x": [1]}, "y": {}}], z=1) + delta("stop"), "a"),
    ("not JSON between", b"data: ping\n\n" + delta("stop", content="a"), "a"),
]


@pytest.mark.parametrize(("name", "body", "text"), ODD, ids=[case[0] for case in ODD])
def test_odd_chunks_cost_only_the_odd_field(name: str, body: bytes, text: str) -> None:
    found = read(body + DONE)
    assert (found["text"], found["error"]) == (text, None)


def test_a_surrogate_pair_split_over_two_chunks_is_one_character() -> None:
    body = b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00b"}}]}\n\n'
    assert read(body + delta("stop") + DONE)["text"] == "a😀b"


def test_a_byte_that_is_no_utf8_costs_one_character() -> None:
    body = b'data: {"choices":[{"delta":{"content":"a\xffb"}}]}\n\n'
    assert read(body + delta("stop") + DONE)["text"] == "a�b"


REASONING = [
    ("reasoning_content", delta(reasoning_content="r") + delta(content="t"), "r", "t"),
    ("reasoning", delta(reasoning="r") + delta(content="t"), "r", "t"),
    (
        "reasoning_details alone",
        delta(reasoning_details=[{"type": "reasoning.text", "text": "r"}]) + delta(content="t"),
        "r",
        "t",
    ),
    ("both: said once", delta(reasoning="r", reasoning_details=[{"text": "r"}]) + delta(content="t"), "r", "t"),
    ("a tag in the content", delta(content="<think>r</think>t"), "r", "t"),
    ("a tag split over chunks", delta(content="<th") + delta(content="ink>r</thi") + delta(content="nk>\n\nt"), "r", "t"),
    ("a namespace", delta(content="<seed:think>r</seed:think>t"), "r", "t"),
    ("a stray closing tag", delta(content="a</think>t"), "", "at"),
    ("a tag in backticks is quoted", delta(content="use `<think>` so"), "", "use `<think>` so"),
    ("not a tag after all", delta(content="1 <") + delta(content=" 2"), "", "1 < 2"),
    ("an unfinished tag at the end", delta(content="a <thin"), "", "a <thin"),
]


@pytest.mark.parametrize(("name", "body", "reasoning", "text"), REASONING, ids=[case[0] for case in REASONING])
def test_reasoning_is_kept_apart_from_text(name: str, body: bytes, reasoning: str, text: str) -> None:
    """S12.3"""
    found = read(body + delta("stop") + DONE)
    assert (found["reasoning"], found["text"]) == (reasoning, text)


def test_reasoning_is_given_back_as_a_native_part() -> None:
    """Reasoning is replayed where the server needs it."""
    parts = [
        one
        for one in events_of([delta(reasoning_content="a") + delta(reasoning_content="b", content="t") + delta("stop") + DONE])
        if isinstance(one, NativePart)
    ]
    assert [one.data for one in parts] == [{"reasoning_content": "ab"}]


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "think", ">", "a b", "\n", "`", "</", "x:think>", "é"]), max_size=12),
    st.data(),
)
@settings(max_examples=200)
def test_reasoning_tags_do_not_depend_on_the_cuts(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    borders = [0, *places, len(text)]
    pieces = [text[a:b] for a, b in zip(borders, borders[1:], strict=False)]
    whole = fold(events_of([delta(content=text) + delta("stop") + DONE]))
    cut = fold(events_of([b"".join(delta(content=piece) for piece in pieces) + delta("stop") + DONE]))
    assert (cut["text"], cut["reasoning"]) == (whole["text"], whole["reasoning"])


def test_a_tail_that_the_last_chunk_sends_again_is_not_shown_twice() -> None:
    """S12.3"""
    said = "The tide comes in twice a day, and so on."
    assert read(delta(content=said[:20]) + delta(content=said[20:]) + delta("stop", content=said) + DONE)["text"] == said


ERRORS = [
    ("an error object", event(error={"message": "no", "type": "server_error"}), "server"),
    ("an error as text", event(error="overloaded, try again later"), "overloaded"),
    ("event: error", b'event: error\ndata: {"message": "slow down", "code": "rate_limit_exceeded"}\n\n', "rate_limit"),
    (
        "an error in the choice",
        event(choices=[{"index": 0, "delta": {}, "error": {"code": 502, "message": "bad gateway"}}]),
        "server",
    ),
    (
        "a full window",
        event(error={"code": 400, "message": "This model's maximum context length is 8192 tokens"}),
        "context_length",
    ),
]


@pytest.mark.parametrize(("name", "body", "kind"), ERRORS, ids=[case[0] for case in ERRORS])
def test_an_error_inside_the_stream_is_classified_and_the_text_before_it_stands(name: str, body: bytes, kind: str) -> None:
    """S12.4"""
    for before in (b"", delta(content="half")):
        found = [one for one in events_of([before + body]) if isinstance(one, FaultReported)]
        assert [one.fault.kind for one in found] == [kind]
        assert read(before + body)["text"] == ("half" if before else "")


def test_a_refusal_and_a_content_filter_are_content_blocked() -> None:
    found = [one for one in events_of([delta(refusal="I can't") + delta("stop") + DONE]) if isinstance(one, FaultReported)]
    assert [one.fault.kind for one in found] == ["content_blocked"]
    assert not found[0].fault.retryable
    assert read(delta(content="a") + delta("content_filter") + DONE)["finish"] == "content_filter"


def test_a_reset_after_half_a_reply_is_a_network_error() -> None:
    found = read(delta(content="half a"))
    assert (found["text"], found["error"]["type"]) == ("half a", "network")


def test_nothing_at_all_is_a_network_error() -> None:
    assert read(b"")["error"]["type"] == "network"
    assert read(b": keep-alive\n\n: keep-alive\n\n")["error"]["type"] == "network"


def test_comments_are_heartbeats_and_not_progress() -> None:
    """S5.1"""
    assert events_of([b": PROCESSING\n\n"])[0] == Heartbeat()


def test_no_done_is_a_clean_end_where_a_finish_reason_came_and_what_follows_done_is_ignored() -> None:
    assert read(delta(content="a") + delta("stop"))["error"] is None
    assert read(delta(content="a") + delta("stop") + DONE + delta(content="b"))["text"] == "a"
    assert read((delta(content="a") + delta("stop")).rstrip(b"\n"))["finish"] == "stop"


def test_a_whole_json_answer_is_read_although_a_stream_was_asked_for() -> None:
    body = json.dumps({"choices": [{"message": {"content": "hi", "tool_calls": [part(None, "a", "f", '{"x":1}')]}, "finish_reason": "tool_calls"}],
                       "usage": {"prompt_tokens": 1, "completion_tokens": 2}}).encode()  # fmt: skip
    found = read(body, content_type="application/json")
    assert (found["text"], found["tool_calls"][0]["arguments"], found["tokens"]["output"]) == ("hi", {"x": 1}, 2)
    assert read(b'{"error": {"message": "no such model", "code": "model_not_found"}}')["error"]["code"] == "model_not_found"
    assert read(body[:40])["error"]["type"] == "network"


def test_a_page_is_a_protocol_error_that_names_the_content_type_and_quotes_it() -> None:
    found = read(b"<html><body>Please log in to WiFi " + b"x" * 500, content_type="text/html; charset=utf-8")["error"]
    assert found["type"] == "protocol"
    assert "text/html" in found["message"]
    assert "Please log in" in found["message"]
    assert len(found["message"]) < 400


def test_an_event_over_the_limit_is_a_protocol_error() -> None:
    parser = ChatParser(AnswerOptions(max_event_bytes=1000))
    found = parser.feed(b"data: " + b"x" * 2000)
    assert isinstance(found[0], FaultReported)
    assert parser.over


USAGE = [
    ("cached is part of the prompt", {"prompt_tokens": 20212, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16298}}, (3914, 16298, 0, 5, 0)),
    ("reasoning is part of the completion", {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}, (1, 0, 0, 9, 7)),
    ("xAI: reasoning beside the completion", {"prompt_tokens": 291, "completion_tokens": 26, "total_tokens": 513, "prompt_tokens_details": {"cached_tokens": 290}, "completion_tokens_details": {"reasoning_tokens": 196}}, (1, 290, 0, 222, 196)),
    ("DeepSeek's own field", {"prompt_tokens": 339, "completion_tokens": 1, "prompt_cache_hit_tokens": 320}, (19, 320, 0, 1, 0)),
    ("more cached than sent", {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}, (0, 5, 0, 1, 0)),
    ("negative and text are ignored", {"prompt_tokens": 5, "completion_tokens": -1, "prompt_tokens_details": {"cached_tokens": "3"}}, (5, 0, 0, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "said", "expected"), USAGE, ids=[case[0] for case in USAGE])
def test_usage_is_read_into_disjoint_parts(name: str, said: dict[str, Any], expected: tuple[int, ...]) -> None:
    """S15.2"""
    tokens = read(delta(content="a") + delta("stop") + event(choices=[], usage=said) + DONE)["tokens"]
    assert (tokens["input"], tokens["cache_read"], tokens["cache_write"], tokens["output"], tokens["reasoning"]) == expected


@pytest.mark.parametrize("said", [None, {}, [], "x", {"prompt_tokens": None}])
def test_usage_that_says_nothing_is_no_report(said: Any) -> None:
    assert read(delta("stop", content="a") + event(choices=[], usage=said) + DONE)["tokens"] is None


def test_of_several_usage_reports_the_last_counts_and_nothing_is_added() -> None:
    """S15.2"""
    body = delta(content="a", usage={"prompt_tokens": 11, "completion_tokens": 1}) + delta(
        "stop", usage={"prompt_tokens": 11, "completion_tokens": 4}
    )
    assert [one.usage.output for one in events_of([body + DONE]) if isinstance(one, UsageReported)] == [4]


def test_one_megabyte_of_arguments_is_linear_in_the_pieces() -> None:
    """Each piece is kept once and joined once."""
    piece = "x" * 4096
    parser = ChatParser()
    found: list[StreamEvent] = parser.feed(calls(part(0, "a", "f", '{"t":"')))
    for _ in range(256):
        found += parser.feed(calls(part(0, args=piece)))
    found += parser.feed(calls(part(0, args='"}')) + delta("tool_calls") + DONE)
    assert len([one for one in found if isinstance(one, ToolCallStarted)]) == 1
    assert fold(found)["tool_calls"][0]["arguments"] == {"t": piece * 256}


CHUNKS = st.lists(
    st.one_of(
        st.builds(lambda text: delta(content=text), st.text(max_size=5)),
        st.builds(lambda text: delta(reasoning=text), st.text(max_size=5)),
        st.builds(
            lambda index, id, name, args: calls(part(index, id, name, args)),  # noqa: A006
            st.sampled_from([None, 0, 1]),
            st.sampled_from([None, "", "a", "b"]),
            st.sampled_from([None, "f", "g"]),
            st.sampled_from([None, "", "{", "}", "{}", '{"x":1}', '"x"', 5, {"y": 2}]),
        ),
        st.sampled_from([b": ping\n\n", delta("stop"), delta("tool_calls"), event(choices=None), b"data: {\n\n", b"junk\n"]),
    ),
    max_size=12,
)


@given(CHUNKS, st.booleans(), st.data())
@settings(max_examples=200)
def test_any_sequence_of_chunks_gives_the_same_at_every_cut_and_every_id_once(
    chunks: list[bytes], done: bool, data: st.DataObject
) -> None:
    body = b"".join(chunks) + (DONE if done else b"")
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    borders = [0, *places, len(body)]
    whole = fold(events_of([body]))
    assert fold(events_of([body[a:b] for a, b in zip(borders, borders[1:], strict=False)])) == whole
    ids = [call["id"] for call in whole["tool_calls"]]
    assert len(set(ids)) == len(ids)


def test_a_tail_of_a_call_that_the_server_called_malformed_is_no_answer() -> None:
    """S10.5: the model reads that its call could not be read."""
    body = delta(content="='Paris'))") + (
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}\n\n'
    )
    (made,) = read(body + DONE)["tool_calls"]
    assert "MALFORMED_FUNCTION_CALL" in made["problem"]
