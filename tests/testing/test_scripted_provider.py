"""`turnkeeper.testing.ScriptedProvider`: what is asked, what is answered, who is told, and what is left behind."""

from __future__ import annotations

import asyncio

import pytest

from turnkeeper.testing import Answer, ScriptedProvider, SeenRequest, call, cut, fail, hang, never_start, say, usage, wait


async def test_a_script_is_played_one_answer_a_request(client) -> None:
    async with ScriptedProvider(models=("gpt-x",)) as provider:
        provider.play(say("The tide") + cut(), say(" comes in."))
        first, second = await client.ask(provider), await client.ask(provider)
    assert (first.text, bool(first.lost)) == ("The tide", True)
    assert (second.text, second.lost, second.finish, second.chunks[-1]) == (" comes in.", "", ["stop"], "[DONE]")
    assert provider.unplayed == 0


async def test_an_answer_is_an_event_stream_that_ends_properly(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("Hello there"))
        reply = await client.ask(provider)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [c["choices"][0]["delta"] for c in reply.chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "Hell"},
        {"content": "o th"},
        {"content": "ere"},
        {},
    ]
    assert {c["model"] for c in reply.chunks[:-1]} == {"gpt-x"}
    assert len({c["id"] for c in reply.chunks[:-1]}) == 1
    assert all("usage" not in c for c in reply.chunks[:-1])


async def test_counts_come_when_they_are_asked_for(client, hello) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("Hello there"), say("a") + usage(prompt=20_212, completion=9, cached=16_298, cost=0.5))
        asked = await client.ask(provider, hello | {"stream_options": {"include_usage": True}})
        unasked = await client.ask(provider, hello)
    last = asked.chunks[-2]
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 3)
    assert last["usage"]["prompt_tokens"] > 0
    assert [c["usage"] for c in asked.chunks[:-2]] == [None] * (len(asked.chunks) - 2)
    assert unasked.chunks[-2]["usage"] == {
        "prompt_tokens": 20_212,
        "completion_tokens": 9,
        "total_tokens": 20_221,
        "prompt_tokens_details": {"cached_tokens": 16_298},
        "completion_tokens_details": {"reasoning_tokens": 0},
        "cost": 0.5,
    }


async def test_requests_are_on_record(client, hello) -> None:
    async with ScriptedProvider() as provider:
        provider.default = say("ok")
        await client.ask(provider, hello, Authorization="Bearer sk-1", X_Own="yes")
    [seen] = provider.requests
    assert (seen.path, seen.key, seen.headers["x-own"], seen.body) == ("/v1/chat/completions", "sk-1", "yes", hello)
    assert (seen.problems, seen.status, seen.finished, seen.closed_early) == ([], 200, True, False)
    assert 0 <= seen.at <= asyncio.get_running_loop().time()


async def test_without_a_script_the_answer_is_a_500_that_says_so(client) -> None:
    async with ScriptedProvider() as provider:
        reply = await client.ask(provider)
    assert (reply.status, provider.unscripted) == (500, 1)
    assert b"nothing is scripted for request 1" in reply.data


async def test_the_default_follows_the_script(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("first"))
        provider.default = say("ok")
        texts = [(await client.ask(provider)).text for _ in range(3)]
    assert (texts, provider.unscripted) == (["first", "ok", "ok"], 0)


async def test_answers_may_depend_on_the_request(client, hello) -> None:
    async with ScriptedProvider() as provider:

        @provider.by_request
        def echo(seen: SeenRequest) -> Answer | None:
            said = seen.body["messages"][-1]["content"]
            return None if said == "hello" else say(said)

        provider.default = say("default")
        provider.play(say("scripted"))
        hi = hello | {"messages": [{"role": "user", "content": "hi"}]}
        texts = [(await client.ask(provider, body)).text for body in (hi, hi, hello)]
    assert texts == ["scripted", "hi", "default"]


async def test_what_by_request_raises_reaches_the_test(client) -> None:
    def broken(_: SeenRequest) -> Answer:
        raise LookupError("no such case")

    with pytest.raises(LookupError, match="no such case"):
        async with ScriptedProvider() as provider:
            provider.by_request(broken)
            reply = await client.ask(provider)
            assert (reply.status, b"no such case" in reply.data) == (500, True)


async def test_keys(client, hello) -> None:
    async with ScriptedProvider(keys={"sk-good"}) as provider:
        provider.default = say("ok")
        replies = [
            await client.ask(provider),
            await client.ask(provider, hello, Authorization="Bearer sk-bad"),
            await client.ask(provider, hello, Authorization="Bearer sk-good"),
            await client.ask(provider, hello, api_key="sk-good"),
        ]
        models = [await client.get(f"{provider.base_url}/models", Authorization=f"Bearer {key}") for key in ("no", "sk-good")]
    assert [reply.status for reply in replies] == [401, 401, 200, 200]
    assert b'"code": "invalid_api_key"' in replies[0].data
    assert [seen.key for seen in provider.requests] == ["", "sk-bad", "sk-good", "sk-good"]
    assert [status for status, _ in models] == [401, 200]


async def test_the_list_of_models_and_wrong_paths(client) -> None:
    async with ScriptedProvider(models=("a", "b")) as provider:
        listed = await client.get(f"{provider.base_url}/models")
        wrong = await client.get(f"{provider.base_url}/chat/completions")
        missing = await client.get(provider.base_url.removesuffix("/v1") + "/models/x")
    assert [entry["id"] for entry in listed[1]["data"]] == ["a", "b"]
    assert (wrong[0], missing[0]) == (405, 404)
    assert "error" in wrong[1]
    assert "error" in missing[1]
    assert provider.others == ["GET /v1/models", "GET /v1/chat/completions", "GET /models/x"]
    assert provider.requests == []


