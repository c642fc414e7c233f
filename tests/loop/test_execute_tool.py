"""What tools can do to us, and what people and models are told of it (S6)."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Annotated, Any

import pytest
from msgspec import Meta

from tests.harness import Bench, until
from tests.neutral import offered
from turnkeeper import Engine, Host, Picture, Tool, ToolContext, tool
from turnkeeper.errors import JournalError
from turnkeeper.journal.events import Recorded, ToolFinished, ToolStarted
from turnkeeper.journal.journal import MemoryJournal
from turnkeeper.loop.turn import Approval
from turnkeeper.testing import call, say

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (2).to_bytes(4, "big") + (3).to_bytes(4, "big") + b"\x08\x02\0\0\0"


async def outcome_of(bench: Bench, made: Tool, arguments: Any = None, **settings: Any) -> str:
    """What the model reads after one call of a tool; the turn must go on all the same."""
    bench.provider.play(call(made.name, arguments if arguments is not None else {}), say("All right."))
    result = await bench.engine(made, **settings).run("go")
    assert (result.end, result.text) == ("completed", "All right."), await bench.timeline(result)
    return result.history[0].content


def returning(value: Any) -> Tool:
    @tool
    async def give() -> Any:
        """Gives something."""
        return value

    return give


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


CIRCLE: list[Any] = [1]
CIRCLE.append(CIRCLE)

RETURNED = [
    ("text", "hello", "hello"),
    ("nothing", None, "(no output)"),
    ("empty text", "", "(no output)"),
    ("a table", {"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
    ("bytes that are text", b"caf\xc3\xa9", "café"),
    ("bytes that are not", b"\xff\xfe\0" * 700, "(bytes, 2 KB)"),
    ("not a number", float("nan"), '"nan"'),
    ("infinity in a list", [float("inf")], '["inf"]'),
    ("a set", {3, 1}, "[1,3]"),
    ("a circle", CIRCLE, '[1,"(circular)"]'),
    ("a half character", "a\ud83d", "a?"),
    ("a huge integer", [10**400], None),
    ("an object without words", Rude(), "(a Rude)"),
]


@pytest.mark.parametrize(("name", "value", "content"), RETURNED, ids=[case[0] for case in RETURNED])
async def test_whatever_a_tool_returns_becomes_text(name: str, value: Any, content: str | None, bench: Bench) -> None:
    """S6.5, S2.5a"""
    found = await outcome_of(bench, returning(value))
    if content is not None:
        assert found.strip('"') == content.strip('"')


async def test_fifty_megabytes_are_bounded_and_can_be_paged_through(bench: Bench) -> None:
    """S6.5: an explicit cut marker, and a handle to page through the rest."""
    made = returning("0123456789" * 5_000_000)
    bench.provider.play(call("give", {}), call("read_more", {"handle": "r1", "offset": 65536}), say("Enough."))
    result = await bench.engine(made).run("go")
    first, second = result.history
    assert len(first.content) < 66_000
    assert 'read_more(handle="r1", offset=65536)' in first.content
    assert second.content.startswith("6789012345")
    names = [offered(request) for request in bench.provider.requests]
    assert names == [["give"], ["give", "read_more"], ["give", "read_more"]]


@pytest.mark.native_calls("in text, only the names of offered tools make a call (S10.2)")
async def test_the_paging_tool_is_not_offered_before_something_was_cut(bench: Bench) -> None:
    bench.provider.play(call("read_more", {"handle": "r1"}), say("No."))
    result = await bench.engine(returning(1)).run("go")
    assert result.history[0].content.startswith("not_exposed")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("boom"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        TimeoutError(),
        StopAsyncIteration(),
        RecursionError(),
    ],
)
async def test_whatever_a_tool_raises_is_a_failure_and_the_loop_lives(
    error: BaseException, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """S6.5, S4.5a"""
    caplog.set_level(logging.CRITICAL)

    @tool
    async def bad() -> None:
        """Raises."""
        raise error

    assert (await outcome_of(bench, bad)).startswith("tool_execution_failed: bad ")


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), KeyboardInterrupt(), StopIteration(1)])
async def test_whatever_a_plain_function_raises_in_its_thread_is_a_failure(error: BaseException, bench: Bench) -> None:
    """S6.4, S6.5"""

    @tool
    def bad() -> None:
        """Raises."""
        raise error

    assert (await outcome_of(bench, bad)).startswith("tool_execution_failed: bad failed")


async def test_a_failing_tool_does_not_cost_its_siblings_their_results(bench: Bench) -> None:
    """S4.5a"""

    @tool(read_only=True)
    async def cancels_itself() -> None:
        """Raises."""
        raise asyncio.CancelledError

    @tool(read_only=True)
    async def fine() -> str:
        """Works."""
        await asyncio.sleep(0)
        return "fine"

    bench.provider.play(call("fine", {}) + call("cancels_itself", {}) + call("fine", {}), say("Done."))
    result = await bench.engine(cancels_itself, fine).run("go")
    assert bench.seen(result).ran == ["fine Succeeded", "cancels_itself Failed", "fine Succeeded"]


async def test_a_reason_holds_no_secret_and_no_traceback(bench: Bench) -> None:
    """S6.5, S16.2a: an exception with `?key=` in its URL."""

    @tool
    async def leaky() -> None:
        """Raises."""
        raise RuntimeError("GET https://x.example/?key=abcdef123456 failed; sk-test-0123456789abcdef was refused")

    content = await outcome_of(bench, leaky)
    assert "abcdef" not in content
    assert "Traceback" not in content


async def test_a_tool_that_returns_the_keys_tells_them_to_nobody(bench: Bench) -> None:
    """S16.2a: a tool that returns the environment."""
    made = returning({"OPENAI_API_KEY": "sk-test-0123456789abcdef", "TOKEN": "ghp_" + "a1B2" * 9})
    content = await outcome_of(bench, made)
    assert content.count("[redacted]") == 2
    assert all("0123456789abcdef" not in request.raw.decode() for request in bench.provider.requests)


async def test_arguments_that_hold_our_mask_are_refused(bench: Bench) -> None:
    """S3.5a"""

    @tool
    async def send(text: str) -> str:
        """Sends."""
        return text

    assert "[redacted]" in await outcome_of(bench, send, {"text": "key [redacted]"})


@pytest.mark.looptime
async def test_a_tool_that_hangs_times_out_and_the_model_is_told(bench: Bench) -> None:
    """S6.4"""

    @tool
    async def hangs() -> None:
        """Hangs."""
        await asyncio.Event().wait()

    assert "did not finish within 300 seconds" in await outcome_of(bench, hangs)


@pytest.mark.looptime
async def test_a_tools_own_time_limit_goes_before_the_settings(bench: Bench) -> None:
    """S6.4: settable per tool."""

    @tool(timeout=2.5)
    async def hangs() -> None:
        """Hangs."""
        await asyncio.Event().wait()

    assert "within 2.5 seconds" in await outcome_of(bench, hangs)


@pytest.mark.looptime
async def test_a_tool_that_ignores_its_cancellation_is_abandoned_and_named(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """S6.4: after 5 s, with a warning."""
    release = asyncio.Event()

    @tool(timeout=1)
    async def stubborn() -> None:
        """Ignores its cancellation."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    before = asyncio.get_running_loop().time()
    content = await outcome_of(bench, stubborn)
    assert "1 seconds" in content
    assert 5.9 < asyncio.get_running_loop().time() - before < 7
    assert any("stubborn ignores its cancellation" in record.message for record in caplog.records)
    release.set()
    await asyncio.sleep(0)


