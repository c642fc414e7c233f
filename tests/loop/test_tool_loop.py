"""Whole turns over real HTTP: what people see, and what the server got (S4, S6, S9)."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Struct

from tests.harness import Bench, Seen
from tests.neutral import offered
from turnkeeper import ContextItem, EndTurn, RestartWith, Succeeded, ToolContext, tool
from turnkeeper.testing import Answer, call, close, cut, done, error, fail, finish, keepalive, say, think, together, usage


@tool(read_only=True)
async def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "degrees": 7}


@tool
async def roll(sides: int = 6) -> int:
    """Rolls a die."""
    return sides


@tool
async def broken(x: int = 0) -> str:
    """Always fails."""
    raise RuntimeError(f"no {x}")


@tool(silent=True)
async def remember(text: str) -> str:
    """Remembers something."""
    return "noted"


@tool(silent=True)
async def remember_more(text: str) -> Succeeded:
    """Silent, but its outcome wants words."""
    from turnkeeper import Continue

    return Succeeded("noted", then=Continue(follow_up=True))


@tool(requires_follow_up=True)
async def look_up(word: str) -> str:
    """Looks something up."""
    return "found"


@tool
async def finish_up() -> Succeeded:
    """Ends the turn."""
    return Succeeded("done", then=EndTurn())


@tool
async def posts_itself() -> Succeeded:
    """Answers the channel itself."""
    return Succeeded(None, delivered="Here is the picture.")


TOOLS = (weather, roll, broken, remember, remember_more, look_up, finish_up, posts_itself)


class Case(Struct):
    name: str
    answers: list[Answer]
    seen: Seen

    def __str__(self) -> str:
        return self.name


def sees(
    reads: str, end: str = "completed", requests: int = 1, ran: list[str] | None = None, notices: list[str] | None = None
) -> Seen:
    return Seen(reads=reads, end=end, requests=requests, ran=ran or [], notices=notices or [])


ROLL = call("roll", {"sides": 6})
CASES = [
    Case("S4.1 a plain reply", [say("Hello there.")], sees("Hello there.")),
    Case("S4.1 a tool, then a reply", [ROLL, say("A six.")], sees("A six.", requests=2, ran=["roll Succeeded"])),
    Case(
        "S4.3 text before a tool stands as a message of its own",
        [say("Let me roll.") + ROLL, say("A six.")],
        sees("Let me roll.\nA six.", requests=2, ran=["roll Succeeded"]),
    ),
    Case(
        "S4.5 several calls in one pass all run",
        [call("weather", {"city": "Paris"}) + call("roll", {}) + call("weather", {"city": "Rome"}), say("Done.")],
        sees("Done.", requests=2, ran=["weather Succeeded", "roll Succeeded", "weather Succeeded"]),
    ),
    Case("S9.4 an empty first pass is tried again", [done(), say("Hi.")], sees("Hi.", requests=2)),
    Case("S9.4 three empty passes are reported", [done(), done(), done()], sees("", "empty_response", 3, notices=["empty_response"])),
    Case("S9.4 blank text is empty", [say(" \n "), say("Hi.")], sees("Hi.", requests=2)),
    Case("S9.4a only reasoning is never the answer", [think("hmm"), say("Hi.")], sees("Hi.", requests=2)),
    Case(
        "S9.4a silence after a tool is asked about twice, then named",
        [ROLL, done(), think("hmm"), say("(no response)")],
        sees("", "empty_response", 4, ["roll Succeeded"], ["silent_after_tool"]),
    ),
    Case("S9.4a silence after a tool ends when the model answers", [ROLL, done(), say("A six.")], sees("A six.", requests=3, ran=["roll Succeeded"])),
    Case(
        "S9.2 silence after shown text and a tool that needs no words is the end",
        [say("Rolling!") + ROLL, done()],
        sees("Rolling!", requests=2, ran=["roll Succeeded"]),
    ),
    Case(
        "S9.2 not where the tool requires a follow-up",
        [say("Looking.") + call("look_up", {"word": "tide"}), done(), say("Found.")],
        sees("Looking.\nFound.", requests=3, ran=["look_up Succeeded"]),
    ),
    Case("S9.1 a silent tool after text ends the turn", [say("Noted!") + call("remember", {"text": "x"})], sees("Noted!", ran=["remember Succeeded"])),
    Case(
        "S9.1 not where its outcome wants a follow-up",
        [say("Noted!") + call("remember_more", {"text": "x"}), say("And more.")],
        sees("Noted!\nAnd more.", requests=2, ran=["remember_more Succeeded"]),
    ),
    Case(
        "S9.1 not for an ordinary tool beside it",
        [say("Noted!") + call("remember", {"text": "x"}) + ROLL, say("Six.")],
        sees("Noted!\nSix.", requests=2, ran=["remember Succeeded", "roll Succeeded"]),
    ),
    Case("S9.4a silence that a silent tool asked for is respected", [call("remember", {"text": "x"}), done()], sees("", requests=2, ran=["remember Succeeded"])),
    Case("S6.7 a tool may end the turn", [call("finish_up", {})], sees("", ran=["finish_up Succeeded"])),
    Case(
        "S6.7 the model then says what the tool posted: shown once",
        [call("posts_itself", {}), say("Here is the picture.")],
        sees("", requests=2, ran=["posts_itself Succeeded"]),
    ),
    Case(
        "S6.7 and what it adds is shown",
        [call("posts_itself", {}), say("Here is the picture. Nice?")],
        sees("Nice?", requests=2, ran=["posts_itself Succeeded"]),
    ),
    Case(
        "S9.4b a text cut by the output limit is carried on",
        [say("The tide comes in twice") + finish("length"), say(" a day, and goes out again.")],
        sees("The tide comes in twice a day, and goes out again.", requests=2),
    ),
    Case(
        "S9.4b a continuation that repeats is trimmed",
        [say("The tide comes in twice a day and") + finish("length"), say("comes in twice a day and goes out.")],
        sees("The tide comes in twice a day and goes out.", requests=2),
    ),
    Case(
        "S9.4b one that says the same again is shown once and ends",
        [say("The tide comes in twice a day.") + finish("length"), say("The tide comes in twice a day.")],
        sees("The tide comes in twice a day.", requests=2),
    ),
    Case(
        "S9.4b three continuations, then the length notice",
        [say(f"Part {n} of a long text; ") + finish("length") for n in range(5)],
        sees("Part 0 of a long text; Part 1 of a long text; Part 2 of a long text; Part 3 of a long text;", requests=4, notices=["length_limit"]),
    ),
    Case("S12.1 calls outrank a finish reason of stop", [ROLL + finish("stop"), say("Six.")], sees("Six.", requests=2, ran=["roll Succeeded"])),
    Case("a finish reason of tool_calls without calls is empty", [finish("tool_calls"), say("Hi.")], sees("Hi.", requests=2)),
    Case("S6.3 an unknown tool is answered, and the chain goes on", [call("rol", {}), say("Sorry.")], sees("Sorry.", requests=2, ran=["rol Failed"])),
    Case("S6.1 truncated arguments are never run", [call("roll", '{"sides": ') + finish("length"), say("Sorry.")], sees("Sorry.", requests=2, ran=["roll Failed"])),
    Case("S12.3 broken arguments are an outcome", [call("roll", "{'sides': 6}"), say("Sorry.")], sees("Sorry.", requests=2, ran=["roll Failed"])),
    Case("S6 a call without a name runs nothing", [call("", {}), say("Sorry.")], sees("Sorry.", requests=2, ran=[" Failed"])),
    Case("S12.4 an error inside the stream after text", [say("Half ") + error("boom"), fail(500)], sees("Half", "error", 2, notices=["failed"])),
    Case("S3.4a a cut after text, one model and one key", [say("Half a") + cut(), say(" loaf.")], sees("Half a loaf.", requests=2)),
    Case("S3.4a and no third time at the same text", [say("Half a") + cut(), say("Half a") + cut(), say("no")], sees("Half a", "error", 2, notices=["failed"])),
    Case("S3.3d a connection lost before any byte is tried once more", [close(), say("Hi.")], sees("Hi.", requests=2)),
    Case("S3.3d and no third time", [close(), close(), say("no")], sees("", "error", 2, notices=["failed"])),
    Case("S12.4 a 500 is reported once", [fail(500, body="boom")], sees("", "error", notices=["failed"])),
    Case("S5.1 keep-alives before the answer", [keepalive(3, 0) + say("Hi.")], sees("Hi.")),
    Case("S12.1 all in one delta", [together(think("r"), say("t"), ROLL, finish("tool_calls"), usage()), say("Six.")], sees("t\nSix.", requests=2, ran=["roll Succeeded"])),
]  # fmt: skip


ONLY_NATIVE = ("S6.3 an unknown tool is answered, and the chain goes on", "S6 a call without a name runs nothing")


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_what_people_see(case: Case, bench: Bench) -> None:
    if bench.family == "verbatim" and case.name in ONLY_NATIVE:
        pytest.skip("in text, only the names of offered tools make a call (S10.2)")
    bench.provider.play(*case.answers)
    result = await bench.engine(*TOOLS).run("why tides?")
    assert bench.seen(result) == case.seen, await bench.timeline(result)


async def test_five_tool_errors_in_a_row_end_the_turn_with_a_notice(bench: Bench) -> None:
    """S4.2; the calls differ, so that the guard against repeats is not what ends it."""
    bench.provider.play(*[call("broken", {"x": n}) for n in range(9)])
    result = await bench.engine(*TOOLS).run("go")
    assert bench.seen(result) == sees("", "error", 5, ["broken Failed"] * 5, ["too_many_tool_errors"])


async def test_a_success_between_resets_the_error_counter(bench: Bench) -> None:
    """S4.2"""
    calls = [call("broken", {"x": n}) for n in range(4)]
    bench.provider.play(*calls, call("roll", {}), *calls, say("Done."))
    result = await bench.engine(*TOOLS).run("go")
    assert (result.end, len(result.history)) == ("completed", 9)


@pytest.mark.native_calls("in text, only the names of offered tools make a call (S10.2)")
async def test_refused_and_truncated_calls_count_as_errors(bench: Bench) -> None:
    """S4.2"""
    bench.provider.play(
        call("nope", {}), call("roll", {"sides": "x"}), call("roll", '{"s') + finish("length"), call("", {}), call("roll", "[]"), say("no")
    )  # fmt: skip
    assert (await bench.engine(*TOOLS).run("go")).end == "error"


async def test_a_hundred_passes_end_the_turn_as_a_timeout_with_notices(bench: Bench) -> None:
    """S4.2: at pass 20 people hear that it goes on, and of /kill."""
    bench.provider.play(*[call("roll", {"sides": n + 1}) for n in range(101)])
    result = await bench.engine(*TOOLS).run("go")
    assert bench.seen(result) == sees("", "timeout", 100, ["roll Succeeded"] * 100, ["still_working", "too_many_passes"])


async def test_the_same_call_with_the_same_result_is_hinted_refused_and_ended(bench: Bench) -> None:
    """S4.2a: 3 in a row add a sentence, the sixth is refused, 10 end the turn."""
    bench.provider.play(*[call("roll", {"sides": 6}) for _ in range(12)])
    result = await bench.engine(*TOOLS, max_tool_errors=50).run("go")
    assert bench.seen(result) == sees("", "error", 10, ["roll Succeeded"] * 5 + ["roll Failed"] * 5, ["repeated_calls"])
    assert ["in a row" in entry.content for entry in result.history[:5]] == [False, False, True, True, True]


async def test_calls_that_differ_in_key_order_only_are_the_same_call(bench: Bench) -> None:
    """S3.5: identity is of canonical arguments."""

    @tool
    async def pair(a: int, b: int) -> int:
        """Adds."""
        return a + b

    bench.provider.play(*[call("pair", '{"a":1,"b":2}' if n % 2 else '{"b":2,"a":1}') for n in range(3)], say("Done."))
    result = await bench.engine(pair).run("go")
    assert "in a row" in result.history[2].content


async def test_a_result_that_differs_in_its_time_only_is_the_same_result(bench: Bench) -> None:
    """S4.2a: ids and times aside."""
    counter = iter(range(10, 60))

    @tool
    async def now() -> str:
        """The time."""
        return f"at 12:00:{next(counter)} it is quiet"

    bench.provider.play(*[call("now", {}) for _ in range(3)], say("Done."))
    result = await bench.engine(now).run("go")
    assert "in a row" in result.history[2].content


@pytest.mark.native_calls("results go back under ids")
async def test_read_only_tools_run_together_and_results_go_back_in_call_order(bench: Bench) -> None:
    """S4.5"""
    begun: list[int] = []
    all_begun = asyncio.Event()

    @tool(read_only=True)
    async def slow(n: int) -> int:
        """Waits until all have begun."""
        begun.append(n)
        if len(begun) == 3:
            all_begun.set()
        await all_begun.wait()
        return n

    bench.provider.play(
        *[call("slow", {"n": 1}, id="c1") + call("slow", {"n": 2}, id="c2") + call("slow", {"n": 3}, id="c3")], say("Done.")
    )
    result = await bench.engine(slow).run("go")
    assert result.end == "completed"
    assert [(m["tool_call_id"], m["content"]) for m in bench.messages() if m["role"] == "tool"] == [
        ("c1", "1"),
        ("c2", "2"),
        ("c3", "3"),
    ]


async def test_no_more_than_eight_read_only_tools_run_at_once(bench: Bench) -> None:
    """S4.5"""
    running, most = 0, 0

    @tool(read_only=True)
    async def counted(n: int) -> int:
        """Counts."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return n

    answer = call("counted", {"n": 0})
    for n in range(1, 20):
        answer = answer + call("counted", {"n": n})
    bench.provider.play(answer, say("Done."))
    result = await bench.engine(counted).run("go")
    assert (len(result.history), most) == (20, 8)


