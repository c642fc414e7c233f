"""What the catalogue knows, and what each of its rules does to a request (S3.4, S3.10, S3.10a, S3.10b, S4.6)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness import Bench
from turnkeeper import tool
from turnkeeper.config import read_config
from turnkeeper.errors import ConfigurationError
from turnkeeper.providers import catalogue
from turnkeeper.providers.catalogue import Traits, known_servers, traits
from turnkeeper.providers.model import Model
from turnkeeper.providers.openai_chat.request import CONTINUE, RequestWriter
from turnkeeper.providers.schema_dialect import GEMINI_REFUSED
from turnkeeper.testing import ScriptedProvider, cut, say
from turnkeeper.testing import call as calls
from turnkeeper.testing.strict import Rules, problems
from turnkeeper.types.calls import Parsed, ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage
from turnkeeper.types.stream import NativePart

TABLE = tomllib.loads(Path(catalogue.__file__).with_name("catalogue.toml").read_text("utf-8"))
PNG = Picture(b"\x89PNG" * 300, "image/png")
REAL = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (2).to_bytes(4, "big") + (3).to_bytes(4, "big") + b"\x08\x02\0\0\0"
DICE = ToolSpec(
    "roll", "Rolls.", b'{"type":"object","properties":{"n":{"type":"integer","default":1}},"additionalProperties":false}'
)
ODD = ToolSpec("wetter.größe", "Weather.", b'{"type":"object","properties":{}}')
LONG_ID = "toolu_01AbC|" + "x" * 70
NINE = "[a-zA-Z0-9]{9}"
HI = UserMessage("Hi.")


def call(call_id: str, name: str = "roll") -> ToolCall:
    return ToolCall(call_id, name, '{"n":2}', Parsed({"n": 2}))


def result(call_id: str, name: str = "roll", pictures: tuple[Picture, ...] = ()) -> ToolMessage:
    return ToolMessage(call_id, name, "4", pictures)


CHAIN: tuple[Message, ...] = (
    HI,
    AssistantMessage("", (call(LONG_ID), call("call_2", "wetter.größe"))),
    result(LONG_ID),
    result("call_2", "wetter.größe", (PNG,)),
    AssistantMessage("Four."),
    UserMessage("And this?", (PNG,)),
)


def writer(quirks: dict[str, Any] | None = None, **options: Any) -> RequestWriter:
    return RequestWriter(Model("openai-chat", "m", base_url="http://127.0.0.1:9/v1", quirks=quirks or {}, **options))


def body(quirks: dict[str, Any], *messages: Message, prompt: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """The request's body with these quirks."""
    asked: dict[str, Any] = {"system": "Be brief.", "messages": messages or (HI,)} | (prompt or {})
    return json.loads(writer(quirks, **options).body(Prompt(**asked)))


def said(quirks: dict[str, Any], *messages: Message, **options: Any) -> list[tuple[str, Any]]:
    return [(one["role"], one.get("content")) for one in body(quirks, *messages, **options)["messages"]]


# --- what is known


def test_every_field_of_every_entry_is_valid() -> None:
    msgspec.convert(TABLE["default"], Traits)
    assert list(TABLE["default"]) == list(Traits.__struct_fields__)
    names = [server["name"] for server in TABLE["server"]]
    assert len(set(names)) == len(names)
    own = {
        "server": {"name", "hosts", "path", "port", "family", "base_url", "key_env", "default_model"},
        "model": {"match", "server"},
    }
    for kind, fields in own.items():
        for entry in TABLE[kind]:
            assert set(entry) <= fields | set(Traits.__struct_fields__), entry
            msgspec.convert(TABLE["default"] | {key: value for key, value in entry.items() if key not in fields}, Traits)
            assert entry.get("server", names[0]) in names
    for server in TABLE["server"]:
        assert bool(server.get("hosts")) != bool(server.get("port")), server
        assert ("key_env" in server) == ("base_url" in server) == ("default_model" in server), server


