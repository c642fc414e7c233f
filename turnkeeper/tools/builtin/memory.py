"""`remember` and `recall`: the short-term memory of a channel."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from turnkeeper.tools.context import ToolContext
from turnkeeper.tools.tool import Tool, tool

_LONGEST = 1000
_FOUND = 20


def memory_tools() -> list[Tool]:
    """Both tools."""

    @tool(silent=True, idempotent=True)
    async def remember(text: Annotated[str, Meta(min_length=1, max_length=_LONGEST)], context: ToolContext) -> str:
        """Remembers a fact for later in this channel, such as a name or a preference.

        Args:
            text: The fact, in one sentence.
        """
        await context.notes.keep(context.channel, context.user, text.strip())
        return "remembered"

    @tool(read_only=True)
    async def recall(context: ToolContext, query: str = "") -> list[str]:
        """Finds what was remembered in this channel.

        Args:
            query: Words to look for; empty for all.
        """
        notes = await context.notes.find(context.channel, query[:_LONGEST], _FOUND)
        return [f"{note.text} (from {note.user})" for note in notes]

    return [remember, recall]