async def test_tools_with_effects_run_one_by_one_in_order(bench: Bench) -> None:
    """S4.5"""
    order: list[str] = []

    @tool
    async def effect(n: int) -> int:
        """Has an effect."""
        order.append(f"begin {n}")
        await asyncio.sleep(0)
        order.append(f"end {n}")
        return n

    bench.provider.play(call("effect", {"n": 1}) + call("effect", {"n": 2}), say("Done."))
    await bench.engine(effect).run("go")
    assert order == ["begin 1", "end 1", "begin 2", "end 2"]


async def test_more_calls_than_allowed_in_a_pass_are_answered_and_not_run(bench: Bench) -> None:
    bench.provider.play(call("roll", {"sides": 1}) + call("roll", {"sides": 2}) + call("roll", {"sides": 3}), say("Done."))
    result = await bench.engine(*TOOLS, max_calls_per_pass=2).run("go")
    assert bench.seen(result).ran == ["roll Succeeded", "roll Succeeded", "roll Failed"]


@pytest.mark.native_calls("a call in text stands on a line of its own, and the line break is text")
async def test_pre_tool_text_belongs_to_its_call_and_is_sent_once(bench: Bench) -> None:
    """S4.3"""
    bench.provider.play(say("First.") + call("roll", {}), say("Then.") + call("weather", {"city": "Rome"}), say("End."))
    result = await bench.engine(*TOOLS).run("go")
    assert [entry.text_before for entry in result.history] == ["First.", "Then."]
    said = [m["content"] for m in bench.messages() if m["role"] == "assistant"]
    assert said == ["First.", "Then."]
    assert result.text == "First.\n\nThen.\n\nEnd."


