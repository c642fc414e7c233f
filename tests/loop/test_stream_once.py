"""One pass: clocks, stops, follow-ups, limits (S5), under virtual time."""

from __future__ import annotations

import asyncio

import pytest

from tests.harness import Bench, Watching, until
from turnkeeper import tool
from turnkeeper.testing import call, cut, error, fail, hang, keepalive, never_start, say, think, wait

virtual = pytest.mark.looptime


@virtual
async def test_a_server_that_never_starts_ends_as_a_timeout_of_the_first_token(bench: Bench) -> None:
    """S5.1: 300 s for the first progress."""
    bench.provider.play(never_start())
    before = asyncio.get_running_loop().time()
    result = await bench.engine().run("go")
    assert bench.seen(result).notices == ["timed_out"]
    assert (result.end, result.notices[0].detail) == ("timeout", "first_token")
    assert 299 < asyncio.get_running_loop().time() - before < 310
    assert bench.provider.requests[0].closed_early or not bench.provider.requests[0].finished


@virtual
async def test_keep_alives_are_no_progress(bench: Bench) -> None:
    """S5.1: comments for minutes, and the first-token budget still runs."""
    bench.provider.play(keepalive(200, 10) + say("too late"))
    result = await bench.engine().run("go")
    assert (result.end, result.text) == ("timeout", "")


@virtual
async def test_a_silence_in_the_middle_ends_as_idle_and_the_text_stands(bench: Bench) -> None:
    """S5.1, S5.2: never more than 120 s between signs of progress."""
    bench.provider.play(say("Half a reply") + hang())
    before = asyncio.get_running_loop().time()
    result = await bench.engine().run("go")
    assert (result.end, result.notices[0].detail) == ("timeout", "idle")
    assert [message.text for message in result.deliveries] == ["Half a reply"]
    assert 119 < asyncio.get_running_loop().time() - before < 130


@virtual
async def test_slow_but_steady_progress_never_times_out(bench: Bench) -> None:
    """S5.1: the clock is rolling: an hour in steps of 100 s; reasoning and arguments count."""
    answer = say("Slow.", pieces=1)
    for n in range(12):
        answer = answer + wait(100) + say(f" {n}", pieces=1) + wait(100) + think("hmm", pieces=1)
    bench.provider.play(answer)
    result = await bench.engine().run("go")
    assert result.end == "completed"


@virtual
async def test_a_first_token_after_299_seconds_is_in_time(bench: Bench) -> None:
    """S5.1"""
    bench.provider.play(wait(299, before_head=True) + say("Here."))
    assert (await bench.engine().run("go")).text == "Here."


@virtual
async def test_a_timeout_waits_for_a_send_in_flight_at_most_five_seconds(bench: Bench) -> None:
    """S5.2: what was being sent is on record, confirmed where it settled in time."""
    for settles, confirmed in ((True, True), (False, False)):
        sink = Watching()
        sink.posting = asyncio.Event()
        bench.provider.play(say("x" * 2100, pieces=1) + hang())
        running = asyncio.create_task(bench.engine(idle_timeout=10).run("go", channel=f"c{settles}", sink=sink))
        if settles:
            await asyncio.sleep(12)
            sink.posting.set()
        result = await running
        assert result.end == "timeout"
        assert result.deliveries[0].confirmed is confirmed


async def test_kill_before_the_first_token_cancels_the_request_itself(bench: Bench) -> None:
    """S5.3: the server sees the connection close."""
    bench.provider.play(hang())
    engine = bench.engine()
    running = asyncio.create_task(engine.run("go"))
    await bench.provider.waiting(1)
    assert await engine.stop()
    result = await running
    assert bench.seen(result).end == "stopped_by_user"
    await bench.provider.idle()
    assert bench.provider.requests[0].closed_early


async def test_kill_before_the_head_of_the_answer(bench: Bench) -> None:
    """S5.3a: before the request is open."""
    bench.provider.play(never_start())
    engine = bench.engine()
    running = asyncio.create_task(engine.run("go"))
    await bench.provider.waiting(1)
    await engine.stop()
    assert (await running).end == "stopped_by_user"


async def test_kill_in_the_text_keeps_what_was_shown_and_shows_nothing_more(bench: Bench) -> None:
    """S5.3, S2.5"""
    bench.provider.play(say("Half a reply") + hang(), say("Next."))
    engine, sink = bench.engine(), Watching()
    running = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: "Half a reply" in sink.text)
    await engine.stop()
    result = await running
    assert (result.end, result.text) == ("stopped_by_user", "Half a reply")
    await engine.run("again")
    assert [m["content"] for m in bench.messages()] == ["go", "Half a reply", "again"]


async def test_kill_in_the_arguments_runs_nothing(bench: Bench) -> None:
    """S5.3"""
    ran: list[int] = []

    @tool
    async def f(n: int) -> None:
        """Never runs."""
        ran.append(n)

    bench.provider.play(call("f", '{"n": 1', pieces=2) + hang())
    engine = bench.engine(f)
    running = asyncio.create_task(engine.run("go"))
    await bench.provider.waiting(1)
    for _ in range(50):
        await asyncio.sleep(0)
    await engine.stop()
    result = await running
    assert (result.end, result.history, ran) == ("stopped_by_user", (), [])


