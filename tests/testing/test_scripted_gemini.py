"""How scripts are worded as the Gemini API (`turnkeeper.testing.gemini`), and how its server behaves."""

from __future__ import annotations

import base64
import json
from itertools import count
from typing import Any

import pytest

from tests.shared import STREAMS
from turnkeeper.testing import (
    Answer,
    ScriptedProvider,
    SeenRequest,
    call,
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
from turnkeeper.testing.gemini import GEMINI, Gemini

HELLO = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
STREAM = "/models/gemini-x:streamGenerateContent?alt=sse"
ONE = "/models/gemini-x:generateContent"


def seen(path: str = STREAM) -> SeenRequest:
    return SeenRequest(at=0.0, path=f"/v1beta{path}", headers={}, body=HELLO, raw=b"", key="")


def chunks(answer: Answer, family: Gemini = GEMINI) -> list[Any]:
    """The data of all events."""
    numbers = count(1)
    voice = family.voice(answer, seen(), lambda: f"call_{next(numbers)}")
    events = [event for step in answer.steps for event in voice.say(step)]
    events += [] if answer.ends_itself else voice.end()
    return [json.loads(event.data) for event in events]


def masked(part: dict[str, Any]) -> dict[str, Any]:
    """The part, its signature as True."""
    return part | {"thoughtSignature": True} if "thoughtSignature" in part else part


def parts(answer: Answer, family: Gemini = GEMINI) -> list[list[Any]]:
    """The parts of each chunk, without the one that only says the reason."""
    candidates = [chunk["candidates"][0] for chunk in chunks(answer, family) if "candidates" in chunk]
    worded = [[masked(part) for part in one.get("content", {}).get("parts", [])] for one in candidates]
    return [one for one in worded if one not in ([], [{"text": ""}])]


def called(name: str, args: Any, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args} | fields, "thoughtSignature": True}


def piece(path: str, **value: Any) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": [{"jsonPath": path} | value], "willContinue": True}}


BEGUN = {"functionCall": {"name": "a", "willContinue": True}, "thoughtSignature": True}
ENDED: dict[str, Any] = {"functionCall": {}}
UNSIGNED = {"functionCall": {"name": "a", "args": {}}}

WORDED = [
    ("text in tokens", say("The tide"), [[{"text": "The "}], [{"text": "tide"}]]),
    ("no text", say(""), []),
    ("thoughts", think("Hm.", "reasoning"), [[{"text": "Hm.", "thought": True}]]),
    (
        "thoughts sign the last text after them",
        say("a") + think("Hm.") + say("bc", pieces=2) + say("d"),
        [
            [{"text": "a"}],
            [{"text": "Hm.", "thought": True}],
            [{"text": "b"}],
            [{"text": "c"}],
            [{"text": "d", "thoughtSignature": True}],
        ],
    ),
    ("text before all thoughts is not signed", say("a") + think("Hm."), [[{"text": "a"}], [{"text": "Hm.", "thought": True}]]),
    ("a call is in one part", call("roll", {"n": 2, "of": "six"}), [[called("roll", {"n": 2, "of": "six"})]]),
    ("a call from its text", call("roll", '{"n": 2}'), [[called("roll", {"n": 2})]]),
    ("a call whose text is broken", call("roll", '{"n": '), [[called("roll", '{"n": ')]]),
    ("a call without args", call("now", ""), [[{"functionCall": {"name": "now"}, "thoughtSignature": True}]]),
    (
        "an id that the script gives",
        call("a", {}, id="x") + call("b", {}, id=""),
        [[called("a", {}, id="x")], [called("b", {}, id="")]],
    ),
    ("no id", call("a", {}, id=None), [[called("a", {})]]),
    (
        "a call in pieces",
        call("a", {"x": "abcdefgh"}, pieces=['{"x":', ' "abc', 'defgh"}']),
        [
            [BEGUN],
            [piece("$.x", stringValue="abcdefg", willContinue=True)],
            [piece("$.x", stringValue="h", willContinue=True)],
            [piece("$.x", stringValue="")],
            [ENDED],
        ],
    ),
    (
        "values of every kind in pieces",
        call("a", {"n": 2, "yes": True, "none": None, "in": {"x y": [1.5, ""]}}, pieces=2),
        [
            [BEGUN],
            [piece("$.n", numberValue=2)],
            [piece("$.yes", boolValue=True)],
            [piece("$.none", nullValue="NULL_VALUE")],
            [piece('$.in["x y"][0]', numberValue=1.5)],
            [piece('$.in["x y"][1]', stringValue="")],
            [ENDED],
        ],
    ),
    ("no args in pieces", call("a", {}, pieces=2), [[BEGUN], [ENDED]]),
    ("what has no path is not in pieces", call("a", {"x": []}, pieces=2), [[called("a", {"x": []})]]),
    ("one piece", call("a", {"x": 1}, pieces=1), [[called("a", {"x": 1})]]),
    (
        "an id in pieces",
        call("a", {}, id="x", pieces=2),
        [[BEGUN | {"functionCall": {"name": "a", "willContinue": True, "id": "x"}}], [ENDED]],
    ),
    (
        "parts in one chunk",
        together(think("Hm."), say("Hi there"), call("a", {}), call("b", {})),
        [[{"text": "Hm.", "thought": True}, {"text": "Hi there", "thoughtSignature": True}, called("a", {}), called("b", {})]],
    ),
    ("chunks by turns", interleave(say("ab", pieces=2), call("a", {})), [[{"text": "a"}], [called("a", {})], [{"text": "b"}]]),
    ("nothing together", together(usage(prompt=1)), []),
    ("no end mark", say("a") + done(), [[{"text": "a"}]]),
]