async def test_blank_text_before_a_tool_is_not_recorded(bench: Bench) -> None:
    """S4.3"""
    bench.provider.play(say("\n\n") + call("roll", {}), say("End."))
    result = await bench.engine(*TOOLS).run("go")
    assert result.history[0].text_before == ""
    assert [message.text for message in result.deliveries] == ["End."]


async def test_a_message_of_a_tool_goes_back_beside_its_data(bench: Bench) -> None:
    """S4.4"""

    @tool
    async def sticker() -> Succeeded:
        """Sends a sticker."""
        return Succeeded({"sent": "tide"}, message="Say nothing about the sticker.")

    bench.provider.play(call("sticker", {}), say("Done."))
    result = await bench.engine(sticker).run("go")
    content = next(m["content"] for m in bench.messages() if m["role"] == "tool")
    assert '"sent"' in content
    assert "Say nothing about the sticker." in content
    assert isinstance(result.history[0].outcome, Succeeded)
    assert result.history[0].outcome.data == {"sent": "tide"}


@pytest.mark.native_calls("a tool that is switched off is not offered, so its name makes no call (S10.2)")
async def test_a_context_item_restarts_the_pass_once_and_leaves_no_entry(bench: Bench) -> None:
    """S7.1: the enrichment is switched off, the call leaves no entry, the next pass sees the item, passes count."""

    @tool
    async def enrich(topic: str) -> Succeeded:
        """Finds context."""
        return Succeeded(None, then=RestartWith(ContextItem(f"About {topic}: it is wet.")))

    bench.provider.play(say("Hm. ") + call("enrich", {"topic": "tides"}), call("enrich", {"topic": "x"}), say("Wet."))
    result = await bench.engine(enrich, *TOOLS).run("go")
    assert result.end == "completed"
    assert [f"{entry.call.name} {type(entry.outcome).__name__}" for entry in result.history] == ["enrich Failed"]
    assert len(result.usage) == 3
    second = bench.messages(1)
    assert second[-1] == {"role": "user", "content": "About tides: it is wet."}
    assert "enrich" not in offered(bench.provider.requests[1])


