"""NovelAI: a text model whose service answers in fragments (S12.5)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import Bench
from tests.providers.reading import events_of, native_of
from tests.providers.reading import read as read_family
from turnkeeper import Model
from turnkeeper.providers.report import fold
from turnkeeper.testing import Answer, ScriptedProvider, cut, error, fail, say
from turnkeeper.testing.novelai import NOVELAI

FAMILY = "novelai"
NAME = "llama-3-erato-v1"


def tokens(*texts: str, final: bool = True) -> bytes:
    events = [{"token": text, "ptr": place, "final": final and place == len(texts) - 1} for place, text in enumerate(texts)]
    return "".join(f"event:newToken\nid:{place}\ndata:{json.dumps(one)}\n\n" for place, one in enumerate(events)).encode()


def pieces(text: str, number: int) -> Answer:
    """A text in exactly so many tokens."""
    cuts = [len(text) * place // number for place in range(number + 1)]
    return say(text, pieces=[text[a:b] for a, b in zip(cuts, cuts[1:], strict=False)])


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with ScriptedProvider(models=(NAME,), family=NOVELAI) as server:
        yield server


@pytest.fixture
async def bench(provider: ScriptedProvider) -> AsyncIterator[Bench]:
    made = Bench(provider)
    yield made
    await made.aclose()


def model(provider: ScriptedProvider, **options: int) -> Model:
    return Model(FAMILY, NAME, base_url=provider.base_url, keys=["pst-0123456789abcdef"], **options)


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (["Hello", " there."], "Hello there."),
        (["Hello.", "\n", "User", ": and", " you?"], "Hello."),
        (["Hello.\nUse", "ful.\n"], "Hello.\nUseful."),
        (["One.\n***", "\nTwo."], "One."),
        (["One *** two."], "One *** two."),
        (["[ Place: a tavern; Time: night ]\n", "Hello."], "Hello."),
        (["Hello.\n[ Mood", ": calm ]"], "Hello."),
        (["See [1] and [ Note: this ] here."], "See [1] and [ Note: this ] here."),
        (["[not a scene]\nHello."], "[not a scene]\nHello."),
        (["Us"], "Us"),
        (["User: me"], ""),
    ],
)
def test_the_reply_ends_where_somebody_else_speaks_and_scene_details_are_no_part_of_it(texts: list[str], text: str) -> None:
    assert read_family(FAMILY, tokens(*texts))["text"] == text


def test_scene_details_are_metadata() -> None:
    body = tokens("[ Place: a tavern; Time: night ]\n", "Hello.\n[ Mood:  calm ]")
    assert native_of(FAMILY, body) == {"scene": ["Place: a tavern; Time: night", "Mood: calm"]}


@given(text=st.text(alphabet="ab [:]\nUser*.", max_size=60), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_what_is_read_never_depends_on_the_tokens(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(one, len(text)) for one in cuts), len(text)]
    parts = [text[a:b] for a, b in zip(places, places[1:], strict=False)]
    assert fold(events_of(FAMILY, [tokens(*parts)]))["text"] == fold(events_of(FAMILY, [tokens(text)]))["text"]


async def test_fragments_are_continued_until_the_model_stops_by_itself(bench: Bench, provider: ScriptedProvider) -> None:
    provider.play(pieces("a" * 149 + "b", 150), pieces("c" * 150, 150), say("The end.", pieces=3))
    result = await bench.engine(models=[model(provider)]).run("tell")
    assert result.text == "a" * 149 + "b" + "c" * 150 + "The end."
    assert [request.problems for request in provider.requests] == [[], [], []]
    inputs = [request.body["input"] for request in provider.requests]
    assert inputs[1] == inputs[0] + "a" * 149 + "b"
    assert inputs[2] == inputs[1] + "c" * 150
    assert len(result.usage) == 1


async def test_all_fragments_share_one_output_budget(bench: Bench, provider: ScriptedProvider) -> None:
    provider.play(pieces("a" * 150, 150), pieces("b" * 50, 50))
    engine = bench.engine(models=[model(provider, max_output_tokens=200)], max_length_continuations=0)
    result = await engine.run("tell")
    assert (result.text, [notice.kind for notice in result.notices]) == ("a" * 150 + "b" * 50, ["length_limit"])
    assert [request.body["parameters"]["max_length"] for request in provider.requests] == [150, 50]


async def test_where_the_person_is_given_words_the_reply_is_over_and_nothing_more_is_asked_for(
    bench: Bench, provider: ScriptedProvider
) -> None:
    provider.play(pieces("Hello.\nUser: " + "x" * 137, 150))
    result = await bench.engine(models=[model(provider)]).run("hi")
    assert (result.text, len(provider.requests)) == ("Hello.", 1)


async def test_a_later_fragment_that_fails_leaves_what_came_standing(bench: Bench, provider: ScriptedProvider) -> None:
    provider.play(pieces("a" * 150, 150), fail(500, message="overworked"))
    result = await bench.engine(models=[model(provider)]).run("tell")
    assert result.end == "error"
    assert result.deliveries[0].text == "a" * 150


@pytest.mark.parametrize("trouble", [say("Half") + cut(), say("Half") + error("boom")])
async def test_a_fragment_that_breaks_off_is_a_fault_and_is_carried_on_by_the_next_model(
    bench: Bench, provider: ScriptedProvider, trouble: Answer
) -> None:
    provider.play(trouble, say(" a loaf."))
    result = await bench.engine(models=[model(provider), model(provider)]).run("tell")
    assert (result.end, result.text) == ("completed", "Half a loaf.")
    assert provider.requests[1].body["input"].endswith("Assistant: Half")


async def test_the_conversation_is_one_text(bench: Bench, provider: ScriptedProvider) -> None:
    provider.play(say("Hello."), say("Well."))
    engine = bench.engine(models=[model(provider)])
    await engine.run("hi")
    await engine.run("how are you?")
    assert provider.requests[1].body["input"] == "User: hi\nAssistant: Hello.\nUser: how are you?\nAssistant:"


async def test_scene_details_stand_in_the_thought_log(bench: Bench, provider: ScriptedProvider) -> None:
    provider.play(say("[ Place: inn ]\nHello."))
    result = await bench.engine(models=[model(provider)]).run("hi")
    assert result.text == "Hello."
    assert "NovelAI details: Place: inn" in "\n".join(result.thought_log)
