"""No request is ever refused: any history, written for any family, past that family's strict checker (S2.5, S3.10, S4.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.shared import STREAMS
from turnkeeper import Model
from turnkeeper.loop.history import heal
from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.arguments import read_call
from turnkeeper.providers.families import find_family
from turnkeeper.providers.report import fold
from turnkeeper.testing import Rules, SeenRequest
from turnkeeper.testing.anthropic import ANTHROPIC
from turnkeeper.testing.gemini import GEMINI
from turnkeeper.testing.novelai import NOVELAI
from turnkeeper.testing.openai_chat import OPENAI_CHAT
from turnkeeper.testing.openai_responses import OPENAI_RESPONSES
from turnkeeper.testing.wire import Family
from turnkeeper.types.calls import Invalid, Parsed, ToolCall, Truncated
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage
from turnkeeper.types.stream import NativePart, ToolCallReady

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6300010000050001")
SERVERS: dict[str, Family] = {
    "openai-chat": OPENAI_CHAT,
    "openai-responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "novelai": NOVELAI,
}
KINDS: list[tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [  # family, model, quirks, extra, rules
    ("openai-chat", "gpt-x", {}, {}, {}),
    ("openai-chat", "gpt-x", {"alternate": True, "vision": True}, {}, {"alternate": True}),
    ("openai-chat", "gpt-x", {"call_ids": "nine", "alternate": True}, {}, {"id_alphabet": "[a-zA-Z0-9]{9}", "alternate": True}),
    (
        "openai-chat",
        "gpt-x",
        {"system_role": "user", "prefill": True},
        {},
        {"roles": ("user", "assistant", "tool"), "prefill": True},
    ),
    ("openai-responses", "gpt-x", {"vision": True}, {}, {}),
    ("openai-responses", "gpt-x", {"vision": False}, {}, {}),
    ("anthropic", "claude-x", {"vision": True, "prefill": False}, {}, {"alternate": True}),
    ("anthropic", "claude-x", {"vision": True, "prefill": True}, {}, {"alternate": True, "prefill": True}),
    (
        "anthropic",
        "claude-x",
        {"prefill": False},
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        {"alternate": True},
    ),
    ("gemini", "gemini-2.5-flash", {"vision": True}, {}, {}),
    ("gemini", "gemini-3-pro", {"vision": True}, {}, {}),
    ("novelai", "llama-3-erato-v1", {}, {}, {}),
]
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}

texts = st.sampled_from(["Hello", " ", "", "Two\nlines", "天気は?", "ends in a space ", "a" * 300, "\u00a0", "👩‍👩‍👧"])
names = st.sampled_from(["roll_dice", "wetter.größe", "x" * 70, "2fast", "", "天気"])
ids = st.sampled_from(["call_1", "toolu_01AbC", "c|fc_" + "0" * 60, "aB3dE6gH9", "", "call_2", "x y"])
arguments = st.sampled_from([Parsed({}), Parsed({"a": 1, "b": ["x"]}), Invalid("no object"), Truncated()])
pictures = st.lists(st.just(Picture(PNG, "image/png")), max_size=2).map(tuple)
tools = st.lists(names.filter(bool), unique=True, max_size=3).map(
    lambda chosen: tuple(ToolSpec(name, "Does it.", SCHEMAS[place]) for place, name in enumerate(chosen))
)
SCHEMAS = [
    json.dumps(schema).encode()
    for schema in (
        {"type": "object", "properties": {}, "additionalProperties": False},
        {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "default": 6, "exclusiveMinimum": 0},
                "kind": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "where": {"$ref": "#/$defs/Place"},
                "tags": {"type": "array", "items": {"enum": ["a", "b"], "type": "string"}},
            },
            "required": ["n"],
            "additionalProperties": False,
            "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}}, "additionalProperties": False}},
        },
        {
            "type": "object",
            "properties": {"default": {"const": 3}, "any": {}, "pair": {"type": "array", "prefixItems": [{}, {}]}},
        },
    )
]


def made_by(kind: int, number: int, said: str, calls: tuple[ToolCall, ...]) -> tuple[NativePart, ...]:
    """What a model of some family would have left beside its message."""
    family, model, _, _, _ = KINDS[kind % len(KINDS)]
    text = [{"type": "text", "text": said}] if said.strip() else []
    used = [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in calls]
    spoken = [{"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": said}]}] if said.strip() else []
    asked = [{"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name} for call in calls]
    parts: list[dict[str, Any]] = [{"text": said}] if said.strip() else []
    parts += [
        {"functionCall": {"name": call.name, "id": f"g{place}"}, "thoughtSignature": "QQ=="} for place, call in enumerate(calls)
    ]
    match family:
        case "anthropic":
            return (NativePart(family, model, {"content": [SIGNED, *text, *used]}),)
        case "openai-responses":
            reasoning = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"}
            return (NativePart(family, model, {"output": [reasoning, *spoken, *asked]}),)
        case "gemini":
            return (NativePart(family, model, {"parts": parts}),)
        case "openai-chat":
            return (NativePart(family, model, {"reasoning_content": "Hm."}),)
        case _:
            return ()


@st.composite
def passes(draw: st.DrawFn, number: int) -> list[Message]:
    """One pass: text, calls, and what became of them: results, some, none, twice, or those of nobody."""
    said = draw(texts)
    calls: list[ToolCall] = []
    for place in range(draw(st.integers(0, 3))):
        known = draw(arguments)
        text = json.dumps(known.value) if isinstance(known, Parsed) else '{"a": '
        calls.append(
            ToolCall(f"{draw(ids)}{number}_{place}" if draw(st.booleans()) else f"id{number}_{place}", draw(names), text, known)
        )
    native = made_by(draw(st.integers(0, len(KINDS) - 1)), number, said, tuple(calls)) if draw(st.booleans()) else ()
    results = [ToolMessage(call.id, call.name, draw(texts), draw(pictures)) for call in calls]
    match draw(st.sampled_from(["all", "all", "all", "cut", "none", "twice", "mixed"])):
        case "cut":
            results = results[:1]
        case "none":
            results = []
        case "twice":
            results += results[:1]
        case "mixed":
            results = [ToolMessage("nobody", "f", "lost"), *reversed(results)]
        case _:
            pass
    return [AssistantMessage(said, tuple(calls), native), *results]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Message, ...]]:
    """Exchanges: a message of a person, and passes of any model. The last has no final text: it is being answered."""
    exchanges: list[tuple[Message, ...]] = []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        messages: list[Message] = [UserMessage(draw(texts.filter(str.strip)), draw(pictures))]
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            messages += draw(passes(number))
        exchanges.append(tuple(messages))
    return exchanges


def conversation(exchanges: list[tuple[Message, ...]]) -> tuple[Message, ...]:
    """As the channel and the loop put it together: each exchange healed; the running one ends in results, or a pause."""
    healed = [heal(exchange).messages for exchange in exchanges]
    return tuple(message for exchange in healed for message in exchange)


def sent(family: str, model: Model, prompt: Prompt, writer: Any) -> SeenRequest:
    body = writer.body(prompt)
    headers = {name.lower(): value for name, value in writer.headers("k").items()}
    path = SERVERS[family].root + writer.path
    return SeenRequest(at=0, path=path, headers=headers, body=json.loads(body), raw=body, key="k")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]} {kind[2]}{kind[3]}")
@settings(max_examples=120)
@given(
    exchanges=histories(),
    specs=tools,
    system=st.sampled_from(["", " ", "Be brief."]),
    tail=st.sampled_from(["", "Answer now."]),
    prefill=st.sampled_from(["", "Half a rep", "Ends so:\n\n", "no break\u00a0"]),
)
@example(
    exchanges=[(UserMessage("hi"), AssistantMessage("", (read_call("a", "f", "{}", ended=True),)), ToolMessage("a", "f", ""))],
    specs=(),
    system="",
    tail="Answer now.",
    prefill="",
)
def test_no_strict_server_refuses_any_history(
    kind: Any, exchanges: list[tuple[Message, ...]], specs: tuple[ToolSpec, ...], system: str, tail: str, prefill: str
) -> None:
    family, name, quirks, extra, rules = kind
    model = Model(family, name, "http://127.0.0.1:1", quirks=quirks, extra=extra, max_output_tokens=4000, temperature=0.5)
    prompt = Prompt(system, conversation(exchanges), specs, tail, prefill)
    request = sent(family, model, prompt, find_family(family).writer(model))
    found = SERVERS[family].problems(request, Rules(models=(name,), **rules))
    assert found == [], request.raw.decode()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]} {kind[2]}{kind[3]}")
@settings(max_examples=60)
@given(exchanges=histories(), specs=tools)
def test_a_request_extends_the_one_before_it_byte_for_byte(
    kind: Any, exchanges: list[tuple[Message, ...]], specs: tuple[ToolSpec, ...]
) -> None:
    """S3.10b: up to its last stable message; cache marks move on, and are no part of what a server compares."""
    family, name, quirks, extra, _ = kind
    model = Model(family, name, "http://127.0.0.1:1", quirks=quirks, extra=extra)
    writer, before = find_family(family).writer(model), b""
    messages = conversation(exchanges)
    ends = [place for place in range(1, len(messages) + 1) if not isinstance(messages[place - 1], AssistantMessage)]
    ends = [place for place in ends if place == len(messages) or not isinstance(messages[place], ToolMessage)]
    for place in ends:
        now = writer.body(Prompt("Be brief.", messages[:place], specs))
        fresh = find_family(family).writer(model).body(Prompt("Be brief.", messages[:place], specs))
        assert now == fresh
        stable = now.replace(b',"cache_control":{"type":"ephemeral"}', b"")
        assert stable.startswith(before), (before[-200:], stable[len(before) - 200 :][:400])
        before = _up_to_the_end(family, stable)


def _up_to_the_end(family: str, body: bytes) -> bytes:
    """A request up to where the next may go on: a message may yet be joined by another of its role."""
    if family == "novelai":
        return body[: body.index(b'\\nAssistant:","model"')]
    return body.rstrip(b'"]}').removesuffix(b"\\")


def recorded() -> list[Any]:
    """The recordings of the families that have native parts."""
    paths = sorted(STREAMS.glob("*.json")) if STREAMS is not None else []
    return [path for path in paths if json.loads(path.read_text("utf-8"))["family"] in SERVERS]


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_what_a_real_server_answered_goes_back_as_it_wants_it(path: Any) -> None:
    """Each recorded answer, its calls answered, or paused, is the middle of a valid request to the model that made it."""
    known = json.loads(path.read_text("utf-8"))
    family, name = known["family"], str(known.get("model") or "m").removeprefix("models/")
    parser = find_family(family).parser(AnswerOptions(name, "call_x_"))
    events = [*parser.feed(path.with_suffix(".sse").read_bytes()), *parser.close()]
    said = fold(events)
    calls = tuple(event.call for event in events if isinstance(event, ToolCallReady))
    native = tuple(event for event in events if isinstance(event, NativePart))
    paused = said["finish"] == "pause"
    if not calls and not paused:
        return
    answer = AssistantMessage(said["text"], calls, native)
    messages = (UserMessage("Go."), answer, *[ToolMessage(call.id, call.name, "done") for call in calls])
    extra = {"thinking": {"type": "enabled", "budget_tokens": 2000}} if said["reasoning"] and family == "anthropic" else {}
    model = Model(family, name, "http://127.0.0.1:1", quirks={"vision": True}, extra=extra, max_output_tokens=8000)
    request = sent(family, model, Prompt("Be brief.", messages), find_family(family).writer(model))
    assert SERVERS[family].problems(request, Rules()) == []
    if native and family != "openai-chat":
        kinds = {"anthropic": '"signature"', "openai-responses": '"encrypted_content"', "gemini": '"thoughtSignature"'}
        kept = any(kinds[family][1:-1] in json.dumps(part.data) for part in native)
        assert (kinds[family] in request.raw.decode()) == kept
    if paused:
        assert request.body["messages"][-1]["role"] == "assistant"