async def test_a_key_brings_its_context_item_once_a_turn(bench: Bench) -> None:
    """S7.1"""

    def enricher(name: str) -> Any:
        @tool(name=name)
        async def enrich() -> Succeeded:
            """Finds context."""
            return Succeeded(None, then=RestartWith(ContextItem("the heavy thing", key="k1")))

        return enrich

    bench.provider.play(call("one", {}), call("two", {}), say("Done."), call("one", {}), say("Again."))
    engine = bench.engine(enricher("one"), enricher("two"))
    await engine.run("go")
    assert [m["content"] for m in bench.messages(2)].count("the heavy thing") == 1
    await engine.run("go on")
    assert [m["content"] for m in bench.messages(4)].count("the heavy thing") == 2


async def test_each_request_extends_the_one_before_byte_for_byte(bench: Bench) -> None:
    """S3.10b: in a turn and from turn to turn."""
    bench.provider.play(
        say("First.") + call("roll", {}), call("weather", {"city": "Rome"}) + call("roll", {"sides": 3}), say("End."), call("roll", {}), say("Bye.")
    )  # fmt: skip
    engine = bench.engine(*TOOLS)
    await engine.run("go")
    await engine.run("and again")
    mark = b',"cache_control":{"type":"ephemeral"}'  # it moves on, and is no part of what a server compares
    nudge = re.compile(rb"\\n\\n\(A tool is called by.*?in words\.\)")  # after the last stable message only
    bodies = [nudge.sub(b"", request.raw.replace(mark, b"")) for request in bench.provider.requests]
    for before, after in pairwise(bodies):
        assert after.startswith(before.rstrip(b"]}"))


