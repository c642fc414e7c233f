"""The public API: channels, conversations, streams, and what is refused (S2, S13, S15)."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Bench, Watching, until
from turnkeeper import (
    ConfigurationError,
    Engine,
    Model,
    Settings,
    ToolBegan,
    ToolEnded,
    TurnEnded,
    TurnkeeperError,
    TurnResult,
    tool,
)
from turnkeeper.testing import ScriptedProvider, call, cut, fail, hang, never_start, say
from turnkeeper.types.shown import MessageShown, NoticeGiven, Shown, TextShown


@tool(read_only=True)
async def dice(sides: int = 6) -> int:
    """Rolls a die."""
    return sides


async def test_the_contract_as_the_readme_has_it(tmp_path: Path) -> None:
    async with ScriptedProvider(models=("gpt-x",)) as provider:
        provider.play(call("dice", {"sides": 6}), say("A six."))
        async with Engine(
            models=[Model("openai-chat", "gpt-x", base_url=provider.base_url, keys=["sk-1234567890abcdef"])],
            tools=[dice],
            settings=Settings(
                max_passes=100, max_tool_errors=5, first_token_timeout=300, idle_timeout=120, settle_timeout=5, tool_timeout=300
            ),
            journal=f"sqlite:///{tmp_path / 'turns.db'}",
        ) as engine:
            result = await engine.run("hello", channel="c1", user="u1")
    assert (result.end, result.text) == ("completed", "A six.")
    assert [message.text for message in result.deliveries] == ["A six."]
    assert [(entry.call.name, entry.outcome.data) for entry in result.history] == [("dice", 6)]  # type: ignore[union-attr]
    assert len(result.usage) == 2
    assert result.usage[0].input > 0
    assert [(one.model, one.key, one.end) for one in result.attempts] == [("gpt-x", "cdef", "completed")]
    assert result.thought_log == ()


async def test_a_stream_tells_all_in_order_and_ends_with_the_result(bench: Bench) -> None:
    bench.provider.play(say("Let me see.") + call("dice", {}), say("A six."))
    events: list[Shown] = [event async for event in bench.engine(dice).stream("go")]
    kinds = [type(event).__name__ for event in events if not isinstance(event, TextShown)]
    assert kinds == ["MessageShown", "ToolBegan", "ToolEnded", "MessageShown", "TurnEnded"]
    assert "".join(event.text for event in events if isinstance(event, TextShown)) == "Let me see.A six."
    assert [event.text for event in events if isinstance(event, MessageShown)] == ["Let me see.", "A six."]
    assert [event.name for event in events if isinstance(event, ToolBegan)] == ["dice"]
    assert [event.entry.content for event in events if isinstance(event, ToolEnded)] == ["6"]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].result.text == "Let me see.\n\nA six."


async def test_a_reader_that_leaves_early_stops_the_turn(bench: Bench) -> None:
    bench.provider.play(say("Half a reply") + hang(), say("Fine."))
    engine = bench.engine()
    stream = engine.stream("go")
    async for event in stream:
        assert isinstance(event, TextShown)
        break
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await engine.run("again")).text == "Fine."


async def test_a_failure_in_a_stream_is_a_notice_and_a_result(bench: Bench) -> None:
    bench.provider.play(fail(401, message="Incorrect API key provided", code="invalid_api_key"))
    events = [event async for event in bench.engine().stream("go")]
    assert isinstance(events[0], NoticeGiven)
    assert "Check the key" in events[0].notice.detail
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].result.end == "error"


async def test_one_turn_at_a_time_in_a_channel_and_channels_side_by_side(bench: Bench) -> None:
    """S2.2"""
    bench.provider.by_request(lambda seen: say(f"to {seen.body['messages'][-1]['content']}"))
    engine = bench.engine()
    results = await asyncio.gather(*[engine.run(f"m{n}", channel=f"c{n % 3}", user=f"u{n}") for n in range(12)])
    assert [result.text for result in results] == [f"to m{n}" for n in range(12)]
    asked = [request.body["messages"][-1]["content"] for request in bench.provider.requests]
    for channel in range(3):
        assert [one for one in asked if int(one[1:]) % 3 == channel] == [f"m{n}" for n in range(channel, 12, 3)]


async def test_earlier_turns_are_the_context_of_later_ones(bench: Bench) -> None:
    """S2.5"""
    bench.provider.play(say("Hello Ann."), call("dice", {}), say("A six."), say("Ann."))
    engine = bench.engine(dice)
    for text in ("I am Ann.", "Roll.", "Who am I?"):
        await engine.run(text)
    assert [m["role"] for m in bench.messages()] == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]


async def test_a_new_engine_reads_the_conversation_from_the_journal(bench: Bench, tmp_path: Path) -> None:
    """S2.5: the context of terminal and library comes from the journal."""
    url = f"sqlite:///{tmp_path / 'turns.db'}"
    bench.provider.play(say("Wait. ") + call("dice", {"sides": 3}), say("A three."), say("Three."))
    first = bench.engine(dice, journal=url)
    await first.run("Roll.")
    live = bench.messages()
    await first.aclose()
    await bench.engine(dice, journal=url).run("What was it?")
    assert bench.messages()[: len(live)] == live
    assert bench.messages()[-1]["content"] == "What was it?"


async def test_a_new_context_hides_what_was_before_it_for_good(bench: Bench, tmp_path: Path) -> None:
    """S2.6: /new"""
    url = f"sqlite:///{tmp_path / 'turns.db'}"
    bench.provider.play(say("One."), say("Two."), say("Three."))
    engine = bench.engine(journal=url)
    await engine.run("first")
    await engine.new_context()
    await engine.run("second")
    assert [m["content"] for m in bench.messages()] == ["second"]
    await engine.aclose()
    await bench.engine(journal=url).run("third")
    assert [m["content"] for m in bench.messages()] == ["second", "Two.", "third"]


@pytest.mark.parametrize("how", ["stop", "cut", "cancel"])
async def test_however_a_turn_ended_the_next_request_is_valid_and_true(how: str, bench: Bench, tmp_path: Path) -> None:
    """S2.5: from memory and, in a new process, from the journal."""
    begun = asyncio.Event()

    @tool
    async def slow() -> None:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()

    url = f"sqlite:///{tmp_path / 'turns.db'}"
    bench.provider.play(say("I look. ") + (call("slow", {}) if how != "cut" else cut()), *([cut()] if how == "cut" else []))
    engine = bench.engine(slow, journal=url)
    running = asyncio.create_task(engine.run("go"))
    if how != "cut":
        await begun.wait()
    if how == "stop":
        await engine.stop()
    elif how == "cancel":
        running.cancel()
    await asyncio.wait({running})
    bench.provider.play(say("Next."), say("Again."))
    await engine.run("next")
    first = bench.messages()
    await engine.aclose()
    await bench.engine(slow, journal=url).run("again")
    assert bench.messages()[: len(first)] == first
    assert first[1]["content"].strip() == "I look."
    roles = ["user", "assistant", "user"] if how == "cut" else ["user", "assistant", "tool", "user"]
    assert [m["role"] for m in first] == roles


async def test_a_turn_that_would_wait_for_its_own_channel_is_refused_at_once(bench: Bench) -> None:
    """S13.3a: directly, and over two channels."""
    reached: list[str] = []

    @tool
    async def ask(channel: str) -> str:
        """Asks in a channel."""
        reached.append(channel)
        return (await engine.run("inner", channel=channel)).text

    engine = bench.engine(ask)
    bench.provider.play(call("ask", {"channel": "a"}), say("Could not."))
    result = await engine.run("go", channel="a")
    assert "ReentrantTurnError" in result.history[0].content
    assert result.text == "Could not."

    bench.provider.play(call("ask", {"channel": "b"}), call("ask", {"channel": "a"}), say("b could not."), say("a is told."))
    result = await engine.run("go", channel="a")
    assert (result.end, result.text) == ("completed", "a is told.")
    assert reached == ["a", "b", "a"]
    bench.provider.play(say("Alive."))
    assert (await engine.run("hello", channel="b")).text == "Alive."


async def test_a_stop_drains_the_queue_and_says_so_of_each(bench: Bench) -> None:
    """S13.2"""
    bench.provider.play(hang())
    engine = bench.engine()
    runs = [asyncio.create_task(engine.run(f"m{n}", user=f"u{n}")) for n in range(4)]
    await bench.provider.waiting(1)
    await engine.stop()
    assert [(await run).end for run in runs] == ["stopped_by_user"] * 4
    assert len(bench.provider.requests) == 1


async def test_a_queue_that_is_full_refuses_and_says_so(bench: Bench) -> None:
    """S13.1"""
    bench.provider.play(hang())
    engine = bench.engine(max_waiting=2)
    runs = [asyncio.create_task(engine.run(f"m{n}", user=f"u{n}")) for n in range(3)]
    await bench.provider.waiting(1)
    with pytest.raises(TurnkeeperError, match="2 messages wait"):
        await engine.run("too many", user="u9")
    await engine.stop()
    await asyncio.gather(*runs)


async def test_a_waiting_call_that_is_cancelled_does_not_hold_up_the_rest(bench: Bench) -> None:
    bench.provider.play(say("One."), say("Three."))
    engine = bench.engine()
    first = asyncio.create_task(engine.run("one", user="a"))
    await asyncio.sleep(0)
    second = asyncio.create_task(engine.run("two", user="b"))
    await asyncio.sleep(0)
    third = asyncio.create_task(engine.run("three", user="c"))
    await asyncio.sleep(0)
    second.cancel()
    assert ((await first).text, (await third).text) == ("One.", "Three.")


async def test_closing_the_engine_ends_what_runs(bench: Bench) -> None:
    bench.provider.play(never_start())
    engine = bench.engine()
    running = asyncio.create_task(engine.run("go"))
    await bench.provider.waiting(1)
    await engine.aclose()
    assert (await running).end == "stopped_by_user"
    with pytest.raises(TurnkeeperError, match="closed"):
        await engine.run("more")


async def test_a_second_key_and_a_second_model_carry_a_failed_reply_on(bench: Bench) -> None:
    """S3.2, S3.4: people see one reply, nothing twice; tools are not run again."""
    ran: list[int] = []

    @tool
    async def count() -> int:
        """Counts."""
        ran.append(1)
        return len(ran)

    bench.provider.play(call("count", {}), say("The tide comes ") + cut(), fail(500, message="boom"), say("in twice a day."))
    models = [bench.model(keys=["sk-first-0123456789", "sk-second-0123456789"]), bench.model("gpt-y")]
    result = await bench.engine(count, models=models).run("why tides?")
    assert (result.end, result.text, ran) == ("completed", "The tide comes in twice a day.", [1])
    assert [(one.model, one.key, one.end) for one in result.attempts] == [
        ("gpt-x", "6789", "error"), ("gpt-x", "6789", "error"), ("gpt-y", "cdef", "completed"),
    ]  # fmt: skip
    assert [(notice.kind, notice.detail) for notice in result.notices] == [("answered_by", "gpt-y")]
    assert [line.partition(":")[0] for line in result.notices[0].fold] == ["gpt-x (key …6789)"] * 2


BAD_MODELS: list[tuple[dict[str, Any], str]] = [
    ({"family": "nope", "name": "x"}, "unknown family"),
    ({"family": "openai-chat", "name": " "}, "needs a name"),
    ({"family": "openai-chat", "name": "x", "base_url": "example.com/v1"}, "no http or https address"),
    ({"family": "openai-chat", "name": "x", "base_url": "http://user:pass@h/v1"}, "password"),
    ({"family": "openai-chat", "name": "x", "keys": ["a b"]}, "Key 1"),
    ({"family": "openai-chat", "name": "x", "temperature": 9}, "temperature"),
    ({"family": "openai-chat", "name": "x", "quirks": {"visoin": True}}, "no quirk `visoin`; did you mean `vision`"),
]


@pytest.mark.parametrize(("fields", "said"), BAD_MODELS, ids=[said for _, said in BAD_MODELS])
def test_a_wrong_model_is_one_clear_sentence_without_the_key(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        Model(**fields)
    assert "a b" not in str(caught.value)


def test_a_models_repr_has_no_key() -> None:
    """S3.3"""
    assert "sk-" not in repr(Model("openai-chat", "x", keys=["sk-abcdefghijklmnop"]))


@pytest.mark.parametrize(
    "fields",
    [{"max_passes": 0}, {"idle_timeout": -1}, {"max_passes": "9"}, {"repeated_call_hint": 9, "repeated_call_refusal": 4}],
)
def test_a_wrong_setting_names_itself(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"`{next(iter(fields))}`"):
        Settings(**fields)


async def test_messages_that_can_not_be_taken_are_refused(bench: Bench) -> None:
    engine = bench.engine(max_input_chars=10)
    for text, said in (("", "empty"), ("  \n", "empty"), ("x" * 11, "11 characters")):
        with pytest.raises(TurnkeeperError, match=said):
            await engine.run(text)


async def test_a_long_conversation_drops_its_oldest_exchanges_whole_and_then_rests(bench: Bench) -> None:
    """S2.5, S3.10b: between whole exchanges only, a large step at once."""
    bench.provider.default = say("Yes. " * 40)
    engine = bench.engine(models=[bench.model(quirks={"context_window": 2000})])
    lengths = []
    for n in range(40):
        await engine.run(f"message {n} " + "word " * 40)
        lengths.append(len(bench.messages()))
        assert bench.messages()[0]["role"] == "user"
        assert bench.messages()[-1]["content"].startswith(f"message {n} ")
    drops = [n for n in range(1, 40) if lengths[n] < lengths[n - 1]]
    assert 2 <= len(drops) <= 10
    assert all(later - earlier > 2 for earlier, later in zip(drops, drops[1:], strict=False))


async def test_memory_of_a_turn_is_let_go(bench: Bench) -> None:
    """A turn leaves its conversation behind, and nothing that runs."""
    bench.provider.default = say("Fine.")
    engine = bench.engine(context_turns=1)
    await engine.run("warm up")
    for n in range(50):
        await engine.run(f"m{n}", channel=f"c{n % 5}")
    gc.collect()
    results = [one for one in gc.get_objects() if isinstance(one, TurnResult)]
    assert len(results) <= 2


async def test_files_that_come_with_a_message_are_named_and_can_be_read(bench: Bench) -> None:
    from turnkeeper.tools.builtin import builtin_tools

    bench.provider.play(call("read_file", {"path": "note.txt"}), say("It says: low tide at six."))
    engine = bench.engine(*builtin_tools(), max_attachment_bytes=2000)
    result = await engine.run("What does it say?", attachments={"note.txt": b"low tide at six"})
    assert result.history[0].content == "low tide at six"
    assert bench.messages(0)[-1]["content"] == "What does it say?\n[attached file: note.txt, 1 KB]"
    with pytest.raises(TurnkeeperError, match="2,001 bytes"):
        await engine.run("and this?", attachments={"big.bin": b"x" * 2001})


async def test_a_sink_is_told_all_in_order(bench: Bench) -> None:
    bench.provider.play(say("Look.", pieces=1) + call("dice", {}), say("Six.", pieces=1))
    sink = Watching()
    await bench.engine(dice).run("go", sink=sink)
    assert sink.log == ["grow Look.", "post Look.", "tool dice", "tool dice Succeeded", "grow Six.", "post Six."]


async def test_a_slow_surface_gets_all_messages_one_after_another(bench: Bench) -> None:
    sink = Watching()
    sink.posting = asyncio.Event()
    bench.provider.play(say("A paragraph of words. " * 300))
    running = asyncio.create_task(bench.engine().run("go", sink=sink))
    await until(lambda: sink.posts)
    assert sink.posts == 1
    sink.posting.set()
    result = await running
    posted = [line for line in sink.log if line.startswith("posted")]
    assert len(posted) == len(result.deliveries) > 2