async def test_a_plain_function_that_blocks_its_thread_does_not_block_the_loop(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """S6.4"""
    release = threading.Event()

    @tool(timeout=0.05)
    def blocks() -> None:
        """Blocks."""
        release.wait(30)

    content = await outcome_of(bench, blocks, tool_abandon_timeout=0.05)
    release.set()
    assert "0.05 seconds" in content


async def test_a_plain_function_runs_in_a_thread_of_its_own(bench: Bench) -> None:
    """S6.4"""

    @tool
    def where() -> bool:
        """Where am I."""
        return threading.current_thread() is not threading.main_thread()

    assert await outcome_of(bench, where) == "true"


async def test_kill_during_a_tool_ends_the_turn_and_feeds_nothing_back(bench: Bench) -> None:
    """S6.4"""
    begun = asyncio.Event()
    ended: list[str] = []

    @tool
    async def slow() -> None:
        """Waits."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    bench.provider.play(call("slow", {}), say("never"))
    engine = bench.engine(slow)
    running = asyncio.create_task(engine.run("go"))
    await begun.wait()
    await engine.stop()
    result = await running
    assert (result.end, len(bench.provider.requests), ended) == ("stopped_by_user", 1, ["cleaned up"])
    assert bench.seen(result).ran == ["slow Failed"]
    bench.provider.play(say("Next."))
    await engine.run("and now?")
    assert [m["role"] for m in bench.messages()] == ["user", "assistant", "tool", "user"]


async def test_a_stop_gives_an_outcome_to_calls_that_had_not_begun(bench: Bench) -> None:
    """S4.5"""
    begun = asyncio.Event()

    @tool
    async def slow(n: int) -> None:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()

    bench.provider.play(call("slow", {"n": 1}) + call("slow", {"n": 2}) + call("slow", {"n": 3}))
    engine = bench.engine(slow)
    running = asyncio.create_task(engine.run("go"))
    await begun.wait()
    await engine.stop()
    result = await running
    assert [entry.content.split(":")[0] for entry in result.history] == ["stopped"] * 3


async def test_a_stop_waits_for_siblings_so_that_none_acts_after_the_end(bench: Bench) -> None:
    """S4.5a"""
    both, acted = asyncio.Event(), []

    @tool(read_only=True)
    async def sibling(n: int) -> None:
        """Cleans up slowly."""
        if n == 2:
            both.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            acted.append(n)

    bench.provider.play(call("sibling", {"n": 1}) + call("sibling", {"n": 2}))
    engine = bench.engine(sibling)
    running = asyncio.create_task(engine.run("go"))
    await both.wait()
    await engine.stop()
    await running
    assert sorted(acted) == [1, 2]


INVALID = [
    ({}, "`n` is missing"),
    ({"n": "many"}, "`n`: Expected `int`"),
    ({"n": 5, "m": 1}, "`m` is not a parameter"),
    ({"n": 11}, "<= 10"),
    ({"n": "x", "word": 3}, "`word`"),
]


@pytest.mark.parametrize(("arguments", "said"), INVALID, ids=[case[1] for case in INVALID])
async def test_invalid_arguments_name_field_problem_and_type(arguments: dict[str, Any], said: str, bench: Bench) -> None:
    """S6.3"""

    @tool
    async def f(n: Annotated[int, Meta(ge=1, le=10)], word: str = "") -> None:
        """Takes a number."""

    content = await outcome_of(bench, f, arguments)
    assert content.startswith("invalid_arguments")
    assert said in content


async def test_a_number_sent_as_text_is_accepted(bench: Bench) -> None:
    """S6.3"""

    @tool
    async def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    assert await outcome_of(bench, double, {"n": "21"}) == "42"


@pytest.mark.native_calls("in text, only the names of offered tools make a call (S10.2)")
@pytest.mark.parametrize("written", ["get-weather", "Get_Weather", "get_weather"])
async def test_variants_of_a_name_are_accepted(written: str, bench: Bench) -> None:
    """S6.3"""

    @tool
    async def get_weather() -> str:
        """The weather."""
        return "rain"

    bench.provider.play(call(written, {}), say("Rain."))
    result = await bench.engine(get_weather).run("go")
    assert result.history[0].content == "rain"


@pytest.mark.native_calls("in text, only the names of offered tools make a call (S10.2)")
async def test_an_unknown_name_gets_the_nearest_and_the_list(bench: Bench) -> None:
    """S6.3"""
    bench.provider.play(call("gve", {}), say("Sorry."))
    result = await bench.engine(returning(1)).run("go")
    assert "Did you mean give?" in result.history[0].content
    assert "Available: give." in result.history[0].content


async def test_a_tool_that_is_not_available_now_says_not_this_turn(bench: Bench) -> None:
    """S6.3"""

    @tool(available=lambda: "the printer is off")
    async def print_it() -> None:
        """Prints."""

    assert "can't be used in this turn: the printer is off" in await outcome_of(bench, print_it)


async def test_a_tool_that_demands_approval_runs_only_after_a_plain_yes(bench: Bench) -> None:
    """S6: anything but True refuses, an exception included."""
    ran: list[int] = []

    @tool(approval=True)
    async def delete(n: int) -> str:
        """Deletes."""
        ran.append(n)
        return "deleted"

    async def answer(asked: Approval) -> Any:
        assert (asked.tool, asked.channel) == ("delete", "main")
        match asked.arguments:
            case '{"n":1}' | '{"n": 1}':
                return True
            case '{"n":2}' | '{"n": 2}':
                return "yes"
            case _:
                raise RuntimeError("the asker broke")

    bench.provider.play(call("delete", {"n": 1}) + call("delete", {"n": 2}) + call("delete", {"n": 3}), say("Done."))
    result = await bench.engine(delete, host=Host(approve=answer)).run("go")
    assert (ran, bench.seen(result).ran) == ([1], ["delete Succeeded", "delete Failed", "delete Failed"])
    bench.provider.play(call("delete", {"n": 9}), say("No."))
    result = await bench.engine(delete).run("go", channel="nobody to ask")
    assert result.history[0].content.startswith("not_approved")


async def test_an_unanswered_approval_is_refused_by_a_stop(bench: Bench) -> None:
    """S14.2a"""
    asked = asyncio.Event()

    @tool(approval=True)
    async def delete() -> None:
        """Deletes."""

    async def never(approval: Approval) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    bench.provider.play(call("delete", {}))
    engine = bench.engine(delete, host=Host(approve=never))
    running = asyncio.create_task(engine.run("go"))
    await asked.wait()
    await engine.stop()
    assert (await running).end == "stopped_by_user"


class FullDisc(MemoryJournal):
    """A journal that can store nothing durably."""

    async def stored(self, *, durable: bool = False) -> None:
        if durable:
            raise JournalError("no space left")


async def test_a_tool_whose_start_can_not_be_stored_is_not_dispatched(bench: Bench) -> None:
    """S15.1b; a read-only one may run."""
    ran: list[str] = []

    @tool
    async def effect() -> None:
        """Has an effect."""
        ran.append("effect")

    @tool(read_only=True)
    async def look() -> None:
        """Looks."""
        ran.append("look")

    bench.provider.play(call("effect", {}) + call("look", {}), say("Hm."))
    result = await bench.engine(effect, look, journal=FullDisc()).run("go")
    assert (ran, result.end) == (["look"], "completed")
    assert "could not be put on record" in result.history[0].content


async def test_the_start_is_on_record_before_the_dispatch_and_the_end_after(bench: Bench) -> None:
    """S15.1"""
    seen: list[str] = []

    @tool
    async def effect() -> None:
        """Has an effect."""
        seen.extend(type(one.event).__name__ for one in await bench.journal.turn("") if isinstance(one, Recorded))

    bench.provider.play(call("effect", {}), say("Done."))
    result = await bench.engine(effect).run("go")
    assert seen[-1] == "ToolStarted"
    order = [type(one).__name__ for one in await bench.events(result) if isinstance(one, ToolStarted | ToolFinished)]
    assert order == ["ToolStarted", "ToolFinished"]


@pytest.mark.chat_only("other families have a place for pictures in the result")
async def test_a_picture_goes_back_in_a_user_message_after_the_whole_batch(bench: Bench) -> None:
    """S3.10a; and to a model that can't see, as words."""

    @tool
    async def draw(n: int) -> Any:
        """Draws."""
        return ["a drawing", Picture(PNG, "image/png")] if n == 1 else "no drawing"

    for vision in (True, False):
        bench.provider.play(call("draw", {"n": 1}) + call("draw", {"n": 2}), say("Nice."))
        await bench.engine(draw, models=[bench.model(quirks={"vision": vision})]).run("go", channel=f"c{vision}")
        tail = bench.messages()[-3:]
        assert [m["role"] for m in tail] == ["tool", "tool", "user"]
        if vision:
            assert tail[-1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
        else:
            assert "[picture, 1 KB]" in tail[-1]["content"]


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (9000).to_bytes(4, "big") * 2, PNG + b"x" * 6_000_000]
)
async def test_a_bad_picture_becomes_a_note(data: bytes, bench: Bench) -> None:
    """S3.10a: HTML named .png, 0 bytes, too many pixels, too many bytes."""
    content = await outcome_of(bench, returning(Picture(data, "image/png")))
    assert "picture left out" in content


