"""How scripts are put together, worded (OpenAI chat completions) and laid out, without a server."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from turnkeeper.testing import (
    Answer,
    SeenRequest,
    call,
    close,
    cut,
    done,
    error,
    event,
    fail,
    finish,
    framing,
    hang,
    interleave,
    keepalive,
    never_start,
    raw,
    refuse,
    say,
    think,
    together,
    usage,
    wait,
)
from turnkeeper.testing.framing import Framer
from turnkeeper.testing.openai_chat import OPENAI_CHAT
from turnkeeper.testing.steps import Framing
from turnkeeper.testing.wire import SseEvent

REQUEST = {"model": "gpt-x", "messages": [{"role": "user", "content": "hello"}]}


def sent(body: dict[str, Any]) -> SeenRequest:
    """The request with this body, as the server saw it."""
    return SeenRequest(at=0.0, path="/v1/chat/completions", headers={}, body=body, raw=b"", key="")


def voiced(answer: Answer, **fields: Any) -> list[Any]:
    """The data of all events: JSON, or its text."""
    numbers = count(1)
    voice = OPENAI_CHAT.voice(answer, sent(REQUEST | fields), lambda: f"id{next(numbers)}")
    events = [event for step in answer.steps if not isinstance(step, Framing) for event in voice.say(step)] + voice.end()
    return [json.loads(event.data) if event.data.startswith("{") else event.data for event in events]


def choices(answer: Answer) -> list[tuple[Any, Any]]:
    """Delta and finish reason of each chunk, without the one that says the role, and without [DONE]."""
    chunks = [chunk["choices"][0] for chunk in voiced(answer) if chunk != "[DONE]" and chunk.get("choices")]
    return [(chunk["delta"], chunk["finish_reason"]) for chunk in chunks if "role" not in chunk["delta"]]


def deltas(answer: Answer) -> list[Any]:
    return [delta for delta, _ in choices(answer) if delta]


def tool(index: int | None = None, **fields: Any) -> dict[str, Any]:
    """A delta with a part of a call."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    entry = ({} if index is None else {"index": index}) | fields
    return {"tool_calls": [entry | {"function": function}]}


def head(index: int | None, call_id: str | None, name: str, arguments: Any = "") -> dict[str, Any]:
    own = {} if call_id is None else {"id": call_id}
    return tool(index, **own, type="function", name=name, arguments=arguments)


WORDED = [
    ("text in tokens", say("The tide"), [{"content": "The "}, {"content": "tide"}]),
    ("text in one", say("The tide", pieces=1), [{"content": "The tide"}]),
    ("text in three", say("abcdefg", pieces=3), [{"content": "ab"}, {"content": "cd"}, {"content": "efg"}]),
    ("text in more pieces than characters", say("ab", pieces=5), [{"content": "a"}, {"content": "b"}]),
    ("text as given", say("ab", pieces=["", "a", "b"]), [{"content": ""}, {"content": "a"}, {"content": "b"}]),
    ("no text", say(""), []),
    ("one empty delta", say("", pieces=1), [{"content": ""}]),
    ("parts", say("a", as_parts=True), [{"content": [{"type": "text", "text": "a"}]}]),
    ("reasoning", think("Hm."), [{"reasoning_content": "Hm."}]),
    ("reasoning of another name", think("Hm.", "reasoning"), [{"reasoning": "Hm."}]),
    (
        "reasoning as details",
        think("Hm.", "reasoning_details"),
        [
            {
                "reasoning": "Hm.",
                "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0, "format": None}],
            }
        ],
    ),
    (
        "reasoning as content",
        think("Hm.", "content"),
        [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}],
    ),
    ("a refusal", refuse("No."), [{"refusal": "No."}]),
    (
        "a call",
        call("roll", {"n": 2}),
        [head(0, "id2", "roll"), tool(0, arguments='{"n"'), tool(0, arguments=": 2}")],
    ),
    ("a call in one", call("roll", '{"n": ', pieces=1), [head(0, "id2", "roll", '{"n": ')]),
    ("a call without arguments", call("now", ""), [head(0, "id2", "now")]),
    ("parallel calls", call("a", {}) + call("b", {}), [head(0, "id2", "a", "{}"), head(1, "id3", "b", "{}")]),
    ("no id", call("a", {}, id=None), [head(0, None, "a", "{}")]),
    ("an empty id", call("a", {}, id=""), [head(0, "", "a", "{}")]),
    ("the same id", call("a", {}, id="x") + call("b", {}, id="x"), [head(0, "x", "a", "{}"), head(1, "x", "b", "{}")]),
    ("no index", call("a", {}, index=None), [head(None, "id2", "a", "{}")]),
    ("index 0 twice", call("a", {}, index=0) + call("b", {}, index=0), [head(0, "id2", "a", "{}"), head(0, "id3", "b", "{}")]),
    ("index from 1", call("a", {}, index=1), [head(1, "id2", "a", "{}")]),
    ("arguments as an object", call("a", {"n": 2}, as_object=True), [head(0, "id2", "a", {"n": 2})]),
    (
        "the name in each delta",
        call("a", "1234567", name_in_each=True),
        [head(0, "id2", "a"), tool(0, name="a", arguments="1234"), tool(0, name="a", arguments="567")],
    ),
    (
        "the name in two halves",
        call("roll", {}, name_split=True),
        [head(0, "id2", "ro"), tool(0, name="ll", arguments="{}")],
    ),
    (
        "the id in the second delta",
        call("a", {}, late_id=True),
        [head(0, None, "a", "{}"), tool(0, id="id2", arguments="")],
    ),
    (
        "a legacy call",
        call("roll", "123456", legacy=True),
        [
            {"function_call": {"name": "roll", "arguments": ""}},
            {"function_call": {"arguments": "1234"}},
            {"function_call": {"arguments": "56"}},
        ],
    ),
    (
        "interleaved calls",
        interleave(call("a", "12345"), call("b", "678")),
        [
            head(0, "id2", "a"),
            head(1, "id3", "b", "678"),
            tool(0, arguments="1234"),
            tool(0, arguments="5"),
        ],
    ),
    ("reasoning and text in one delta", together(think("Hm."), say("Hi")), [{"reasoning_content": "Hm.", "content": "Hi"}]),
    (
        "text and a call in one delta",
        together(say("Hi", pieces=1), call("a", {})),
        [{"content": "Hi"} | head(0, "id2", "a", "{}")],
    ),
    (
        "two calls in one delta",
        together(call("a", {}), call("b", {})),
        [{"tool_calls": head(0, "id2", "a", "{}")["tool_calls"] + head(1, "id3", "b", "{}")["tool_calls"]}],
    ),
]


