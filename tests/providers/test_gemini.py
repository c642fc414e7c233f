"""The Gemini family's answers (cases.md, "Gemini")."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.reading import native_of, sse
from tests.providers.reading import read as read_family
from turnkeeper.providers.gemini.arguments import PathArguments

FAMILY = "gemini"


def read(*chunks: dict[str, Any]) -> dict[str, Any]:
    return read_family(FAMILY, sse(*chunks))


def chunk(*parts: dict[str, Any], finish: str | None = None, message: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    candidate |= {"finishReason": finish} if finish else {}
    candidate |= {"finishMessage": message} if message else {}
    return {"candidates": [candidate]}


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}}


def piece(*values: dict[str, Any], more: bool = True) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": list(values)} | ({"willContinue": True} if more else {})}


def test_calls_without_ids_get_ids_also_two_of_one_name() -> None:
    calls = read(chunk(call("f", a=1), call("f", a=2)), chunk(finish="STOP"))["tool_calls"]
    assert [(one["name"], one["arguments"]) for one in calls] == [("f", {"a": 1}), ("f", {"a": 2})]
    assert len({one["id"] for one in calls}) == 2
    assert all(one["id"] for one in calls)


def test_signatures_stay_with_the_parts_that_they_came_with() -> None:
    events = [
        chunk({"text": "Hm", "thought": True}, {"text": "Hi ", "thoughtSignature": "QQ=="}),
        chunk({"text": "there"}, call("f") | {"thoughtSignature": "Qg=="}),
        chunk({"text": "", "thoughtSignature": "Qw=="}, finish="STOP"),
    ]
    found = read(*events)
    assert (found["text"], found["reasoning"]) == ("Hi there", "Hm")
    assert native_of(FAMILY, sse(*events)) == {
        "parts": [
            {"text": "Hi ", "thoughtSignature": "QQ=="},
            {"text": "there"},
            {"functionCall": {"name": "f"}, "thoughtSignature": "Qg=="},
            {"text": "", "thoughtSignature": "Qw=="},
        ]
    }


def test_streamed_arguments_are_assembled_by_their_paths() -> None:
    found = read(
        chunk({"functionCall": {"name": "f", "willContinue": True}}),
        chunk(piece({"jsonPath": "$.title", "stringValue": "Hel", "willContinue": True})),
        chunk(piece({"jsonPath": "$.title", "stringValue": "lo"})),
        chunk(
            piece({"jsonPath": "$.places[0].name", "stringValue": "A"}, {"jsonPath": "$.places[1].name", "stringValue": "B"})
        ),
        chunk(
            piece(
                {"jsonPath": "$.n", "numberValue": 3},
                {"jsonPath": "$.on", "boolValue": True},
                {"jsonPath": "$.no", "nullValue": None},
            )
        ),
        chunk({"functionCall": {}}, finish="STOP"),
    )
    assert found["tool_calls"][0]["arguments"] == {
        "title": "Hello",
        "places": [{"name": "A"}, {"name": "B"}],
        "n": 3,
        "on": True,
        "no": None,
    }


def test_streamed_arguments_whose_terminal_part_is_missing_are_assembled() -> None:
    found = read(
        chunk({"functionCall": {"name": "f", "willContinue": True}}),
        chunk(piece({"jsonPath": "$.a", "stringValue": "x"})),
        chunk(finish="STOP"),
    )
    assert found["tool_calls"][0]["arguments"] == {"a": "x"}


def test_streamed_arguments_that_max_tokens_cut_are_truncated() -> None:
    found = read(
        chunk({"functionCall": {"name": "f", "willContinue": True}}),
        chunk(piece({"jsonPath": "$.a", "stringValue": "x", "willContinue": True})),
        chunk(finish="MAX_TOKENS"),
    )
    assert found["tool_calls"][0]["problem"] == "cut off before its end"


@pytest.mark.parametrize("path", ["$", "a", "$.a[999999]", "$[0]", "$." + ".a" * 70, "$.a[", ""])
def test_a_path_that_names_no_place_is_a_problem_that_the_model_can_mend(path: str) -> None:
    arguments = PathArguments()
    arguments.add({"jsonPath": path, "numberValue": 1})
    arguments.close()
    assert arguments.problem.startswith("The arguments have the path")


@given(
    value=st.dictionaries(
        st.from_regex(r"[a-z]{1,4}", fullmatch=True),
        st.recursive(
            st.text(max_size=6) | st.integers(-9, 9) | st.booleans(),
            lambda inner: (
                st.lists(inner, min_size=1, max_size=3)
                | st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), inner, min_size=1, max_size=3)
            ),
            max_leaves=8,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_object_comes_back_from_its_paths(value: dict[str, Any]) -> None:
    arguments = PathArguments()

    def send(path: str, part: Any) -> None:
        if isinstance(part, dict):
            for name, inner in part.items():
                send(f"{path}.{name}", inner)
        elif isinstance(part, list):
            for place, inner in enumerate(part):
                send(f"{path}[{place}]", inner)
        elif isinstance(part, str):
            for letter in part:
                arguments.add({"jsonPath": path, "stringValue": letter, "willContinue": True})
            arguments.add({"jsonPath": path, "stringValue": ""})
        else:
            arguments.add({"jsonPath": path, "boolValue" if isinstance(part, bool) else "numberValue": part})

    send("$", value)
    assert (arguments.close(), arguments.problem) == (value, "")


def test_empty_parts_with_stop_then_text_then_stop_again_is_one_answer() -> None:
    found = read(chunk(finish="STOP"), chunk({"text": "Hi"}), chunk(finish="STOP"))
    assert (found["text"], found["finish"], found["error"]) == ("Hi", "stop", None)


@pytest.mark.parametrize("said", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_the_server_could_not_read_is_a_failure_that_the_model_can_mend(said: str) -> None:
    message = "Malformed function call: print(default_api.get_weather(city='Paris'))"
    found = read(chunk(finish=said, message=message))
    (made,) = found["tool_calls"]
    assert made["name"] == "get_weather"
    assert said in made["problem"]
    assert found["error"] is None


@pytest.mark.parametrize("said", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_a_blocked_answer_is_blocked_content(said: str) -> None:
    assert read(chunk({"text": "Hi"}, finish=said))["finish"] == "content_filter"


def test_a_refused_prompt_is_blocked_content() -> None:
    found = read({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}})
    assert (found["fault"]["kind"], found["finish"]) == ("content_blocked", "content_filter")


def test_max_tokens_is_length() -> None:
    assert read(chunk({"text": "Hi"}, finish="MAX_TOKENS"))["finish"] == "length"


def test_no_candidates_at_all_is_an_empty_answer() -> None:
    found = read({"usageMetadata": {"promptTokenCount": 3}})
    assert (found["text"], found["fault"]) == ("", None)


def test_a_stream_that_is_dropped_is_a_lost_connection_and_its_call_does_not_run() -> None:
    found = read(chunk({"text": "Hi"}), chunk(call("f")))
    assert (found["text"], found["tool_calls"], found["fault"]["kind"]) == ("Hi", [], "network")


def test_an_error_after_text_is_classified_and_the_text_stands() -> None:
    found = read(
        chunk({"text": "Hi"}), {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    )
    assert (found["text"], found["fault"]["kind"]) == ("Hi", "overloaded")


def test_a_list_of_chunks_instead_of_a_stream_is_read() -> None:
    body = b'[{"candidates":[{"content":{"parts":[{"text":"Hi "}]}}]},\r\n{"candidates":[{"content":{"parts":[{"text":"there"}]},"finishReason":"STOP"}]}]'
    assert read_family(FAMILY, body)["text"] == "Hi there"


def test_an_error_in_a_list_is_read() -> None:
    assert (
        read_family(FAMILY, b'[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]')["fault"]["kind"]
        == "rate_limit"
    )


def test_only_the_first_candidate_is_read() -> None:
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}, "finishReason": "STOP"}]}
    assert read(other, chunk({"text": "yes"}, finish="STOP"))["text"] == "yes"
