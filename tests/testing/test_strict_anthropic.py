"""What a strict Messages server refuses, and what it takes (S2.5a, S4.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.testing import Rules, SeenRequest
from turnkeeper.testing.strict_anthropic import problems

SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}} | fields


def result(call_id: str = "toolu_1", content: Any = "6") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


HI = user(text("hi"))


def asked(*messages: Any, headers: dict[str, str] | None = None, **fields: Any) -> SeenRequest:
    body = {"model": "claude-x", "max_tokens": 100, "messages": list(messages)} | fields
    known = {"anthropic-version": "2023-06-01"} if headers is None else headers
    return SeenRequest(at=0, path="/v1/messages", headers=known, body=body, raw=b"", key="k")


@pytest.mark.parametrize(
    ("request_", "rules"),
    [
        pytest.param(asked(HI), {}, id="a greeting"),
        pytest.param(asked({"role": "user", "content": "hi"}), {}, id="content as text"),
        pytest.param(asked(HI, assistant(text("I roll."), use()), user(result())), {}, id="a call and its result"),
        pytest.param(
            asked(HI, assistant(use("a"), use("b")), user(result("b"), result("a"), text("and?"))), {}, id="a batch, then words"
        ),
        pytest.param(asked(HI, assistant(SIGNED, use()), user(result()), **THINKS), {}, id="thinking before a call"),
        pytest.param(
            asked(HI, assistant(SIGNED, use("a")), user(result("a")), assistant(use("b")), user(result("b")), **THINKS),
            {},
            id="thinking at the beginning of the chain only",
        ),
        pytest.param(asked(HI, assistant(text("Half a rep"))), {"prefill": True}, id="a prefill, where it is taken"),
        pytest.param(
            asked(
                HI,
                assistant(text("Let me"), {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
            ),
            {},
            id="a turn that the server paused",
        ),
        pytest.param(asked(HI, HI), {}, id="two of the user in a row, which the API joins"),
        pytest.param(
            asked(HI, system=[text("Be brief.") | {"cache_control": {"type": "ephemeral"}}]), {}, id="a marked system prompt"
        ),
    ],
)
def test_what_a_server_takes(request_: SeenRequest, rules: dict[str, Any]) -> None:
    assert problems(request_, Rules(models=("claude-x",), **rules)) == []


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        pytest.param(asked(HI, headers={}), "anthropic-version: header is required", id="no version"),
        pytest.param(asked(HI, model="x"), "model: x does not exist", id="an unknown model"),
        pytest.param(asked(HI, max_tokens=0), "max_tokens: a number of at least 1", id="no room"),
        pytest.param(
            asked(HI, max_completion_tokens=5),
            "max_completion_tokens: Extra inputs are not permitted",
            id="another API's field",
        ),
        pytest.param(asked(HI, temperature=1.5), "temperature: must be 0 to 1", id="too warm"),
        pytest.param(asked(HI, system=[text(" ")]), "system[0]: text must not be empty", id="a blank system prompt"),
        pytest.param(asked(), "messages: at least one message", id="no message"),
        pytest.param(asked(user()), "must have non-empty content", id="an empty message"),
        pytest.param(asked(user(text(" \n"))), "must contain non-whitespace text", id="blank text"),
        pytest.param(asked({"role": "system", "content": "x"}), "must be user or assistant", id="a system message"),
        pytest.param(asked(assistant(text("x")), HI), "first message must use the user role", id="the assistant first"),
        pytest.param(asked(HI, assistant(text("x"))), "does not support assistant message prefill", id="a prefill"),
        pytest.param(asked(HI, assistant(use())), "without tool_result blocks immediately after: toolu_1", id="no result"),
        pytest.param(
            asked(HI, assistant(use()), HI), "without tool_result blocks immediately after", id="words instead of a result"
        ),
        pytest.param(asked(user(result())), "unexpected tool_use_id 'toolu_1'", id="a result without a call"),
        pytest.param(asked(HI, assistant(use()), user(result(), result())), "or a second result", id="two results"),
        pytest.param(
            asked(HI, assistant(use()), user(text("so"), result())), "tool_result blocks must come first", id="words first"
        ),
        pytest.param(
            asked(HI, assistant(use()), user(result()), assistant(use()), user(result())),
            "must be unique: toolu_1",
            id="an id twice",
        ),
        pytest.param(
            asked(HI, assistant(use("a|b")), user(result("a|b"))), "tool_use.id: does not match", id="an id with a bar"
        ),
        pytest.param(
            asked(HI, assistant(use(name="größe")), user(result())), "tool_use.name: not valid", id="a name with an umlaut"
        ),
        pytest.param(asked(HI, assistant(use(input="{}")), user(result())), "input: must be an object", id="arguments as text"),
        pytest.param(asked(user(use())), "tool_use blocks belong to the assistant", id="a call of the user"),
        pytest.param(
            asked(HI, assistant(result()), HI), "tool_result blocks belong to the user", id="a result of the assistant"
        ),
        pytest.param(
            asked(HI, assistant({"type": "thinking", "thinking": "x", "signature": ""}, text("y")), HI),
            "signature: Field required",
            id="unsigned",
        ),
        pytest.param(asked(HI, assistant(text("y"), SIGNED), HI), "cannot be thinking", id="thinking last"),
        pytest.param(
            asked(HI, assistant(use()), user(result()), **THINKS), "Expected `thinking`", id="a chain without thinking"
        ),
        pytest.param(
            asked(HI, **THINKS | {"max_tokens": 2000}), "budget_tokens: must be", id="a budget as large as the answer"
        ),
        pytest.param(asked(HI, **THINKS, temperature=0.5), "may only be set to 1", id="warmth beside thinking"),
        pytest.param(
            asked(HI, tools=[{"name": "f", "input_schema": {"type": "string"}}]), "of type object", id="a schema of text"
        ),
        pytest.param(
            asked(HI, tools=[{"name": "f", "input_schema": {"type": "object"}}] * 2),
            "Tool names must be unique: f",
            id="two tools of a name",
        ),
        pytest.param(
            asked(HI, tools=[{"name": "a.b", "input_schema": {"type": "object"}}]), "'a.b' does not match", id="a dot"
        ),
        pytest.param(
            asked(user(*[text("x") | {"cache_control": {"type": "ephemeral"}}] * 5)),
            "a maximum of 4 blocks with cache_control",
            id="five marks",
        ),
        pytest.param(
            asked(user({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": ""}})),
            "must be base64 of",
            id="a bitmap",
        ),
        pytest.param(
            asked(user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "??"}})),
            "not valid base64",
            id="noise",
        ),
        pytest.param(
            asked(HI, assistant({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}), HI),
            "has no result in its message",
            id="a server's tool without its result",
        ),
    ],
)
def test_what_a_server_refuses(request_: SeenRequest, said: str) -> None:
    assert said in "\n".join(problems(request_, Rules(models=("claude-x",))))


def test_where_roles_must_alternate_two_of_one_are_refused() -> None:
    assert problems(asked(HI, HI), Rules(alternate=True)) == ["messages[1]: roles must alternate"]


def test_a_prefill_must_not_end_in_blanks() -> None:
    assert "cannot end with trailing whitespace" in problems(asked(HI, assistant(text("so: "))), Rules(prefill=True))[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "role", "content", "id", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(messages=json_values, tools=json_values, system=json_values, thinking=json_values)
def test_no_body_breaks_the_checker(messages: Any, tools: Any, system: Any, thinking: Any) -> None:
    request = asked(HI, messages=messages, tools=tools, system=system, thinking=thinking)
    assert isinstance(problems(request, Rules()), list)
    request.body = messages
    assert problems(request, Rules())
