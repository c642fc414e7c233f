"""The probe's report, checked against servers that do what real ones do, and against broken ones."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnkeeper import Model
from turnkeeper.config import read_config
from turnkeeper.probe.ask import Endpoint
from turnkeeper.probe.findings import Finding, Found, Place, config_lines, table
from turnkeeper.probe.run import listed_models, probe
from turnkeeper.providers.transport import Transport
from turnkeeper.testing import Answer, ScriptedProvider, SeenRequest, call, fail, hang, raw, say, think, usage, whole
from turnkeeper.testing.anthropic import ANTHROPIC
from turnkeeper.testing.gemini import GEMINI
from turnkeeper.testing.openai_responses import OPENAI_RESPONSES

Server = Callable[[SeenRequest], Answer]
NUMBERS = ", ".join(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"] * 3)


def question(seen: SeenRequest) -> str:
    """What the request asks, in the words of the last person."""
    return seen.path + json.dumps(seen.body, ensure_ascii=False)


def talks(seen: SeenRequest) -> Answer:
    """A model without any tool, which answers what it is asked."""
    text = question(seen)
    if "Write the numbers" in text:
        return say(NUMBERS)
    if "Line 100:" in text:
        return say("3")
    return say("Well, that is hard to say.")


def good(seen: SeenRequest) -> Answer:
    """A good server: native, parallel and forced calls, prefill, reasoning."""
    text = question(seen)
    if "turnkeeper-probe-no-such-model" in text:
        return fail(404, message="The model does not exist.", code="model_not_found")
    if "tool_choice" in text or "toolConfig" in text:
        return call("get_weather", {"city": "Paris"})
    if "for both cities" in text:
        return call("get_weather", {"city": "Paris"}) + call("get_weather", {"city": "Rome"})
    if "Use the tool" in text:
        return call("get_weather", {"city": "Paris"})
    if "You can call tools" in text:
        return say('get_weather(city="Paris")')
    if "1, 2, 3, 4, 5, 6, 7," in text:
        return say(" 8, 9, 10, 11")
    if "Think step by step" in text:
        return think("17 times 20 is 340.") + say("391")
    return talks(seen)


def leaking(seen: SeenRequest) -> Answer:
    """The server does not parse its model's own markup."""
    text = question(seen)
    if '"tools"' in text:
        return say('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>')
    return talks(seen)


def in_text(seen: SeenRequest) -> Answer:
    """A server without tools, whose model can be taught to call in text; it refuses a prefill."""
    text = question(seen)
    if '"tools"' in text:
        return fail(400, message="tools are not supported")
    if "You can call tools" in text:
        return say("get_weather(city='Paris')")
    if "1, 2, 3, 4, 5, 6, 7," in text:
        return fail(400, message="The conversation must end with a user message.")
    return talks(seen)