@pytest.mark.parametrize(("name", "answer", "expected"), WORDED, ids=[case[0] for case in WORDED])
def test_how_steps_are_worded(name, answer, expected) -> None:
    assert parts(answer) == expected


def test_which_calls_are_signed() -> None:
    answer = think("Hm.") + say("a") + call("a", {}) + call("a", {})
    signed = {
        signed: ["thoughtSignature" in part for [part] in parts(answer, Gemini(signed=signed))]
        for signed in ("each", "first", "none")
    }
    assert signed == {"each": [False, True, True, True], "first": [False, True, True, False], "none": [False] * 4}


def test_signatures_are_bytes_and_distinct() -> None:
    said = [chunk["candidates"][0]["content"]["parts"][0] for chunk in chunks(call("a", {}) + call("b", {}))]
    signatures = [part["thoughtSignature"] for part in said[:2]]
    assert len(set(signatures)) == 2
    assert all(base64.b64decode(signature, validate=True) for signature in signatures)


def ends(answer: Answer) -> list[Any]:
    """Finish reasons and why prompts were blocked."""
    worded = chunks(answer)
    reasons = [chunk["candidates"][0].get("finishReason") for chunk in worded if "candidates" in chunk]
    return [reason for reason in reasons if reason is not None] + [
        c["promptFeedback"]["blockReason"] for c in worded if "promptFeedback" in c
    ]


FINISHES = [
    (say("a"), ["STOP"]),
    (call("a", {}), ["STOP"]),
    (say("a") + finish("stop"), ["STOP"]),
    (call("a", {}) + finish("tool_calls"), ["STOP"]),
    (say("a") + finish("length"), ["MAX_TOKENS"]),
    (finish("content_filter"), ["SAFETY"]),
    (finish("RECITATION"), ["RECITATION"]),
    (finish("UNEXPECTED_TOOL_CALL"), ["UNEXPECTED_TOOL_CALL"]),
    (finish(None), []),
    (together(say("a"), finish("")), [""]),
    (finish("STOP") + say("a") + finish("STOP"), ["STOP", "STOP"]),
    (refuse("No."), ["PROHIBITED_CONTENT"]),
    (error("x"), []),
    (event({"candidates": [{"finishReason": "OTHER"}]}), ["OTHER"]),
]


@pytest.mark.parametrize(("answer", "reasons"), FINISHES)
def test_finish_reasons(answer, reasons) -> None:
    assert ends(answer) == reasons


def last(answer: Answer) -> Any:
    """The last chunk without its envelope."""
    return {
        name: value for name, value in chunks(answer)[-1].items() if name not in ("usageMetadata", "modelVersion", "responseId")
    }


def test_how_the_end_is_worded() -> None:
    empty = {"content": {"parts": [{"text": ""}], "role": "model"}, "index": 0}
    assert last(say("a")) == {"candidates": [empty | {"finishReason": "STOP"}]}
    assert last(together(say("a"), finish("length"))) == {
        "candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]
    }
    assert last(finish("content_filter")) == {"candidates": [{"finishReason": "SAFETY", "index": 0}]}
    [malformed] = last(finish("MALFORMED_FUNCTION_CALL"))["candidates"]
    assert (malformed["content"], malformed["finishMessage"][:24]) == ({}, "Malformed function call:")
    assert last(refuse("No.")) == {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}


