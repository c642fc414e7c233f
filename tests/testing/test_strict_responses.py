"""`turnkeeper.testing.strict_responses`: what a strict server refuses in a Responses request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.testing import Rules, SeenRequest
from turnkeeper.testing.strict_responses import problems as problems_of

USER = {"role": "user", "content": "why tides?"}
SYSTEM = {"role": "system", "content": "Be brief."}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "The moon."}]}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TOOL = {"type": "function", "name": "roll", "parameters": {"type": "object", "properties": {}}}
STRICT = TOOL | {"strict": True, "parameters": SCHEMA}
URL = "data:image/png;base64,AAAA"


def problems(body: Any, rules: Rules) -> list[str]:
    return problems_of(SeenRequest(at=0.0, path="/v1/responses", headers={}, body=body, raw=b"", key=""), rules)


def request(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-x", "stream": True, "input": list(items)} | fields


def calls(call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "roll", "arguments": "{}"} | fields


def output(call_id: Any = "c1", said: Any = "4", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": said} | fields


def thought(own: Any = "rs_1", **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": own, "summary": [], "encrypted_content": "gAAAAA"} | fields


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def image(**fields: Any) -> dict[str, Any]:
    return {"type": "input_image"} | fields


def file(**fields: Any) -> dict[str, Any]:
    return {"type": "input_file"} | fields


def schema(**properties: Any) -> dict[str, Any]:
    return SCHEMA | {"properties": properties, "required": list(properties)}


VALID = [
    ("one question", request(USER)),
    ("a question as text", {"model": "gpt-x", "input": "why tides?"}),
    ("a conversation", request(SYSTEM, USER, SAID, USER)),
    ("an assistant message as text", request(USER, {"role": "assistant", "content": "The moon."}, USER)),
    ("a refusal", request(USER, SAID | {"content": [{"type": "refusal", "refusal": "No."}]}, USER)),
    ("a call and its output", request(USER, calls(), output())),
    ("parallel calls, outputs in another order", request(USER, calls("c1"), calls("c2"), output("c2"), output("c1"))),
    ("an output after another message", request(USER, calls(), USER, output())),
    ("ids of items", request(USER, thought(), SAID | {"id": "msg_1"}, calls(id="fc_1"), output(id="fc_2"))),
    ("an id that is null", request(USER, calls(id=None), output())),
    ("the longest id", request(USER, calls("c" * 64, id="fc_" + "x" * 61), output("c" * 64))),
    ("reasoning and a message", request(USER, thought(), SAID, USER)),
    ("reasoning in two items", request(USER, thought("rs_1"), thought("rs_2"), calls(), output())),
    ("reasoning without an id", request(USER, {"type": "reasoning", "summary": [], "encrypted_content": "g"}, SAID, USER)),
    ("reasoning with a summary", request(USER, thought(summary=[{"type": "summary_text", "text": "Hm."}]), SAID, USER)),
    (
        "reasoning as DeepSeek has it",
        request(USER, thought(encrypted_content=None, content=[{"type": "reasoning_text", "text": "Hm."}]), SAID, USER),
    ),
    ("reasoning that is kept", request(thought(encrypted_content=None), SAID, USER, previous_response_id="resp_1")),
    ("an output whose call is kept", request(output(), previous_response_id="resp_1")),
    ("nothing but what is kept", {"model": "gpt-x", "previous_response_id": "resp_1"}),
    ("a picture", request(user(image(image_url=URL, detail="low"), image(image_url="https://a.b/c.png"), image(file_id="f")))),
    ("a file", request(user(file(file_url="https://a.b"), file(file_id="f"), file(file_data="data:,x", filename="x")))),
    ("an output of parts", request(USER, calls(), output(said=[{"type": "input_text", "text": "4"}, image(image_url=URL)]))),
    ("what a tool of OpenAI made", request(USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, SAID, USER)),
    ("a reference", request(USER, {"type": "item_reference", "id": "msg_1"}, USER)),
    ("tools", request(USER, tools=[TOOL, STRICT | {"name": "b"}, {"type": "web_search"}], tool_choice="required")),
    ("no tools", request(USER, tools=[], tool_choice="auto")),
    ("a tool without parameters", request(USER, tools=[{"type": "function", "name": "a", "parameters": None}])),
    ("a chosen tool", request(USER, tools=[TOOL], tool_choice={"type": "function", "name": "roll"})),
    ("encrypted reasoning", request(USER, include=["reasoning.encrypted_content"], store=False)),
    ("limits", request(USER, max_output_tokens=16, temperature=0.5, top_p=1, metadata={"a": "b"}, truncation="auto")),
    ("an effort", request(USER, reasoning={"effort": "low", "summary": "auto"})),
    ("a format", request(USER, text={"format": {"type": "json_schema", "name": "a", "schema": {}}})),
    ("nulls", request(USER, instructions=None, max_output_tokens=None, include=None, tools=None, metadata=None, text=None)),
    ("options of the stream", request(USER, stream_options={"include_obfuscation": False})),
]


@pytest.mark.parametrize("body", [body for _, body in VALID], ids=[name for name, _ in VALID])
def test_what_the_api_takes(body) -> None:
    assert problems(body, Rules(models=("gpt-x",))) == []


FIELDS = [
    (None, "the body is not a JSON object"),
    ([USER], "the body is not a JSON object"),
    (request(USER, model="gpt-y"), "model: `gpt-y` does not exist; there is gpt-x"),
    (request(USER, model=""), "model: a name is needed"),
    ({"model": "gpt-x"}, "input: a string or a list of items is needed"),
    (request(), "input: a string or a list with at least one item is needed"),
    (request(input={}), "input: a string or a list with at least one item is needed"),
    (request(input=" "), "input: the text is empty or only whitespace"),
    (request("hi"), "input[0]: not an object"),
    (
        request(USER, messages=[USER]),
        "messages: Unsupported parameter: it belongs to chat completions; send the conversation as input",
    ),
    (request(USER, max_tokens=3), "max_tokens: Unsupported parameter: it belongs to chat completions; use max_output_tokens"),
    (
        request(USER, response_format={}),
        "response_format: Unsupported parameter: it belongs to chat completions; use text.format",
    ),
    (request(USER, stop=["a"]), "stop: Unsupported parameter: it belongs to chat completions; there is nothing in its place"),
    (request(USER, colour="red"), "colour: Unknown parameter"),
    (request(USER, stream=False, stream_options={}), "stream_options: only allowed when stream is true"),
    (request(USER, stream_options={"include_usage": True}), "stream_options: Unknown parameter: 'include_usage'"),
    (request(USER, previous_response_id="a", conversation="b"), "can't be used together with conversation"),
    (request(USER, include=["reasoning"]), "include: Invalid value: 'reasoning'. Supported values are: reasoning.encrypted_"),
    (request(USER, include="reasoning"), "include: not a list"),
    (request(USER, max_output_tokens=15), "max_output_tokens: expected a whole number of at least 16, not 15"),
    (request(USER, max_output_tokens=True), "max_output_tokens: expected a whole number of at least 16, not True"),
    (request(USER, temperature=-1), "temperature: not a number from 0 to 2"),
    (request(USER, top_p="1"), "top_p: not a number from 0 to 1"),
    (request(USER, store="no"), "store: neither true nor false"),
    (request(USER, truncation="on"), "truncation: Invalid value: 'on'. Supported values are: auto, disabled"),
    (request(USER, instructions=3), "instructions: not a string"),
    (request(USER, reasoning="low"), "reasoning: not an object"),
    (request(USER, reasoning={"effort": "most"}), "reasoning.effort: Invalid value: 'most'"),
    (request(USER, text={"format": {"type": "xml"}}), "text.format: Invalid value: 'xml'"),
    (request(USER, text={"format": {"type": "json_schema"}}), "text.format: a json_schema needs a name and a schema"),
    (request(USER, metadata={"a": 3}), "metadata: at most 16 entries"),
]

MESSAGES = [
    (request({"role": "bot", "content": "x"}), "input[0]: unknown role 'bot'; known are user, system, developer, assistant"),
    (request({"role": "tool", "tool_call_id": "c1", "content": "4"}), "send an item of type function_call_output"),
    (request({"content": "x"}), "input[0]: Invalid value: None. No item has that type"),
    (request({"type": "call"}), "input[0]: Invalid value: 'call'. No item has that type"),
    (request(USER | {"tool_calls": []}), "input[0]: Unknown parameter: 'input[0].tool_calls'"),
    (request({"role": "user", "content": ""}), "input[0].content: the text is empty or only whitespace"),
    (request({"role": "user"}), "input[0].content: neither text nor a list of parts"),
    (request(user()), "input[0].content: empty list"),
    (request(user({"type": "input_text", "text": " "})), "input[0].content[0].text: the text is empty or only whitespace"),
    (
        request(user({"type": "text", "text": "x"})),
        "Invalid value: 'text'. Supported values are: 'input_text', 'input_image' and 'input_file'",
    ),
    (
        request(SAID | {"content": [{"type": "input_text", "text": "x"}]}, USER),
        "input[0].content[0]: Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'",
    ),
    (request(SAID | {"content": [{"type": "refusal"}]}, USER), "input[0].content[0].refusal: not a string"),
    (request(user(image(image_url={"url": URL}))), "an object, as chat completions have it; here it is the URL itself"),
    (request(user(image(image_url="AAAA"))), "neither a data: URL of a picture in base64 nor an http URL"),
    (request(user(image())), "the picture has neither image_url nor file_id"),
    (request(user(image(image_url=URL, detail="most"))), "detail: Invalid value: 'most'"),
    (request(user(file())), "a file has one of file_data, file_id and file_url, not 0 of them"),
    (request(user(file(file_id=""))), "file_id: not a string with something in it"),
    (request(user(file(file_data="data:,x"))), "file_data needs a filename"),
    (request(SAID | {"id": "fc_1"}, USER), "input[0].id: 'fc_1': expected an ID that begins with 'msg_'"),
    (request(USER, SAID), "does not support prefill: the conversation must end with a user message or a tool output"),
]

CALLS = [
    (request(USER, calls("")), "input[1]: Missing required parameter: 'input[1].call_id'"),
    (request(USER, calls("c" * 65)), "input[1].call_id: string too long: at most 64 characters, not 65"),
    (request(USER, calls(name="würfel"), output()), "the name 'würfel' does not match [a-zA-Z0-9_-]{1,64}"),
    (request(USER, calls(arguments=""), output()), "arguments are not a string that holds a JSON object"),
    (request(USER, calls(arguments={"n": 2}), output()), "arguments are not a string that holds a JSON object"),
    (request(USER, calls(arguments="[1]"), output()), "arguments are not a string that holds a JSON object"),
    (request(USER, calls(id="call_1"), output()), "input[1].id: 'call_1': expected an ID that begins with 'fc_'"),
    (request(USER, calls(id="fc_" + "x" * 62), output()), "input[1].id: string too long: at most 64 characters, not 65"),
    (request(USER, calls(id=""), output()), "input[1].id: '' is not made of letters, numbers, underscores and dashes"),
    (request(USER, calls(id="fc_1|2"), output()), "is not made of letters, numbers, underscores and dashes"),
    (request(USER, calls(id=3), output()), "input[1].id: not a string"),
    (request(USER, calls(index=0), output()), "Unknown parameter: 'input[1].index'"),
    (request(USER, calls()), "No tool output found for function call c1."),
    (request(USER, calls("c1"), calls("c2"), output("c1")), "No tool output found for function call c2."),
    (request(USER, output(), calls()), "No tool call found for function call output with call_id c1."),
    (request(USER, output()), "No tool call found for function call output with call_id c1."),
    (request(USER, calls(), output(), output()), "input[3]: call 'c1' has an output already"),
    (request(USER, calls(), output(), calls(), output()), "input[3]: the call_id 'c1' was used before"),
    (request(USER, calls(), output(said="")), "input[2].output: the text is empty or only whitespace"),
    (request(USER, calls(), output(said=[])), "input[2].output: empty list"),
    (request(USER, calls(), output(said={})), "input[2].output: neither text nor a list of parts"),
    (request(USER, calls(), output(said=[{"type": "output_text", "text": "4"}])), "Invalid value: 'output_text'"),
    (
        request(USER, calls("c1", id="fc_1"), calls("c2", id="fc_1"), output("c1"), output("c2")),
        "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.",
    ),
    (request({"type": "item_reference"}), "Missing required parameter: 'input[0].id'"),
]

REASONING = [
    (request(USER, thought()), "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
    (request(USER, thought(), USER), "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
    (request(USER, calls(), thought(), output()), "Item 'rs_1' of type 'reasoning' was provided without its required"),
    (request(USER, thought(), SAID, thought(), SAID, USER), "Duplicate item found with id rs_1."),
    (request(USER, thought(encrypted_content=None), SAID, USER), "Item with id 'rs_1' not found"),
    (
        request(USER, thought(encrypted_content=None), SAID, USER, store=False, previous_response_id="resp_1"),
        "Item with id 'rs_1' not found",
    ),
    (request(USER, thought(encrypted_content=""), SAID, USER), "encrypted_content: not a string with something in it"),
    (request(USER, thought("r_1"), SAID, USER), "input[1].id: 'r_1': expected an ID that begins with 'rs_'"),
    (request(USER, thought(summary=None), SAID, USER), "Missing required parameter: 'input[1].summary'"),
    (request(USER, thought(summary=[{"type": "text"}]), SAID, USER), "Supported values are: 'summary_text'"),
    (request(USER, thought(content="Hm."), SAID, USER), "input[1].content: not a list"),
]

TOOLS = [
    (request(USER, tools={}), "tools: not a list"),
    (request(USER, tools=[3]), "tools[0]: not an object"),
    (request(USER, tools=[{"name": "roll"}]), "tools[0]: Invalid value: None. No tool has that type"),
    (request(USER, tools=[{"type": "function", "function": {"name": "a"}}]), "tools[0]: nested in `function`"),
    (request(USER, tools=[TOOL | {"colour": "red"}]), "Unknown parameter: 'tools[0].colour'"),
    (request(USER, tools=[TOOL | {"name": "x" * 65}]), f"the name '{'x' * 65}' does not match"),
    (request(USER, tools=[TOOL, TOOL]), "tools[1]: a second tool is called 'roll'"),
    (request(USER, tools=[TOOL | {"description": 3}]), "tools[0].description: not a string"),
    (request(USER, tools=[TOOL | {"strict": 1}]), "tools[0].strict: neither true nor false"),
    (request(USER, tools=[TOOL | {"parameters": {"type": "array"}}]), "the parameters are not a schema of type object"),
    (request(USER, tools=[TOOL | {"strict": True, "parameters": None}]), "tools[0]: a strict tool needs parameters"),
    (request(USER, tools=[TOOL | {"strict": True}]), "tools[0].parameters: in a strict tool 'additionalProperties'"),
    (request(USER, tools=[STRICT | {"parameters": SCHEMA | {"required": []}}]), "must have every property; missing: n"),
    (
        request(USER, tools=[STRICT | {"parameters": schema(a={"type": "array", "items": {"type": "object"}})}]),
        "tools[0].parameters.properties.a.items: in a strict tool 'additionalProperties'",
    ),
    (
        request(USER, tools=[STRICT | {"parameters": schema(a={"anyOf": [{"type": "null"}, {"type": ["object", "null"]}]})}]),
        "tools[0].parameters.properties.a.anyOf[1]: in a strict tool 'additionalProperties'",
    ),
    (request(USER, tool_choice="required"), "tool_choice: must be specified with tools"),
    (request(USER, tools=[TOOL], tool_choice="any"), "tool_choice: Invalid value: 'any'"),
    (request(USER, tools=[TOOL], tool_choice={"type": "function", "name": "b"}), "tool_choice: no tool is called 'b'"),
    (request(USER, tools=[TOOL], tool_choice={"type": "function", "function": {}}), "tool_choice: nested in `function`"),
]

INVALID = FIELDS + MESSAGES + CALLS + REASONING + TOOLS


@pytest.mark.parametrize(("body", "sentence"), INVALID, ids=[sentence[:60] for _, sentence in INVALID])
def test_what_the_api_refuses(body, sentence) -> None:
    assert sentence in "\n".join(problems(body, Rules(models=("gpt-x",))))


RULED = [
    (Rules(prefill=True), request(USER, SAID), ""),
    (Rules(alternate=True), request(SYSTEM, USER, SAID, USER), ""),
    (Rules(alternate=True), request(USER, SAID, calls(), output(), SAID, USER), ""),
    (Rules(alternate=True), request(USER, USER), "input[1]: roles must alternate user/assistant"),
    (Rules(alternate=True), request(USER, calls(), output(), USER), "input[3]: roles must alternate user/assistant"),
    (Rules(alternate=True), request(USER, SYSTEM), "input[1]: a system message is only allowed first"),
    (Rules(id_alphabet="[a-z0-9]{9}"), request(USER, calls("abcdef123"), output("abcdef123")), ""),
    (Rules(id_alphabet="[a-z0-9]{9}"), request(USER, calls("call_1"), output("call_1")), "'call_1' does not match"),
    (Rules(roles=("user",)), request({"role": "developer", "content": "x"}), "unknown role 'developer'; known are user"),
    (Rules(refuses=("store",)), request(USER, store=False), "store: unsupported parameter"),
    (Rules(), request(USER, model="any"), ""),
]


@pytest.mark.parametrize(("rules", "body", "sentence"), RULED)
def test_rules_that_only_some_servers_have(rules, body, sentence) -> None:
    found = problems(body, rules)
    assert bool(found) == bool(sentence)
    assert sentence in "\n".join(found)


WORDS = st.sampled_from(
    [
        "type",
        "role",
        "content",
        "id",
        "call_id",
        "output",
        "summary",
        "tools",
        "input",
        "text",
        "format",
        "metadata",
        "reasoning",
    ]
)
KINDS = st.sampled_from(
    ["message", "user", "assistant", "function", "function_call", "function_call_output", "reasoning", "input_image", "object"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KINDS
JUNK = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=4)
)


@given(body=JUNK)
def test_junk_never_raises(body) -> None:
    assert problems(body, Rules(alternate=True, id_alphabet="[a-z]+"))


TYPED = st.fixed_dictionaries({"type": KINDS}, optional=dict.fromkeys(("role", "content", "id", "call_id", "output"), JUNK))
OPTIONS = ("tool_choice", "include", "stream_options", "temperature", "max_output_tokens", "metadata", "text", "reasoning")


@given(
    items=st.lists(TYPED | JUNK, max_size=4),
    tools=st.lists(TYPED | JUNK, max_size=3),
    options=st.dictionaries(st.sampled_from(OPTIONS), JUNK),
)
def test_junk_in_its_place_never_raises(items, tools, options) -> None:
    assert isinstance(problems({"model": "gpt-x", "input": items, "tools": tools} | options, Rules(alternate=True)), list)
