"""The tools of an engine, found by the name that a model wrote."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from msgspec import Struct

from turnkeeper.errors import ToolDefinitionError
from turnkeeper.tools.tool import Tool

_LONGEST = 128  # of a name that is looked at


class Missing(Struct, frozen=True):
    """There is no tool of that name. nearest: the one that may have been meant (S6.3)."""

    nearest: str | None
    available: tuple[str, ...]


class Toolbox:
    """Tools in a fixed order. Raises ToolDefinitionError where two have the same name, or something is no tool."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self.tools = tuple(tools)
        self._by_name: dict[str, Tool] = {}
        self._by_plain_name: dict[str, list[Tool]] = {}
        for tool in self.tools:
            if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]  # users' mistakes are not typed
                raise ToolDefinitionError(f"{getattr(tool, '__name__', tool)!r} is no tool; put `@tool` above its definition.")
            if tool.name in self._by_name:
                raise ToolDefinitionError(f"There are two tools named {tool.name!r}; rename one with `@tool(name=...)`.")
            self._by_name[tool.name] = tool
            self._by_plain_name.setdefault(_plain(tool.name), []).append(tool)
        self.specs = tuple(tool.spec for tool in self.tools)

    def find(self, name: str) -> Tool | Missing:
        """The tool of this name; `-` for `_` and other case are accepted where that is unique (S6.3)."""
        found = self._by_name.get(name)
        if found is not None:
            return found
        name = name.strip()[:_LONGEST]
        alike = self._by_plain_name.get(_plain(name), [])
        if len(alike) == 1:
            return alike[0]
        near = difflib.get_close_matches(_plain(name), self._by_plain_name, n=1)
        return Missing(self._by_plain_name[near[0]][0].name if near else None, tuple(self._by_name))


def _plain(name: str) -> str:
    return name.replace("-", "_").casefold()
