"""Looking into decoded JSON of unknown shape."""

from __future__ import annotations

import json
from typing import Any, cast


def as_table(value: object) -> dict[str, Any] | None:
    """The value if it is a JSON object."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def as_rows(value: object) -> list[Any] | None:
    """The value if it is a JSON array."""
    return cast(list[Any], value) if isinstance(value, list) else None


def spells_object(text: object) -> bool:
    """Whether the value is a string that holds a JSON object, as the arguments of a call do."""
    if not isinstance(text, str):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
