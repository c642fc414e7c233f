# From a function's signature to what a model is told, and from what a model sends to what the function takes.
#
# The parameters become a msgspec struct; its JSON Schema, with references put in place (some servers refuse `$ref`), is the
# tool's. Arguments are converted strictly, then leniently ("3" for 3); when both fail, field by field, so that the model
# hears of every problem at once (S6.3).

"""Signatures, schemas and validation."""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnkeeper.errors import ToolDefinitionError

_MOST_PROBLEMS = 20
_NOISE = ("title",)


class Parameter(Struct, frozen=True):
    """One parameter of a tool. required: it has no default. model: its class, where that validates itself (pydantic)."""

    name: str
    type: Any
    required: bool
    default: Any = None
    model: Any = None


class Signature(Struct, frozen=True):
    """A tool's parameters, the struct made of them, and the name of the parameter that takes the context, if any."""

    parameters: tuple[Parameter, ...]
    struct: type[Struct]
    context: str | None


def read_signature(function: Callable[..., Any], name: str, context_type: type) -> Signature:
    """The parameters of `function`.

    name: the tool's. context_type: a parameter annotated with it is for us, not for the model.
    Raises ToolDefinitionError that names the parameter and the mend.
    """
    hints = _hints(function, name)
    parameters: list[Parameter] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        where = f"The tool {name!r}: its parameter `{parameter.name}`"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolDefinitionError(f"{where} can't be told to a model; use plain named parameters.")
        if parameter.name not in hints:
            raise ToolDefinitionError(f"{where} has no type; write one, such as `{parameter.name}: str`.")
        hint = hints[parameter.name]
        if hint is context_type:
            context = parameter.name
            continue
        required = parameter.default is parameter.empty
        model = hint if _validates_itself(hint) else None
        parameters.append(
            Parameter(
                parameter.name, dict[str, Any] if model else hint, required, None if required else parameter.default, model
            )
        )
    return Signature(tuple(parameters), _struct(parameters, name), context)


def schema_of(signature: Signature, name: str, descriptions: dict[str, str]) -> dict[str, Any]:
    """The JSON Schema of the parameters, without references. descriptions: of parameters, by name."""
    try:
        (schema,), definitions = msgspec.json.schema_components([signature.struct], ref_template="#/$defs/{name}")
    except (TypeError, ValueError) as problem:
        raise ToolDefinitionError(f"The tool {name!r} has a parameter whose type can't be described: {problem}.") from None
    whole = cast(dict[str, Any], _inline(schema, definitions, (), name))
    properties: dict[str, Any] = whole.get("properties", {})
    for parameter in signature.parameters:
        if parameter.model is not None:
            own = cast(dict[str, Any], parameter.model.model_json_schema())
            properties[parameter.name] = _inline(own, own.get("$defs", {}), (), name)
        if parameter.name in descriptions:
            properties[parameter.name] = properties[parameter.name] | {"description": descriptions[parameter.name]}
    required = [parameter.name for parameter in signature.parameters if parameter.required]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def bind(signature: Signature, value: dict[str, Any]) -> dict[str, Any] | list[str]:
    """The keyword arguments that `value` gives, or the problems, a line each: field, problem, expected type (S6.3)."""
    known = [parameter.name for parameter in signature.parameters]
    problems = [_unknown(name, known) for name in value if name not in known][:_MOST_PROBLEMS]
    bound: dict[str, Any] = {}
    for parameter in signature.parameters:
        if parameter.name not in value:
            if parameter.required:
                problems.append(f"`{parameter.name}` is missing: {_expected(parameter)} is needed")
            continue
        converted = _convert(parameter, value[parameter.name])
        if isinstance(converted, _Problem):
            problems.append(converted.line)
        else:
            bound[parameter.name] = converted
    return problems[:_MOST_PROBLEMS] if problems else bound


class _Problem(Struct, frozen=True):
    line: str


def _convert(parameter: Parameter, value: object) -> Any:
    try:
        if parameter.model is not None:
            return parameter.model.model_validate(value)
        try:
            return msgspec.convert(value, parameter.type)
        except msgspec.ValidationError:
            return msgspec.convert(value, parameter.type, strict=False)
    except RecursionError:
        return _Problem(f"`{parameter.name}` is nested too deep")
    except Exception as problem:  # a model's own validator may raise anything: all of it is a problem with the value
        said = " ".join(str(problem).split())[:200]
        return _Problem(f"`{parameter.name}`: {said}; {_expected(parameter)} is needed")


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name[:64], known, n=1)
    meant = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}" if known else "it takes no arguments"
    return f"`{name[:64]}` is not a parameter; {meant}"


def _expected(parameter: Parameter) -> str:
    kind: object = parameter.model or parameter.type
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    named = getattr(kind, "__name__", None) if not typing.get_args(kind) else None
    plain = {
        "str": "text",
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "list": "a list",
        "dict": "an object",
    }
    return plain.get(named or "", named or str(kind).replace("typing.", ""))


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise ToolDefinitionError(
            f"The tool {name!r} has a type that is not known where it is defined ({problem}); import it in its module."
        ) from None


def _struct(parameters: list[Parameter], name: str) -> type[Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        if parameter.required:
            fields.append((parameter.name, parameter.type))
        else:
            fields.append((parameter.name, parameter.type, _default(parameter.default)))
    try:
        return msgspec.defstruct("Arguments", fields, kw_only=True)
    except (TypeError, ValueError) as problem:
        raise ToolDefinitionError(f"The tool {name!r} can't be described: {problem}.") from None


def _default(value: object) -> object:
    """A default that a struct takes: a mutable one is made anew for each use."""
    if isinstance(value, list | dict | set):
        kept = cast(Any, value)
        return msgspec.field(default_factory=kept.copy)
    return value


def _validates_itself(hint: object) -> bool:
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def _inline(schema: Any, definitions: dict[str, Any], open_names: tuple[str, ...], name: str) -> Any:
    """The schema with what `$ref` points to in its place."""
    if isinstance(schema, list):
        return [_inline(one, definitions, open_names, name) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    table = cast(dict[str, Any], schema)
    if "$ref" in table:
        target = str(table["$ref"]).rsplit("/", 1)[-1]
        if target in open_names:
            raise ToolDefinitionError(f"The tool {name!r} has a parameter whose type {target} contains itself.")
        rest = {key: value for key, value in table.items() if key != "$ref"}
        return _inline(definitions[target], definitions, (*open_names, target), name) | rest
    return {
        key: {field: _inline(one, definitions, open_names, name) for field, one in value.items()}
        if key == "properties"
        else _inline(value, definitions, open_names, name)
        for key, value in table.items()
        if key not in ("$defs", *_NOISE) or (key in _NOISE and not isinstance(value, str))
    }
