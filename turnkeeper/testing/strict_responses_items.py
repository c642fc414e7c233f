# What the Responses API refuses in one item of `input`, whatever stands beside it.
#
# To know another type of item: a row in `_FIELDS` if its fields are checked (and a case in `item_problems`), else its name
# in `_UNCHECKED`.

"""Checks the items of a Responses request, each on its own."""

from __future__ import annotations

import re
from typing import Any

from turnkeeper.testing.shapes import as_rows, as_table, spells_object
from turnkeeper.testing.strict import Rules

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ROLES = ("user", "system", "developer", "assistant")

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_ID = 64
_PREFIXES = {"message": "msg_", "function_call": "fc_", "function_call_output": "fc", "reasoning": "rs_"}
_FIELDS = {
    "message": ("type", "id", "role", "content", "status", "phase"),
    "function_call": ("type", "id", "call_id", "name", "arguments", "status", "namespace"),
    "function_call_output": ("type", "id", "call_id", "output", "status"),
    "reasoning": ("type", "id", "summary", "content", "encrypted_content", "status"),
    "item_reference": ("type", "id"),
}
_UNCHECKED = (  # what OpenAI's own tools make, which goes back as it came
    *("file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "computer_call"),
    *("computer_call_output", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"),
    *("apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
    *("mcp_call", "custom_tool_call", "custom_tool_call_output", "tool_search_call", "tool_search_output", "compaction"),
)
_ASKED = ("input_text", "input_image", "input_file")
_ANSWERED = ("output_text", "refusal")
_DETAILS = ("low", "high", "auto", "original")


def kind_of(item: dict[str, Any]) -> object:
    """The item's type; what has a role and no type is a message."""
    return item.get("type", "message" if "role" in item else None)


def item_problems(item: dict[str, Any], where: str, rules: Rules) -> list[str]:
    """What would be refused in the item, a sentence each."""
    kind = kind_of(item)
    if item.get("role") == "tool":
        return [f"{where}: the role 'tool' belongs to chat completions; send an item of type function_call_output"]
    if not isinstance(kind, str) or (kind not in _FIELDS and kind not in _UNCHECKED):
        return [f"{where}: Invalid value: {kind!r}. No item has that type"]
    if kind in _UNCHECKED:
        return []
    found = [f"{where}: Unknown parameter: '{where}.{field}'" for field in item if field not in _FIELDS[kind]]
    found += _id_problems(item, kind, where)
    match kind:
        case "message":
            return found + _message_problems(item, where, rules)
        case "function_call":
            return found + _call_problems(item, where, rules)
        case "function_call_output":
            content = _content_problems(item.get("output"), f"{where}.output", _ASKED)
            return found + _call_id_problems(item, where, rules) + content
        case "reasoning":
            return found + _reasoning_problems(item, where)
        case _:
            return found


def _call_id_problems(item: dict[str, Any], where: str, rules: Rules) -> list[str]:
    """What would be refused in the `call_id` of a call or of its output."""
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        return [f"{where}: Missing required parameter: '{where}.call_id'"]
    if len(call_id) > _LONGEST_ID:
        return [f"{where}.call_id: string too long: at most {_LONGEST_ID} characters, not {len(call_id)}"]
    if rules.id_alphabet and not re.fullmatch(rules.id_alphabet, call_id):
        return [f"{where}: the call_id {call_id!r} does not match {rules.id_alphabet}"]
    return []


def _id_problems(item: dict[str, Any], kind: str, where: str) -> list[str]:
    """A null id is one that was left out."""
    own = item.get("id")
    if own is None:
        return [f"{where}: Missing required parameter: '{where}.id'"] if kind == "item_reference" else []
    if not isinstance(own, str):
        return [f"{where}.id: not a string"]
    if len(own) > _LONGEST_ID:
        return [f"{where}.id: string too long: at most {_LONGEST_ID} characters, not {len(own)}"]
    if not _ID.fullmatch(own):
        return [f"{where}.id: {own!r} is not made of letters, numbers, underscores and dashes"]
    prefix = _PREFIXES.get(kind, "")
    return [] if own.startswith(prefix) else [f"{where}.id: {own!r}: expected an ID that begins with '{prefix}'"]


def _message_problems(item: dict[str, Any], where: str, rules: Rules) -> list[str]:
    role = item.get("role")
    known = [one for one in ROLES if one in rules.roles]
    if role not in known:
        return [f"{where}: unknown role {role!r}; known are {', '.join(known)}"]
    return _content_problems(item.get("content"), f"{where}.content", _ANSWERED if role == "assistant" else _ASKED)


def _content_problems(content: object, where: str, kinds: tuple[str, ...]) -> list[str]:
    """Text, or a list of parts of these kinds."""
    if isinstance(content, str):
        return _text_problems(content, where)
    parts = as_rows(content)
    if parts is None:
        return [f"{where}: neither text nor a list of parts"]
    found = [] if parts else [f"{where}: empty list"]
    for place, part in enumerate(parts):
        found += _part_problems(as_table(part) or {}, f"{where}[{place}]", kinds)
    return found


def _part_problems(part: dict[str, Any], where: str, kinds: tuple[str, ...]) -> list[str]:
    kind = part.get("type")
    if kind not in kinds:
        *most, last = [f"'{one}'" for one in kinds]
        listed = f"{', '.join(most)} and {last}" if most else last
        return [f"{where}: Invalid value: {kind!r}. Supported values are: {listed}"]
    match kind:
        case "input_image":
            return _image_problems(part, where)
        case "input_file":
            return _file_problems(part, where)
        case "refusal":
            return _text_problems(part.get("refusal"), f"{where}.refusal")
        case _:
            return _text_problems(part.get("text"), f"{where}.text")


def _text_problems(text: object, where: str) -> list[str]:
    if not isinstance(text, str):
        return [f"{where}: not a string"]
    return [] if text.strip() else [f"{where}: the text is empty or only whitespace"]


def _image_problems(part: dict[str, Any], where: str) -> list[str]:
    url, file_id, detail = part.get("image_url"), part.get("file_id"), part.get("detail")
    found: list[str] = []
    if as_table(url) is not None:
        found.append(f"{where}.image_url: an object, as chat completions have it; here it is the URL itself")
    elif url is None:
        if not isinstance(file_id, str) or not file_id:
            found.append(f"{where}: the picture has neither image_url nor file_id")
    elif not isinstance(url, str) or not re.match(r"https?://.|data:image/[\w.+-]+;base64,.", url):
        found.append(f"{where}.image_url: neither a data: URL of a picture in base64 nor an http URL")
    if detail is not None and detail not in _DETAILS:
        found.append(f"{where}.detail: Invalid value: {detail!r}. Supported values are: {', '.join(_DETAILS)}")
    return found


def _file_problems(part: dict[str, Any], where: str) -> list[str]:
    given = [name for name in ("file_data", "file_id", "file_url") if part.get(name) is not None]
    if len(given) != 1:
        return [f"{where}: a file has one of file_data, file_id and file_url, not {len(given)} of them"]
    value = part[given[0]]
    if not isinstance(value, str) or not value:
        return [f"{where}.{given[0]}: not a string with something in it"]
    if given == ["file_data"] and not part.get("filename"):
        return [f"{where}: file_data needs a filename"]
    return []


def _call_problems(item: dict[str, Any], where: str, rules: Rules) -> list[str]:
    found = _call_id_problems(item, where, rules)
    name = item.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        found.append(f"{where}: the name {name!r} does not match {NAME.pattern}")
    if not spells_object(item.get("arguments")):
        found.append(f"{where}: arguments are not a string that holds a JSON object")
    return found


def _reasoning_problems(item: dict[str, Any], where: str) -> list[str]:
    summary = as_rows(item.get("summary"))
    found = [f"{where}: Missing required parameter: '{where}.summary', a list, may be empty"] if summary is None else []
    for name, listed, kind in (("summary", summary, "summary_text"), ("content", item.get("content"), "reasoning_text")):
        for place, part in enumerate(as_rows(listed) or []):
            found += _part_problems(as_table(part) or {}, f"{where}.{name}[{place}]", (kind,))
    if item.get("content") is not None and as_rows(item["content"]) is None:
        found.append(f"{where}.content: not a list")
    return found