@pytest.mark.parametrize("server", TABLE["server"], ids=lambda server: server["name"])
def test_each_server_is_known_by_its_address(server: dict[str, Any]) -> None:
    quirks = msgspec.to_builtins(msgspec.convert(TABLE["default"] | catalogue._quirks(server), Traits))
    path = server.get("path", "/v1")
    urls = [f"https://{host}{path}" for host in server.get("hosts", ())]
    if "port" in server:
        urls = [
            f"http://{host}:{server['port']}/v1"
            for host in ("127.0.0.1", "localhost", "192.168.1.7", "[::1]", "nas.local", "box")
        ]
        assert traits(f"http://example.com:{server['port']}/v1", "unheard-of") == traits("", "unheard-of")
    for_all = {name: value for entry in TABLE["model"] if entry["match"] == "*" and entry.get("server") == server["name"]
               for name, value in catalogue._quirks(entry).items()}  # fmt: skip
    for url in [*urls, *([server["base_url"]] if "base_url" in server else [])]:
        assert msgspec.to_builtins(traits(url, "unheard-of")) == quirks | for_all, url


def test_a_subdomain_belongs_to_its_host_and_a_host_that_only_ends_alike_does_not() -> None:
    assert traits("https://mine.openai.azure.com/openai/v1", "x").max_tokens_field == "max_completion_tokens"
    assert traits("https://us.api.openai.com/v1", "x").max_tokens_field == "max_completion_tokens"
    assert traits("https://notapi.openai.com.example.com/v1", "x").max_tokens_field == "max_tokens"


def test_known_servers_name_the_family_and_lead_with_the_first() -> None:
    found = {server.name: server for server in known_servers()}
    assert next(iter(found)) == "OpenAI"
    assert (found["Anthropic"].family, found["Gemini"].family, found["Google"].family) == ("anthropic", "gemini", "openai-chat")


MODELS = [
    ("", "gpt-4o-mini", {"context_window": 128000, "max_output": 16384, "vision": True, "temperature": True}),
    ("", "gpt-4-0613", {"context_window": 8192}),
    ("", "gpt-4.1-nano", {"context_window": 1047576}),
    ("https://api.openai.com/v1", "gpt-5.2", {"temperature": False, "system_role": "developer"}),
    ("", "gpt-5.2", {"temperature": False, "system_role": "system", "max_tokens_field": "max_completion_tokens"}),
    ("", "gpt-5-chat-latest", {"temperature": True}),
    ("", "o3-mini", {"vision": False, "temperature": False}),
    ("https://api.openai.com/v1", "o1-mini", {"system_role": "user", "temperature": False}),
    ("", "claude-sonnet-4-5-20250929", {"prefill": True, "temperature": True, "context_window": 200000}),
    ("", "claude-opus-4-20250514", {"prefill": True, "max_output": 32000}),
    ("", "anthropic/claude-opus-4.6", {"prefill": False, "temperature": True}),
    ("", "claude-sonnet-4-6", {"prefill": False, "temperature": True}),
    ("", "claude-opus-4-7", {"prefill": False, "temperature": False, "context_window": 1000000}),
    ("", "claude-sonnet-5-5", {"prefill": False, "temperature": False}),
    ("", "claude-3-5-haiku-latest", {"prefill": True, "max_output": 8192}),
    ("", "gemini-2.5-pro", {"refused_schema_keywords": sorted(GEMINI_REFUSED), "vision": True}),
    ("", "gemma2:9b", {"system_role": "user", "alternate": True, "tools": "verbatim"}),
    ("", "mistralai/Mistral-7B-Instruct-v0.3", {"alternate": True, "call_ids": "nine", "prefill": False}),
    (
        "https://api.mistral.ai/v1",
        "mistral-large-latest",
        {"prefill": True, "prefill_field": "prefix", "context_window": 128000},
    ),
    ("https://api.deepseek.com/beta", "deepseek-v4-pro", {"prefill": True, "prefill_field": "prefix"}),
    ("https://api.deepseek.com", "deepseek-v4-pro", {"prefill": False, "reasoning_field": "reasoning_content"}),
    ("https://api.moonshot.ai/v1", "kimi-k2.6", {"prefill_field": "partial", "temperature": False, "reasoning_required": True}),
    ("https://openrouter.ai/api/v1", "moonshotai/kimi-k3", {"reasoning_required": False, "vision": True}),
    ("http://localhost:8000/v1", "Qwen/Qwen3-8B", {"prefill": True, "prefill_field": "continue_final_message"}),
    ("http://localhost:8080/v1", "qwen3-8b", {"prefill": False}),
    ("http://localhost:11434/v1", "llama3.1:8b", {"context_window": 4096}),
    ("", "meta-llama/Llama-3.1-8B-Instruct", {"parallel_calls": False, "context_window": 131072}),
    ("", "sonar-pro", {"alternate": True, "tools": "verbatim"}),
    ("", "smollm2-135m", {"context_window": 8192, "tools": "verbatim", "prefill": True}),
    ("", "qwen2.5-coder-1.5b", {"context_window": 8192, "tools": "verbatim", "prefill": True}),
]


