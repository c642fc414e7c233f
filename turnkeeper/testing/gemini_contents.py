# What a strict Gemini server refuses in contents: their parts, their turns, calls and responses, and signatures.
#
# The server knows calls by place, not by id: the responses stand in the very next content, as many as the calls, in order.

"""Checks the contents of Gemini requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnkeeper.testing.gemini_tools import NAME
from turnkeeper.testing.gemini_words import is_base64, items, table, unknown_names

_DATA = {
    "text": None,
    "inlineData": {"mimeType", "data", "displayName"},
    "functionCall": {"id", "name", "args"},
    "functionResponse": {"id", "name", "response", "parts", "willContinue", "scheduling"},
    "fileData": {"mimeType", "fileUri", "displayName"},
    "executableCode": {"id", "language", "code"},
    "codeExecutionResult": {"id", "outcome", "output"},
}
"""The kinds of part, and the fields of each."""

_BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
_ROLES = ("user", "model")
_AFTER = "immediately after a user turn or after a function response turn."


def content_problems(content: object, where: str) -> list[str]:
    """What is wrong with one content by itself."""
    own = table(content)
    if own is None:
        return [f"{where}: not an object"]
    found = unknown_names(content, {"role", "parts"}, where)
    role = own.get("role")
    if role not in _ROLES:
        found.append(f"{where}.role: Please use a valid role: user, model.")
    parts = items(own.get("parts"))
    if not parts:
        return [*found, f"{where}.parts: contents.parts must not be empty."]
    for place, part in enumerate(parts):
        at = f"{where}.parts[{place}]"
        found += part_problems(part, at)
        kinds = (table(part) or {}).keys()
        if role == "user" and "functionCall" in kinds:
            found.append(f"{at}: only the model calls functions")
        if role == "model" and "functionResponse" in kinds:
            found.append(f"{at}: function responses come from the user")
    return found


def part_problems(part: object, where: str) -> list[str]:
    """What is wrong with one part by itself."""
    own = table(part)
    if own is None:
        return [f"{where}: not an object"]
    found = unknown_names(part, _DATA.keys() | _BESIDE, where)
    if not isinstance(own.get("thought", False), bool):
        found.append(f"{where}.thought: neither true nor false")
    if "thoughtSignature" in own and not is_base64(own["thoughtSignature"]):
        found.append(f"Invalid value at '{where}.thoughtSignature' (TYPE_BYTES), Base64 decoding failed")
    kinds = [name for name in own if name in _DATA]
    if not kinds:
        return [*found, f"{where}.data: required oneof field 'data' must have one initialized field"]
    if len(kinds) > 1:
        return [*found, f"{where}.data: oneof field 'data' is already set: {' and '.join(kinds)} in one part"]
    return found + _data_problems(kinds[0], own, where)


def turn_problems(contents: list[dict[str, Any]], *, alternate: bool, prefill: bool) -> list[str]:
    """What is wrong with the order of contents (each a `table`), calls and responses included."""
    found: list[str] = []
    if contents[0].get("role") == "model":
        found.append("contents[0]: Please ensure that the conversation begins with a user turn.")
    for place, content in enumerate(contents):
        where = f"contents[{place}]"
        before = contents[place - 1] if place else {}
        if alternate and place and content.get("role") == before.get("role"):
            found.append(f"{where}: Please ensure that multiturn requests alternate between user and model.")
        calls = _of_kind(content, "functionCall")
        if calls and before.get("role") != "user":
            found.append(f"{where}: Please ensure that function call turn comes {_AFTER}")
        if calls:
            answers = _of_kind(contents[place + 1], "functionResponse") if place + 1 < len(contents) else []
            found += _pair_problems(calls, answers, f"contents[{place + 1}]")
        if _of_kind(content, "functionResponse") and not _of_kind(before, "functionCall"):
            found.append(f"{where}: Please ensure that function response turn comes immediately after a function call turn.")
    last = contents[-1]
    if last.get("role") == "model" and not prefill and not _of_kind(last, "functionCall"):
        found.append("this model does not support prefill: the conversation must end with a user turn")
    return found


def signature_problems(contents: list[dict[str, Any]]) -> list[str]:
    """Calls without a signature in the current turn: since the last text of the user. Only the first of a content needs it."""
    begins = 0
    for place, content in enumerate(contents):
        if content.get("role") == "user" and _of_kind(content, "text") and not _of_kind(content, "functionResponse"):
            begins = place
    found: list[str] = []
    for place, content in enumerate(contents[begins:], begins):
        for number, part in enumerate(map(table, items(content.get("parts")) or [])):
            if content.get("role") != "model" or not part or "functionCall" not in part:
                continue
            if not part.get("thoughtSignature"):
                name = (table(part["functionCall"]) or {}).get("name")
                said = "Function call is missing a thought_signature in functionCall parts."
                found.append(f"contents[{place}].parts[{number}]: {said} Additional data, function call `{name}`.")
            break
    return found


def _data_problems(kind: str, part: dict[str, Any], where: str) -> list[str]:
    value, at = part[kind], f"{where}.{kind}"
    if kind == "text":
        if not isinstance(value, str):
            return [f"Invalid value at '{at}' (TYPE_STRING)"]
        # the model itself signs empty texts, and wants them back
        return [] if value or "thoughtSignature" in part else [f"{at}: the text is empty"]
    own = table(value)
    if own is None:
        return [f"{at}: not an object"]
    found = unknown_names(value, _DATA[kind] or (), at)
    match kind:
        case "functionCall":
            found += _named(own, at)
            if not isinstance(own.get("args", {}), dict):
                found.append(f"Invalid value at '{at}.args' (type.googleapis.com/google.protobuf.Struct): not an object")
        case "functionResponse":
            found += _named(own, at)
            if not isinstance(own.get("response"), dict):
                found.append(f"Invalid value at '{at}.response' (type.googleapis.com/google.protobuf.Struct): not an object")
        case "inlineData":
            found += _mime_type_problems(own, at)
            if not is_base64(own.get("data")):
                found.append(f"Invalid value at '{at}.data' (TYPE_BYTES), Base64 decoding failed")
        case "fileData":
            if not isinstance(own.get("fileUri"), str) or not own["fileUri"]:
                found.append(f"{at}.fileUri: must not be empty")
        case "executableCode":
            if not isinstance(own.get("code"), str) or not isinstance(own.get("language"), str):
                found.append(f"{at}: language and code are needed")
        case _:
            if not isinstance(own.get("outcome"), str):
                found.append(f"{at}.outcome: must be specified")
    return found


def _named(data: Mapping[str, Any], where: str) -> list[str]:
    """Name and id of a call or response."""
    name, call_id = data.get("name"), data.get("id", "")
    found: list[str] = []
    if not isinstance(name, str) or not name:
        found.append(f"{where}.name: Name cannot be empty.")
    elif not NAME.fullmatch(name):
        found.append(f"{where}.name: Invalid function name {name!r}: it does not match {NAME.pattern}")
    if not isinstance(call_id, str):
        found.append(f"Invalid value at '{where}.id' (TYPE_STRING)")
    return found


def _mime_type_problems(data: Mapping[str, Any], where: str) -> list[str]:
    mime_type = data.get("mimeType")
    if isinstance(mime_type, str) and all(mime_type.partition("/")):
        return []
    return [f"{where}.mimeType: Unsupported MIME type: {mime_type!r}"]


def _pair_problems(calls: list[Any], answers: list[Any], where: str) -> list[str]:
    """The n-th response is to the n-th call."""
    if len(calls) != len(answers):
        said = "Please ensure that the number of function response parts is equal to the number of function call parts of"
        return [f"{where}: {said} the function call turn. ({len(answers)} for {len(calls)})"]
    found: list[str] = []
    for number, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        called, answered = table(call) or {}, table(answer) or {}
        if called.get("name") != answered.get("name"):
            found.append(f"{where}: response {number} is of {answered.get('name')!r}, the call was of {called.get('name')!r}")
        elif called.get("id") != answered.get("id"):
            found.append(f"{where}: response {number} has the id {answered.get('id')!r}, the call {called.get('id')!r}")
    return found


def _of_kind(content: Mapping[str, Any], kind: str) -> list[Any]:
    """The data of the parts of this kind."""
    parts = [table(part) or {} for part in items(content.get("parts")) or []]
    return [part[kind] for part in parts if kind in part]
