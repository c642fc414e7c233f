# What a strict server refuses in a Messages request.
#
# Rule 1: pure. A request and the rules in, sentences out.
# Rule 2: the strictest of the real servers counts.
# Rule 3: a sentence names the place as it is typed (`messages[3].content[0]`), and what would be right.

"""Checks Messages requests as a strict server would (S2.5a, S4.6)."""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise
from typing import Any

from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.shapes import as_rows, as_table
from turnkeeper.testing.strict import Rules, knows_model

_KNOWN = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences", "temperature", "top_p",
    "top_k", "thinking", "metadata", "service_tier", "container", "context_management", "mcp_servers", "output_config",
    "output_format", "cache_control",
}  # fmt: skip
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_THINKING = ("thinking", "redacted_thinking")
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MOST_PICTURE_BYTES = 5 * 2**20
_MOST_MARKS = 4


def problems(request: SeenRequest, rules: Rules) -> list[str]:
    """What a strict server would refuse, a sentence each; none if it would take the request."""
    body = as_table(request.body)
    if body is None:
        return ["the body is not a JSON object"]
    found = [] if request.headers.get("anthropic-version") else ["anthropic-version: header is required"]
    found += _fields(body, rules) + _tools(body)
    messages = [as_table(message) for message in as_rows(body.get("messages")) or []]
    if not messages:
        return [*found, "messages: at least one message is required"]
    known = [message for message in messages if message is not None]
    if len(known) < len(messages):
        return [*found, "messages: each must be an object"]
    for place, message in enumerate(known):
        found += _message(message, f"messages[{place}]")
    contents = [_blocks(message) for message in known]
    found += _order(known, contents, rules) + _pairing(known, contents) + _thinking(body, known, contents)
    marks = _marks(body)
    if marks > _MOST_MARKS:
        found.append(f"a maximum of {_MOST_MARKS} blocks with cache_control may be provided, found {marks}")
    return found


def _fields(body: dict[str, Any], rules: Rules) -> list[str]:
    found = [f"{name}: Extra inputs are not permitted" for name in body if name not in _KNOWN or name in rules.refuses]
    model = body.get("model")
    if not isinstance(model, str) or not model:
        found.append("model: a name is needed")
    elif not knows_model(body, rules):
        found.append(f"model: {model} does not exist; there is {', '.join(rules.models)}")
    most = body.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        found.append("max_tokens: a number of at least 1 is required")
    temperature = body.get("temperature")
    if temperature is not None and not (isinstance(temperature, int | float) and 0 <= temperature <= 1):
        found.append("temperature: must be 0 to 1")
    system = body.get("system")
    rows = as_rows(body.get("system"))
    if rows is not None:
        found += [f"system[{place}]: text must not be empty" for place, one in enumerate(rows) if not _has_text(one)]
    elif system is not None and not isinstance(system, str):
        found.append("system: must be text or a list of text blocks")
    thinking = as_table(body.get("thinking")) or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024 or (isinstance(most, int) and budget >= most):
            found.append("thinking.budget_tokens: must be at least 1024 and less than max_tokens")
        if temperature not in (None, 1, 1.0):
            found.append("temperature: may only be set to 1 when thinking is enabled")
    return found


def _tools(body: dict[str, Any]) -> list[str]:
    if "tools" not in body:
        return []
    found: list[str] = []
    names: set[str] = set()
    for place, tool in enumerate(as_rows(body["tools"]) or []):
        table = as_table(tool) or {}
        name = table.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            found.append(f"tools[{place}].name: {name!r} does not match {_NAME.pattern}")
        elif name in names:
            found.append(f"tools: Tool names must be unique: {name}")
        else:
            names.add(name)
        schema = as_table(table.get("input_schema"))
        if "type" not in table and (schema is None or schema.get("type") != "object"):
            found.append(f"tools[{place}].input_schema: must be a JSON Schema of type object")
    return found