def old(seen: SeenRequest) -> Answer:
    """Refuses `stream_options`, counts nothing, ends without a finish reason or a mark."""
    if "stream_options" in (seen.body or {}):
        return fail(400, message="Unrecognized request argument supplied: stream_options")
    answer = Answer()
    for word in NUMBERS.split():
        chunk = {"choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]}
        answer += raw(f"data: {json.dumps(chunk)}\n\n".encode())
    return answer


def cutting(seen: SeenRequest) -> Answer:
    """Cuts a long prompt in silence, as a local server with a small window does."""
    text = question(seen)
    return talks(seen) + (usage(prompt=2051, completion=3) if "Line 100:" in text else usage(prompt=30, completion=60))


def at_once(seen: SeenRequest) -> Answer:
    """Does not stream."""
    return talks(seen) + whole()


async def probed(provider: ScriptedProvider, server: Server, **options: Any) -> tuple[Found, str, Model]:
    provider.by_request(server)
    family = options.pop("family", "openai-chat")
    model = Model(family, "gpt-x", provider.base_url, keys=["sk-probe-0123456789"])
    transport, found = Transport(), Found()
    try:
        endpoint = Endpoint(model, transport, options.get("timeout", 30.0), lambda: 1_790_000_000.0)
        entries = await listed_models(endpoint, found)
        why = await probe(endpoint, found, entries[0] if entries else {}, lambda _: None)
    finally:
        await transport.aclose()
    return found, why, model


def verdicts(found: Found) -> dict[str, str]:
    return {name: finding.verdict for name, finding in found.rows.items() if name != "speed"}


GOOD = {
    "models": "yes", "streams": "yes", "ends": "yes", "usage": "yes", "tools": "yes", "parallel": "yes", "forced": "yes",
    "verbatim": "yes", "leaks": "no", "prefill": "yes", "reasoning": "yes", "window": "yes", "errors": "yes",
}  # fmt: skip
NONE = {
    "tools": "no",
    "parallel": "no",
    "forced": "no",
    "verbatim": "no",
    "prefill": "no",
    "reasoning": "no",
    "errors": "partly",
}
SERVERS: list[tuple[Server, dict[str, str], dict[str, Any]]] = [
    (good, GOOD, {"prefill": True}),
    (talks, GOOD | NONE, {"tools": "none"}),
    (leaking, GOOD | NONE | {"verbatim": "no", "leaks": "yes"}, {"tools": "none"}),
    (in_text, GOOD | NONE | {"verbatim": "yes"}, {"tools": "verbatim"}),
    (
        old,
        GOOD | NONE | {"ends": "no", "usage": "no", "window": "unknown"},
        {"tools": "none", "ends_unmarked": True, "stream_usage": False},
    ),
    (cutting, GOOD | NONE | {"window": "no"}, {"tools": "none", "context_window": 2051}),
    (at_once, GOOD | NONE | {"streams": "no"}, {"tools": "none"}),
]


@pytest.mark.parametrize(("server", "expected", "quirks"), SERVERS, ids=[server.__name__ for server, _, _ in SERVERS])
async def test_the_report_says_what_the_server_does_and_its_lines_load(
    server: Server, expected: dict[str, str], quirks: dict[str, Any], provider: ScriptedProvider, tmp_path: Path
) -> None:
    provider.strict = False
    found, why, model = await probed(provider, server)
    assert why == ""
    assert verdicts(found) == expected, "\n".join(table(found))
    lines = config_lines(found, Place(model.family, model.url, model.name, "PROBE_KEY"))
    file = tmp_path / "turnkeeper.toml"
    file.write_text("\n".join(lines), "utf-8")
    loaded = read_config(file, {"PROBE_KEY": "sk-probe-0123456789"}).models["gpt-x"]
    assert (loaded.url, loaded.name, loaded.quirks) == (model.url, "gpt-x", quirks)


async def test_a_leaked_form_is_named(provider: ScriptedProvider) -> None:
    provider.strict = False
    found, _, _ = await probed(provider, leaking)
    assert "<tool_call>" in found.rows["tools"].said
    assert "<tool_call>" in found.rows["leaks"].said


async def test_the_window_is_taken_from_the_refusal_that_names_it(provider: ScriptedProvider) -> None:
    provider.strict = False
    said = "This model's maximum context length is 4096 tokens. However, your messages resulted in 6021 tokens."

    def small(seen: SeenRequest) -> Answer:
        return fail(400, message=said, code="context_length_exceeded") if "Line 100:" in question(seen) else talks(seen)

    found, _, _ = await probed(provider, small)
    assert (found.window, found.rows["window"].verdict) == (4096, "yes")


REFUSALS = [
    (fail(401), "Check the key"),
    (fail(200, body="<html><body>Sign in</body></html>"), "check base URL"),
    (fail(404, message="Not found"), "model"),
    (fail(429, message="slow down"), "Wait a moment"),
]


@pytest.mark.parametrize(("answer", "advice"), REFUSALS, ids=[advice for _, advice in REFUSALS])
async def test_an_endpoint_that_answers_nothing_ends_the_probe_with_one_sentence(
    answer: Answer, advice: str, provider: ScriptedProvider
) -> None:
    found, why, _ = await probed(provider, lambda _: answer)
    assert advice in why
    assert verdicts(found) == {"models": "yes", "streams": "no"}
    assert "sk-probe" not in why + "".join(table(found))


@pytest.mark.looptime
async def test_a_server_that_hangs_costs_one_time_limit(provider: ScriptedProvider) -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    _, why, _ = await probed(provider, lambda _: hang(), timeout=20.0)
    assert "no whole answer in 20 s" in why
    assert clock() - begun < 25


@pytest.mark.parametrize("family", [ANTHROPIC, OPENAI_RESPONSES, GEMINI], ids=["anthropic", "openai-responses", "gemini"])
async def test_other_families_are_asked_in_their_own_words(family: Any, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    async with ScriptedProvider(models=("gpt-x",), family=family, strict=False) as provider:
        found, why, _ = await probed(provider, good, family=name)
    assert why == ""
    told = {row: verdicts(found)[row] for row in ("streams", "usage", "tools", "parallel", "forced", "verbatim", "errors")}
    assert set(told.values()) == {"yes"}, "\n".join(table(found))


def test_rows_that_were_not_asked_say_so() -> None:
    found = Found(rows={"models": Finding("yes", "a, b")})
    lines = table(found)
    assert lines[0].split() == ["yes", "lists", "its", "models", "a,", "b"]
    assert all(line.endswith("not asked") for line in lines[1:])


async def run(tmp_path: Path, *arguments: str, stop: asyncio.Event | None = None, **env: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "turnkeeper", "probe", *arguments,
        cwd=tmp_path, env=os.environ | {"TURNKEEPER_DATA": str(tmp_path)} | env,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    if stop is not None:
        await stop.wait()
        process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode(), err.decode()


async def test_the_command_prints_progress_table_and_lines(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.strict = False
    provider.by_request(good)
    code, out, err = await run(tmp_path, provider.base_url, "--key-env", "K", K="sk-probe-0123456789")
    assert code == 0, err
    assert "Asking gpt-x, the first of 2; --model names another." in err
    assert "8/8 error answers" in err
    assert f'[models.gpt-x]\nfamily = "openai-chat"\nname = "gpt-x"\nbase_url = "{provider.base_url}"\nkey_env = "K"' in out
    assert {request.key for request in provider.requests if request.key} == {"sk-probe-0123456789"}
    assert "sk-probe" not in out + err


async def test_ctrl_c_keeps_what_was_found(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.strict = False
    asked = asyncio.Event()

    def stuck(seen: SeenRequest) -> Answer:
        if '"tools"' in question(seen):
            asked.set()
            return hang()
        return talks(seen)

    provider.by_request(stuck)
    code, out, err = await run(tmp_path, provider.base_url, stop=asked)
    assert code == 130
    assert "Stopped; this is what was found so far." in out
    assert "yes      streams" in out
    assert "Traceback" not in err


BAD = [
    (["nonsense"], "no http or https address"),
    (["http://127.0.0.1:1/v1"], "lists no models"),
    (["http://127.0.0.1:1/v1", "--model", "m"], "no connection"),
    (["http://127.0.0.1:1/v1", "--key-env", "NOT_SET"], "NOT_SET"),
    (["http://127.0.0.1:1/v1", "--family", "nope", "--model", "m"], "unknown family"),
    (["http://user:pw@127.0.0.1:1/v1", "--model", "m"], "password"),
    (["--key-env", "X"], "go with a BASE_URL"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[said for _, said in BAD])
async def test_what_a_person_can_mend_is_one_sentence(arguments: list[str], said: str, tmp_path: Path) -> None:
    code, out, err = await run(tmp_path, *arguments)
    assert code == 1
    assert said in out + err
    assert "Traceback" not in err
