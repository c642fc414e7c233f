"""The command line, as a person runs it: real processes, a real loopback server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.shared import STREAMS
from turnkeeper.testing import ScriptedProvider, call, fail, hang, say
from turnkeeper.testing.anthropic import ANTHROPIC
from turnkeeper.testing.gemini import GEMINI
from turnkeeper.testing.novelai import NOVELAI
from turnkeeper.testing.openai_responses import OPENAI_RESPONSES
from turnkeeper.testing.wire import Family


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def env(folder: Path, **more: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return known | {"TURNKEEPER_DATA": str(folder / "data"), "NO_COLOR": "1"} | more


async def start(folder: Path, *args: str, **more: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "turnkeeper", *args, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=env(folder, **more)
    )


async def run(folder: Path, *args: str, typed: str = "", **more: str) -> Ran:
    process = await start(folder, *args, **more)
    out, err = await asyncio.wait_for(process.communicate(typed.encode()), 60)
    assert "Traceback" not in err.decode(), err.decode()
    return Ran(process.returncode or 0, out.decode(), err.decode())


def model(provider: ScriptedProvider) -> list[str]:
    return ["--model", "gpt-x", "--base-url", provider.base_url]


async def test_once_prints_the_reply_and_is_on_record(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.play(say("I roll.") + call("roll_dice", {"sides": 6}), say("There it is."))
    ran = await run(tmp_path, "chat", "--once", "roll", *model(provider))
    assert ran.code == 0
    assert ran.out.startswith("I roll.\n[roll_dice(")
    assert ran.out.endswith("There it is.\n")
    assert "gpt-x at " in ran.err
    listed = await run(tmp_path, "turns")
    assert "completed" in listed.out
    shown = await run(tmp_path, "turns", listed.out.split()[0])
    assert "tool roll_dice succeeded" in shown.out
    assert "2 passes" in shown.out


async def test_json_prints_one_event_a_line(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.play(call("calculate", {"expression": "1+1"}), say("Two."))
    ran = await run(tmp_path, "chat", "--once", "-", "--json", *model(provider), typed="how much is 1+1?")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert [one["type"] for one in events if one["type"] != "TextShown"] == [
        "ToolBegan",
        "ToolEnded",
        "MessageShown",
        "TurnEnded",
    ]
    assert events[-1]["result"]["text"] == "Two."


async def test_piped_lines_are_answered_one_by_one(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.by_request(lambda seen: say(f"You said {seen.body['messages'][-1]['content']}."))
    ran = await run(tmp_path, "chat", *model(provider), typed="one\n\n/new\ntwo\n/quit\nthree\n")
    assert [line for line in ran.out.splitlines() if line.startswith("You")] == ["You said one.", "You said two."]
    assert len(provider.requests[-1].body["messages"]) == 2


async def test_a_chat_goes_on_from_the_last_one_and_a_single_question_stands_alone(
    provider: ScriptedProvider, tmp_path: Path
) -> None:
    """S2.5: the terminal's context comes from the journal."""
    provider.by_request(lambda seen: say(f"{len(seen.body['messages'])} messages."))
    first = await run(tmp_path, "chat", *model(provider), typed="one\n")
    assert "goes on from" not in first.out
    second = await run(tmp_path, "chat", *model(provider), typed="two\n")
    assert "This goes on from your last conversation" in second.out
    assert "4 messages." in second.out
    assert (await run(tmp_path, "chat", "--once", "three", *model(provider))).out == "2 messages.\n"