ERRORS = [
    (error("Broken."), {"code": 500, "message": "Broken.", "status": "INTERNAL"}),
    (error("Busy.", code=503), {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}),
    (error("Late.", code="DEADLINE_EXCEEDED"), {"code": 504, "message": "Late.", "status": "DEADLINE_EXCEEDED"}),
    (error("Odd.", code="ODD", name="error"), {"code": 500, "message": "Odd.", "status": "ODD"}),
]


@pytest.mark.parametrize(("answer", "expected"), ERRORS)
def test_errors_inside_a_stream(answer, expected) -> None:
    assert chunks(say("a") + answer)[-1] == {"error": expected}
    assert len(chunks(say("a") + answer)) == 2


def counted(answer: Answer) -> list[tuple[Any, ...]]:
    """Prompt, said, thought and all of each chunk."""
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    return [tuple(chunk["usageMetadata"].get(name) for name in names) for chunk in chunks(answer)]


def test_the_counts_grow_with_every_chunk() -> None:
    answer = think("x" * 8) + say("y" * 16, pieces=2) + usage(prompt=100, completion=30, reasoning=10)
    assert counted(answer) == [
        (100, None, 5, 105),
        (100, None, 10, 110),
        (100, 10, 10, 120),
        (100, 20, 10, 130),
        (100, 20, 10, 130),
    ]
    assert counted(think("Hm.") + say("y" * 9, pieces=1))[-1][1:3] == (3, 1)
    assert counted(refuse("No.") + usage(prompt=9)) == [(9, None, None, 9)]


def test_a_broken_stream_has_counted_what_it_said() -> None:
    answer = say("y" * 16, pieces=2) + call("abcd", {"xy": "z" * 8}, pieces=4) + usage(prompt=1, completion=100)
    totals = [total for _, _, _, total in counted(answer)]
    assert totals == sorted(totals)
    assert (totals[-1], totals[0] < 40) == (101, True)


def test_other_counts_are_added_as_they_are() -> None:
    counts = chunks(say("a") + usage(prompt=9, completion=2, cached=7, trafficType="ON_DEMAND", totalTokenCount=-1))[-1]
    assert counts["usageMetadata"] == {
        "promptTokenCount": 9,
        "cachedContentTokenCount": 7,
        "candidatesTokenCount": 2,
        "totalTokenCount": -1,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
        "trafficType": "ON_DEMAND",
    }


def test_a_whole_answer_has_what_the_stream_has() -> None:
    answer = (
        think("Hm, hm.") + say("Roll now", pieces=3) + call("a", {"n": "abc"}, id="x", pieces=3) + usage(prompt=5, completion=9)
    )
    body = GEMINI.voice(answer, seen(ONE), lambda: "call_7").whole()
    assert isinstance(body, dict)
    [candidate] = body["candidates"]
    assert [masked(part) for part in candidate["content"]["parts"]] == [
        {"text": "Hm, hm.", "thought": True},
        {"text": "Roll now", "thoughtSignature": True},
        called("a", {"n": "abc"}, id="x"),
    ]
    assert (candidate["finishReason"], candidate["index"], body["modelVersion"]) == ("STOP", 0, "gemini-x")
    assert (body["responseId"], body["usageMetadata"]["totalTokenCount"]) == ("resp-7", 14)


