# What a strict Gemini server refuses in tools, and in the schemas of their parameters.
#
# `parameters` is no JSON Schema: the server reads it into a message of fixed fields, and a name that it does not know fails
# the whole request. `parametersJsonSchema` takes the rest.

"""Checks the tools of Gemini requests, and schemas."""

from __future__ import annotations

import re
from typing import Any, cast

from turnkeeper.testing.gemini_words import items, table, unknown_names

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
"""The name of a function."""

_DEEPEST = 32  # schemas in schemas
_TOOLS = {
    "functionDeclarations",
    "googleSearch",
    "googleSearchRetrieval",
    "codeExecution",
    "urlContext",
    "fileSearch",
    "computerUse",
    "googleMaps",
    "mcpServers",
}
_DECLARATION = {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"}
_TEXTS = {"title", "description", "pattern", "format"}
_SIZES = {"maxItems", "minItems", "minProperties", "maxProperties", "minLength", "maxLength"}
_NUMBERS = {"minimum", "maximum"}
_KEYWORDS = {
    *("type", "nullable", "enum", "items", "properties", "required", "example", "anyOf", "propertyOrdering"),
    *_TEXTS,
    *_SIZES,
    *_NUMBERS,
}
_TYPES = {"string", "number", "integer", "boolean", "array", "object"}
_ONLY_FOR = {"properties": "object", "required": "object", "items": "array", "enum": "string"}
_TEXT_FORMATS = ("enum", "date-time")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")


def tool_problems(request: dict[str, Any]) -> list[str]:
    """What is wrong with `tools` and `toolConfig` of a request (a `table`)."""
    found: list[str] = []
    names: set[str] = set()
    listed = items(request.get("tools", []))
    if listed is None:
        return ["tools: not a list"]
    for place, tool in enumerate(listed):
        where = f"tools[{place}]"
        own = table(tool)
        if own is None:
            found.append(f"{where}: not an object")
            continue
        found += unknown_names(tool, _TOOLS, where)
        declared = own.get("functionDeclarations")
        if not own or ("functionDeclarations" in own and len(own) == 1 and not declared):
            found.append(f"{where}.tool_type: required one_of 'tool_type' must have one initialized field")
        elif declared is not None:
            found += _declarations_problems(declared, f"{where}.functionDeclarations", names)
    return found + _config_problems(request.get("toolConfig"), names)


def schema_problems(schema: object, where: str, depth: int = 0) -> list[str]:
    """What is wrong with a schema of the server's own kind."""
    own = table(schema)
    if own is None:
        return [f"{where}: a schema is an object"]
    if depth > _DEEPEST:
        return [f"{where}: the schema is nested too deeply"]
    kind, found = _type_problems(own, where)
    found = unknown_names(schema, _KEYWORDS, where) + found
    found += _misplaced_problems(own, kind, where) + _value_problems(own, where)
    if kind == "array" and "items" not in own:
        found.append(f"{where}.items: missing field")
    if "items" in own:
        found += schema_problems(own["items"], f"{where}.items", depth + 1)
    if "anyOf" in own:
        choices = items(own["anyOf"])
        if not choices:
            found.append(f"{where}.anyOf: not a list with at least one schema")
        for place, choice in enumerate(choices or []):
            found += schema_problems(choice, f"{where}.anyOf[{place}]", depth + 1)
    if "properties" in own:
        properties = own["properties"]
        if not isinstance(properties, dict):
            return [*found, f"{where}.properties: not an object"]
        for name, inner in cast(dict[str, object], properties).items():
            found += schema_problems(inner, f"{where}.properties.{name}", depth + 1)
    return found


def _declarations_problems(declared: object, where: str, names: set[str]) -> list[str]:
    """names: those declared so far; what is declared here is added."""
    listed = items(declared)
    if listed is None:
        return [f"{where}: not a list"]
    found: list[str] = []
    for place, declaration in enumerate(listed):
        at = f"{where}[{place}]"
        own = table(declaration)
        if own is None:
            found.append(f"{at}: not an object")
            continue
        found += unknown_names(declaration, _DECLARATION, at)
        name = own.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            found.append(f"{at}.name: Invalid function name {name!r}: it does not match {NAME.pattern}")
        elif name in names:
            found.append(f"{at}.name: Duplicate function declaration found: {name}")
        else:
            names.add(name)
        if not isinstance(own.get("description", ""), str):
            found.append(f"{at}.description: not a text")
        found += _parameters_problems(own, at)
    return found


def _parameters_problems(declaration: dict[str, Any], where: str) -> list[str]:
    if "parameters" in declaration and "parametersJsonSchema" in declaration:
        return [f"{where}: parameters and parametersJsonSchema exclude each other"]
    if "parametersJsonSchema" in declaration:
        free = declaration["parametersJsonSchema"]
        is_object = isinstance(free, dict) and cast(dict[str, object], free).get("type") == "object"
        return [] if is_object else [f"{where}.parametersJsonSchema: not a schema of type object"]
    if "parameters" not in declaration:
        return []
    at = f"{where}.parameters"
    own = table(declaration["parameters"])
    found = schema_problems(declaration["parameters"], at)
    if own is None:
        return found
    if str(own.get("type")).lower() != "object":
        found.append(f"{at}.type: parameters must be of OBJECT type")
    elif not own.get("properties"):
        found.append(f"{at}.properties: should be non-empty for OBJECT type")
    return found


def _type_problems(schema: dict[str, Any], where: str) -> tuple[str, list[str]]:
    """The type in lower case, "" where there is none, and what is wrong with it."""
    kind = schema.get("type")
    if kind is None:
        return "", [] if "anyOf" in schema else [f"{where}.type: must be specified"]
    if isinstance(kind, list):
        said = f"Invalid JSON payload received. Unknown name \"type\" at '{where}'"
        return "", [f"{said}: Proto field is not repeating, cannot start list."]
    if not isinstance(kind, str) or kind.lower() not in _TYPES or kind not in (kind.lower(), kind.upper()):
        return "", [f"Invalid value at '{where}.type': {kind!r}; known are {', '.join(sorted(_TYPES))}"]
    return kind.lower(), []


def _misplaced_problems(schema: dict[str, Any], kind: str, where: str) -> list[str]:
    found: list[str] = []
    for keyword, only in _ONLY_FOR.items():
        if keyword in schema and kind != only:
            found.append(f"{where}.{keyword}: only allowed for {only.upper()} type")
    known = _names_of(schema.get("properties"))
    for keyword in ("required", "propertyOrdering"):
        if keyword not in schema:
            continue
        listed = items(schema[keyword])
        if listed is None:
            found.append(f"{where}.{keyword}: not a list")
        for place, name in enumerate(listed or []):
            if not isinstance(name, str) or name not in known:
                found.append(f"{where}.{keyword}[{place}]: property is not defined: {name!r}")
    return found


def _value_problems(schema: dict[str, Any], where: str) -> list[str]:
    found = [f"{where}.{name}: not a text" for name in _TEXTS & schema.keys() if not isinstance(schema[name], str)]
    found += [f"{where}.{name}: not a whole number" for name in _SIZES & schema.keys() if not _is_size(schema[name])]
    found += [f"{where}.{name}: not a number" for name in _NUMBERS & schema.keys() if not _is_number(schema[name])]
    if not isinstance(schema.get("nullable", False), bool):
        found.append(f"{where}.nullable: neither true nor false")
    if "enum" in schema:
        values = items(schema["enum"])
        if not values:
            found.append(f"{where}.enum: not a list with at least one value")
        for place, value in enumerate(values or []):
            if not isinstance(value, str):
                found.append(f"Invalid value at '{where}.enum[{place}]' (TYPE_STRING), {value!r}")
            elif not value:
                found.append(f"{where}.enum[{place}]: cannot be empty")
    if str(schema.get("type")).lower() == "string" and schema.get("format", "enum") not in _TEXT_FORMATS:
        found.append(f"{where}.format: only 'enum' and 'date-time' are supported for STRING type")
    return sorted(found)


def _config_problems(config: object, declared: set[str]) -> list[str]:
    if config is None:
        return []
    own = table(config)
    if own is None:
        return ["toolConfig: not an object"]
    found = unknown_names(
        config, {"functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"}, "toolConfig"
    )
    calling = table(own.get("functionCallingConfig", {}))
    where = "toolConfig.functionCallingConfig"
    if calling is None:
        return [*found, f"{where}: not an object"]
    found += unknown_names(own.get("functionCallingConfig"), {"mode", "allowedFunctionNames"}, where)
    mode = calling.get("mode", "AUTO")
    if mode not in _MODES:
        found.append(f"{where}.mode: {mode!r} is unknown; known are {', '.join(_MODES)}")
    elif calling and mode != "NONE" and not declared:
        found.append("Function calling config is set without function_declarations.")
    allowed = items(calling.get("allowedFunctionNames", []))
    if allowed is None:
        return [*found, f"{where}.allowedFunctionNames: not a list"]
    if allowed and mode not in ("ANY", "VALIDATED"):
        found.append(f"{where}.allowedFunctionNames: only allowed when mode is ANY")
    strangers = [name for name in allowed if not isinstance(name, str) or name not in declared]
    return found + [f"{where}.allowedFunctionNames: {name!r} is not declared" for name in strangers]


def _names_of(properties: object) -> set[str]:
    return set(cast(dict[str, object], properties)) if isinstance(properties, dict) else set()


def _is_size(value: object) -> bool:
    """A whole number, or one spelled as a text, as the server's 64-bit fields take it."""
    if isinstance(value, str):
        return value.isascii() and value.isdigit()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