async def test_a_failure_exits_with_1_and_says_what_to_do(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.play(fail(401, message="Incorrect API key provided: sk-abcdefghijklmnopqrstuvwx", code="invalid_api_key"))
    ran = await run(tmp_path, "chat", "--once", "hi", *model(provider), "--key-env", "KEY", KEY="sk-abcdefghijklmnopqrstuvwx")
    assert ran.code == 1
    assert "Check the key" in ran.out
    assert "abcdefgh" not in ran.out + ran.err


async def test_ctrl_c_stops_and_keeps_what_was_shown(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.play(say("Half a reply") + hang())
    process = await start(tmp_path, "chat", "--once", "go", *model(provider))
    assert process.stdout is not None
    shown = await asyncio.wait_for(process.stdout.readexactly(12), 30)
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (shown + out).decode().startswith("Half a reply")
    assert process.returncode == 130
    assert "Traceback" not in err.decode()
    rows = sqlite3.connect(tmp_path / "data" / "turns.db").execute("SELECT kind FROM events ORDER BY id").fetchall()
    assert rows[-1] == ("Ended",)


FAMILIES: dict[str, Family] = {
    "openai-responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "novelai": NOVELAI,
}


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_chat_with_a_model_of_any_family(family: str, tmp_path: Path) -> None:
    async with ScriptedProvider(models=("m-x",), keys=("sk-0123456789",), family=FAMILIES[family]) as server:
        rolls = [say("I roll.") + call("roll_dice", {"sides": 6})] if family != "novelai" else []
        server.play(*rolls, say("There it is."))
        named = ["--model", "m-x", "--base-url", server.base_url or "", "--family", family, "--key-env", "SOME_KEY"]
        ran = await run(tmp_path, "chat", "--once", "roll", *named, SOME_KEY="sk-0123456789")
        assert (ran.code, [request.problems for request in server.requests if request.problems]) == (0, [])
    assert ran.out.endswith("There it is.\n")
    assert ("[roll_dice(" in ran.out) == bool(rolls)


WRONG = [
    (["chat", "--once", "hi", "--model", "nope"], "no model 'nope'"),
    (["chat", "--once", "hi", "--model", "x", "--base-url", "ftp://x"], "no http or https address"),
    (["chat", "--once", "hi", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"], "refused"),
    (["chat", "--once", "hi", "--base-url", "http://127.0.0.1:9/v1"], "name the model"),
    (["chat", "--once", "hi", "--model", "x", "--base-url", "http://h/v1", "--key-env", "NOPE"], "NOPE"),
    (["chat", "--once", "", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"], "empty"),
    (["chat", "--json"], "--once"),
    (["chat", "--once", "hi", "--tools", "nope"], "no built-in tool 'nope'"),
    (["chat", "--once", "hi", "--journal", "nonsense", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"], "database URL"),
    (
        ["chat", "--once", "hi", "--journal", "sqlite:////proc/x/y.db", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"],
        "can't be opened",
    ),
    (["chat", "--once", "hi", "--model", "missing.gguf"], "no file"),
    (["chat", "--config", "missing.toml"], "missing.toml can't be read"),
    (["turns", "--journal", "sqlite:///missing.db"], "no journal"),
    (["parse", "nope", "pyproject.toml"], "can't be read"),
    (["parse", "nope", __file__], "Unknown family 'nope'; known: openai-chat, openai-responses, anthropic, gemini, novelai"),
    (["chat", "--once", "hi", "--model", "x", "--family", "gemini"], "--family goes with --base-url"),
    (
        ["chat", "--once", "hi", "--model", "x", "--base-url", "http://127.0.0.1:9/v1", "--family", "nope"],
        "unknown family 'nope'",
    ),
    (["model", "get", "nope"], "no local model"),
    (["model", "remove", "qwen2.5-coder-1.5b"], "nothing to remove"),
]


@pytest.mark.parametrize(("args", "said"), WRONG, ids=[" ".join(args)[:60] for args, _ in WRONG])
async def test_bad_input_is_one_clear_sentence_and_a_non_zero_exit(args: list[str], said: str, tmp_path: Path) -> None:
    ran = await run(tmp_path, *args)
    assert ran.code in (1, 2)
    assert said in ran.out + ran.err


CONFIGS = [
    ("[settings]\nmax_pases = 3", "turnkeeper.toml:2: unknown setting `max_pases` in [settings]; did you mean `max_passes`?"),
    ('[settings]\nmax_passes = "a"', "turnkeeper.toml:2: The setting `max_passes` can't be 'a'"),
    (
        '[models.fast]\nname = "x"\nfallback = ["y"]',
        "turnkeeper.toml:3: unknown setting `fallback` in [models.fast]; did you mean `fallbacks`?",
    ),
    ('[models.fast]\nname = "x"\nfallbacks = ["y"]', "there is no section [models.y]"),
    ('[models.fast]\nname = "x"\nfamily = "zz"', "unknown family 'zz'"),
    (
        '[models.fast]\nname = "x"\nkey_env = "NO_SUCH_KEY"',
        "turnkeeper.toml:3: `key_env` in [models.fast]: the environment variable NO_SUCH_KEY",
    ),
    ("[models.fast", "not valid TOML"),
    ("models = 3", "must be a table"),
    ('[chat]\nlanguage = "xx"', "must be en or ja"),
]


@pytest.mark.parametrize(("text", "said"), CONFIGS, ids=[said[:50] for _, said in CONFIGS])
async def test_a_wrong_configuration_names_file_line_and_mend(text: str, said: str, tmp_path: Path) -> None:
    """S16.3"""
    (tmp_path / "turnkeeper.toml").write_text(text, "utf-8")
    ran = await run(tmp_path, "chat", "--once", "hi")
    assert ran.code == 1
    assert said in ran.err


async def test_a_configured_model_leads_and_its_fallback_answers(provider: ScriptedProvider, tmp_path: Path) -> None:
    (tmp_path / "turnkeeper.toml").write_text(
        f'[models.a]\nname = "gpt-x"\nbase_url = "{provider.base_url}"\nfallbacks = ["b"]\n[models.b]\nname = "gpt-y"\nbase_url = "{provider.base_url}"\n',
        "utf-8",
    )
    provider.play(fail(500), say("From the second."))
    ran = await run(tmp_path, "chat", "--once", "hi")
    assert (ran.code, ran.out) == (0, "From the second.\n")
    assert "Answered by gpt-y." in ran.err


async def test_a_key_in_the_environment_chooses_its_provider(provider: ScriptedProvider, tmp_path: Path) -> None:
    provider.play(say("Hi."))
    ran = await run(
        tmp_path,
        "chat",
        "--once",
        "hi",
        OPENAI_API_KEY="sk-0123456789abcdef",
        OPENAI_BASE_URL=provider.base_url,
        TURNKEEPER_MODEL="gpt-x",
    )
    assert (ran.code, ran.out) == (0, "Hi.\n")
    assert "because OPENAI_API_KEY is set" in ran.err


@pytest.mark.skipif(STREAMS is None, reason="the recorded streams are not beside this checkout")
@pytest.mark.parametrize("chunk", [[], ["--chunk", "7"]])
async def test_parse_prints_what_the_parser_makes_of_a_recording(chunk: list[str], tmp_path: Path) -> None:
    assert STREAMS is not None
    path = STREAMS / "xai-v-xai-tool-call.sse"
    ran = await run(tmp_path, "parse", "openai-chat", str(path), *chunk)
    found = json.loads(ran.out)
    assert found["tool_calls"] == [{"id": "call_55117580", "name": "weather", "arguments": {"location": "San Francisco"}}]
    assert (found["finish"], found["finish_reason"], found["error"]) == ("tool_calls", "tool_calls", None)


async def test_the_demo_ends_well(tmp_path: Path) -> None:
    ran = await run(tmp_path, "demo", "--fast")
    assert ran.code == 0
    assert "8/8" in ran.out


@pytest.mark.model
@pytest.mark.timeout(180)
async def test_the_embedded_model_answers_through_the_whole_path(tmp_path: Path) -> None:
    """A real model in its own process, the real loop, the real terminal output."""
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed (extra `local`)")
    from turnkeeper.providers.local.weights import SMOLLM2, bundled_path

    if bundled_path(SMOLLM2) is None:
        pytest.skip("the small model's weights are not installed")
    ran = await run(tmp_path, "chat", "--once", "Write one sentence about the sea.", "--model", "smollm2-135m")
    assert ran.code == 0
    assert len(ran.out.split()) >= 3
    assert "A very small model" in ran.err
    shown = await run(tmp_path, "turns")
    assert "completed" in shown.out
    asked = await run(tmp_path, "chat", "--once", "What time is it in Tokyo?", "--model", "smollm2-135m")
    assert asked.code == 0
    assert asked.out.startswith('[current_time({"zone":"Asia/Tokyo"}) → ')
    assert len(asked.out.strip().splitlines()) > 1