async def test_a_tool_knows_its_channel_and_may_speak_in_it(bench: Bench) -> None:
    @tool
    async def speak(context: ToolContext) -> str:
        """Speaks."""
        await context.say(f"I am in {context.channel} for {context.user}.")
        return "spoke"

    bench.provider.play(say("Wait.") + call("speak", {}), say("There."))
    result = await bench.engine(speak).run("go", channel="c9", user="ann")
    assert [message.text for message in result.deliveries] == ["Wait.", "I am in c9 for ann.", "There."]
    assert "context" not in str(bench.provider.requests[0].body.get("tools") or bench.provider.requests[0].body["messages"])


@pytest.mark.looptime
async def test_a_tool_that_outlives_its_turn_can_do_nothing_more_in_its_name(bench: Bench) -> None:
    """S2.3: no memory, no message after the end."""
    release, late = asyncio.Event(), []

    @tool(timeout=1)
    async def stubborn(context: ToolContext) -> None:
        """Ignores its cancellation, and then wants to act."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        for act in (lambda: context.say("too late"), lambda: context.notes.keep("c", "u", "too late")):
            try:
                await act()
            except RuntimeError:
                late.append("refused")

    bench.provider.play(call("stubborn", {}), say("Well."))
    result = await bench.engine(stubborn).run("go")
    release.set()
    await until(lambda: len(late) == 2)
    assert [message.text for message in result.deliveries] == ["Well."]


@pytest.mark.native_calls("in text, only the names of offered tools make a call (S10.2)")
async def test_in_deliberate_mode_a_tool_is_exposed_by_a_word_and_stays_for_three_turns(bench: Bench) -> None:
    """S6.2"""

    @tool(triggers=("dice", "roll"))
    async def roll() -> int:
        """Rolls."""
        return 4

    engine: Engine = bench.engine(roll, tool_mode="deliberate")
    bench.provider.play(call("roll", {}), say("no"))
    refused = await engine.run("hello")
    assert refused.history[0].content.startswith("not_exposed")
    bench.provider.play(call("roll", {}), say("Four."))
    rolled = await engine.run("roll one")
    assert rolled.history[0].content == "4"
    exposed = []
    for n in range(4):
        bench.provider.play(say(f"turn {n}"))
        await engine.run("and?")
        exposed.append(bool(offered(bench.provider.requests[-1])))
    assert exposed == [True, True, True, False]
    assert any("exposed by the word" in str(event) for event in await bench.events(rolled))