WHOLES = [
    (refuse("No."), {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
    (say("a") + error("x", code=503), {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}),
    (finish("SAFETY"), {"candidates": [{"finishReason": "SAFETY", "index": 0}]}),
    (say("a") + finish(None), {"candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}, "index": 0}]}),
]


@pytest.mark.parametrize(("answer", "expected"), WHOLES)
def test_whole_answers_that_are_no_plain_ones(answer, expected) -> None:
    body = GEMINI.voice(answer, seen(ONE), lambda: "call_7").whole()
    assert {name: body[name] for name in expected} == expected
    assert set(body) - set(expected) <= {"usageMetadata", "modelVersion", "responseId"}


def recorded(name: str) -> list[Any]:
    assert STREAMS is not None
    text = (STREAMS / f"{name}.sse").read_text("utf-8")
    return [json.loads(line.removeprefix("data:")) for line in text.splitlines() if line.startswith("data:")]


def texts(name: str, *, thought: bool = False) -> list[str]:
    """The texts of a recording, a piece each."""
    said = [part for chunk in recorded(name) for part in chunk["candidates"][0]["content"]["parts"] if "text" in part]
    return [part["text"] for part in said if part.get("thought", False) is thought and part["text"]]


def said_again(name: str) -> Answer:
    thoughts, said = texts(name, thought=True), texts(name)
    return think("".join(thoughts), pieces=thoughts) + say("".join(said), pieces=said)


def screen(letter: str) -> Answer:
    return call("read_screen", {"id": letter}, pieces=2)


RECORDED = [
    ("google-v-google-tool-call-gemini3", lambda name: call("weather", {"location": "San Francisco"})),
    ("google-native-output-with-function-tools-stream-0", lambda name: call("get_user_country", {}, id="96c1su3s")),
    ("google-google-model-iter-stream-0", lambda name: together(call("get_capital", {"country": "France"}), finish("stop"))),
    (
        "google-v-google-stream-tool-call-arguments",
        lambda name: (
            call("getWeather", {"location": "Boston"}, pieces=2) + call("getWeather", {"location": "San Francisco"}, pieces=2)
        ),
    ),
    (
        "google-v-google-stream-no-args-tool-call",
        lambda name: said_again(name) + call("read_theme", "") + screen("A") + screen("B") + screen("C"),
    ),
    ("google-google-model-iter-stream-2", said_again),
    ("google-google-model-thinking-part-iter-0", said_again),
    ("google-v-google-text", said_again),
]


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
@pytest.mark.parametrize(("name", "script"), RECORDED, ids=[case[0] for case in RECORDED])
def test_the_words_are_those_of_the_real_server(name, script) -> None:
    """But for signatures: the models differ in which part they sign."""

    def plain(worded: list[Any]) -> list[Any]:
        said = [part for chunk in worded for part in chunk["candidates"][0]["content"]["parts"]]
        return [
            bare for part in said if (bare := {name: part[name] for name in part if name != "thoughtSignature"}) != {"text": ""}
        ]

    real, ours = recorded(name), chunks(script(name))
    assert plain(ours) == plain(real)
    assert [c["candidates"][0].get("finishReason") for c in (ours[-1], real[-1])] == ["STOP", "STOP"]
    beside = {"promptTokenCount", "promptTokensDetails", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"}
    assert {name for chunk in ours for name in chunk} == {name for chunk in real for name in chunk} - {"createTime"}
    assert set(ours[-1]["usageMetadata"]) <= set(real[-1]["usageMetadata"]) & beside


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
def test_gemini_3_signs_the_first_of_parallel_calls() -> None:
    name = "google-v-google-stream-tool-call-arguments"
    real = [masked(chunk["candidates"][0]["content"]["parts"][0]) for chunk in recorded(name)]
    answer = call("getWeather", {"location": "Boston"}, pieces=2) + call("getWeather", {"location": "San Francisco"}, pieces=2)
    assert [part for [part] in parts(answer, Gemini(signed="first"))] == real


ASKED = [
    ("POST", "/v1beta/models/gemini-x:streamGenerateContent", "answer"),
    ("POST", "/v1beta/models/gemini-x:generateContent", "answer"),
    ("POST", "/v1beta/models/tuned/gemini-x:generateContent", "answer"),
    ("GET", "/v1beta/models", "models"),
    ("GET", "/v1beta/models/gemini-x:generateContent", 405),
    ("POST", "/v1beta/models", 405),
    ("POST", "/v1beta/models/gemini-x:countTokens", 404),
    ("POST", "/v1beta/models/:generateContent", 404),
    ("POST", "/v1beta/models/gemini-x", 404),
    ("POST", "/v1/models/gemini-x:generateContent", 404),
    ("POST", "/v1beta/chat/completions", 404),
]


@pytest.mark.parametrize(("method", "path", "expected"), ASKED)
def test_what_a_request_is_for(method, path, expected) -> None:
    assert GEMINI.asked(method, path) == expected


WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    502: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@pytest.mark.parametrize(("status", "word"), WORDS.items())
def test_errors_have_their_word(status, word) -> None:
    said = GEMINI.error(status, "Sorry.")["error"]
    assert (said["code"], said["message"], said["status"]) == (status, "Sorry.", word)
    assert GEMINI.error(status)["error"]["message"]
    assert ("details" in said) == (status == 401)
    [details] = GEMINI.error(status, code="ODD")["error"]["details"]
    assert (details["@type"], details["reason"]) == ("type.googleapis.com/google.rpc.ErrorInfo", "ODD")


async def test_a_stream_is_played_from_the_script(client) -> None:
    async with ScriptedProvider(models=("gemini-x",), family=GEMINI) as provider:
        provider.play(say("The tide") + cut(), say(" comes in.") + wait(0))
        first = await client.post(provider.base_url + STREAM, HELLO)
        second = await client.post(provider.base_url + STREAM, HELLO)
    said = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in second.chunks]
    assert (bool(first.lost), second.status, second.lost, "".join(said)) == (True, 200, "", " comes in.")
    assert second.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [request.problems for request in provider.requests] == [[], []]
    assert b"[DONE]" not in second.data


async def test_a_stream_without_alt_sse_is_one_array(client) -> None:
    async with ScriptedProvider(models=("gemini-x",), family=GEMINI) as provider:
        provider.play(say("The tide"), say("a") + error("x"), say("The tide") + whole(), event("odd"))
        array, broken, document, odd = [
            await client.post(f"{provider.base_url}/models/gemini-x:streamGenerateContent", HELLO) for _ in range(4)
        ]
    assert array.headers["content-type"] == "application/json"
    assert [chunk["candidates"][0].get("finishReason") for chunk in json.loads(array.data)] == [None, None, "STOP"]
    assert [next(iter(chunk)) for chunk in json.loads(broken.data)] == ["candidates", "error"]
    assert json.loads(document.data)["candidates"][0]["content"]["parts"] == [{"text": "The tide"}]
    assert json.loads(odd.data) == ["odd"]


async def test_a_document_is_given_where_one_is_asked_for(client) -> None:
    async with ScriptedProvider(models=("gemini-x",), family=GEMINI) as provider:
        provider.play(say("The tide"), say("The tide") + whole())
        asked, played = await client.post(provider.base_url + ONE, HELLO), await client.post(provider.base_url + STREAM, HELLO)
    assert {reply.headers["content-type"] for reply in (asked, played)} == {"application/json"}
    assert [json.loads(reply.data)["candidates"][0]["finishReason"] for reply in (asked, played)] == ["STOP", "STOP"]


async def test_the_key_is_in_the_header_or_in_the_path(client) -> None:
    async with ScriptedProvider(models=("gemini-x",), family=GEMINI, keys=["good"]) as provider:
        provider.default = say("ok")
        url = provider.base_url + ONE
        replies = [
            await client.post(url, HELLO, x_goog_api_key="good"),
            await client.post(f"{url}?key=good", HELLO),
            await client.post(url, HELLO, x_goog_api_key="bad"),
            await client.post(url, HELLO, Authorization="Bearer good"),
        ]
        listed = [await client.get(f"{provider.base_url}/models{query}") for query in ("?key=good", "?key=bad", "")]
    assert [reply.status for reply in replies] == [200, 200, 400, 403]
    assert [request.key for request in provider.requests] == ["good", "good", "bad", ""]
    wrong = json.loads(replies[2].data)["error"]
    assert (wrong["message"], wrong["status"]) == ("API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")
    assert wrong["details"][0]["reason"] == "API_KEY_INVALID"
    assert [status for status, _ in listed] == [200, 400, 403]
    assert listed[0][1]["models"][0]["name"] == "models/gemini-x"


async def test_a_wrong_request_is_refused_with_its_problem(client) -> None:
    async with ScriptedProvider(models=("gemini-x",), family=GEMINI) as provider:
        wrong = await client.post(provider.base_url + STREAM, {"contents": []})
        strange = await client.post(f"{provider.base_url}/models/gemini-y:generateContent", HELLO)
        junk = await client.post(provider.base_url + STREAM, b"{")
    said = [json.loads(reply.data)["error"] for reply in (wrong, strange, junk)]
    assert [(one["code"], one["status"]) for one in said] == [
        (400, "INVALID_ARGUMENT"),
        (404, "NOT_FOUND"),
        (400, "INVALID_ARGUMENT"),
    ]
    assert said[0]["message"] == "contents: contents is not specified"
    assert said[1]["message"].startswith(
        "models/gemini-y is not found for API version v1beta, or is not supported for generateContent."
    )


async def test_failures_are_worded_as_the_real_ones(client) -> None:
    async with ScriptedProvider(models=("gemini-x",), family=GEMINI) as provider:
        provider.play(fail(429), fail(503, message="Busy."))
        replies = [await client.post(provider.base_url + STREAM, HELLO) for _ in range(2)]
    assert [json.loads(reply.data)["error"]["status"] for reply in replies] == ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]
    assert [reply.status for reply in replies] == [429, 503]
