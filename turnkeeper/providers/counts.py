"""Reading counts out of what servers report."""

from __future__ import annotations

from typing import Any, cast


def count(table: dict[str, Any], name: str) -> int | None:
    """The count of that name; None where there is none, or where it is negative or no number (cases.md, "Usage")."""
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def table_of(value: object) -> dict[str, Any]:
    """The value, where it is an object; else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The value, where it is a list; else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def text_of(value: object) -> str:
    """The value, where it is text; else ""."""
    return value if isinstance(value, str) else ""