async def test_a_text_that_was_carried_on_and_then_asks_for_a_tool_goes_back_whole(bench: Bench) -> None:
    """S4.3, S9.4b: the next request, and later turns, hold all that people saw, once."""
    bench.provider.play(
        say("The tide comes in") + finish("length"), say(" twice a day.") + call("roll", {}), say("Six."), say("Yes.")
    )
    engine = bench.engine(*TOOLS)
    result = await engine.run("go")
    assert result.text == "The tide comes in twice a day.\n\nSix."
    await engine.run("sure?")
    said = [m["content"] for m in bench.messages() if m["role"] == "assistant"]
    assert said == ["The tide comes in twice a day.", "Six."]


async def test_what_a_tool_posted_is_in_the_history_and_not_said_again(bench: Bench) -> None:
    """S2.5: text that people saw is in the history."""

    @tool
    async def post(context: ToolContext) -> str:
        """Posts."""
        await context.say("Low tide is at six.")
        return "posted"

    bench.provider.play(call("post", {}), say("Low tide is at six."), say("At six."))
    engine = bench.engine(post)
    result = await engine.run("when?")
    assert [message.text for message in result.deliveries] == ["Low tide is at six."]
    await engine.run("again?")
    assert "Low tide is at six." in bench.messages()[2]["content"]


async def test_usage_is_one_entry_a_pass_and_marked_where_estimated(bench: Bench) -> None:
    """S15.2"""
    bench.provider.play(
        call("roll", {}) + usage(prompt=20212, completion=9, cached=16298), say("Half a reply") + cut(), close(), close()
    )
    result = await bench.engine(*TOOLS).run("go")
    first, second = result.usage[:2]
    assert (first.input, first.cache_read, first.output, first.estimated) == (3914, 16298, 9, False)
    assert second.estimated
    assert second.output > 0
    assert first.cost is None


async def test_the_thought_log_has_reasoning_and_failures(bench: Bench) -> None:
    """S6.8, S15.3"""
    bench.provider.play(think("I should roll.") + call("broken", {"x": 3}), say("Sorry."))
    result = await bench.engine(*TOOLS).run("go")
    assert result.thought_log[0] == "I should roll."
    assert result.thought_log[1].startswith('broken({"x":')
    assert "no 3" in result.thought_log[1]


async def test_attempts_name_model_key_and_end(bench: Bench) -> None:
    bench.provider.play(say("Hi."))
    result = await bench.engine().run("go")
    assert [(one.model, one.key, one.end) for one in result.attempts] == [("gpt-x", "cdef", "completed")]
