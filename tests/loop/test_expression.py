"""Expressions: stickers, emoji, sprites (S6.6)."""

from __future__ import annotations

from tests.harness import Bench, Watching
from turnkeeper import Expression, Succeeded, tool
from turnkeeper.testing import call, done, fail, say


@tool
async def sticker(name: str) -> Succeeded:
    """Sends a sticker."""
    return Succeeded("prepared", expression=Expression("sticker", name, f"id-{name}"))


async def test_it_is_sent_after_the_text_before_it_and_before_the_text_after_it(bench: Bench) -> None:
    """S6.6: at once; the outcome replaces the result, and the model sees the name, not the id."""
    bench.provider.play(say("Look.") + call("sticker", {"name": "wave"}), say("There."))
    sink = Watching()
    result = await bench.engine(sticker).run("go", sink=sink)
    shown = [line for line in sink.log if line.startswith(("post", "express"))]
    assert shown == ["post Look.", "express id-wave", "post There."]
    assert [message.text for message in result.deliveries] == ["Look.", "[sent sticker wave]", "There."]
    assert result.history[0].content == "[sent sticker wave]"
    assert "id-wave" not in bench.provider.requests[-1].raw.decode()


async def test_one_a_turn_and_the_same_again_is_answered_already_sent(bench: Bench) -> None:
    """S6.6"""
    bench.provider.play(
        call("sticker", {"name": "wave"}), call("sticker", {"name": "wave"}), call("sticker", {"name": "hug"}), say("Done."), call("sticker", {"name": "hug"}), done()
    )  # fmt: skip
    sink = Watching()
    engine = bench.engine(sticker)
    result = await engine.run("go", sink=sink)
    assert ["already sent" in entry.content or "was not sent" in entry.content for entry in result.history] == [
        False,
        True,
        True,
    ]
    await engine.run("another", sink=sink)
    assert [line for line in sink.log if line.startswith("express")] == ["express id-wave", "express id-hug"]


async def test_silence_after_it_is_the_end_of_the_reply(bench: Bench) -> None:
    """S9.2: an expression was delivered."""
    bench.provider.play(call("sticker", {"name": "wave"}), done())
    assert (await bench.engine(sticker).run("go")).end == "completed"


async def test_an_unconfirmed_send_is_never_risked_twice(bench: Bench) -> None:
    """S6.6"""
    bench.provider.play(call("sticker", {"name": "wave"}), call("sticker", {"name": "wave"}), say("Well."))
    sink = Watching()
    sink.lose_expressions = True
    result = await bench.engine(sticker).run("go", sink=sink)
    assert sink.log.count("express id-wave") == 1
    assert result.history[0].content.startswith("outcome_unknown")
    assert not result.deliveries[0].confirmed


async def test_it_is_not_removed_by_a_later_failure(bench: Bench) -> None:
    """S6.6"""
    bench.provider.play(call("sticker", {"name": "wave"}), fail(500))
    result = await bench.engine(sticker).run("go")
    assert (result.end, [message.text for message in result.deliveries]) == ("error", ["[sent sticker wave]"])
