# Arguments that come as values with JSON paths (`$.places[0].name`), a piece at a time.
#
# A string grows: pieces for the same path are joined. Paths are the model's output, so their depth and the gaps that they
# leave in lists are bounded; a path that can't be followed makes the arguments invalid, which the model can mend.

"""Assembles the streamed arguments of a Gemini call."""

from __future__ import annotations

import re
from typing import Any, cast

from turnkeeper.providers.counts import text_of

_STEP = re.compile(r"\.([^.\[\]'\"]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_DEEPEST = 64
_WIDEST_GAP = 64
_VALUES = ("numberValue", "boolValue", "structValue", "listValue")


class PathArguments:
    """The arguments of one call as far as they have come.

    value: the object so far. problem: a sentence for the model, "" while all paths could be followed.
    """

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.problem = ""
        self._growing: dict[str, list[str]] = {}  # the pieces of each string, joined when they are asked for

    def add(self, piece: dict[str, Any]) -> str:
        """Takes one piece. Returns its text, for those who show arguments while they stream."""
        path = text_of(piece.get("jsonPath"))
        if "stringValue" in piece:
            text = text_of(piece["stringValue"])
            self._growing.setdefault(path, []).append(text)
            if len(self._growing[path]) == 1:
                self._put(path, "")
            return text
        named = next((name for name in _VALUES if name in piece), None)
        value: object = None if named is None else piece[named]
        self._put(path, value)
        return "" if value is None else str(value)

    def close(self) -> dict[str, Any]:
        """The whole object."""
        for path, pieces in self._growing.items():
            self._put(path, "".join(pieces))
        self._growing.clear()
        return self.value

    def _put(self, path: str, value: object) -> None:
        steps = _steps(path)
        if steps is None:
            self.problem = f"The arguments have the path {path[:80]!r}, which names no place in an object."
            return
        at: object = self.value
        try:
            for step, following in zip(steps, [*steps[1:], None], strict=True):
                last = following is None
                at = _enter(at, step, value if last else [] if isinstance(following, int) else {}, replace=last)
        except LookupError:
            self.problem = f"The arguments have the path {path[:80]!r}, which contradicts another one."


def _enter(at: object, step: str | int, empty: object, *, replace: bool) -> object:
    """What stands at `step` of `at`, made to be `empty` where nothing stands there, or where it is to be replaced.

    Raises LookupError where there is no such place.
    """
    if isinstance(at, dict) and isinstance(step, str):
        table = cast(dict[str, Any], at)
        if replace:
            table[step] = empty
        return table.setdefault(step, empty)
    if isinstance(at, list) and isinstance(step, int) and step <= len(items := cast(list[Any], at)) + _WIDEST_GAP:
        items += [None] * (step + 1 - len(items))
        if replace or items[step] is None:
            items[step] = empty
        return items[step]
    raise LookupError


def _steps(path: str) -> list[str | int] | None:
    """The steps of a path below `$`; None where it is no such path."""
    if not path.startswith("$"):
        return None
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None or len(steps) >= _DEEPEST:
            return None
        name, number, single, double = found.groups()
        quoted = single if single is not None else double
        steps.append(int(number) if number is not None else name or re.sub(r"\\(.)", r"\1", quoted or ""))
        position = found.end()
    return steps if steps and isinstance(steps[0], str) else None
