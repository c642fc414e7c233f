"""The Responses family's answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.reading import native_of, sse
from tests.providers.reading import read as read_family

FAMILY = "openai-responses"


def read(*events: dict[str, Any]) -> dict[str, Any]:
    return read_family(FAMILY, sse(*events, named=True))


def added(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text(index: int, piece: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": piece}


def arguments(index: int, piece: str) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": piece}


def ended(status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"status": status, "output": []} | more}


def function(index: int, call_id: str, whole: str, *pieces: str) -> list[dict[str, Any]]:
    item = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": "f"}
    return [
        added(index, **item, arguments=""),
        *[arguments(index, one) for one in pieces],
        done(index, **item, arguments=whole),
    ]


def message(index: int, *pieces: str, **more: Any) -> list[dict[str, Any]]:
    whole = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "".join(pieces)}],
    }
    return [
        added(index, type="message", content=[], **more),
        *[text(index, one) for one in pieces],
        done(index, **whole, **more),
    ]


def test_text_and_a_call_in_one_answer() -> None:
    found = read(*message(0, "Let ", "me see."), *function(1, "call_1", '{"a":1}', '{"a"', ":1}"), ended())
    assert found["text"] == "Let me see."
    assert found["tool_calls"] == [{"id": "call_1", "name": "f", "arguments": {"a": 1}}]
    assert (found["finish"], found["finish_reason"]) == ("tool_calls", "completed")


def test_arguments_that_only_the_end_says_are_read() -> None:
    assert read(*function(0, "call_1", '{"a":1}'), ended())["tool_calls"][0]["arguments"] == {"a": 1}


def test_the_servers_last_word_on_arguments_counts() -> None:
    assert read(*function(0, "call_1", '{"a":2}', '{"a":1'), ended())["tool_calls"][0]["arguments"] == {"a": 2}


def test_two_calls_of_one_id_get_ids_of_their_own() -> None:
    found = read(*function(0, "call_1", "{}"), *function(1, "call_1", "{}"), ended())
    assert len({one["id"] for one in found["tool_calls"]}) == 2


def test_a_server_that_sends_only_the_whole_response_is_read() -> None:
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    found = read(ended(output=output, usage={"input_tokens": 3, "output_tokens": 2}))
    assert (found["text"], found["tool_calls"][0]["name"], found["tokens"]["input"]) == ("Hi", "f", 3)


def test_text_that_only_its_end_says_whole_is_completed() -> None:
    whole = {"type": "message", "content": [{"type": "output_text", "text": "Hello there"}]}
    assert read(added(0, type="message"), text(0, "Hel"), done(0, **whole), ended())["text"] == "Hello there"


def test_ids_that_change_while_an_item_streams_do_not_matter() -> None:
    events = [added(0, type="message", id="a"), text(0, "Hi") | {"item_id": "b"}, text(0, "!") | {"item_id": "c"}]
    assert (
        read(*events, done(0, type="message", id="d", content=[{"type": "output_text", "text": "Hi!"}]), ended())["text"]
        == "Hi!"
    )


@pytest.mark.parametrize(
    ("details", "finish"),
    [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "content_filter"), (None, "length")],
)
def test_an_incomplete_answer_says_why(details: dict[str, str] | None, finish: str) -> None:
    found = read(*message(0, "Half"), ended("incomplete", incomplete_details=details))
    assert (found["text"], found["finish"], found["finish_reason"]) == ("Half", finish, "incomplete")


def test_a_call_cut_by_the_output_limit_is_truncated() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f"}
    events = [
        added(0, **call),
        arguments(0, '{"a": [1'),
        ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ]
    assert read(*events)["tool_calls"][0]["problem"] == "cut off before its end"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "x"}, "server"),
        ({"code": "rate_limit_exceeded", "message": "x"}, "rate_limit"),
        ({"code": "context_length_exceeded", "message": "x"}, "context_length"),
        (None, "server"),
    ],
)
def test_a_failed_response_is_classified_and_the_text_stands(error: dict[str, str] | None, kind: str) -> None:
    found = read(added(0, type="message"), text(0, "Half"), ended("failed", error=error))
    assert (found["text"], found["fault"]["kind"], found["tool_calls"]) == ("Half", kind, [])


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "insufficient_quota", "message": "x", "param": None},
        {"type": "error", "error": {"code": "insufficient_quota", "message": "x"}},
    ],
)
def test_an_error_event_in_either_form_is_classified(event: dict[str, Any]) -> None:
    assert read(event)["fault"]["kind"] == "quota_exhausted"


def test_a_refusal_is_blocked_content() -> None:
    refused = {"type": "response.refusal.delta", "output_index": 0, "delta": "I can't."}
    whole = done(0, type="message", content=[{"type": "refusal", "refusal": "I can't."}])
    for events in ([added(0, type="message"), refused, whole], [added(0, type="message"), whole]):
        found = read(*events, ended())
        assert found["fault"]["kind"] == "content_blocked"
        assert "I can't." in found["fault"]["message"]


def test_parts_of_a_reasoning_summary_are_paragraphs_and_the_item_is_kept() -> None:
    def summary(part: int, piece: str) -> dict[str, Any]:
        return {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": part, "delta": piece}

    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    events = [added(0, type="reasoning"), summary(0, "One"), summary(0, "."), summary(1, "Two."), done(0, **item)]
    events += [*function(1, "call_1", "{}"), ended()]
    assert read(*events)["reasoning"] == "One.\n\nTwo."
    native = native_of(FAMILY, sse(*events, named=True))
    assert native is not None
    assert [one["type"] for one in native["output"]] == ["reasoning", "function_call"]
    assert native["output"][0]["encrypted_content"] == "gAAA"


def test_a_stream_that_is_dropped_is_a_lost_connection_and_its_call_does_not_run() -> None:
    found = read(*message(0, "Half"), *function(1, "call_1", "{}"))
    assert (found["text"], found["tool_calls"], found["fault"]["kind"]) == ("Half", [], "network")


def test_a_whole_answer_is_read_as_one() -> None:
    body = b'{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":1,"output_tokens":2}}'
    assert read_family(FAMILY, body)["text"] == "Hi"


def test_a_stream_of_chat_completions_is_another_familys() -> None:
    found = read_family(
        FAMILY, b'event: None\ndata: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    )
    assert (found["error"], found["fault"]["kind"]) == (None, "protocol")


def test_leaked_reasoning_is_moved_out_of_the_text() -> None:
    found = read(*message(0, "<thi", "nk>hm</think>", "Hi"), ended())
    assert (found["text"], found["reasoning"]) == ("Hi", "hm")