async def test_kill_twice_is_one_end(bench: Bench) -> None:
    """S5.3a"""
    bench.provider.play(say("Half") + hang())
    engine, sink = bench.engine(), Watching()
    running = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: sink.text)
    assert [await engine.stop(), await engine.stop()] == [True, True]
    result = await running
    assert [type(one).__name__ for one in await bench.events(result)].count("Ended") == 1


async def test_kill_with_nothing_running_says_so_and_touches_no_later_turn(bench: Bench) -> None:
    """S5.3a"""
    bench.provider.play(say("Fine."))
    engine = bench.engine()
    assert not await engine.stop()
    assert not await engine.stop("elsewhere")
    assert (await engine.run("go")).end == "completed"


async def test_a_stop_never_reaches_the_turn_after_it(bench: Bench) -> None:
    """S5.3a"""
    bench.provider.play(say("Half") + hang(), say("Fine."))
    engine, sink = bench.engine(), Watching()
    running = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: sink.text)
    await engine.stop()
    await running
    assert (await engine.run("again")).end == "completed"


@virtual
async def test_a_stop_does_not_wait_for_the_settling_time_of_a_send(bench: Bench) -> None:
    """S5.2: a pending /kill ends at once; the send is still settled by the turn's end, bounded, and recorded."""
    sink = Watching()
    sink.posting = asyncio.Event()
    bench.provider.play(say("x" * 2100, pieces=1) + hang())
    engine = bench.engine()
    running = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: sink.posts)
    before = asyncio.get_running_loop().time()
    await engine.stop()
    sink.posting.set()
    result = await running
    assert asyncio.get_running_loop().time() - before < 1
    assert (result.end, result.deliveries[0].confirmed) == ("stopped_by_user", True)


async def test_a_stop_in_the_last_delivery_ends_the_turn(bench: Bench) -> None:
    """S5.3a"""
    sink = Watching()
    sink.posting = asyncio.Event()
    bench.provider.play(say("All of it."))
    engine = bench.engine()
    running = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: sink.posts)
    await engine.stop()
    sink.posting.set()
    result = await running
    assert (result.end, result.text) == ("stopped_by_user", "All of it.")
    assert [message.text for message in result.deliveries] == ["All of it."]


async def test_stopping_at_every_step_of_the_loop_gives_one_end_and_a_valid_next_request(bench: Bench) -> None:
    """S5.3a: a stop at any instant; each round stops one scheduling step later."""

    @tool(read_only=True)
    async def f(n: int) -> int:
        """Waits a little."""
        await asyncio.sleep(0)
        return n

    ends: set[str] = set()
    for step in range(0, 160, 3):
        bench.provider.play(say("One. ") + call("f", {"n": 1}) + call("f", {"n": 2}), say("Two."))
        engine = bench.engine(f)
        channel = f"c{step}"
        running = asyncio.create_task(engine.run("go", channel=channel))
        for _ in range(step):
            await asyncio.sleep(0)
        await engine.stop(channel)
        result = await running
        ends.add(result.end)
        names = [type(one).__name__ for one in await bench.events(result)]
        assert names.count("Ended") == 1
        assert names[-1] == "Ended"
        while bench.provider.unplayed:
            bench.provider.by_request(lambda seen: None)
            await bench.engine().run("drain", channel="drain")
        bench.provider.play(say("Next."))
        assert (await engine.run("next", channel=channel)).end == "completed"
        assert bench.provider.requests[-1].problems == []
    assert ends == {"stopped_by_user", "completed"}


async def test_cancelling_the_call_ends_the_turn_and_frees_the_channel(bench: Bench) -> None:
    bench.provider.play(say("Half a reply") + hang(), say("Fine."))
    engine, sink = bench.engine(), Watching()
    running = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: "Half a reply" in sink.text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await engine.run("again")).end == "completed"
    assert [m["content"] for m in bench.messages()] == ["go", "Half a reply", "again"]


async def test_a_newer_message_interrupts_text_at_a_clean_boundary(bench: Bench) -> None:
    """S5.4: the boundary may lie inside a chunk."""
    bench.provider.play(
        say("One sentence. And a sec", pieces=1) + wait(0.05) + say("ond one. And a third", pieces=1) + hang(), say("Both.")
    )
    engine, sink = bench.engine(), Watching()
    first = asyncio.create_task(engine.run("go", sink=sink))
    await until(lambda: sink.text)
    second = asyncio.create_task(engine.run("wait, also this"))
    interrupted, result = await first, await second
    assert (interrupted.end, interrupted.text) == ("follow_up_interrupt", "One sentence. And a second one.")
    assert result.text == "Both."
    assert [m["content"] for m in bench.messages()] == ["go", "One sentence. And a second one.", "wait, also this"]


