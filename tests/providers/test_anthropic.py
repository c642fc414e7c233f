"""The Messages family's answers (cases.md, "Anthropic")."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.reading import events_of, native_of, sse
from tests.providers.reading import read as read_family
from turnkeeper.types.stream import ReasoningDelta, StartedOver, TextDelta

FAMILY = "anthropic"
STOP = {"type": "message_stop"}


def read(*events: dict[str, Any]) -> dict[str, Any]:
    return read_family(FAMILY, sse(*events, named=True))


def start(message_id: str = "msg_1", **usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": message_id, "usage": {"input_tokens": 5, "output_tokens": 1} | usage}}


def block(index: int, **data: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": data}


def delta(index: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | data}


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return [block(index, type="text", text=""), *[delta(index, "text_delta", text=one) for one in pieces], end(index)]


def call(index: int, name: str, *pieces: str, call_id: str = "toolu_1") -> list[dict[str, Any]]:
    begun = block(index, type="tool_use", id=call_id, name=name, input={})
    return [begun, *[delta(index, "input_json_delta", partial_json=one) for one in pieces], end(index)]


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def finish(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9} | usage}


def test_pings_unknown_events_and_unknown_blocks_are_ignored_and_unknown_blocks_are_kept() -> None:
    unknown = block(0, type="hologram", beam="on")
    events = [
        {"type": "ping"},
        start(),
        {"type": "weather"},
        unknown,
        {"type": "ping"},
        end(0),
        *text(1, "Hi"),
        finish("end_turn"),
        STOP,
    ]
    found = read(*events)
    assert (found["text"], found["finish"], found["error"]) == ("Hi", "stop", None)
    assert native_of(FAMILY, sse(*events, named=True)) == {
        "content": [{"type": "hologram", "beam": "on"}, {"type": "text", "text": "Hi"}]
    }


def test_an_overload_after_text_is_a_fault_of_the_model_and_the_text_stands() -> None:
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = read(start(), block(0, type="text", text=""), delta(0, "text_delta", text="Half"), overload)
    assert found["text"] == "Half"
    assert found["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert found["fault"]["kind"] == "overloaded"


@pytest.mark.parametrize(
    ("said", "finish_word", "fault"),
    [
        ("end_turn", "stop", None),
        ("stop_sequence", "stop", None),
        ("max_tokens", "length", None),
        ("refusal", "content_filter", None),
        ("pause_turn", "pause", None),
        ("model_context_window_exceeded", "length", "context_length"),
    ],
)
def test_each_stop_reason_has_its_meaning(said: str, finish_word: str, fault: str | None) -> None:
    found = read(start(), *text(0, "Hi"), finish(said), STOP)
    assert (found["finish"], found["finish_reason"]) == (finish_word, said)
    assert (found["fault"] or {}).get("kind") == fault


def test_max_tokens_inside_a_call_leaves_it_truncated() -> None:
    found = read(start(), *call(0, "f", '{"a": [1, 2'), finish("max_tokens"), STOP)
    assert found["tool_calls"] == [
        {"id": "toolu_1", "name": "f", "arguments": '{"a": [1, 2', "problem": "cut off before its end"}
    ]


def test_a_call_without_deltas_has_no_arguments() -> None:
    assert read(start(), *call(0, "f"), finish("tool_use"), STOP)["tool_calls"] == [
        {"id": "toolu_1", "name": "f", "arguments": {}}
    ]


def test_a_call_whose_input_stands_in_its_beginning_is_read() -> None:
    begun = block(0, type="tool_use", id="toolu_1", name="f", input={"a": 1})
    assert read(start(), begun, end(0), finish("tool_use"), STOP)["tool_calls"][0]["arguments"] == {"a": 1}


def test_two_calls_of_one_id_get_ids_of_their_own() -> None:
    found = read(start(), *call(0, "f", "{}"), *call(1, "f", '{"a":1}'), finish("tool_use"), STOP)
    assert len({one["id"] for one in found["tool_calls"]}) == 2


def test_signed_thinking_and_redacted_thinking_are_kept_to_be_sent_back_unchanged() -> None:
    events = [
        start(),
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Let me "),
        delta(0, "thinking_delta", thinking="see."),
        delta(0, "signature_delta", signature="c2ln"),
        end(0),
        block(1, type="redacted_thinking", data="ZGF0YQ=="),
        end(1),
        *call(2, "f", '{"a":', "1}"),
        finish("tool_use"),
        STOP,
    ]
    assert read(*events)["reasoning"] == "Let me see."
    assert native_of(FAMILY, sse(*events, named=True)) == {
        "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        ]
    }


def test_thinking_that_nobody_signed_is_not_sent_back() -> None:
    events = [start(), block(0, type="thinking", thinking="hm"), end(0), *call(1, "f", "{}"), finish("tool_use"), STOP]
    assert native_of(FAMILY, sse(*events, named=True)) is None


def test_a_second_message_start_of_the_same_id_is_ignored() -> None:
    assert read(start(), *text(0, "Hello"), start(), finish("end_turn"), STOP)["text"] == "Hello"


def test_a_second_message_start_of_a_new_id_begins_anew_and_takes_no_text_back() -> None:
    events = [
        start(),
        *text(0, "Hel"),
        *call(1, "f", "{"),
        start("msg_2"),
        *text(0, "Hello", " there"),
        finish("end_turn"),
        STOP,
    ]
    found = read(*events)
    assert (found["text"], found["tool_calls"]) == ("Hello there", [])


def test_what_a_new_message_says_otherwise_is_shown_after_what_stands() -> None:
    events = [start(), *text(0, "One."), start("msg_2"), *text(0, "Two."), finish("end_turn"), STOP]
    assert read(*events)["text"] == "One.Two."


def test_a_new_beginning_is_told_so_that_calls_and_reasoning_before_it_are_dropped() -> None:
    thought = [block(0, type="thinking", thinking="old"), end(0)]
    events = events_of(FAMILY, [sse(start(), *thought, start("msg_2"), *text(0, "Hi"), finish("end_turn"), STOP, named=True)])
    kinds = [type(event) for event in events if isinstance(event, ReasoningDelta | StartedOver | TextDelta)]
    assert kinds == [ReasoningDelta, StartedOver, TextDelta]


def test_a_stream_that_is_dropped_keeps_its_text_and_loses_its_call() -> None:
    found = read(start(), *text(0, "Half"), *call(1, "f", '{"a":1}'))
    assert (found["text"], found["tool_calls"], found["fault"]["kind"]) == ("Half", [], "network")


def test_a_whole_answer_is_read_as_one() -> None:
    body = b'{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}'
    found = read_family(FAMILY, body)
    assert (found["text"], found["tool_calls"]) == ("Hi", [{"id": "t", "name": "f", "arguments": {"a": 1}}])
    assert (found["tokens"]["input"], found["tokens"]["output"]) == (3, 4)


def test_a_whole_error_is_classified() -> None:
    found = read_family(FAMILY, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    assert found["fault"]["kind"] == "overloaded"


def test_citations_stay_with_the_text_that_they_belong_to() -> None:
    cited = delta(1, "citations_delta", citation={"type": "web_search_result_location", "url": "https://example.org"})
    events = [
        start(),
        block(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query":"x"}'),
        end(0),
        block(1, type="text", text="", citations=[]),
        cited,
        delta(1, "text_delta", text="So."),
        end(1),
        finish("end_turn"),
        STOP,
    ]
    native = native_of(FAMILY, sse(*events, named=True))
    assert native is not None
    assert native["content"][0]["input"] == {"query": "x"}
    assert native["content"][1]["citations"] == [{"type": "web_search_result_location", "url": "https://example.org"}]


def test_half_of_an_emoji_in_two_deltas_is_one_character() -> None:
    body = sse(start(), block(0, type="text", text=""), named=True)
    body += b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}\n\n'
    body += b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ude00"}}\n\n'
    body += sse(finish("end_turn"), STOP, named=True)
    assert read_family(FAMILY, body)["text"] == "😀"


def test_another_familys_stream_is_named_as_such() -> None:
    found = read_family(FAMILY, b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n')
    assert found["fault"]["kind"] == "protocol"
    assert "choices" in found["fault"]["message"]
