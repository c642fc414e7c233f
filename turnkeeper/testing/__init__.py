"""For tests of bots and engines: a model provider that answers by script.

`ScriptedProvider` is a real HTTP server on loopback. It runs in your own event loop, so it also works under virtual time
(looptime). A script is made of verbs joined by `+`, one answer a request:

    from turnkeeper.testing import ScriptedProvider, call, cut, say

    async with ScriptedProvider(models=("gpt-x",)) as provider:
        provider.play(
            call("roll_dice", {"sides": 6}),            # the first request: the model calls a tool
            say("You rolled a 4, and ") + cut(),        # the second: the connection breaks in the middle
            say("here is what it means."),              # the third
        )
        engine = Engine(models=[Model("openai-chat", "gpt-x", base_url=provider.base_url, keys=["sk-test"])], tools=[roll_dice])
        result = await engine.run("roll")
        assert [request.problems for request in provider.requests] == [[], [], []]

Saying: `say`, `think`, `refuse`, `call`, `usage`, `finish`, `done`, `error`, `event`; arranged by `together`, `interleave`.
Time: `wait`, `keepalive`. Bytes: `raw`, `framing`, `whole`. Trouble: `fail`, `cut`, `close`, `hang`, `never_start`.

An answer that does not break off ends properly: with the right finish reason, the token counts if the request asked for
them, and the end mark. Each request is checked as a strict server would check it (`strict.problems`); what is wrong stands
in `SeenRequest.problems`, and is answered 400 unless the provider was made with `strict=False`.

To speak another API: `ScriptedProvider(family=ANTHROPIC)` from `turnkeeper.testing.anthropic`, `OPENAI_RESPONSES` from
`openai_responses`, `GEMINI` from `gemini`, `NOVELAI` from `novelai`; each says what the verbs do there. To add one: `wire.py`.
"""

from turnkeeper.testing.scripted_provider import ScriptedProvider
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.steps import Answer
from turnkeeper.testing.strict import Rules
from turnkeeper.testing.verbs import (
    call,
    close,
    cut,
    done,
    error,
    event,
    fail,
    finish,
    framing,
    hang,
    interleave,
    keepalive,
    never_start,
    raw,
    refuse,
    say,
    think,
    together,
    usage,
    wait,
    whole,
)

__all__ = [
    "Answer",
    "Rules",
    "ScriptedProvider",
    "SeenRequest",
    "call",
    "close",
    "cut",
    "done",
    "error",
    "event",
    "fail",
    "finish",
    "framing",
    "hang",
    "interleave",
    "keepalive",
    "never_start",
    "raw",
    "refuse",
    "say",
    "think",
    "together",
    "usage",
    "wait",
    "whole",
]
