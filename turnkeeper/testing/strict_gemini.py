# What a strict server refuses in a Gemini request.
#
# Rule 1: pure. A request and the rules in, sentences out.
# Rule 2: the strictest of the real servers counts.
# Rule 3: a sentence names the place as it is typed (`contents[3].parts[0]`), and what would be right.

"""Checks Gemini requests as a strict server would (S2.5a, S3.10, S4.6)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.shapes import as_rows, as_table
from turnkeeper.testing.strict import Rules

_KNOWN = {
    "contents", "systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config", "safetySettings",
    "generationConfig", "cachedContent", "labels", "store",
}  # fmt: skip
_GENERATION = {
    "maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "thinkingConfig", "responseMimeType", "responseSchema",
    "responseJsonSchema", "candidateCount", "seed", "presencePenalty", "frequencyPenalty", "responseModalities",
    "mediaResolution", "responseLogprobs", "logprobs", "speechConfig",
}  # fmt: skip
_DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")
_SCHEMA = {
    "type", "format", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties",
    "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "minimum", "maximum", "items",
    "title", "default",
}  # fmt: skip
_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def problems(request: SeenRequest, rules: Rules) -> list[str]:
    """What a strict server would refuse, a sentence each; none if it would take the request."""
    body = as_table(request.body)
    if body is None:
        return ["the body is not a JSON object"]
    model = unquote(urlsplit(request.path).path.partition("/models/")[2].rpartition(":")[0])
    found = [
        f'Invalid JSON payload received. Unknown name "{name}"' for name in body if name not in _KNOWN or name in rules.refuses
    ]
    if rules.models and model not in rules.models:
        found.append(f"models/{model} is not found; there is {', '.join(rules.models)}")
    found += _generation(body) + _instruction(body) + _tools(body)
    contents = [as_table(content) for content in as_rows(body.get("contents")) or []]
    known = [content for content in contents if content is not None]
    if not known or len(known) < len(contents):
        return [*found, "contents: a list with at least one content is needed"]
    for place, content in enumerate(known):
        found += _content(content, f"contents[{place}]")
    return found + _order(known, rules) + _pairing(known) + _signatures(known, model)


def _generation(body: dict[str, Any]) -> list[str]:
    config = as_table(body.get("generationConfig")) or {}
    found = [f"Unknown name \"{name}\" at 'generation_config'" for name in config if name not in _GENERATION]
    temperature = config.get("temperature")
    if temperature is not None and not (isinstance(temperature, int | float) and 0 <= temperature <= 2):
        found.append("generationConfig.temperature: must be 0 to 2")
    most = config.get("maxOutputTokens")
    if most is not None and (not isinstance(most, int) or most < 1):
        found.append("generationConfig.maxOutputTokens: must be positive")
    return found


def _instruction(body: dict[str, Any]) -> list[str]:
    if "systemInstruction" not in body:
        return []
    parts = as_rows((as_table(body["systemInstruction"]) or {}).get("parts")) or []
    texts = [(as_table(part) or {}).get("text") for part in parts]
    return (
        [] if texts and all(isinstance(text, str) and text.strip() for text in texts) else ["systemInstruction: parts of text"]
    )


def _tools(body: dict[str, Any]) -> list[str]:
    found: list[str] = []
    names: set[str] = set()
    for tool in as_rows(body.get("tools")) or []:
        for declared in as_rows((as_table(tool) or {}).get("functionDeclarations")) or []:
            table = as_table(declared) or {}
            name = str(table.get("name", ""))
            if not _NAME.fullmatch(name):
                found.append(f"Invalid function name {name!r}: it must match {_NAME.pattern}")
            if name in names:
                found.append(f"Duplicate function declaration found: {name}")
            names.add(name)
            parameters = as_table(table.get("parameters"))
            if parameters is not None:
                found += _schema(parameters, f"{name}.parameters")
                if not parameters.get("properties"):
                    found.append(f"{name}.parameters.properties: should be non-empty for OBJECT type")
    return found


def _schema(schema: dict[str, Any], where: str) -> list[str]:
    found = [f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}'" for name in schema if name not in _SCHEMA]
    kind = schema.get("type")
    if "anyOf" not in schema and (not isinstance(kind, str) or kind.lower() not in _TYPES):
        found.append(f"{where}.type: {kind!r} is not one of {', '.join(_TYPES)}")
    if isinstance(kind, str) and kind.lower() == "array" and as_table(schema.get("items")) is None:
        found.append(f"{where}.items: missing field")
    if "enum" in schema and not all(isinstance(one, str) and one for one in as_rows(schema["enum"]) or [None]):
        found.append(f"{where}.enum: only texts that are not empty")
    properties = as_table(schema.get("properties")) or {}
    for name in as_rows(schema.get("required")) or []:
        if name not in properties:
            found.append(f"{where}.required: property is not defined: {name}")
    for name, inner in properties.items():
        found += _schema(as_table(inner) or {}, f"{where}.{name}")
    for inner in [schema.get("items"), *(as_rows(schema.get("anyOf")) or [])]:
        found += _schema(table, f"{where}[]") if (table := as_table(inner)) is not None else []
    return found


def _content(content: dict[str, Any], where: str) -> list[str]:
    if content.get("role") not in ("user", "model"):
        return [f"{where}: Please use a valid role: user, model."]
    parts = as_rows(content.get("parts"))
    if not parts:
        return [f"{where}.parts: must not be empty"]
    found: list[str] = []
    for place, part in enumerate(parts):
        found += _part(as_table(part) or {}, content["role"], f"{where}.parts[{place}]")
    return found


def _part(part: dict[str, Any], role: str, where: str) -> list[str]:
    data = [name for name in _DATA if name in part]
    if len(data) != 1:
        return [f"{where}: required oneof field 'data' must have one initialized field"]
    match data[0]:
        case "text":
            signed = bool(part.get("thoughtSignature"))
            return [] if isinstance(part["text"], str) and (part["text"] or signed) else [f"{where}.text: must not be empty"]
        case "functionCall":
            call = as_table(part["functionCall"]) or {}
            found = [] if role == "model" else [f"{where}: function calls belong to the model"]
            if not _NAME.fullmatch(str(call.get("name", ""))):
                found.append(f"{where}.functionCall.name: not valid")
            return (
                found if isinstance(call.get("args", {}), dict) else [*found, f"{where}.functionCall.args: must be an object"]
            )
        case "functionResponse":
            answer = as_table(part["functionResponse"]) or {}
            found = [] if role == "user" else [f"{where}: function responses belong to the user"]
            return found if isinstance(answer.get("response"), dict) else [*found, f"{where}: response must be an object"]
        case "inlineData":
            inline = as_table(part["inlineData"]) or {}
            try:
                base64.b64decode(str(inline.get("data", "")), validate=True)
            except (binascii.Error, ValueError):
                return [f"{where}.inlineData.data: Base64 decoding failed"]
            return [] if inline.get("mimeType") else [f"{where}.inlineData.mimeType: must be set"]
        case _:
            return []


def _order(contents: list[dict[str, Any]], rules: Rules) -> list[str]:
    found: list[str] = []
    if contents[0].get("role") != "user":
        found.append("contents: the first must be of the user")
    if contents[-1].get("role") == "model" and not _of(contents[-1], "functionCall") and not rules.prefill:
        found.append("contents: the last must be of the user; this model does not go on after its own")
    for place in range(1, len(contents)):
        if rules.alternate and contents[place].get("role") == contents[place - 1].get("role"):
            found.append(f"contents[{place}]: Please ensure that multiturn requests alternate between user and model.")
    return found


def _pairing(contents: list[dict[str, Any]]) -> list[str]:
    """Each batch of calls is answered in the very next content, in order, and by nothing else (S4.6)."""
    found: list[str] = []
    for place, content in enumerate(contents):
        calls, answers = _of(content, "functionCall"), _of(content, "functionResponse")
        where = f"contents[{place}]"
        if calls:
            before = contents[place - 1] if place else {}
            if before.get("role") != "user":
                found.append(
                    f"{where}: Please ensure that function call turn comes immediately after a user turn or after a "
                    "function response turn."
                )
            given = _of(contents[place + 1], "functionResponse") if place + 1 < len(contents) else []
            if len(given) != len(calls):
                found.append(
                    f"{where}: Please ensure that the number of function response parts is equal to the number of "
                    f"function call parts of the function call turn: {len(given)} to {len(calls)}"
                )
            elif [one.get("name") for one in given] != [one.get("name") for one in calls]:
                found.append(f"{where}: the responses have other names than the calls, or another order")
            elif [one.get("id") for one in given] != [one.get("id") for one in calls]:
                found.append(f"{where}: the responses have other ids than the calls")
        if answers:
            if place == 0 or not _of(contents[place - 1], "functionCall"):
                found.append(
                    f"{where}: Please ensure that function response turn comes immediately after a function call turn."
                )
            if len(answers) != len(as_rows(content.get("parts")) or []):
                found.append(f"{where}: function responses stand alone in their content")
    return found


def _signatures(contents: list[dict[str, Any]], model: str) -> list[str]:
    """Since Gemini 3: in the present turn the first call of each step carries its signature."""
    if "gemini-3" not in model:
        return []
    begin = max((place for place, one in enumerate(contents) if one.get("role") == "user" and _says(one)), default=0)
    found: list[str] = []
    for place in range(begin, len(contents)):
        parts = [as_table(part) or {} for part in as_rows(contents[place].get("parts")) or []]
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not first.get("thoughtSignature"):
            found.append(f"contents[{place}]: Function call is missing a thought_signature in functionCall parts.")
    return found


def _says(content: dict[str, Any]) -> bool:
    return not _of(content, "functionResponse")


def _of(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    parts = [as_table(part) or {} for part in as_rows(content.get("parts")) or []]
    return [as_table(part[name]) or {} for part in parts if name in part]
