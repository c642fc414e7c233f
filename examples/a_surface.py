"""A surface of your own: where a reply goes as it grows. This one prints it with a time in front of each message."""

import asyncio
import time

from turnkeeper import Engine, Expression
from turnkeeper.delivery.sink import Outgoing
from turnkeeper.testing import ScriptedProvider, say
from turnkeeper.types.turn import HistoryEntry, Notice


class Clocked:
    """The methods of a sink; `turnkeeper/delivery/sink.py` says what each may do."""

    def grow(self, text: str) -> None:
        """More text of the open message: a surface that can edit would show it."""

    def post(self, message: Outgoing) -> str:
        """A message is complete."""
        print(time.strftime("%H:%M:%S"), message.text)
        return message.nonce

    def express(self, expression: Expression, nonce: str) -> str:
        """A sticker, an emoji or a sprite, here in words."""
        print(expression)
        return nonce

    def notice(self, notice: Notice) -> str:
        """Something we say, not the model."""
        print("!", notice.kind, notice.detail)
        return ""

    def tool_started(self, name: str, arguments: str) -> None:
        """A tool begins."""

    def tool_finished(self, entry: HistoryEntry, took_s: float) -> None:
        """A tool ended."""
        print("-", entry.call.name, entry.content)


async def main() -> None:
    """Plays one reply."""
    from turnkeeper import Model

    async with ScriptedProvider(models=("m",)) as provider:
        provider.play(say("The tide comes in twice a day."))
        async with Engine([Model("openai-chat", "m", base_url=provider.base_url)]) as engine:
            await engine.run("why tides?", sink=Clocked())


if __name__ == "__main__":
    asyncio.run(main())