@pytest.mark.parametrize(("name", "answer", "expected"), WORDED, ids=[case[0] for case in WORDED])
def test_how_steps_are_worded(name, answer, expected) -> None:
    assert deltas(answer) == expected


FINISHES = [
    (say("a"), ["stop"]),
    (call("a", {}), ["tool_calls"]),
    (call("a", {}) + say("a"), ["tool_calls"]),
    (call("a", {}, legacy=True), ["function_call"]),
    (say("a") + finish("length"), ["length"]),
    (call("a", {}) + finish("stop"), ["stop"]),
    (finish("tool_calls"), ["tool_calls"]),
    (finish(None), []),
    (together(say("a"), finish("")), [""]),
    (
        call("a", {}) + finish("tool_calls", done=False) + call("b", {}) + finish("tool_calls", done=False) + finish("stop"),
        ["tool_calls", "tool_calls", "stop"],
    ),
    (refuse("No.") + finish("content_filter"), ["content_filter"]),
]


@pytest.mark.parametrize(("answer", "reasons"), FINISHES)
def test_finish_reasons(answer, reasons) -> None:
    assert [reason for _, reason in choices(answer) if reason is not None] == reasons
    assert voiced(answer)[-1] == "[DONE]"


def places_of_usage(answer: Answer, **fields: Any) -> list[Any]:
    """`usage` of each chunk: its prompt tokens, None for null, "-" where there is none."""
    chunks = [chunk for chunk in voiced(answer, **fields) if chunk != "[DONE]"]
    return [(chunk.get("usage", "-") or {"prompt_tokens": None}) for chunk in chunks]


def test_where_the_counts_stand() -> None:
    asked = {"stream_options": {"include_usage": True}}

    def prompts(answer: Answer, **fields: Any) -> list[Any]:
        return [one if one == "-" else one["prompt_tokens"] for one in places_of_usage(answer, **fields)]

    assert prompts(say("a")) == ["-", "-", "-"]
    assert prompts(say("a") + usage(prompt=7)) == ["-", "-", "-", 7]
    assert prompts(usage(prompt=7) + say("a"), **asked) == [None, None, None, 7]
    assert prompts(say("a") + usage(prompt=7, every_chunk=True)) == [7, 7, 7]
    assert prompts(say("a") + together(finish("stop"), usage(prompt=7)), **asked) == [None, None, 7]
    assert prompts(together(say("a"), finish("stop"), usage(prompt=7))) == ["-", 7]
    assert prompts(say("a") + finish("stop") + usage(prompt=7)) == ["-", "-", "-", 7]
    assert prompts(say("a") + usage(prompt_tokens=-1)) == ["-", "-", "-", -1]
    assert prompts(say("a") + usage(prompt_tokens="12")) == ["-", "-", "-", "12"]


def test_counts_are_plausible() -> None:
    answer = think("x" * 40) + say("y" * 41) + call("abcd", {})
    [said] = [chunk["usage"] for chunk in voiced(answer + usage()) if isinstance(chunk, dict) and chunk.get("usage")]
    assert said["completion_tokens_details"] == {"reasoning_tokens": 10}
    assert said["completion_tokens"] == 10 + 12
    assert said["total_tokens"] == said["prompt_tokens"] + said["completion_tokens"]
    assert 10 <= said["prompt_tokens"] <= 40


