"""A model that calls in text goes through the loop as any other (S10.1, S10.4, S10.5)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.harness import Bench
from turnkeeper import ToolDefinitionError, tool
from turnkeeper.testing import call, close, cut, finish, raw, say, think
from turnkeeper.tools.builtin.dice import roll_dice_tool

ROLL = roll_dice_tool(random.Random(1))
TEXT = {"tools": "verbatim"}


@tool(examples=(("Is it raining in Oslo?", {"city": "Oslo"}),))
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"19 degrees in {city}"


async def test_schemas_stand_in_the_prompt_and_calls_and_results_are_told_as_text(bench: Bench) -> None:
    bench.provider.play(say("Let me see.\n") + say('weather(city="Rome")'), say("19 degrees."), say("Bye."))
    engine = bench.engine(weather, models=[bench.model(quirks=TEXT)])
    result = await engine.run("Rome?")
    assert (result.end, result.text) == ("completed", "Let me see.\n\n19 degrees.")
    assert [(entry.call.name, entry.call.text) for entry in result.history] == [("weather", '{"city":"Rome"}')]
    first, second = bench.messages(0), bench.messages(1)
    assert '"name":"weather"' in first[0]["content"]
    assert 'weather(city="Oslo")' in first[0]["content"]
    assert first[-1]["content"].startswith("Rome?\n\n(A tool is called by")
    assert "tools" not in bench.provider.requests[0].body
    assert second[2]["content"] == 'Let me see.\nweather(city="Rome")'
    assert second[3]["content"].startswith('[What weather(city="Rome") returned:]\n19 degrees in Rome')


async def test_the_stable_part_of_the_prompt_never_breaks(bench: Bench) -> None:
    """S3.10b: the nudge stands after the last stable message only."""
    bench.provider.play(say("weather('Rome')"), say("weather('Oslo')"), say("Done."), say("Bye."))
    engine = bench.engine(weather, models=[bench.model(quirks=TEXT)])
    await engine.run("go")
    await engine.run("and?")
    bodies = [request.raw.split(b"\\n\\n(A tool is called by")[0] for request in bench.provider.requests]
    for before, after in zip(bodies, bodies[1:], strict=False):
        assert after.startswith(before)


async def test_both_parts_are_gone_with_another_model_of_the_same_turn(bench: Bench) -> None:
    bench.provider.play(say("weather('Rome')"), say("Half") + cut(), say(" past six."))
    models = [bench.model("gpt-x", quirks=TEXT), bench.model("gpt-y")]
    result = await bench.engine(weather, models=models).run("go")
    assert result.text == "Half past six."
    last = bench.messages()
    assert "A tool is called by" not in str(last)
    assert [m["role"] for m in last][:3] == ["user", "assistant", "tool"]


async def test_a_tiny_model_is_shown_the_tools_examples_as_earlier_turns(bench: Bench) -> None:
    bench.provider.play(say('weather(city="Rome")'), say("19 degrees."))
    result = await bench.engine(weather, models=[bench.model(quirks=TEXT | {"worked_examples": True})]).run("Rome?")
    assert result.text == "19 degrees."
    assert [m["content"] for m in bench.messages(0)][1:] == ["Is it raining in Oslo?", 'weather(city="Oslo")', "Rome?"]
    assert bench.messages(1)[-1]["content"].startswith("The tool says: 19 degrees in Rome")


async def test_leaked_markup_of_a_native_model_is_a_call_and_is_never_shown(bench: Bench) -> None:
    markup = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
    bench.provider.play(say("One moment. ") + say(markup, pieces=9), say("19 degrees."))
    result = await bench.engine(weather).run("Rome?")
    assert (result.text, len(result.history)) == ("One moment.\n\n19 degrees.", 1)


async def test_leaked_markup_in_reasoning_is_a_call(bench: Bench) -> None:
    bench.provider.play(think("I call <function=weather><parameter=city>Rome</parameter></function>"), say("19 degrees."))
    result = await bench.engine(weather).run("Rome?")
    assert (result.text, [entry.call.text for entry in result.history]) == ("19 degrees.", ['{"city":"Rome"}'])
    assert "function" not in " ".join(result.thought_log)


async def test_a_call_that_comes_natively_too_runs_once(bench: Bench) -> None:
    markup = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
    bench.provider.play(say(markup) + call("weather", {"city": "Rome"}), say("19 degrees."))
    result = await bench.engine(weather).run("Rome?")
    assert (len(result.history), result.text) == (1, "19 degrees.")


async def test_broken_markup_is_an_outcome_that_the_model_can_mend(bench: Bench) -> None:
    broken = '<tool_call>{"name": "weather", "arguments": {"city": }}</tool_call>'
    bench.provider.play(
        say(broken), say('<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'), say("19 degrees.")
    )
    result = await bench.engine(weather).run("Rome?")
    assert [type(entry.outcome).__name__ for entry in result.history] == ["Failed", "Succeeded"]
    assert result.text == "19 degrees."


async def test_a_call_in_text_that_the_output_limit_cut_does_not_run(bench: Bench) -> None:
    bench.provider.play(say('<tool_call>{"name": "weather", "arguments": {"city": "Ro') + finish("length"), say("Sorry."))
    result = await bench.engine(weather).run("Rome?")
    assert [type(entry.outcome).__name__ for entry in result.history] == ["Failed"]


async def test_a_call_in_text_of_a_stream_that_broke_does_not_run(bench: Bench) -> None:
    bench.provider.play(say('weather(city="Rome") ') + close(), say("Well."))
    models = [bench.model("gpt-x", quirks=TEXT), bench.model("gpt-y", quirks=TEXT)]
    result = await bench.engine(weather, models=models).run("Rome?")
    assert (result.history, result.text) == ((), "Well.")
    assert "did not run" in bench.messages()[-1]["content"]


async def test_text_without_calls_of_such_a_model_comes_out_whole(bench: Bench) -> None:
    said = "Use `weather` (or not): {1, 2} < 3 [x] ```code```"
    bench.provider.play(say(said, pieces=20))
    result = await bench.engine(weather, models=[bench.model(quirks=TEXT)]).run("go")
    assert result.deliveries[0].text == said


def test_an_example_that_does_not_fit_its_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="the example 'x' has wrong arguments"):

        @tool(examples=(("x", {"town": "Rome"}),))
        async def other(city: str) -> str:
            """Does it."""
            return city


SPLIT = 'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n'


async def test_half_characters_and_nul_break_neither_text_nor_journal(bench: Bench, tmp_path: Path) -> None:
    """A pair that is split over two deltas is one character; a lone half becomes U+FFFD."""
    pieces = ["a\\ud83d", "\\ude00b \\u0000 weather(city='\\ud83d", "\\ude00 \\ud800')"]
    body = "".join(SPLIT % piece for piece in pieces) + "data: [DONE]\n\n"
    bench.provider.play(raw(body.encode()), say("Well."), say("Bye."))
    engine = bench.engine(weather, models=[bench.model(quirks=TEXT)], journal=f"sqlite:///{tmp_path / 'turns.db'}")
    result = await engine.run("go")
    assert result.text == "a\U0001f600b \x00\n\nWell."
    assert [entry.content for entry in result.history] == ["19 degrees in \U0001f600 \ufffd"]
    assert (await engine.run("and?")).text == "Bye."


async def test_a_tool_whose_name_is_a_common_word_is_not_called_by_talk(bench: Bench) -> None:
    @tool
    async def search(query: str) -> str:
        """Searches."""
        return f"found {query}"

    said = "I will search (quickly). `search(query='x')` is the call, and search('y') another; then search('z')."
    bench.provider.play(say(said), say("search('tides')"), say("Found."))
    engine = bench.engine(search, models=[bench.model(quirks=TEXT)])
    assert (await engine.run("go")).text == said
    result = await engine.run("do it")
    assert ([entry.content for entry in result.history], result.text) == (["found tides"], "Found.")
