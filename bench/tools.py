"""The tools that both sides run: as good as nothing, so that only what is around them is measured."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.json import encode

ToolFunction: TypeAlias = Callable[..., Awaitable[str]]


def page_text(topic: str, page: int) -> str:
    """What `look_up` returns."""
    return f"Page {page} on {topic}: nothing that was not known."


def saved(path: str, content: str) -> str:
    """What `write_file` returns."""
    return f"{path}: {len(content)} characters."


def tool_functions(stamps: list[float]) -> list[ToolFunction]:
    """The tools. Each call appends the CPU seconds that the process has used so far to `stamps`."""

    async def look_up(topic: str, page: int) -> str:
        """Look up a page.

        Args:
            topic: what about
            page: which page
        """
        stamps.append(time.process_time())
        return page_text(topic, page)

    async def write_file(path: str, content: str) -> str:
        """Write a file.

        Args:
            path: where
            content: what
        """
        stamps.append(time.process_time())
        return saved(path, content)

    return [look_up, write_file]


def _described(name: str, description: str, **fields: tuple[str, str]) -> dict[str, object]:
    properties = {key: {"type": kind, "description": text} for key, (kind, text) in fields.items()}
    parameters = {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS_JSON = encode(
    [
        _described("look_up", "Look up a page.", topic=("string", "what about"), page=("integer", "which page")),
        _described("write_file", "Write a file.", path=("string", "where"), content=("string", "what")),
    ]
)
"""The tools as the reference tells the model of them: as many bytes as the engine sends."""