async def test_a_newer_message_before_any_text_makes_way_at_once(bench: Bench) -> None:
    """S5.4: nothing shown is a clean boundary."""
    bench.provider.play(hang(), say("Both."))
    engine = bench.engine()
    first = asyncio.create_task(engine.run("one"))
    await bench.provider.waiting(1)
    second = await engine.run("two")
    assert ((await first).end, second.text) == ("follow_up_interrupt", "Both.")
    assert [m["content"] for m in bench.messages()] == ["one", "two"]


async def test_a_message_of_another_user_waits_its_turn(bench: Bench) -> None:
    """S5.4, S2.2"""
    bench.provider.play(say("One sentence.", pieces=1) + wait(0) + say(" And more.", pieces=1), say("Yours."))
    engine, sink = bench.engine(), Watching()
    first = asyncio.create_task(engine.run("go", user="a", sink=sink))
    await until(lambda: sink.text)
    second = await engine.run("mine", user="b")
    assert ((await first).text, second.text) == ("One sentence. And more.", "Yours.")


async def test_a_newer_message_during_a_tool_lets_the_chain_go_on(bench: Bench) -> None:
    """S5.4"""
    go_on, begun = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Waits."""
        begun.set()
        await go_on.wait()
        return "done"

    bench.provider.play(call("slow", {}), say("After the tool."), say("And now you."))
    engine = bench.engine(slow)
    first = asyncio.create_task(engine.run("go"))
    await begun.wait()
    second = asyncio.create_task(engine.run("hello?"))
    for _ in range(20):
        await asyncio.sleep(0)
    go_on.set()
    assert ((await first).text, (await second).text) == ("After the tool.", "And now you.")


async def test_newer_messages_interrupt_three_times_at_most(bench: Bench) -> None:
    """S5.4"""
    bench.provider.play(*[hang()] * 3, say("The fourth is left in peace."), say("The fifth."))
    engine = bench.engine()
    runs = []
    for n in range(5):
        runs.append(asyncio.create_task(engine.run(f"message {n}")))
        await bench.provider.waiting(min(n + 1, 4))
    ends = [(await run).end for run in runs]
    assert ends == ["follow_up_interrupt"] * 3 + ["completed"] * 2


async def test_the_operators_message_limit_ends_in_silence_and_is_not_an_error(bench: Bench) -> None:
    """S14.3"""
    bench.provider.play(say("A paragraph of words. " * 400))
    result = await bench.engine(send_message_limit=2).run("go")
    assert (result.end, len(result.deliveries), bench.seen(result).notices) == ("stopped_by_user", 2, [])
    await bench.provider.idle()
    assert bench.provider.requests[0].closed_early or bench.provider.requests[0].finished


async def test_the_safety_limit_ends_with_a_notice(bench: Bench) -> None:
    """S14.3"""
    bench.provider.play(say("x" * 5000, pieces=1))
    result = await bench.engine(flush_limit=1000).run("go")
    assert (result.end, len(result.text), bench.seen(result).notices) == ("stopped_by_user", 1000, ["flush_limit"])


async def test_an_answer_over_the_byte_limit_is_broken_off(bench: Bench) -> None:
    """Every outside input has a size limit."""
    bench.provider.play(say("y" * 300_000, pieces=200))
    result = await bench.engine(max_answer_bytes=65536, flush_limit=1_000_000).run("go")
    assert result.end == "error"
    assert result.fault is not None
    assert "larger" in result.fault.said


async def test_errors_inside_the_stream_keep_the_text_and_blame_nobody_twice(bench: Bench) -> None:
    bench.provider.play(say("Half. ") + error("overloaded, try later", code="overloaded"), fail(500))
    result = await bench.engine().run("go")
    assert (result.end, result.text) == ("error", "Half.")
    first = result.attempts[0].fault
    assert first is not None
    assert first.kind == "overloaded"


async def test_a_cut_in_a_calls_arguments_is_a_lost_call(bench: Bench) -> None:
    """S3.4a: it did not run, and the next attempt is told so."""
    ran: list[int] = []

    @tool
    async def f(n: int) -> None:
        """Counts."""
        ran.append(n)

    bench.provider.play(call("f", '{"n": 1', pieces=2) + cut(), say("All right."))
    result = await bench.engine(f, models=[bench.model("gpt-x"), bench.model("gpt-y")]).run("go")
    assert (result.end, result.text, ran) == ("completed", "All right.", [])
    assert "did not run" in bench.messages()[-1]["content"]


async def test_the_model_repeats_a_key_and_people_never_see_it(bench: Bench) -> None:
    """S16.2a: the model's own words included."""
    key = "sk-test-0123456789abcdef"
    bench.provider.play(say(f"Your key is {key}, keep it safe."))
    result = await bench.engine().run("what is the key?")
    assert result.text == "Your key is [redacted] keep it safe." or result.text == "Your key is [redacted], keep it safe."
    assert key not in str(await bench.events(result))