def test_a_whole_answer_has_what_the_stream_has() -> None:
    answer = think("Hm.", "reasoning") + say("Roll", pieces=2) + call("a", {"n": 2}, id="x") + call("b", "", id=None)
    body = OPENAI_CHAT.voice(answer, sent(REQUEST), lambda: "id").whole()
    assert body["choices"][0] == {
        "index": 0,
        "finish_reason": "tool_calls",
        "logprobs": None,
        "message": {
            "role": "assistant",
            "content": "Roll",
            "reasoning": "Hm.",
            "tool_calls": [
                {"id": "x", "type": "function", "function": {"name": "a", "arguments": '{"n": 2}'}},
                {"type": "function", "function": {"name": "b", "arguments": ""}},
            ],
        },
    }


def test_half_of_a_surrogate_pair_is_sent_escaped() -> None:
    """Some servers cut by UTF-16: what they send is valid JSON and no valid text."""
    numbers = count(1)
    voice = OPENAI_CHAT.voice(Answer(), sent(REQUEST), lambda: f"id{next(numbers)}")
    [_, first, second] = [event for step in say("x", pieces=["x"]).steps for event in voice.say(step)] + voice.say(
        say("\ud83d", pieces=1).steps[0]
    )
    assert (first.data.isascii(), "\\ud83d" in second.data) == (True, True)


IMPOSSIBLE = [
    (lambda: cut() + say("a"), r"nothing can follow cut\(\)"),
    (lambda: say("a") + hang() + finish("stop"), r"nothing can follow hang\(\)"),
    (lambda: close() + close(), r"nothing can follow close\(\)"),
    (lambda: say("a") + fail(500), r"say\(\) can't stand before fail\(\)"),
    (lambda: keepalive(1, 1) + never_start(), r"keepalive\(\) can't stand before never_start\(\)"),
    (lambda: framing(crlf=True) + framing(bom=True), r"one framing\(\)"),
    (lambda: framing(gzip=True, brotli=True), "one compression"),
    (lambda: framing(chunk_bytes=0), "chunk_bytes=0"),
    (lambda: say("abc", pieces=["a", "b"]), "do not make up the text"),
    (lambda: say("abc", pieces=0), "pieces=0"),
    (lambda: together(say("a"), wait(1)), "Wait is not said in chunks"),
    (lambda: interleave(say("a"), done()), "Done is not said in chunks"),
]


@pytest.mark.parametrize(("make", "said"), IMPOSSIBLE)
def test_an_impossible_order_is_refused_at_once(make, said) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_what_is_about_the_whole_answer_may_stand_anywhere() -> None:
    answer = framing(crlf=True) + wait(1) + fail(500)
    assert (cut() + usage(prompt=1) + framing(bom=True)).framing.bom
    assert answer.says_nothing is True
    assert [one.says_nothing for one in (hang(), cut(0), cut(), close(), never_start(), wait(1), raw(b"") + cut())] == [
        *(False, False, True, True, True, False, False)
    ]
    assert [one.ends_itself for one in (raw(b""), event("x"), error("x"), say("a") + raw(b""), wait(1))] == [
        *(True, True, True, False, False)
    ]


def laid(framing_answer: Answer, *datas: str) -> bytes:
    framer = Framer(framing_answer.framing)
    return b"".join([framer.event(SseEvent(data)) for data in datas]) + framer.close()


LAID = [
    (Answer(), b"data: a\n\ndata: b\n\ndata: c\n\n"),
    (framing(crlf=True), b"data: a\r\n\r\ndata: b\r\n\r\ndata: c\r\n\r\n"),
    (framing(cr=True), b"data: a\r\rdata: b\r\rdata: c\r\r"),
    (framing(crlf=True, cr=True), b"data: a\n\ndata: b\r\n\r\ndata: c\r\r"),
    (framing(bom=True), b"\xef\xbb\xbfdata: a\n\ndata: b\n\ndata: c\n\n"),
    (framing(no_blank_at_end=True), b"data: a\n\ndata: b\n\ndata: c\n"),
    (framing(no_blank_at_end=True, crlf=True), b"data: a\r\n\r\ndata: b\r\n\r\ndata: c\r\n"),
]


@pytest.mark.parametrize(("answer", "expected"), LAID)
def test_how_events_are_laid_out(answer, expected) -> None:
    assert laid(answer, "a", "b", "c") == expected


def test_names_comments_and_lines() -> None:
    framer = Framer(Framing())
    assert framer.event(SseEvent("a\nb", "error")) == b"event: error\ndata: a\ndata: b\n\n"
    assert framer.comment(" OPENROUTER PROCESSING") == b": OPENROUTER PROCESSING\n\n"
    assert Framer(Framing(chunk_bytes=2)).pieces(b"abcde") == [b"ab", b"cd", b"e"]
    assert Framer(Framing()).pieces(b"") == []