async def test_a_strict_server_refuses_and_takes_nothing_from_the_script(client, hello) -> None:
    """S4.6: a request that no real server would take never goes unnoticed."""
    result = {"role": "tool", "tool_call_id": "c1", "content": "4"}
    async with ScriptedProvider() as provider:
        provider.play(say("ok"))
        refused = await client.ask(provider, hello | {"messages": [*hello["messages"], result]})
        unknown = await client.ask(provider, hello | {"model": "gpt-y"})
        no_json = await client.ask(provider, b'{"model": ')
        taken = await client.ask(provider, hello)
    assert [reply.status for reply in (refused, unknown, no_json, taken)] == [400, 404, 400, 200]
    assert b"no call with the id 'c1' stands before this result" in refused.data
    assert b'"type": "invalid_request_error"' in refused.data
    assert b'"code": "model_not_found"' in unknown.data
    assert b"the body is not valid JSON" in no_json.data
    assert [len(seen.problems) for seen in provider.requests] == [1, 1, 1, 0]


async def test_a_lenient_server_only_notes_the_problems(client, hello) -> None:
    async with ScriptedProvider(strict=False) as provider:
        provider.play(say("ok"))
        reply = await client.ask(provider, hello | {"model": "gpt-y"})
    assert (reply.status, reply.text) == (200, "ok")
    assert provider.requests[0].problems == ["model: `gpt-y` does not exist; there is gpt-x"]


async def test_rules_are_given_by_name(client, hello) -> None:
    started = hello | {"messages": [*hello["messages"], {"role": "assistant", "content": "The tide"}]}
    async with ScriptedProvider() as refusing, ScriptedProvider(prefill=True) as going_on:
        going_on.play(say(" comes in."))
        refused, taken = await client.ask(refusing, started), await client.ask(going_on, started)
    assert (refused.status, taken.text) == (400, " comes in.")
    assert b"must end with a user message" in refused.data


async def test_made_ids_are_unique_and_in_the_servers_alphabet(client) -> None:
    async with ScriptedProvider() as plain, ScriptedProvider(id_alphabet="[a-zA-Z0-9]{9}") as mistral:
        for provider in (plain, mistral):
            provider.default = call("a", {}) + call("b", {})
        ids = {
            name: [
                entry["id"]
                for reply in (await client.ask(provider), await client.ask(provider))
                for c in reply.chunks[:-1]
                for entry in c["choices"][0]["delta"].get("tool_calls", [])
                if "id" in entry
            ]
            for name, provider in (("plain", plain), ("mistral", mistral))
        }
    assert len(set(ids["plain"])) == len(set(ids["mistral"])) == 4
    assert all(call_id.startswith("call_") for call_id in ids["plain"])
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids["mistral"])


async def test_waiting_returns_when_so_many_requests_have_arrived(client) -> None:
    async with ScriptedProvider() as provider, asyncio.TaskGroup() as tasks:
        provider.default = say("ok")
        waiter = tasks.create_task(provider.waiting(2))
        await client.ask(provider)
        assert not waiter.done()
        await client.ask(provider)
        await waiter
        await provider.waiting(1)


@pytest.mark.parametrize("answer", [hang(), say("The tide") + hang(), say("a") + wait(1e6), never_start(), wait(1e6)])
async def test_leaving_the_provider_ends_what_hangs(client, answer) -> None:
    """No task outlives the server, and its clients see a lost connection."""
    before = asyncio.all_tasks()
    async with asyncio.TaskGroup() as tasks:
        async with ScriptedProvider() as provider:
            provider.play(answer)
            asking = tasks.create_task(_lost(client, provider))
            await provider.waiting(1)
        assert await asking
    assert asyncio.all_tasks() == before
    assert (provider.requests[0].finished, provider.requests[0].closed_early) == (False, False)


async def _lost(client, provider) -> bool:
    try:
        return bool((await client.ask(provider)).lost)
    except OSError:
        return True


async def test_an_error_in_the_test_leaves_nothing_behind(client) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(KeyError):
        async with ScriptedProvider() as provider:
            provider.play(hang(), fail(500))
            async with client.open(provider):
                raise KeyError
    assert asyncio.all_tasks() == before


def test_the_address_is_known_only_while_it_runs() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        _ = ScriptedProvider().base_url


@pytest.mark.looptime
async def test_it_keeps_the_loops_clock(client, looptime) -> None:
    """Design, "Time": server and client share the loop, so hours pass at once and no clock is wrong."""
    async with ScriptedProvider() as provider:
        provider.play(wait(250) + say("The tide") + wait(3600) + say(" comes in."))
        began = float(looptime)
        reply = await client.ask(provider)
        assert reply.text == "The tide comes in."
        assert float(looptime) - began == pytest.approx(3850, abs=0.01)
        provider.play(say("at once"))
        await client.ask(provider)
        assert provider.requests[1].at - provider.requests[0].at == pytest.approx(3850, abs=0.01)


@pytest.mark.looptime
async def test_many_requests_at_once_under_virtual_time(client, looptime) -> None:
    """No request waits for another one, and none is lost."""
    async with ScriptedProvider() as provider, asyncio.TaskGroup() as tasks:
        provider.default = wait(299) + say("a", pieces=1) + wait(119) + say("b")
        began = float(looptime)
        asking = [tasks.create_task(client.ask(provider)) for _ in range(100)]
        await provider.waiting(100)
        await provider.idle()
        assert float(looptime) - began == pytest.approx(418, abs=0.1)
        assert [(await one).text for one in asking] == ["ab"] * 100
