"""Checks the tools of a Responses request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnkeeper.testing.shapes import as_rows, as_table
from turnkeeper.testing.strict_responses_items import NAME

_HOSTED = (
    *("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "computer", "mcp"),
    *("computer_use_preview", "local_shell", "shell", "apply_patch", "custom", "namespace", "tool_search"),
)
_FIELDS = ("type", "name", "description", "parameters", "strict", "defer_loading", "output_schema")
_DEEPEST = 100  # levels of a schema that are looked at; OpenAI allows 10


def tool_problems(request: dict[str, Any]) -> list[str]:
    """What would be refused in `tools` and `tool_choice`, a sentence each."""
    tools = request.get("tools")
    listed = [] if tools is None else as_rows(tools)
    if listed is None:
        return ["tools: not a list"]
    found: list[str] = []
    names: list[str] = []
    for place, tool in enumerate(listed):
        where = f"tools[{place}]"
        table = as_table(tool)
        if table is None:
            found.append(f"{where}: not an object")
        elif table.get("type") == "function":
            found += _function_problems(table, where, names)
        elif table.get("type") not in _HOSTED:
            found.append(f"{where}: Invalid value: {table.get('type')!r}. No tool has that type")
    return found + _choice_problems(request, names, any_tool=bool(listed))


def _function_problems(tool: dict[str, Any], where: str, names: list[str]) -> list[str]:
    """names: those of the tools before it; its own is added."""
    if "function" in tool:
        return [f"{where}: nested in `function`, as chat completions have it; here name and parameters stand in the tool"]
    found = [f"{where}: Unknown parameter: '{where}.{field}'" for field in tool if field not in _FIELDS]
    name, strict = tool.get("name"), tool.get("strict")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        found.append(f"{where}: the name {name!r} does not match {NAME.pattern}")
    elif name in names:
        found.append(f"{where}: a second tool is called {name!r}")
    else:
        names.append(name)
    if not isinstance(tool.get("description", ""), str | None):
        found.append(f"{where}.description: not a string")
    if strict is not None and not isinstance(strict, bool):
        found.append(f"{where}.strict: neither true nor false")
    parameters = tool.get("parameters")
    schema = as_table(parameters)
    if parameters is not None and (schema is None or schema.get("type") != "object"):
        found.append(f"{where}: the parameters are not a schema of type object")
    elif strict is True and schema is None:
        found.append(f"{where}: a strict tool needs parameters")
    elif strict is True:
        found += _strict_problems(schema, f"{where}.parameters")
    return found


def _strict_problems(schema: object, where: str) -> list[str]:
    """Each object of a strict schema closes its properties, and requires them all."""
    found: list[str] = []
    for place, one in _objects(schema, where, _DEEPEST):
        properties = as_table(one.get("properties")) or {}
        required = as_rows(one.get("required")) or []
        if one.get("additionalProperties") is not False:
            found.append(f"{place}: in a strict tool 'additionalProperties' is required to be supplied and to be false")
        missing = [name for name in properties if name not in required]
        if missing:
            found.append(f"{place}: in a strict tool 'required' must have every property; missing: {', '.join(missing)}")
    return found


def _objects(schema: object, where: str, levels: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas of objects in a schema, itself among them, with their places."""
    table = as_table(schema)
    if table is None or not levels:
        return
    kind = table.get("type")
    if kind == "object" or "object" in (as_rows(kind) or []):
        yield where, table
    for field in ("properties", "$defs", "definitions"):
        for name, inner in (as_table(table.get(field)) or {}).items():
            yield from _objects(inner, f"{where}.{field}.{name}", levels - 1)
    for place, inner in enumerate(as_rows(table.get("anyOf")) or []):
        yield from _objects(inner, f"{where}.anyOf[{place}]", levels - 1)
    yield from _objects(table.get("items"), f"{where}.items", levels - 1)


def _choice_problems(request: dict[str, Any], names: list[str], *, any_tool: bool) -> list[str]:
    choice = request.get("tool_choice")
    table = as_table(choice)
    if choice is None or choice in ("auto", "none"):
        return []
    if not any_tool:
        return ["tool_choice: must be specified with tools"]
    if table is None:
        return [] if choice == "required" else [f"tool_choice: Invalid value: {choice!r}"]
    if "function" in table:
        return ["tool_choice: nested in `function`, as chat completions have it; here the name stands beside the type"]
    if table.get("type") == "function" and table.get("name") not in names:
        return [f"tool_choice: no tool is called {table.get('name')!r}"]
    return []