@pytest.mark.parametrize(("base_url", "name", "expected"), MODELS, ids=[f"{case[1]} {case[0]}" for case in MODELS])
def test_models_are_known_by_name(base_url: str, name: str, expected: dict[str, Any]) -> None:
    found = traits(base_url, name)
    assert {
        field: sorted(value) if isinstance(value := getattr(found, field), frozenset) else value for field in expected
    } == expected


# --- what a user may say


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"visoin": True}, "there is no quirk `visoin`; did you mean `vision`?"),
    ({"zzz": True}, "there is no quirk `zzz`; known: context_window, "),
    ({"vision": "yes"}, "the quirk `vision` is wrong: Expected `bool`, got `str`."),
    ({"tools": "maybe"}, "the quirk `tools` is wrong: it may be 'native', 'verbatim', 'none'."),
    ({"context_window": 0}, "the quirk `context_window` is wrong: Expected `int` >= 1."),
    ({"refused_schema_keywords": [3]}, "the quirk `refused_schema_keywords` is wrong: Expected `str`, got `int`."),
]


@pytest.mark.parametrize(("quirks", "expected"), WRONG, ids=lambda one: str(one)[:30])
def test_a_wrong_quirk_is_one_sentence(quirks: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Model("openai-chat", "m", quirks=quirks)
    assert str(caught.value).startswith(f"The model 'm': {expected}")
    assert "\n" not in str(caught.value)


def test_quirks_of_the_configuration_count_last(tmp_path: Path) -> None:
    file = tmp_path / "turnkeeper.toml"
    file.write_text(
        '[models.mine]\nname = "gemma2"\nbase_url = "http://10.0.0.5:9/v1"\nquirks = { system_role = "system", vision = true }\n'
    )
    found = read_config(file, {}).models["mine"].traits
    assert (found.system_role, found.vision, found.alternate) == ("system", True, True)
    file.write_text('[models.mine]\nname = "gemma2"\nquirks = { alternat = true }\n')
    with pytest.raises(ConfigurationError, match=r"turnkeeper.toml:1: .*did you mean `alternate`"):
        read_config(file, {})


# --- what each rule does


def test_the_limit_of_the_answer_has_the_right_name_and_is_never_above_the_models() -> None:
    assert body({}, max_output_tokens=5000)["max_tokens"] == 5000
    found = body({"max_tokens_field": "max_completion_tokens", "max_output": 4096}, max_output_tokens=5000)
    assert found["max_completion_tokens"] == 4096
    assert problems(found, Rules(refuses=("max_tokens",))) == []
    assert body({"max_output": 4096}, max_output_tokens=100)["max_tokens"] == 100
    assert "max_tokens" not in body({"max_output": 4096})


def test_a_temperature_is_sent_only_where_it_is_taken() -> None:
    assert body({}, temperature=0.5)["temperature"] == 0.5
    assert "temperature" not in body({"temperature": False}, temperature=0.5)


def test_usage_is_asked_for_only_where_that_is_understood() -> None:
    assert body({})["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body({"stream_usage": False})


def test_pictures_are_sent_only_to_models_that_see() -> None:
    seen = said({"vision": True}, UserMessage("Look.", (PNG,)))[1][1]
    assert [part["type"] for part in seen] == ["text", "image_url"]
    assert said({}, UserMessage("Look.", (PNG,)))[1][1] == "Look.\n[picture, 1 KB]"


@pytest.mark.parametrize("tools", ["native", "verbatim", "none"])
def test_tools_are_offered_as_such_only_where_they_are_native(tools: str) -> None:
    assert ("tools" in body({"tools": tools}, prompt={"tools": (DICE,)})) == (tools == "native")


def test_parallel_calls_are_put_one_to_a_message_where_a_template_takes_no_more() -> None:
    chain = (HI, AssistantMessage("Rolling.", (call("a"), call("b"), call("c"))), result("a"), result("b"), result("c"))

    def shape(quirks: dict[str, Any]) -> list[str]:
        found = body(quirks, *chain)
        assert problems(found, Rules()) == []
        assert "parallel_tool_calls" not in found  # Cerebras and Google refuse the field
        return [
            one.get("tool_call_id") or ",".join(made["id"] for made in one.get("tool_calls", []))
            for one in found["messages"][2:]
        ]

    assert shape({}) == ["a,b,c", "a", "b", "c"]
    assert shape({"parallel_calls": False}) == ["a", "a", "b", "b", "c", "c"]


def test_schemas_are_fitted_to_the_server_and_else_sent_as_they_are() -> None:
    def sent(quirks: dict[str, Any]) -> Any:
        return body(quirks, prompt={"tools": (DICE,)})["tools"][0]["function"]["parameters"]

    assert sent({}) == json.loads(DICE.parameters)
    assert sent({"refused_schema_keywords": sorted(GEMINI_REFUSED)}) == {
        "type": "object", "properties": {"n": {"type": "integer", "description": "Default: 1."}}
    }  # fmt: skip


@pytest.mark.parametrize(("ids", "alphabet"), [("usual", "[a-zA-Z0-9_-]{1,64}"), ("nine", NINE)])
def test_call_ids_fit_the_server_and_results_and_tools_bear_the_same(ids: str, alphabet: str) -> None:
    found = body({"call_ids": ids}, *CHAIN, prompt={"tools": (DICE, ODD)})
    assert problems(found, Rules(id_alphabet=alphabet)) == []
    called = found["messages"][2]["tool_calls"]
    assert [one["id"] for one in called] == [one["tool_call_id"] for one in found["messages"] if one["role"] == "tool"]
    assert [one["function"]["name"] for one in called] == [one["function"]["name"] for one in found["tools"]]
    assert found == body({"call_ids": ids}, *CHAIN, prompt={"tools": (DICE, ODD)})


def test_the_system_prompt_is_said_by_whom_the_model_hears() -> None:
    assert said({})[0] == ("system", "Be brief.")
    assert said({"system_role": "developer"})[0] == ("developer", "Be brief.")
    found = body({"system_role": "user"}, HI, AssistantMessage("Yes?"), UserMessage("Go."))
    assert [one["content"] for one in found["messages"]] == ["Be brief.\n\nHi.", "Yes?", "Go."]
    assert problems(found, Rules(roles=("user", "assistant", "tool"), alternate=True)) == []
    assert said({"system_role": "user"}, HI, prompt={"system": " "}) == [("user", "Hi.")]


HISTORIES: dict[str, tuple[Message, ...]] = {
    "plain": (HI,),
    "two users": (HI, UserMessage("Still there?")),
    "text, then pictures": (HI, UserMessage("Look.", (PNG,)), UserMessage("Well?")),
    "a user between whom nothing was said": (HI, AssistantMessage("  "), UserMessage("Hello?")),
    "pictures of a tool": CHAIN[:4],
    "a whole chain": CHAIN,
    "stopped after a tool": (*CHAIN[:3], result("call_2"), UserMessage("Go on.")),
    "two texts of the model": (HI, AssistantMessage("One."), AssistantMessage("Two."), UserMessage("Three.")),
    "begins with the model": (AssistantMessage("Welcome."), HI),
    "empty": (UserMessage(""), ),
}  # fmt: skip


@pytest.mark.parametrize("tail", ["", "Answer, please."])
@pytest.mark.parametrize("prefill", ["", "The tide "])
@pytest.mark.parametrize(
    "quirks", [{}, {"vision": True}, {"prefill": True}, {"system_role": "user"}, {"parallel_calls": False}], ids=str
)
@pytest.mark.parametrize("history", HISTORIES)
def test_where_turns_alternate_every_history_does(history: str, quirks: dict[str, Any], prefill: str, tail: str) -> None:
    found = body(
        quirks | {"alternate": True, "call_ids": "nine"},
        *HISTORIES[history],
        prompt={"prefill": prefill, "tail": tail, "tools": (DICE, ODD)},
    )
    rules = Rules(alternate=True, id_alphabet=NINE, prefill=quirks.get("prefill", False))
    assert problems(found, rules) == []


def test_without_that_rule_nothing_is_joined_and_no_words_are_put_in() -> None:
    assert said({}, HI, UserMessage("Still there?")) == [("system", "Be brief."), ("user", "Hi."), ("user", "Still there?")]
    assert said({"alternate": True}, HI, UserMessage("Still there?"))[1:] == [("user", "Hi.\n\nStill there?")]
    assert len(said({}, *CHAIN)) == len(CHAIN) + 2  # the system prompt, and the pictures of the tool


def test_an_unfinished_reply_is_sent_as_the_model_takes_it() -> None:
    """S3.4, S3.4b"""
    asked = {"prefill": "The tide \n"}
    assert said({}, prompt=asked)[2:] == [("assistant", "The tide"), ("user", CONTINUE)]
    plain = body({"prefill": True}, prompt=asked)
    assert plain["messages"][-1] == {"role": "assistant", "content": "The tide"}
    for field in ("prefix", "partial"):
        last = body({"prefill": True, "prefill_field": field}, prompt=asked)["messages"][-1]
        assert last == {"role": "assistant", "content": "The tide", field: True}
    extended = body({"prefill": True, "prefill_field": "continue_final_message"}, prompt=asked)
    assert (extended["continue_final_message"], extended["add_generation_prompt"]) == (True, False)
    assert extended["messages"] == plain["messages"]
    assert "continue_final_message" not in body({"prefill": True, "prefill_field": "continue_final_message"})


def test_a_native_prefill_stands_last_whatever_else_is_said() -> None:
    found = said({"prefill": True}, prompt={"prefill": "The tide", "tail": "Your call did not run."})
    assert [role for role, _ in found] == ["system", "user", "user", "assistant"]


def test_reasoning_goes_back_to_the_model_that_made_it_with_what_follows_from_it() -> None:
    """S3.10, S3.10a"""

    def reasoned(text: str, made_by: str, wanted: str, *calls: ToolCall) -> list[Any]:
        native = (NativePart("openai-chat", made_by, {"reasoning_content": "Hm."}),)
        results = tuple(result(one.id) for one in calls)
        found = body({"reasoning_field": wanted}, HI, AssistantMessage(text, calls, native), *results)
        return [one.get("reasoning_content") for one in found["messages"] if one["role"] == "assistant"]

    assert reasoned("Yes.", "m", "reasoning_content") == ["Hm."]
    assert reasoned("", "m", "reasoning_content", call("a")) == ["Hm."]
    assert reasoned("Yes.", "other", "reasoning_content") == [None]
    assert reasoned("Yes.", "m", "") == [None]
    assert reasoned(" ", "m", "reasoning_content") == []  # without a follower


def test_a_server_that_refuses_messages_without_reasoning_gets_a_full_stop() -> None:
    """What another model said, or this one without a thought, must not be refused."""
    quirks = {"reasoning_field": "reasoning_content", "reasoning_required": True}
    native = (NativePart("openai-chat", "m", {"reasoning_content": "Hm."}),)
    chain = (HI, AssistantMessage("", (call("a"),), native), result("a"), AssistantMessage("Four."), UserMessage("And?"))
    for extra in ({}, {"prefill": True, "prefill_field": "partial"}, {"parallel_calls": False}):
        found = body(quirks | extra, *chain, prompt={"prefill": "It"})["messages"]
        assert [one["reasoning_content"] for one in found if one["role"] == "assistant"] == ["Hm.", ".", "."]


ALL_QUIRKS = [
    {},
    {"alternate": True, "call_ids": "nine", "prefill": True, "prefill_field": "prefix"},
    {"alternate": True, "vision": True, "system_role": "user"},
    {"parallel_calls": False, "alternate": True, "vision": True},
    {"prefill": True, "prefill_field": "continue_final_message", "system_role": "developer"},
]


@pytest.mark.parametrize("quirks", ALL_QUIRKS, ids=str)
@pytest.mark.parametrize("history", HISTORIES)
def test_a_request_extends_the_one_before_it(quirks: dict[str, Any], history: str) -> None:
    """S3.10b: up to the end of what its last stable message says; and a kept writer writes what a new one would."""
    messages = HISTORIES[history] + (AssistantMessage("So."), UserMessage("More."), UserMessage("Now."))
    kept, before = writer(quirks), b""

    def up_to(request: bytes) -> bytes:
        """A message that may yet be joined by another is open at its end."""
        return request.rstrip(b'"]}') if "alternate" in quirks else request.removesuffix(b"]}")

    for place in range(1, len(messages) + 1):
        if isinstance(messages[place - 1], AssistantMessage):  # what is said after it, to go on, is no stable message
            continue
        if place < len(messages) and isinstance(messages[place], ToolMessage):
            continue
        now = kept.body(Prompt("Be brief.", messages[:place], (DICE,)))
        assert now == writer(quirks).body(Prompt("Be brief.", messages[:place], (DICE,)))
        assert now.startswith(up_to(before)), (before[-80:], now[-160:])
        changing = kept.body(Prompt("Be brief.", messages[:place], (DICE,), tail="Please.", prefill="The "))
        assert changing.startswith(up_to(now))
        before = now


def test_a_changed_system_prompt_or_a_trimmed_history_is_written_anew() -> None:
    kept = writer({"system_role": "user"})
    kept.body(Prompt("Be brief.", CHAIN))
    for prompt in (Prompt("Be long.", CHAIN), Prompt("Be long.", CHAIN[4:]), Prompt("", CHAIN[5:])):
        assert kept.body(prompt) == writer({"system_role": "user"}).body(prompt)


# --- whole turns


STRICT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"alternate": True, "call_ids": "nine", "prefill": True, "prefill_field": "prefix", "stream_usage": False},
        {"alternate": True, "id_alphabet": NINE, "prefill": True, "refuses": ("stream_options", "max_completion_tokens")},
    ),
    (
        {"alternate": True, "system_role": "user", "parallel_calls": False, "vision": True, "temperature": False},
        {"alternate": True, "roles": ("user", "assistant", "tool"), "refuses": ("temperature", "parallel_tool_calls")},
    ),
    (
        {"system_role": "developer", "max_tokens_field": "max_completion_tokens", "temperature": False},
        {"roles": ("developer", "user", "assistant", "tool"), "refuses": ("max_tokens", "temperature")},
    ),
]


