"""`turnkeeper.testing.strict`: what a strict server refuses (S2.5a, S4.6)."""

from __future__ import annotations

from typing import Any

import pytest

from turnkeeper.testing import Rules
from turnkeeper.testing.strict import problems

USER = {"role": "user", "content": "why tides?"}
SYSTEM = {"role": "system", "content": "Be brief."}
SAID = {"role": "assistant", "content": "The moon."}
TOOL = {"type": "function", "function": {"name": "roll", "parameters": {"type": "object", "properties": {}}}}


def calls(*ids: Any, arguments: Any = "{}", name: Any = "roll", **fields: Any) -> dict[str, Any]:
    made = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made} | fields


def result(call_id: str, content: Any = "4") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-x", "stream": True, "messages": list(messages)} | fields


PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}

VALID = [
    ("one question", request(USER)),
    ("a conversation", request(SYSTEM, USER, SAID, USER)),
    ("a call and its result", request(USER, calls("c1"), result("c1"))),
    ("parallel calls, results in another order", request(USER, calls("c1", "c2"), result("c2"), result("c1"))),
    ("calls in two passes", request(USER, calls("c1"), result("c1"), calls("c2"), result("c2"), SAID, USER)),
    ("text and a call", request(USER, calls("c1", content="Rolling."), result("c1"))),
    ("an empty text beside a call", request(USER, calls("c1", content=""), result("c1"))),
    ("a picture after the batch", request(USER, calls("c1"), result("c1"), PICTURE)),
    ("text parts", request({"role": "user", "content": [{"type": "text", "text": "hi"}]})),
    ("tools and counts", request(USER, tools=[TOOL], stream_options={"include_usage": True})),
    ("a tool without parameters", request(USER, tools=[{"type": "function", "function": {"name": "roll"}}])),
    ("a refusal", request(USER, {"role": "assistant", "content": None, "refusal": "No."}, USER)),
    ("arguments with spaces", request(USER, calls("c1", arguments=' {"n": 2} '), result("c1"))),
]


@pytest.mark.parametrize("body", [body for _, body in VALID], ids=[name for name, _ in VALID])
def test_what_every_server_takes(body) -> None:
    assert problems(body, Rules(models=("gpt-x",))) == []


