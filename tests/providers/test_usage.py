"""The usage objects of all families, in disjoint parts (S15.2; cases.md, "Usage")."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnkeeper.providers.anthropic.usage import UsageReport
from turnkeeper.providers.gemini.usage import read_usage as read_gemini
from turnkeeper.providers.openai_chat.usage import read_usage as read_chat
from turnkeeper.providers.openai_responses.usage import read_usage as read_responses
from turnkeeper.providers.report import report
from turnkeeper.types.usage import Usage


@pytest.mark.parametrize(
    ("said", "read"),
    [
        pytest.param(
            {"prompt_tokens": 20_212, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16_298}},
            Usage(input=3_914, cache_read=16_298, output=5),
            id="20,212 with 16,298 cached",
        ),
        pytest.param({"prompt_tokens": 5, "completion_tokens": -1}, Usage(input=5), id="a negative count is ignored"),
        pytest.param({"prompt_tokens": "5", "completion_tokens": 2}, Usage(output=2), id="text is ignored"),
        pytest.param(None, None, id="null"),
        pytest.param({}, None, id="empty"),
        pytest.param(
            {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.25}, Usage(input=1, output=2, cost=0.25), id="a cost"
        ),
        pytest.param(
            {"prompt_tokens": 1, "completion_tokens": 2, "cost_in_usd_ticks": 1_466_250},
            Usage(input=1, output=2, cost=0.000146625),
            id="a cost in ticks",
        ),
    ],
)
def test_chat_completions(said: Any, read: Usage | None) -> None:
    assert read_chat(said) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        pytest.param(
            {
                "input_tokens": 20_212,
                "input_tokens_details": {"cached_tokens": 16_298},
                "output_tokens": 9,
                "output_tokens_details": {"reasoning_tokens": 4},
            },
            Usage(input=3_914, cache_read=16_298, output=9, reasoning=4),
            id="cached and reasoning are parts",
        ),
        pytest.param({"input_tokens": None, "output_tokens": None}, None, id="nothing said"),
        pytest.param({"input_tokens": 3, "input_tokens_details": None}, Usage(input=3), id="no details"),
    ],
)
def test_responses(said: Any, read: Usage | None) -> None:
    assert read_responses(said) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        pytest.param(
            {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7, "thoughtsTokenCount": 5},
            Usage(input=40, cache_read=60, output=12, reasoning=5),
            id="cached is a part of the prompt, thoughts are beside the candidates",
        ),
        pytest.param(
            {"promptTokenCount": 17, "toolUsePromptTokenCount": 102, "candidatesTokenCount": 241, "thoughtsTokenCount": 412},
            Usage(input=119, output=653, reasoning=412),
            id="what the server's own tools read",
        ),
        pytest.param({"trafficType": "ON_DEMAND"}, None, id="no counts"),
    ],
)
def test_gemini(said: Any, read: Usage | None) -> None:
    assert read_gemini(said) == read


def messages(opening: Any, *closing: Any) -> Usage | None:
    reported = UsageReport()
    reported.opening(opening)
    for one in closing:
        reported.closing(one)
    return reported.usage()


@pytest.mark.parametrize(
    ("reports", "read"),
    [
        pytest.param(
            [
                {"input_tokens": 6, "cache_creation_input_tokens": 159_217, "cache_read_input_tokens": 0, "output_tokens": 1},
                {"input_tokens": 6, "cache_creation_input_tokens": 159_217, "output_tokens": 2_745},
            ],
            Usage(input=6, cache_write=159_217, output=2_745),
            id="both repeat them: the last of each counts",
        ),
        pytest.param([{"input_tokens": 12, "output_tokens": 1}], Usage(input=12), id="the opening placeholder is no report"),
        pytest.param(
            [{"input_tokens": 1_000}, {"cache_read_input_tokens": 800, "output_tokens": 5}],
            Usage(input=200, cache_read=800, output=5),
            id="the total first, its cached part at the end",
        ),
        pytest.param(
            [{"input_tokens": 1_000}, {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 5}],
            Usage(input=200, cache_read=800, output=5),
            id="the total first, both parts at the end",
        ),
        pytest.param(
            [{"input_tokens": 1_000, "prompt_tokens": 1_000, "cache_read_input_tokens": 800}, {"output_tokens": 5}],
            Usage(input=200, cache_read=800, output=5),
            id="prompt_tokens beside input_tokens: never above the stated total",
        ),
        pytest.param(
            [
                {
                    "input_tokens": 1,
                    "cache_creation_input_tokens": 500,
                    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 400},
                },
                {"output_tokens": 2, "server_tool_use": {"web_search_requests": 3}},
            ],
            Usage(input=1, cache_write=500, cache_write_long=400, output=2, searches=3),
            id="a cache kept for an hour, and searches",
        ),
        pytest.param([None], None, id="null"),
        pytest.param([{"input_tokens": "3", "output_tokens": -1}], None, id="text and negative counts"),
    ],
)
def test_messages(reports: list[Any], read: Usage | None) -> None:
    assert messages(*reports) == read


def test_a_count_in_every_chunk_is_not_added_up() -> None:
    counts = [{"promptTokenCount": 9, "candidatesTokenCount": n} for n in (1, 2, 3)]
    chunks = [{"candidates": [{"content": {"parts": [{"text": "x"}]}}], "usageMetadata": one} for one in counts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
    assert report("gemini", [body])["tokens"]["output"] == 3
