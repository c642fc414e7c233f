"""What a refusal is worth: once more at once, in another manner, with nobody blamed (S3.4b, S3.10a; cases.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Bench
from turnkeeper import tool
from turnkeeper.testing import call, cut, fail, say
from turnkeeper.types.messages import Picture

NO_PREFILL = fail(
    400, message="This model does not support assistant message prefill. The conversation must end with a user message."
)
BAD_PICTURE = fail(400, message="messages.2.content.0.image: Could not process image")
TOO_LONG = fail(400, message="This model's maximum context length is 8192 tokens.", code="context_length_exceeded")
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6300010000050001")


@tool
async def draw() -> Any:
    """Draws."""
    return ["a drawing", Picture(PNG, "image/png")]


async def test_a_refused_prefill_is_asked_for_by_instruction_at_once_and_no_try_is_counted(bench: Bench) -> None:
    bench.strict_errors_expected = True
    bench.provider.strict = False
    bench.provider.play(say("Half a loaf is") + cut(), NO_PREFILL, say(" better than none."))
    models = [bench.model("gpt-x"), bench.model("gpt-y", quirks={"prefill": True})]
    result = await bench.engine(models=models).run("go")
    assert (result.end, result.text) == ("completed", "Half a loaf is better than none.")
    assert [(one.model, one.end) for one in result.attempts] == [("gpt-x", "error"), ("gpt-y", "completed")]
    roles = [[m["role"] for m in bench.messages(request)] for request in range(3)]
    assert roles == [["user"], ["user", "assistant"], ["user", "assistant", "user"]]


async def test_a_refused_prefill_is_remembered(bench: Bench) -> None:
    bench.strict_errors_expected = True
    bench.provider.strict = False
    models = [bench.model("gpt-x"), bench.model("gpt-y", quirks={"prefill": True})]
    engine = bench.engine(models=models)
    bench.provider.play(say("Half a loaf is") + cut(), NO_PREFILL, say(" better than none."))
    await engine.run("go", channel="a")
    bench.provider.play(say("Half a loaf is") + cut(), say(" better than none."))
    result = await engine.run("go", channel="b")
    assert (result.text, len(bench.provider.requests)) == ("Half a loaf is better than none.", 5)
    assert [m["role"] for m in bench.messages()] == ["user", "assistant", "user"]


async def test_a_refused_picture_is_left_out_once_more_and_for_good(bench: Bench) -> None:
    """S3.10a: the next "hello" is answered, and nobody is blamed."""
    engine = bench.engine(draw, models=[bench.model(quirks={"vision": True})])
    bench.provider.play(call("draw", {}), BAD_PICTURE, say("Nice."))
    result = await engine.run("draw")
    assert (result.end, result.text, len(result.attempts)) == ("completed", "Nice.", 1)
    assert "image_url" in str(bench.messages(1))
    assert "image_url" not in str(bench.messages(2))
    assert "[picture, 1 KB]" in str(bench.messages(2))
    bench.provider.play(say("Hello."))
    assert (await engine.run("hello")).text == "Hello."
    assert "image_url" not in str(bench.messages())


async def test_a_picture_that_is_refused_again_without_pictures_ends_the_turn(bench: Bench) -> None:
    engine = bench.engine(draw, models=[bench.model(quirks={"vision": True})])
    bench.provider.play(call("draw", {}), BAD_PICTURE, BAD_PICTURE)
    result = await engine.run("draw")
    assert (result.end, len(bench.provider.requests)) == ("error", 3)


async def test_a_conversation_that_is_too_long_is_trimmed_and_tried_once_more_on_the_same_key(bench: Bench) -> None:
    engine = bench.engine()
    for number in range(5):
        bench.provider.play(say(f"Answer {number}."))
        await engine.run(f"question {number}")
    bench.provider.play(TOO_LONG, say("Short."))
    result = await engine.run("and now?")
    assert (result.end, result.text, len(result.attempts)) == ("completed", "Short.", 1)
    assert len(bench.messages(-2)) == 11
    assert [m["content"] for m in bench.messages()] == [
        "question 2",
        "Answer 2.",
        "question 3",
        "Answer 3.",
        "question 4",
        "Answer 4.",
        "and now?",
    ]


@pytest.mark.parametrize("keys", [["sk-0123456789abcdef", "sk-fedcba9876543210"]])
async def test_what_stays_too_long_after_the_trim_goes_to_the_next_key_or_ends(bench: Bench, keys: list[str]) -> None:
    engine = bench.engine(models=[bench.model(keys=keys[:1])])
    bench.provider.play(say("One."))
    await engine.run("one")
    bench.provider.play(TOO_LONG, TOO_LONG)
    result = await engine.run("two")
    assert (result.end, len(bench.provider.requests)) == ("error", 3)
    assert result.fault is not None
    assert result.fault.kind == "context_length"