INVALID = [
    (None, "the body is not a JSON object"),
    ([USER], "the body is not a JSON object"),
    (request(), "messages: a list with at least one message is needed"),
    ({"model": "gpt-x"}, "messages: a list with at least one message is needed"),
    (request("hi"), "messages[0]: not an object"),
    (request(USER, model="gpt-y"), "model: `gpt-y` does not exist; there is gpt-x"),
    (request(USER, model=""), "model: a name is needed"),
    (request(USER, model=None), "model: a name is needed"),
    (request(USER, stream=False, stream_options={}), "stream_options: only allowed when stream is true"),
    (
        request({"role": "bot", "content": "x"}),
        "messages[0]: unknown role 'bot'; known are system, developer, user, assistant, tool",
    ),
    (request({"content": "x"}), "messages[0]: unknown role None; known are system, developer, user, assistant, tool"),
    # content
    (request({"role": "user", "content": ""}), "messages[0]: content is empty"),
    (request({"role": "user"}), "messages[0]: content is empty"),
    (request({"role": "user", "content": " \n"}), "messages[0]: content is only whitespace"),
    (request({"role": "user", "content": []}), "messages[0]: content is an empty list"),
    (request({"role": "user", "content": 3}), "messages[0]: content is neither text nor a list of parts"),
    (request({"role": "user", "content": [{"type": "text", "text": " "}]}), "messages[0].content[0]: text is empty"),
    (request({"role": "user", "content": [{"type": "video"}]}), "messages[0].content[0]: unknown type 'video'"),
    (request({"role": "user", "content": [{"type": "image_url"}]}), "messages[0].content[0]: the picture has no url"),
    (request({"role": "system", "content": ""}, USER), "messages[0]: content is empty"),
    (request(USER, {"role": "assistant", "content": None}, USER), "messages[1]: content is empty"),
    (request(USER, {"role": "assistant", "content": "\n"}, USER), "messages[1]: content is only whitespace"),
    (request(USER, calls("c1", content=" "), result("c1")), "messages[1]: content is only whitespace"),
    (request(USER, calls("c1"), result("c1", "")), "messages[2]: content is empty"),
    # calls
    (request(USER, calls()), "messages[1]: tool_calls is not a list with at least one call"),
    (request(USER | {"tool_calls": []}), "messages[0]: only assistant messages have tool_calls"),
    (request(USER, calls("c1", arguments={"n": 2}), result("c1")), "arguments are not a string that holds a JSON object"),
    (request(USER, calls("c1", arguments=""), result("c1")), "arguments are not a string that holds a JSON object"),
    (request(USER, calls("c1", arguments="[1]"), result("c1")), "arguments are not a string that holds a JSON object"),
    (request(USER, calls("c1", arguments='{"n": '), result("c1")), "arguments are not a string that holds a JSON object"),
    (request(USER, calls("c1", name=""), result("c1")), "the name '' does not match [a-zA-Z0-9_-]{1,64}"),
    (request(USER, calls("c1", name="würfel"), result("c1")), "the name 'würfel' does not match [a-zA-Z0-9_-]{1,64}"),
    (request(USER, calls("c1", "c1"), result("c1"), result("c1")), "messages[1]: the call id 'c1' was used before"),
    (request(USER, calls("c1"), result("c1"), calls("c1"), result("c1")), "messages[3]: the call id 'c1' was used before"),
    # calls and results
    (request(USER, calls("c1")), "tool call without tool output: 'c1' has no result"),
    (request(USER, calls("c1", "c2"), result("c1")), "tool call without tool output: 'c2' has no result"),
    (request(USER, calls("c1"), USER), "messages[2]: tool call without tool output: 'c1' has no result before this message"),
    (request(USER, result("c1")), "messages[1]: no call with the id 'c1' stands before this result"),
    (request(result("c1"), USER), "messages[0]: no call with the id 'c1' stands before this result"),
    (
        request(USER, calls("c1"), result("c1"), result("c1")),
        "messages[3]: call 'c1' has a result already, or other messages stand between them",
    ),
    (request(USER, {"role": "tool", "content": "4"}), "messages[1]: a result needs a tool_call_id"),
    # tools
    (request(USER, tools=[]), "tools: a list with at least one tool, or no such field"),
    (request(USER, tools=[{"name": "roll"}]), "tools[0]: not of type function with a function in it"),
    (request(USER, tools=[TOOL, TOOL]), "tools[1]: a second tool is called 'roll'"),
    (
        request(USER, tools=[{"type": "function", "function": {"name": "x" * 65}}]),
        f"tools[0]: the name '{'x' * 65}' does not match [a-zA-Z0-9_-]{{1,64}}",
    ),
    (
        request(USER, tools=[{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]),
        "tools[0]: the parameters are not a schema of type object",
    ),
    # the last message
    (request(USER, SAID), "this model does not support prefill: the conversation must end with a user message"),
]


@pytest.mark.parametrize(("body", "sentence"), INVALID, ids=[sentence[:60] for _, sentence in INVALID])
def test_what_some_server_refuses(body, sentence) -> None:
    assert sentence in "\n".join(problems(body, Rules(models=("gpt-x",))))


@pytest.mark.parametrize("call_id", ["", None, 3])
def test_ids_are_non_empty_strings(call_id) -> None:
    assert problems(request(USER, calls(call_id)), Rules()) == ["messages[1].tool_calls[0]: an id is needed"]


def test_a_result_that_comes_too_late_is_two_problems() -> None:
    """S4.6: the batch stands together, right after its message."""
    assert problems(request(USER, calls("c1", "c2"), result("c1"), USER, result("c2")), Rules()) == [
        "messages[3]: tool call without tool output: 'c2' has no result before this message",
        "messages[4]: call 'c2' has a result already, or other messages stand between them",
    ]


RULED = [
    (Rules(prefill=True), request(USER, SAID), ""),
    (Rules(prefill=True), request(USER, SAID | {"content": "The moon:\n\n"}), "must not end with trailing whitespace"),
    (Rules(prefill=True), request(USER, SAID | {"content": "The moon:\u00a0"}), "must not end with trailing whitespace"),
    (Rules(alternate=True), request(SYSTEM, USER, SAID, USER), ""),
    (Rules(alternate=True), request(USER, calls("c1"), result("c1"), SAID, USER), ""),
    (Rules(alternate=True), request(USER, USER), "messages[1]: roles must alternate user/assistant"),
    (Rules(alternate=True), request(SAID, USER), "messages[0]: roles must alternate user/assistant"),
    (Rules(alternate=True), request(USER, calls("c1"), result("c1"), USER), "messages[3]: roles must alternate"),
    (Rules(alternate=True), request(USER, SYSTEM), "messages[1]: a system message is only allowed first"),
    (Rules(id_alphabet="[a-zA-Z0-9]{9}"), request(USER, calls("abc123DEF"), result("abc123DEF")), ""),
    (
        Rules(id_alphabet="[a-zA-Z0-9]{9}"),
        request(USER, calls("toolu_01AbC"), result("toolu_01AbC")),
        "'toolu_01AbC' does not match",
    ),
    (Rules(roles=("user",)), request({"role": "developer", "content": "x"}), "unknown role 'developer'; known are user"),
    (Rules(refuses=("max_tokens",)), request(USER, max_tokens=3), "max_tokens: unsupported parameter"),
    (Rules(), request(USER, model="any"), ""),
]


@pytest.mark.parametrize(("rules", "body", "sentence"), RULED)
def test_rules_that_only_some_servers_have(rules, body, sentence) -> None:
    found = problems(body, rules)
    assert bool(found) == bool(sentence)
    assert sentence in "\n".join(found)


@pytest.mark.parametrize(
    "junk",
    [
        {"messages": [{"role": "assistant", "tool_calls": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": []}]}]},
        {"messages": [{"role": "tool", "tool_call_id": {}, "content": "4"}]},
        {"messages": {}},
        {"tools": 3},
        3,
        "x",
    ],
)
def test_junk_is_a_problem_and_no_crash(junk) -> None:
    assert problems(junk, Rules())
