"""The smallest engine: one model, one tool. Needs a server on 127.0.0.1:8080, or another base_url and a key."""

import asyncio

from turnkeeper import Engine, Model, tool


@tool(read_only=True)
async def weather(city: str) -> dict[str, object]:
    """The weather in a city.

    Args:
        city: The city's name.
    """
    return {"city": city, "degrees": 19}


async def main() -> None:
    """Asks once and prints what came of it."""
    model = Model("openai-chat", "local-model", base_url="http://127.0.0.1:8080/v1")
    async with Engine([model], tools=[weather]) as engine:
        result = await engine.run("Do I need a coat in Oslo?")
        print(result.end, result.text, [notice.detail for notice in result.notices])


if __name__ == "__main__":
    asyncio.run(main())
