"""How to test a bot: a real HTTP server plays the model, cuts and all. Run it: python examples/test_a_bot.py"""

import asyncio

from turnkeeper import Engine, Model, tool
from turnkeeper.testing import ScriptedProvider, call, cut, say


@tool(read_only=True)
async def roll_dice(sides: int = 6) -> int:
    """Rolls a die."""
    return min(4, sides)


async def main() -> None:
    """A tool call, then a reply that breaks off and is carried on by the second model."""
    async with ScriptedProvider(models=("first", "second")) as provider:
        provider.play(
            call("roll_dice", {"sides": 6}),
            say("You rolled a 4, and ") + cut(),
            say("that is not bad at all."),
        )
        models = [
            Model("openai-chat", name, base_url=provider.base_url, keys=["sk-test-12345678"]) for name in ("first", "second")
        ]
        async with Engine(models, tools=[roll_dice]) as engine:
            result = await engine.run("roll")
        assert result.text == "You rolled a 4, and that is not bad at all.", result.text
        assert [request.problems for request in provider.requests] == [[], [], []]
        print(result.end, "-", result.text)


if __name__ == "__main__":
    asyncio.run(main())
