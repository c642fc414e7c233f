"""How scripts are worded as Messages streams; and the parser reads them back."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from tests.shared import STREAMS
from turnkeeper.providers.report import report
from turnkeeper.testing import Answer, SeenRequest, call, error, finish, interleave, refuse, say, think, together, usage
from turnkeeper.testing.anthropic import ANTHROPIC
from turnkeeper.testing.steps import Framing

REQUEST = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}


def voiced(answer: Answer) -> list[dict[str, Any]]:
    numbers = count(1)
    request = SeenRequest(at=0, path="/v1/messages", headers={}, body=REQUEST, raw=b"", key="")
    voice = ANTHROPIC.voice(answer, request, lambda: f"id{next(numbers)}")
    events = [event for step in answer.steps if not isinstance(step, Framing) for event in voice.say(step)]
    events += [] if answer.ends_itself else voice.end()
    assert all(event.name == json.loads(event.data)["type"] for event in events)
    return [json.loads(event.data) for event in events]


def read(answer: Answer) -> dict[str, Any]:
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in voiced(answer))
    return report("anthropic", [body.encode()])


def test_a_text_is_one_block_between_a_start_and_a_stop_reason() -> None:
    kinds = [event["type"] for event in voiced(say("Hi", pieces=["H", "i"]) + say("!", pieces=1))]
    assert kinds == [
        "message_start",
        "content_block_start",
        "ping",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (say("Hi."), {"text": "Hi.", "finish_reason": "end_turn"}),
        (think("Hm.") + say("Hi."), {"text": "Hi.", "reasoning": "Hm."}),
        (
            say("So.") + call("f", {"a": 1}, id="t"),
            {"tool_calls": [{"id": "t", "name": "f", "arguments": {"a": 1}}], "finish": "tool_calls"},
        ),
        (call("f", {}, id="t"), {"tool_calls": [{"id": "t", "name": "f", "arguments": {}}]}),
        (say("Hi") + finish("length"), {"finish": "length", "finish_reason": "max_tokens"}),
        (say("Hi") + finish("pause_turn"), {"finish": "pause"}),
        (refuse("No."), {"text": "No.", "finish_reason": "refusal"}),
        (
            say("Hi") + error("Overloaded", code="overloaded_error"),
            {"error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
        (together(think("Hm."), say("Hi.")), {"text": "Hi.", "reasoning": "Hm."}),
        (
            interleave(call("f", {"a": 1}, id="a"), call("g", {"b": 2}, id="b")),
            {"tool_calls": [{"id": "a", "name": "f", "arguments": {"a": 1}}, {"id": "b", "name": "g", "arguments": {"b": 2}}]},
        ),
    ],
    ids=str,
)
def test_the_parser_reads_back_what_a_script_says(answer: Answer, found: dict[str, Any]) -> None:
    made = read(answer)
    assert {name: made[name] for name in found} == found


def test_counts_keep_what_was_cached_apart_and_open_with_a_placeholder() -> None:
    events = voiced(say("Hi.") + usage(prompt=20, completion=7, cached=15))
    assert events[0]["message"]["usage"]["output_tokens"] == 1
    assert read(say("Hi.") + usage(prompt=20, completion=7, cached=15))["usage"] == {
        "input_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 15,
        "output_tokens": 7,
    }


def test_redacted_thinking_is_a_block_of_data() -> None:
    block = voiced(think("secret", "redacted_thinking") + say("Hi."))[1]["content_block"]
    assert block["type"] == "redacted_thinking"
    assert "secret" not in json.dumps(block)


def test_a_whole_answer_says_the_same_as_a_stream() -> None:
    answer = think("Hm.") + say("So.") + call("f", {"a": 1}, id="t")
    request = SeenRequest(at=0, path="/v1/messages", headers={}, body=REQUEST, raw=b"", key="")
    whole = report("anthropic", [json.dumps(ANTHROPIC.voice(answer, request, lambda: "id1").whole()).encode()])
    streamed = read(answer)
    assert {name: whole[name] for name in ("text", "tool_calls", "finish", "tokens")} == {
        name: streamed[name] for name in ("text", "tool_calls", "finish", "tokens")
    }


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
def test_the_wording_has_the_fields_of_a_recorded_stream() -> None:
    assert STREAMS is not None
    body = (STREAMS / "anthropic-v-anthropic-clear-thinking.1.sse").read_text("utf-8")
    real = [json.loads(line[5:]) for line in body.splitlines() if line.startswith("data:")]
    made = voiced(think("Hm.") + say("Hi."))
    shapes = {event["type"]: set(event) for event in real}
    for event in made:
        assert set(event) <= shapes.get(event["type"], set(event)), event
    start = next(event for event in real if event["type"] == "message_start")
    assert set(made[0]["message"]) <= set(start["message"])