@pytest.mark.parametrize(("quirks", "rules"), STRICT, ids=["like Mistral", "like Gemma", "like OpenAI"])
async def test_turns_with_tools_pictures_and_a_cut_are_taken_by_a_strict_server(
    quirks: dict[str, Any], rules: dict[str, Any]
) -> None:
    """S2.5a, S3.4, S4.6: "roles must alternate", "developer role not supported", "use max_completion_tokens"."""

    @tool
    async def draw(n: int) -> Any:
        """Draws."""
        return ["a drawing", Picture(REAL, "image/png")]

    async with ScriptedProvider(**rules) as provider:
        bench = Bench(provider)
        model = bench.model(quirks=quirks, temperature=0.5, max_output_tokens=500)
        engine = bench.engine(draw, models=[model, model])
        both = calls("draw", {"n": 1}, id=LONG_ID) + calls("draw", {"n": 2}, id="x")
        provider.play(both, say("The tide comes") + cut(), say(" in twice a day."), say("You are welcome."))
        first = await engine.run("Draw the tide.", channel="c")
        second = await engine.run("Thanks.", channel="c")
        await bench.aclose()
    assert [request.problems for request in provider.requests] == [[]] * 4
    assert (bench.seen(first).reads, second.end) == ("The tide comes in twice a day.", "completed")
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        shared = [one == other for one, other in zip(before.body["messages"], after.body["messages"], strict=False)]
        assert all(shared[:2])
