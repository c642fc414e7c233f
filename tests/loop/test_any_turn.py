"""Whatever models, tools and people do: what holds for every turn (S2.3, S4.5, S4.6, S5.3a, S8.1). Scripts are random."""

from __future__ import annotations

import asyncio
import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import Bench, Watching
from turnkeeper import ContextItem, Engine, Host, RestartWith, Succeeded, tool
from turnkeeper.journal.events import Ended, MessageDelivered, PassEnded, PassStarted, ToolFinished
from turnkeeper.testing import Answer, ScriptedProvider, call, close, cut, done, error, fail, finish, say, think

WORDS = ["tide", "sea", "moon", "wave", "salt", "gull", "rope", "sand", "shell", "storm", "pier", "kelp"]


@tool(read_only=True)
async def look(n: int) -> str:
    """Looks."""
    await asyncio.sleep(0)
    return f"seen {n}"


@tool
async def act(n: int) -> str:
    """Acts, or fails."""
    await asyncio.sleep(0)
    if n % 3 == 0:
        raise RuntimeError("no")
    return f"done {n}"


@tool(silent=True)
async def note(text: str) -> str:
    """Notes."""
    return "noted"


@tool
async def enrich() -> Succeeded:
    """Finds context."""
    return Succeeded(None, then=RestartWith(ContextItem("It is high tide.")))


def sentence(seed: int) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choices(WORDS, k=chance.randint(3, 12))).capitalize() + f" {seed}. "


TEXT = st.integers(0, 10_000).map(lambda seed: say(sentence(seed)))
CALL = st.one_of(
    st.integers(0, 9).map(lambda n: call("look", {"n": n})),
    st.integers(0, 9).map(lambda n: call("act", {"n": n})),
    st.just(call("note", {"text": "x"})),
    st.just(call("enrich", {})),
    st.sampled_from([call("nope", {}), call("look", "{'n'}"), call("look", {"n": "x"}), call("", {})]),
)
END: st.SearchStrategy[Answer | None] = st.sampled_from(
    [None, None, None, cut(), close(), finish("length"), error("boom"), finish("stop")]
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([done(), fail(500), fail(429), close(), think("hm"), say(" \n ")]))
    parts: list[Answer] = draw(st.lists(st.one_of(TEXT, CALL), min_size=1, max_size=4))
    answer = parts[0]
    for part in parts[1:]:
        answer = answer + part
    ending = draw(END)
    return answer + ending if ending is not None else answer


@given(st.lists(answers(), min_size=1, max_size=7), st.one_of(st.none(), st.integers(0, 150)), st.booleans())
@settings(max_examples=120)
def test_what_holds_for_every_turn(script: list[Answer], stop_after: int | None, second_model: bool) -> None:
    asyncio.run(play(script, stop_after, second_model))


async def play(script: list[Answer], stop_after: int | None, second_model: bool) -> None:
    async with ScriptedProvider(models=("gpt-x", "gpt-y")) as provider:
        bench = Bench(provider)
        models = [bench.model("gpt-x"), bench.model("gpt-y")] if second_model else [bench.model("gpt-x")]
        late = [0.0]  # an hour, once the turn is over: then no key rests
        host = Host(random=random.Random(7), clock=lambda: time.time() + late[0])
        engine = bench.engine(look, act, note, enrich, models=models, host=host, max_passes=12)
        provider.play(*script)
        provider.default = say("Enough said.")
        sink = Watching()
        running = asyncio.create_task(engine.run("go", sink=sink))
        if stop_after is not None:
            for _ in range(stop_after):
                await asyncio.sleep(0)
            await engine.stop()
        result = await running
        late[0] = 3600
        await check(bench, engine, result, sink)
        await bench.aclose()


async def check(bench: Bench, engine: Engine, result: object, sink: Watching) -> None:
    from turnkeeper import TurnResult

    assert isinstance(result, TurnResult)
    story = await bench.timeline(result)
    events = await bench.events(result)
    # one end, last, and the same everywhere
    assert [one.end for one in events if isinstance(one, Ended)] == [result.end], story
    assert isinstance(events[-1], Ended), story
    assert result.end in (result.attempts[-1].end if result.attempts else "", "stopped_by_user"), story
    # every pass that began has ended and is in the ledger, and the server saw as many requests at most
    started = [one for one in events if isinstance(one, PassStarted)]
    assert len(started) == len([one for one in events if isinstance(one, PassEnded)]) == len(result.usage), story
    assert len(bench.provider.requests) <= len(started), story
    # each call that the model asked for has exactly one outcome
    asked = [call_.id for one in events if isinstance(one, PassEnded) for call_ in one.asked]
    finished = [one.call_id for one in events if isinstance(one, ToolFinished)]
    assert sorted(asked) == sorted(finished), story
    assert len(set(asked)) == len(asked), story
    # what people saw, what is on record and what the result says are one
    delivered = "".join(one.message.text for one in events if isinstance(one, MessageDelivered))
    assert plain(delivered) == plain(result.text) == plain(sink.text), story
    # the channel is free, and the next request is valid and tells what people saw
    bench.provider.default = say("Next.")
    while bench.provider.unplayed:
        await bench.engine(models=[bench.model("gpt-x")]).run("drain")  # each with a fresh key, for a limit would rest it
    await engine.run("and now?")
    assert [request.problems for request in bench.provider.requests if request.problems] == [], story
    told = "".join(m["content"] or "" for m in bench.messages() if m["role"] == "assistant")
    assert plain(told) == plain(result.text), story


def plain(text: str) -> str:
    return "".join(text.split())
