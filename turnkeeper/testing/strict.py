# What a strict server refuses in a chat-completions request.
#
# Rule 1: pure. A body and the rules in, sentences out; no request, no server.
# Rule 2: the strictest of the real servers counts. What one of them refuses is a problem, whoever else would take it.
# Rule 3: a sentence names the place as it is typed (`messages[3]`), and what would be right.

"""Checks chat-completions requests as a strict server would (S2.5a, S4.6)."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from msgspec import Struct

from turnkeeper.testing.shapes import as_rows, as_table, spells_object


class Rules(Struct, frozen=True, kw_only=True):
    """What a server takes.

    models: their names, none for any. prefill: an assistant message may stand last. alternate: user and assistant must
    take turns, as chat templates want it. id_alphabet: a pattern that each call id must match as a whole.
    roles: the known ones. refuses: top-level fields that the server does not know.
    """

    models: tuple[str, ...] = ()
    prefill: bool = False
    alternate: bool = False
    id_alphabet: str = ""
    roles: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool")
    refuses: tuple[str, ...] = ()


class RuleOptions(TypedDict, total=False):
    """The rules that `ScriptedProvider` takes by name."""

    prefill: bool
    alternate: bool
    id_alphabet: str
    roles: tuple[str, ...]
    refuses: tuple[str, ...]


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PARTS = ("text", "image_url", "input_audio", "file", "refusal", "thinking")  # no set: a type may be unhashable


def problems(body: object, rules: Rules) -> list[str]:
    """What a strict server would refuse, a sentence each; none if it would take the request.

    body: the decoded JSON of the request.
    """
    request = as_table(body)
    if request is None:
        return ["the body is not a JSON object"]
    found = _request_problems(request, rules)
    if "tools" in request:
        found += _tool_problems(request["tools"])
    messages = as_rows(request.get("messages"))
    if not messages:
        return [*found, "messages: a list with at least one message is needed"]
    known: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        table = as_table(message)
        if table is None:
            return [*found, f"messages[{place}]: not an object"]
        known.append(table)
        found += _message_problems(table, f"messages[{place}]", rules)
    found += _pairing_problems(known) + _last_problems(known, rules)
    if rules.alternate:
        found += _turn_problems(known)
    return found


def knows_model(body: object, rules: Rules) -> bool:
    """False if the request names a model that the server does not have."""
    model = (as_table(body) or {}).get("model")
    return not isinstance(model, str) or not rules.models or model in rules.models


def _request_problems(request: dict[str, Any], rules: Rules) -> list[str]:
    found: list[str] = []
    model = request.get("model")
    if not isinstance(model, str) or not model:
        found.append("model: a name is needed")
    elif not knows_model(request, rules):
        found.append(f"model: `{model}` does not exist; there is {', '.join(rules.models)}")
    found += [f"{field}: unsupported parameter" for field in rules.refuses if field in request]
    if "stream_options" in request and request.get("stream") is not True:
        found.append("stream_options: only allowed when stream is true")
    return found


def _tool_problems(tools: object) -> list[str]:
    listed = as_rows(tools)
    if not listed:
        return ["tools: a list with at least one tool, or no such field"]
    found: list[str] = []
    names: set[str] = set()
    for place, tool in enumerate(listed):
        where = f"tools[{place}]"
        function = as_table((as_table(tool) or {}).get("function"))
        if function is None or (as_table(tool) or {}).get("type") != "function":
            found.append(f"{where}: not of type function with a function in it")
            continue
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            found.append(f"{where}: the name {name!r} does not match {_NAME.pattern}")
        elif name in names:
            found.append(f"{where}: a second tool is called {name!r}")
        else:
            names.add(name)
        if "parameters" in function and (as_table(function["parameters"]) or {}).get("type") != "object":
            found.append(f"{where}: the parameters are not a schema of type object")
    return found


def _message_problems(message: dict[str, Any], where: str, rules: Rules) -> list[str]:
    role = message.get("role")
    if role not in rules.roles:
        return [f"{where}: unknown role {role!r}; known are {', '.join(rules.roles)}"]
    found: list[str] = []
    calls = message.get("tool_calls")
    if calls is not None and role != "assistant":
        found.append(f"{where}: only assistant messages have tool_calls")
    elif calls is not None:
        found += _call_problems(as_rows(calls), where, rules)
    if role == "tool" and (not isinstance(message.get("tool_call_id"), str) or not message["tool_call_id"]):
        found.append(f"{where}: a result needs a tool_call_id")
    says_more = role == "assistant" and bool(calls or message.get("refusal"))
    return found + _content_problems(message.get("content"), where, may_lack=says_more)


def _content_problems(content: object, where: str, *, may_lack: bool) -> list[str]:
    if content is None or content == "":
        return [] if may_lack else [f"{where}: content is empty"]
    if isinstance(content, str):
        return [] if content.strip() else [f"{where}: content is only whitespace"]
    parts = as_rows(content)
    if parts is None:
        return [f"{where}: content is neither text nor a list of parts"]
    found = [] if parts else [f"{where}: content is an empty list"]
    for place, part in enumerate(parts):
        table = as_table(part) or {}
        kind = table.get("type")
        if kind not in _PARTS:
            found.append(f"{where}.content[{place}]: unknown type {kind!r}")
        elif kind == "text" and not (isinstance(table.get("text"), str) and table["text"].strip()):
            found.append(f"{where}.content[{place}]: text is empty")
        elif kind == "image_url" and not (as_table(table.get("image_url")) or {}).get("url"):
            found.append(f"{where}.content[{place}]: the picture has no url")
    return found


def _call_problems(calls: list[Any] | None, where: str, rules: Rules) -> list[str]:
    if not calls:
        return [f"{where}: tool_calls is not a list with at least one call"]
    found: list[str] = []
    for place, call in enumerate(calls):
        at = f"{where}.tool_calls[{place}]"
        table = as_table(call) or {}
        function = as_table(table.get("function")) or {}
        call_id, name = table.get("id"), function.get("name")
        if table.get("type") != "function":
            found.append(f"{at}: the type is not function")
        if not isinstance(call_id, str) or not call_id:
            found.append(f"{at}: an id is needed")
        elif rules.id_alphabet and not re.fullmatch(rules.id_alphabet, call_id):
            found.append(f"{at}: the id {call_id!r} does not match {rules.id_alphabet}")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            found.append(f"{at}: the name {name!r} does not match {_NAME.pattern}")
        if not spells_object(function.get("arguments")):
            found.append(f"{at}: arguments are not a string that holds a JSON object")
    return found


def _pairing_problems(messages: list[dict[str, Any]]) -> list[str]:
    """Each call has exactly one result, right after its message (S4.6)."""
    found: list[str] = []
    seen: set[str] = set()
    lacking: list[str] = []  # calls of the last assistant message that have no result yet
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            if answered in lacking:
                lacking.remove(str(answered))
            elif isinstance(answered, str) and answered in seen:
                found.append(f"{where}: call {answered!r} has a result already, or other messages stand between them")
            else:
                found.append(f"{where}: no call with the id {answered!r} stands before this result")
            continue
        found += [f"{where}: tool call without tool output: {call!r} has no result before this message" for call in lacking]
        lacking = []
        for call_id in _call_ids(message):
            if call_id in seen:
                found.append(f"{where}: the call id {call_id!r} was used before")
            seen.add(call_id)
            lacking.append(call_id)
    return found + [f"tool call without tool output: {call!r} has no result" for call in lacking]


def _last_problems(messages: list[dict[str, Any]], rules: Rules) -> list[str]:
    last = messages[-1]
    if last.get("role") != "assistant" or last.get("tool_calls"):
        return []  # calls without results are told as such
    if not rules.prefill:
        return ["this model does not support prefill: the conversation must end with a user message"]
    content = last.get("content")
    if isinstance(content, str) and content != content.rstrip():
        return ["the last assistant message must not end with trailing whitespace"]  # S3.4b
    return []


def _turn_problems(messages: list[dict[str, Any]]) -> list[str]:
    """As chat templates check it: system first, then user and assistant by turns; calls and results are not counted."""
    expected = "user"
    for place, message in enumerate(messages):
        role = message.get("role")
        if role in ("system", "developer"):
            if place:
                return [f"messages[{place}]: a {role} message is only allowed first"]
        elif role == "user" or (role == "assistant" and not message.get("tool_calls")):
            if role != expected:
                return [f"messages[{place}]: roles must alternate user/assistant: {expected} was expected, not {role}"]
            expected = "assistant" if role == "user" else "user"
    return []


def _call_ids(message: dict[str, Any]) -> list[str]:
    if message.get("role") != "assistant":
        return []
    ids = [(as_table(call) or {}).get("id") for call in as_rows(message.get("tool_calls")) or []]
    return [call_id for call_id in ids if isinstance(call_id, str) and call_id]
