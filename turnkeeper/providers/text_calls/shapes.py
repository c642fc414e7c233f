# From what a model wrote as a call to its arguments (S10.2).
#
# Models write calls as JSON, as Python, or as keys and values between tags. What can't be read as arguments of the tool is no
# call; what is a call with wrong arguments is one all the same: validation tells the model what to mend.

"""Reads the arguments of calls that are written in text."""

from __future__ import annotations

import ast
import json
import re
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.json import encode

from turnkeeper.providers.counts import list_of, table_of, text_of
from turnkeeper.providers.identifiers import fit_tool_name
from turnkeeper.providers.text_calls.source import NotACallError
from turnkeeper.types.calls import Arguments, Invalid, Parsed
from turnkeeper.types.messages import ToolSpec

_EXPRESSION = re.compile(r"[\d\s.+\-*/%()^,eE_]+")
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}


class Shape(Struct, frozen=True):
    """What is known of a tool's parameters. kinds: each parameter's JSON type, "" for any, in the schema's order."""

    kinds: dict[str, str]
    required: tuple[str, ...]


class Found(Struct, frozen=True):
    """A call in the text. text: its arguments as JSON, or as they were written where they are none."""

    name: str
    arguments: Arguments
    text: str = ""


def shapes_of(tools: tuple[ToolSpec, ...]) -> dict[str, Shape]:
    """The shapes of tools, by the names that models read."""
    return {fit_tool_name(tool.name): _shape(tool) for tool in tools}


def _shape(tool: ToolSpec) -> Shape:
    schema = table_of(msgspec.json.decode(tool.parameters))
    kinds = {name: text_of(table_of(inner).get("type")) for name, inner in table_of(schema.get("properties")).items()}
    return Shape(kinds, tuple(name for name in list_of(schema.get("required")) if isinstance(name, str)))


def found(name: str, value: dict[str, Any]) -> Found:
    """A call with these arguments."""
    return Found(name, Parsed(value), encode(value).decode())


def broken(name: str, text: str, problem: str) -> Found:
    """A call whose arguments can't be read: an outcome that the model can mend (S10.5)."""
    return Found(name, Invalid(problem), text)


def read_parentheses(name: str, text: str, shape: Shape) -> Found:
    """The call `name(text)`. Raises NotACallError where `text` is no list of arguments."""
    stripped = text.strip()
    if not stripped:
        if shape.required:  # a mere mention
            raise NotACallError
        return found(name, {})
    value = decode_object(stripped)
    if value is not None:
        return found(name, value)
    try:
        tree = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        tree = None
    if not isinstance(tree, ast.Call):
        return _expression(name, stripped, shape)
    try:
        keywords = {str(one.arg): _literal(one.value) for one in tree.keywords if one.arg is not None}
        if len(keywords) < len(tree.keywords):
            raise NotACallError
        places = [_literal(one) for one in tree.args]
    except NotACallError:
        return _expression(name, stripped, shape)
    return _by_place(name, places, keywords, shape)


def _by_place(name: str, places: list[Any], keywords: dict[str, Any], shape: Shape) -> Found:
    """Positional arguments, by the schema's order."""
    names = list(shape.kinds)
    if len(places) == 1 and not keywords:
        (only,) = places
        if isinstance(only, dict) and set(cast(dict[str, Any], only)) <= set(names):
            return found(name, cast(dict[str, Any], only))
        lone = shape.required if len(shape.required) == 1 else names if len(names) == 1 else ()
        if not lone:
            raise NotACallError
        return found(name, {lone[0]: _as_kind(only, shape.kinds.get(lone[0], ""))})
    if len(places) > len(names):
        return broken(name, "", f"{name} takes {len(names)} arguments, and was given {len(places)}.")
    return found(name, dict(zip(names, places, strict=False)) | keywords)


def _expression(name: str, text: str, shape: Shape) -> Found:
    """`calculate(1234*77)`: what stands there is meant as text, where the one argument that is needed is a text."""
    lone = shape.required if len(shape.required) == 1 else ()
    if lone and shape.kinds.get(lone[0]) == "string" and _EXPRESSION.fullmatch(text):
        return found(name, {lone[0]: text})
    raise NotACallError


def _as_kind(value: Any, kind: str) -> Any:
    return str(value) if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool) else value


def _literal(node: ast.expr) -> Any:
    """The value of a literal, in Python's words or JSON's. Raises NotACallError for anything else."""
    match node:
        case ast.Constant(value=value) if value is None or isinstance(value, str | int | float | bool):
            return value
        case ast.Name(id=word) if word.lower() in _CONSTANTS:
            return _CONSTANTS[word.lower()]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, int | float):
            return -value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_literal(part) for part in parts]
        case ast.Dict(keys=keys, values=values):
            named = [_literal(key) if key is not None else None for key in keys]
            if not all(isinstance(key, str) for key in named):
                raise NotACallError
            return dict(zip(cast(list[str], named), [_literal(value) for value in values], strict=True))
        case _:
            raise NotACallError


def decode_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None where it is none."""
    if not text.startswith("{"):
        return None
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def read_object(value: dict[str, Any], tools: dict[str, Shape]) -> list[Found]:
    """The calls that a JSON object says; none where it names no offered tool."""
    if isinstance(value.get("tool_calls"), list):
        return [call for one in list_of(value["tool_calls"]) for call in read_object(table_of(one), tools)]
    inner = table_of(value.get("function"))
    name = next((one for key in ("name", "tool", "tool_name", "function") if (one := text_of(value.get(key)))), "")
    name = (name or text_of(inner.get("name"))).removeprefix("functions.")
    if name not in tools:
        return []
    given: Any = None
    for key in ("arguments", "parameters", "args", "input", "tool_input"):
        given = value.get(key, inner.get(key))
        if given is not None:
            break
    else:  # the arguments stand beside the name
        beside = {key: one for key, one in value.items() if key in tools[name].kinds}
        given = beside if set(value) <= {"name", "tool", "tool_name", "function", "type", *beside} else None
    if isinstance(given, str):
        decoded = decode_object(given.strip()) if given.strip() else {}
        if decoded is None:
            return [broken(name, given, "The arguments are not valid JSON; write one JSON object.")]
        given = decoded
    if given is not None and not isinstance(given, dict):
        return [broken(name, encode(given).decode(), "The arguments must be one JSON object.")]
    return [found(name, cast(dict[str, Any], given or {}))]


def read_pairs(name: str, pairs: list[tuple[str, str]], shape: Shape, *, typed: dict[str, bool] | None = None) -> Found:
    """A call from keys and values as they stood between tags. typed: for keys of which it is said whether they are text."""
    value: dict[str, Any] = {}
    for key, text in pairs:
        is_text = (typed or {}).get(key, shape.kinds.get(key) == "string")
        value[key] = text if is_text else _json_or_text(text)
    return found(name, value)


def _json_or_text(text: str) -> Any:
    word = text.strip()
    if word.lower() in _CONSTANTS:
        return _CONSTANTS[word.lower()]
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return text
