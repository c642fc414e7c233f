"""How scripts are worded as the OpenAI Responses API words its streams, and how the family is served."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from tests.testing.responses import ENCRYPTED, REQUEST, of_type, voice_of, voiced
from turnkeeper.testing import (
    Answer,
    ScriptedProvider,
    call,
    close,
    cut,
    done,
    error,
    event,
    fail,
    finish,
    interleave,
    refuse,
    say,
    think,
    together,
    usage,
    wait,
    whole,
)
from turnkeeper.testing.openai_responses import OPENAI_RESPONSES
from turnkeeper.testing.steps import Call


def types(events: list[Any]) -> list[str]:
    """The types without "response.", those in a row once, without the two that begin each answer."""
    names = [one["type"].removeprefix("response.") if isinstance(one, dict) else one for one in events]
    assert names[:2] == ["created", "in_progress"]
    return [name for name, _ in groupby(names[2:])]


def items(answer: Answer, **fields: Any) -> list[Any]:
    """The items that were closed, each as the final response has it too."""
    events = voiced(answer, **fields)
    closed = {one["output_index"]: one["item"] for one in of_type("output_item.done", events)}
    opened = {one["output_index"]: one["item"] for one in of_type("output_item.added", events)}
    assert list(opened) == sorted(closed)
    assert all(opened[place]["id"] == closed[place]["id"] for place in opened)
    final = events[-1].get("response", {})
    assert final.get("output", list(closed.values())) == [closed[place] for place in sorted(closed)]
    return [closed[place] for place in sorted(closed)]


def message(place: int, *parts: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {"id": f"msg_1_{place}", "type": "message", "role": "assistant", "status": status, "content": list(parts)}


def text(said: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": said}


def called(place: int, name: str, arguments: str, status: str = "completed", **call_id: Any) -> dict[str, Any]:
    head = {"id": f"fc_1_{place}", "type": "function_call", "name": name, "arguments": arguments, "status": status}
    return head | ({"call_id": "call_2"} | call_id)


def thought(place: int, *summary: str, encrypted: str | None = None) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": one} for one in summary]
    return {"id": f"rs_1_{place}", "type": "reasoning", "summary": parts, "content": [], "encrypted_content": encrypted}


OPEN_THOUGHT = {
    "id": "rs_1_0",
    "type": "reasoning",
    "status": "completed",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Hm."}],
}

ITEMS = [
    ("nothing", Answer(), []),
    ("text", say("The tide"), [message(0, text("The tide"))]),
    ("no text", say(""), []),
    ("one empty delta", say("", pieces=1), [message(0, text(""))]),
    ("texts that follow each other", say("The ") + wait(1) + say("tide"), [message(0, text("The tide"))]),
    ("parts are only for chat completions", say("a", as_parts=True), [message(0, text("a"))]),
    ("a refusal", refuse("No."), [message(0, {"type": "refusal", "refusal": "No."})]),
    (
        "a refusal after text",
        say("Well") + refuse("No."),
        [message(0, text("Well"), {"type": "refusal", "refusal": "No."})],
    ),
    ("a call", call("roll", {"n": 2}), [called(0, "roll", '{"n": 2}')]),
    ("a call cut off", call("roll", '{"n": '), [called(0, "roll", '{"n": ')]),
    ("a call without arguments", call("now", ""), [called(0, "now", "")]),
    ("a call that comes as a whole", call("a", {"n": 2}, as_object=True), [called(0, "a", '{"n": 2}')]),
    ("a given id", call("a", {}, id="x"), [called(0, "a", "{}", call_id="x")]),
    ("an empty id", call("a", {}, id=""), [called(0, "a", "{}", call_id="")]),
    ("parallel calls", call("a", {}) + call("b", {}), [called(0, "a", "{}"), called(1, "b", "{}", call_id="call_3")]),
    (
        "text around a call",
        say("a") + call("b", {}) + say("c"),
        [message(0, text("a")), called(1, "b", "{}"), message(2, text("c"))],
    ),
    ("a summary", think("Hm."), [thought(0, "Hm.")]),
    ("a summary of two parts", think("Hm.") + think("Ah."), [thought(0, "Hm.", "Ah.")]),
    ("reasoning without a summary", think("") + say("a"), [thought(0), message(1, text("a"))]),
    ("reasoning itself", think("Hm.", "reasoning_text"), [OPEN_THOUGHT]),
    ("reasoning itself, in two steps", think("H", "reasoning_text") + think("m.", "reasoning_text"), [OPEN_THOUGHT]),
    ("both kinds of reasoning", think("Hm.", "reasoning_text") + think("Ah."), [OPEN_THOUGHT, thought(1, "Ah.")]),
    ("one after another", together(think("Hm."), say("a"), finish("stop")), [thought(0, "Hm."), message(1, text("a"))]),
    ("by turns", interleave(say("abcdef"), call("a", "12345")), [message(0, text("abcdef")), called(1, "a", "12345")]),
    ("an end that is not told", say("a") + finish(None), [message(0, text("a"))]),
    ("text that is too long", say("a") + finish("length"), [message(0, text("a"), status="incomplete")]),
    ("a call that is too long", call("a", '{"n') + finish("length"), [called(0, "a", '{"n', "incomplete")]),
]


@pytest.mark.parametrize(("name", "answer", "expected"), ITEMS, ids=[case[0] for case in ITEMS])
def test_what_steps_make_of_items(name, answer, expected) -> None:
    assert items(answer) == expected


def test_a_call_without_an_id_has_no_such_field() -> None:
    assert ["call_id" in item for item in items(call("a", {}, id=None))] == [False]


def test_reasoning_is_encrypted_for_those_who_ask() -> None:
    assert items(think("Hm.") + say("a"), **ENCRYPTED)[0] == thought(0, "Hm.", encrypted="gAAAAA1_0==")
    assert items(think("Hm.", "reasoning_text"), **ENCRYPTED) == [OPEN_THOUGHT]


TEXT_EVENTS = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
CALL_EVENTS = ["function_call_arguments.delta", "function_call_arguments.done"]

ORDERS = [
    (Answer(), ["completed"]),
    (say("The tide"), ["output_item.added", *TEXT_EVENTS, "output_item.done", "completed"]),
    (
        refuse("No."),
        [
            *("output_item.added", "content_part.added", "refusal.delta", "refusal.done", "content_part.done"),
            *("output_item.done", "completed"),
        ],
    ),
    (call("a", {}), ["output_item.added", *CALL_EVENTS, "output_item.done", "completed"]),
    (call("a", {}, as_object=True), ["output_item.added", "output_item.done", "completed"]),
    (call("a", ""), ["output_item.added", "output_item.done", "completed"]),
    (Answer((Call(name="a", arguments={"n": 2}, fragments=()),)), ["output_item.added", "output_item.done", "completed"]),
    (think(""), ["output_item.added", "output_item.done", "completed"]),
    (
        think("Hm."),
        [
            *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
            *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done", "completed"),
        ],
    ),
    (
        think("Hm.", "reasoning_text"),
        [
            *("output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done"),
            *("content_part.done", "output_item.done", "completed"),
        ],
    ),
    (say("a") + finish(None), ["output_item.added", *TEXT_EVENTS, "output_item.done"]),
    (say("a") + finish("length") + done(), ["output_item.added", *TEXT_EVENTS, "output_item.done", "incomplete", "[DONE]"]),
    (say("a") + error("Oops.") + finish("failed"), ["output_item.added", *TEXT_EVENTS[:2], "error", "failed"]),
    (say("a") + finish("stop") + finish("stop"), ["output_item.added", *TEXT_EVENTS, "output_item.done", "completed"]),
]


@pytest.mark.parametrize(("answer", "expected"), ORDERS)
def test_the_order_of_events(answer, expected) -> None:
    assert types(voiced(answer)) == expected


def test_what_breaks_off_leaves_its_item_open() -> None:
    """A lost connection does not say that the arguments are complete; who needs that says `finish(None)` before it."""
    assert types(voiced(say("a") + cut(), ended=False)) == ["output_item.added", *TEXT_EVENTS[:2]]
    assert types(voiced(call("a", '{"n') + close(), ended=False)) == ["output_item.added", CALL_EVENTS[0]]
    assert types(voiced(call("a", "{}") + finish(None) + cut(), ended=False))[-1] == "output_item.done"


def test_interleaved_items_take_turns() -> None:
    events = voiced(call("x", {}) + interleave(call("a", "12345678"), call("b", "123456"), finish("stop")))
    deltas = of_type("function_call_arguments.delta", events)
    assert [(one["output_index"], one["delta"]) for one in deltas[1:]] == [(1, "1234"), (2, "1234"), (1, "5678"), (2, "56")]
    assert events[-1]["type"] == "response.completed"
    assert [one["output_index"] for one in of_type("output_item.done", events)] == [0, 1, 2]


FINISHES = [
    (say("a"), "completed", None),
    (call("a", {}), "completed", None),
    (say("a") + finish("stop"), "completed", None),
    (call("a", {}) + finish("tool_calls"), "completed", None),
    (say("a") + finish("completed", done=True), "completed", None),
    (say("a") + finish("length"), "incomplete", {"reason": "max_output_tokens"}),
    (say("a") + finish("max_output_tokens"), "incomplete", {"reason": "max_output_tokens"}),
    (say("a") + finish("content_filter"), "incomplete", {"reason": "content_filter"}),
    (say("a") + finish("odd"), "incomplete", {"reason": "odd"}),
    (say("a") + finish("failed"), "failed", None),
]


@pytest.mark.parametrize(("answer", "status", "details"), FINISHES)
def test_how_an_answer_ends(answer, status, details) -> None:
    [*_, last] = voiced(answer)
    response = last["response"]
    assert (last["type"], response["status"], response["incomplete_details"]) == (f"response.{status}", status, details)
    assert (response["error"] is not None) == (status == "failed")
    assert (response["usage"] is None) == (status == "failed")


def test_an_error_is_flat_or_nested_and_fails_the_response_with_its_words() -> None:
    said = {"code": "insufficient_quota", "message": "Pay.", "param": None}
    flat = voiced(error("Pay.", code="insufficient_quota"), ended=False)
    nested = voiced(error("Pay.", code="insufficient_quota", type="quota", name="error") + finish("failed"))
    assert flat[-1] == {"type": "error", "sequence_number": 2, **said}
    assert nested[-2] == {"type": "error", "sequence_number": 2, "error": {"type": "quota", **said}}
    assert nested[-1]["response"]["error"] == {"code": "insufficient_quota", "message": "Pay."}


def test_events_spelled_by_hand_are_not_numbered() -> None:
    [by_hand, *rest] = voiced(event({"type": "ping"}) + say("a", pieces=1))
    assert by_hand == {"type": "ping"}
    assert rest[0]["sequence_number"] == 0


def test_the_counts() -> None:
    answer = think("x" * 40) + say("y" * 41) + call("abcd", {})
    said = voiced(answer)[-1]["response"]["usage"]
    assert said["output_tokens_details"] == {"reasoning_tokens": 10}
    assert said["output_tokens"] == 10 + 12
    assert said["total_tokens"] == said["input_tokens"] + said["output_tokens"]
    assert 3 <= said["input_tokens"] <= 30
    given = usage(prompt=100, cached=64, completion=9, reasoning=5, cost=0.5, total_tokens="109")
    assert voiced(given + answer)[-1]["response"]["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": "109",
        "cost": 0.5,
    }


def test_the_response_repeats_the_request() -> None:
    created, *_, last = voiced(say("a"), instructions="Be brief.", store=False, max_output_tokens=99)
    for response in (created["response"], last["response"]):
        assert (response["model"], response["instructions"], response["store"]) == ("gpt-x", "Be brief.", False)
        assert (response["max_output_tokens"], response["object"], response["id"]) == (99, "response", "resp_1")
    assert (created["response"]["output"], created["response"]["usage"]) == ([], None)


@pytest.mark.parametrize("answer", [Answer(), think("Hm.") + say("a") + call("b", {"n": 2}), say("a") + finish("length")])
def test_a_whole_answer_is_what_the_stream_ends_with(answer) -> None:
    assert voice_of(answer, {}).whole() == voiced(answer)[-1]["response"]


def test_a_whole_answer_with_an_error_is_the_error() -> None:
    told = voice_of(say("a") + error("Oops.", code="x"), {}).whole()
    assert told == {"error": {"message": "Oops.", "type": "server_error", "param": None, "code": "x"}}
    assert voice_of(say("a") + finish(None), {}).whole()["output"] == [message(0, text("a"))]


# Served


async def ask(client: Any, provider: ScriptedProvider, body: Any = REQUEST, **headers: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client._session.post(f"{provider.base_url}/responses", data=data, headers=headers) as response:
        return response.status, response.content_type, await response.text()


async def test_it_is_served_as_an_event_stream_without_an_end_mark(client) -> None:
    async with ScriptedProvider(family=OPENAI_RESPONSES) as provider:
        provider.play(say("Hello there"))
        status, kind, body = await ask(client, provider)
    assert (status, kind, "[DONE]" in body) == (200, "text/event-stream", False)
    assert body.startswith('event: response.created\ndata: {"type":"response.created","sequence_number":0,')
    assert provider.requests[0].problems == []


async def test_requests_without_a_stream_get_a_document(client) -> None:
    async with ScriptedProvider(family=OPENAI_RESPONSES) as provider:
        provider.play(say("Hello"), say("again") + whole(), fail(429))
        replies = [await ask(client, provider, REQUEST | {"stream": False}), await ask(client, provider)]
        refused = await ask(client, provider)
    assert [json.loads(body)["output"][0]["content"][0]["text"] for _, _, body in replies] == ["Hello", "again"]
    assert {kind for _, kind, _ in replies} == {"application/json"}
    assert (refused[0], json.loads(refused[2])["error"]["code"]) == (429, "rate_limit_exceeded")


async def test_what_a_strict_server_refuses_is_a_400(client) -> None:
    async with ScriptedProvider(family=OPENAI_RESPONSES) as provider:
        odd = await ask(client, provider, REQUEST | {"max_tokens": 3})
        unknown = await ask(client, provider, REQUEST | {"model": "gpt-y"})
        junk = await ask(client, provider, b"[1]")
    assert (odd[0], "max_output_tokens" in odd[2]) == (400, True)
    assert (unknown[0], json.loads(unknown[2])["error"]["code"]) == (400, "model_not_found")
    assert junk[0] == 400


async def test_lenient_servers_answer_junk_too(client) -> None:
    async with ScriptedProvider(family=OPENAI_RESPONSES, strict=False) as provider:
        provider.play(say("Hello"), say("Hello"))
        replies = [await ask(client, provider, b"[1]"), await ask(client, provider, b'{"include": 3, "input": {}}')]
    assert [status for status, _, _ in replies] == [200, 200]
    assert all(request.problems for request in provider.requests)


async def test_keys_paths_and_models(client) -> None:
    async with ScriptedProvider(family=OPENAI_RESPONSES, keys=("sk-1",), models=("gpt-x", "gpt-z")) as provider:
        provider.default = say("ok")
        statuses = [
            (await ask(client, provider))[0],
            (await ask(client, provider, Authorization="Bearer sk-1"))[0],
            (await ask(client, provider, **{"api-key": "sk-1"}))[0],
            (await client.get(f"{provider.base_url}/responses"))[0],
            (await client.get(f"{provider.base_url}/chat/completions"))[0],
        ]
        listed = await client.get(f"{provider.base_url}/models", Authorization="Bearer sk-1")
    assert statuses == [401, 200, 200, 405, 404]
    assert [one["id"] for one in listed[1]["data"]] == ["gpt-x", "gpt-z"]