def _message(message: dict[str, Any], where: str) -> list[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        return [f"{where}.role: must be user or assistant; the system prompt is a top-level field"]
    if isinstance(content, str):
        return [] if content.strip() else [f"{where}: text content must contain non-whitespace text"]
    blocks = as_rows(content)
    if not blocks:
        return [f"{where}: must have non-empty content"]
    found: list[str] = []
    for place, block in enumerate(blocks):
        found += _block(as_table(block) or {}, role, f"{where}.content[{place}]")
    return found


def _block(block: dict[str, Any], role: object, where: str) -> list[str]:
    kind = block.get("type")
    if kind in (*_THINKING, "tool_use") and role != "assistant":
        return [f"{where}: {kind} blocks belong to the assistant"]
    if kind in ("tool_result", "image", "document") and role != "user":
        return [f"{where}: {kind} blocks belong to the user"]
    match kind:
        case "text":
            return [] if _has_text(block) else [f"{where}: text content blocks must contain non-whitespace text"]
        case "thinking":
            return [] if block.get("signature") else [f"{where}.thinking.signature: Field required"]
        case "redacted_thinking":
            return [] if block.get("data") else [f"{where}.redacted_thinking.data: Field required"]
        case "tool_use":
            found = [] if isinstance(block.get("input"), dict) else [f"{where}.tool_use.input: must be an object"]
            if not _ID.fullmatch(str(block.get("id", ""))):
                found.append(f"{where}.tool_use.id: does not match {_ID.pattern}")
            return found if _NAME.fullmatch(str(block.get("name", ""))) else [*found, f"{where}.tool_use.name: not valid"]
        case "tool_result":
            return _result(block, where)
        case "image":
            return _picture(block, where)
        case str():
            return []  # documents, and the blocks of the server's own tools
        case _:
            return [f"{where}: a type is needed"]


def _result(block: dict[str, Any], where: str) -> list[str]:
    content = block.get("content")
    if isinstance(content, str):
        return []
    found: list[str] = []
    for place, part in enumerate(as_rows(content) or []):
        table = as_table(part) or {}
        if table.get("type") not in ("text", "image", "document", "search_result", "tool_reference"):
            found.append(f"{where}.content[{place}]: a result holds text, images or documents")
        else:
            found += _block(table, "user", f"{where}.content[{place}]")
    return found


def _picture(block: dict[str, Any], where: str) -> list[str]:
    source = as_table(block.get("source")) or {}
    if source.get("type") in ("url", "file"):
        return []
    if source.get("type") != "base64" or source.get("media_type") not in _PICTURES:
        return [f"{where}.source: must be base64 of {', '.join(_PICTURES)}, or a url"]
    try:
        data = base64.b64decode(str(source.get("data", "")), validate=True)
    except (binascii.Error, ValueError):
        return [f"{where}.source.data: not valid base64"]
    return [f"{where}: image exceeds 5 MB maximum: {len(data)} bytes"] if len(data) > _MOST_PICTURE_BYTES else []


def _order(messages: list[dict[str, Any]], contents: list[list[dict[str, Any]]], rules: Rules) -> list[str]:
    found: list[str] = []
    if messages[0].get("role") != "user":
        found.append("messages: first message must use the user role")
    for place in range(1, len(messages)):
        if rules.alternate and messages[place].get("role") == messages[place - 1].get("role"):
            found.append(f"messages[{place}]: roles must alternate")
    last, blocks = messages[-1], contents[-1]
    if last.get("role") != "assistant":
        return found
    kind = blocks[-1].get("type") if blocks else "text"
    if kind in ("server_tool_use", "mcp_tool_use") or str(kind).endswith("_tool_result"):
        return found  # a turn that the server paused
    if not rules.prefill:
        found.append("This model does not support assistant message prefill. The conversation must end with a user message.")
    text = blocks[-1].get("text", "") if blocks else last.get("content")
    if isinstance(text, str) and text != text.rstrip():
        found.append("messages: final assistant content cannot end with trailing whitespace")
    return found


def _pairing(messages: list[dict[str, Any]], contents: list[list[dict[str, Any]]]) -> list[str]:
    """Each call has exactly one result, first in the next message (S4.6)."""
    found: list[str] = []
    seen: set[str] = set()
    due: list[str] = []
    for place, blocks in enumerate(contents):
        where = f"messages[{place}]"
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        for result in results:
            if result in due:
                due.remove(result)
            else:
                found.append(f"{where}: unexpected tool_use_id {result!r} in tool_result: no tool_use, or a second result")
        if due:
            found.append(f"{where}: tool_use ids were found without tool_result blocks immediately after: {', '.join(due)}")
        kinds = [block.get("type") == "tool_result" for block in blocks]
        if any(later and not earlier for earlier, later in pairwise(kinds)):
            found.append(f"{where}: tool_result blocks must come first")
        due = []
        for block in blocks:
            if block.get("type") == "tool_use" and messages[place].get("role") == "assistant":
                call_id = str(block.get("id"))
                if call_id in seen:
                    found.append(f"{where}: tool_use ids must be unique: {call_id}")
                seen.add(call_id)
                due.append(call_id)
        found += _server_pairs(blocks, where, last=place == len(contents) - 1)
    if due:
        found.append(f"tool_use ids were found without tool_result blocks immediately after: {', '.join(due)}")
    return found


def _server_pairs(blocks: list[dict[str, Any]], where: str, *, last: bool) -> list[str]:
    """The server's own tools have their results in the same message; but for one that it paused in."""
    asked = [str(block.get("id")) for block in blocks if block.get("type") in ("server_tool_use", "mcp_tool_use")]
    kinds = [str(block.get("type")) for block in blocks]
    answered = [
        str(block.get("tool_use_id"))
        for kind, block in zip(kinds, blocks, strict=True)
        if kind.endswith("_tool_result") and kind != "tool_result"
    ]
    lacking = [one for one in asked if one not in answered]
    return [f"{where}: the server tool use {one!r} has no result in its message" for one in lacking] if not last else []


def _thinking(body: dict[str, Any], messages: list[dict[str, Any]], contents: list[list[dict[str, Any]]]) -> list[str]:
    """Thinking begins the chain of the present turn, and never ends a message."""
    found: list[str] = []
    for place, blocks in enumerate(contents):
        if blocks and messages[place].get("role") == "assistant" and blocks[-1].get("type") in _THINKING:
            found.append(f"messages[{place}]: the final block in an assistant message cannot be thinking")
    thinks = (as_table(body.get("thinking")) or {}).get("type") == "enabled"
    last = messages[-1].get("role") == "assistant"
    if thinks and last and contents[-1] and contents[-1][0].get("type") not in _THINKING:
        found.append("When thinking is enabled, a final assistant message must start with a thinking block")
    if not thinks:
        return found
    begin = len(messages)
    for place in range(len(messages) - 1, -1, -1):
        spoken = [block for block in contents[place] if block.get("type") != "tool_result"]
        if messages[place].get("role") == "user" and (spoken or not contents[place]):
            break
        begin = place
    chain = [place for place in range(begin, len(messages)) if messages[place].get("role") == "assistant"]
    called = any(block.get("type") == "tool_use" for place in chain for block in contents[place])
    if called and contents[chain[0]][0].get("type") not in _THINKING:
        found.append(
            f"messages[{chain[0]}].content[0].type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{contents[chain[0]][0].get('type')}`: when thinking is enabled, a chain of calls must begin with it"
        )
    return found


def _marks(value: object) -> int:
    """How many cache marks there are in all."""
    table, rows = as_table(value), as_rows(value)
    if table is not None:
        return ("cache_control" in table) + sum(_marks(one) for name, one in table.items() if name != "input_schema")
    return sum(_marks(one) for one in rows or [])


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [table for block in as_rows(message.get("content")) or [] if (table := as_table(block)) is not None]


def _has_text(block: object) -> bool:
    text = (as_table(block) or {}).get("text")
    return isinstance(text, str) and bool(text.strip())
