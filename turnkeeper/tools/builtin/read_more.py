"""`read_more`: the rest of a result that was cut (S6.5)."""

from __future__ import annotations

from turnkeeper.tools.context import ToolContext
from turnkeeper.tools.tool import Tool, tool

_PAGE_CHARS = 12_000


def read_more_tool() -> Tool:
    """The tool."""

    @tool(read_only=True)
    async def read_more(handle: str, context: ToolContext, offset: int = 0) -> str:
        """Reads on in a tool's result that was cut.

        Args:
            handle: The handle that the cut result names.
            offset: The character to begin at.
        """
        text = context.results.whole(context.channel, handle)
        if text is None:
            raise ValueError(f"there is no cut result {handle[:40]!r} any more; run its tool again")
        begin = max(0, offset)
        page = text[begin : begin + _PAGE_CHARS]
        end = begin + len(page)
        rest = f'\n[{len(text) - end:,} characters more: read_more(handle="{handle}", offset={end})]' if end < len(text) else ""
        return (page or "(that is the end)") + rest

    return read_more
