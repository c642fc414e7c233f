# What a strict server refuses in a Responses request.
#
# The rules of strict.py hold here too. What is about one item is in strict_responses_items.py, about the tools in
# strict_responses_tools.py; here is the request itself, and how its items stand to each other.
#
# The server keeps nothing: what a `previous_response_id` or a `conversation` would know is not looked up, so with either
# an output may stand without its call.

"""Checks Responses requests as a strict server would."""

from __future__ import annotations

from typing import Any

from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.shapes import as_rows, as_table
from turnkeeper.testing.strict import Rules, knows_model
from turnkeeper.testing.strict_responses_items import item_problems, kind_of
from turnkeeper.testing.strict_responses_tools import tool_problems

_FIELDS = (
    *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "store"),
    *("include", "reasoning", "text", "temperature", "top_p", "max_output_tokens", "max_tool_calls", "metadata"),
    *("previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier"),
    *("truncation", "user", "background", "conversation", "context_management", "top_logprobs"),
)
_INSTEAD = {  # fields of chat completions, and what is in their place
    "messages": "send the conversation as input",
    "max_tokens": "use max_output_tokens",
    "max_completion_tokens": "use max_output_tokens",
    "response_format": "use text.format",
    "verbosity": "use text.verbosity",
    "reasoning_effort": "use reasoning.effort",
    "functions": "use tools",
    "function_call": "use tool_choice",
    "logprobs": "include message.output_text.logprobs, and use top_logprobs",
    "web_search_options": "use a tool of type web_search",
} | dict.fromkeys(
    ("n", "stop", "seed", "logit_bias", "frequency_penalty", "presence_penalty", "modalities", "audio", "prediction"),
    "there is nothing in its place",
)
_INCLUDABLE = (
    *("reasoning.encrypted_content", "message.output_text.logprobs", "message.input_image.image_url"),
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("code_interpreter_call.outputs", "computer_call_output.output.image_url"),
)
_CHOICES: dict[str, tuple[str, ...]] = {
    "truncation": ("auto", "disabled"),
    "service_tier": ("auto", "default", "flex", "priority", "scale"),
}
_RANGES: dict[str, tuple[float, float]] = {"temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, 20)}
_FEWEST_TOKENS = 16
_FLAGS = ("stream", "store", "background", "parallel_tool_calls")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_FORMATS = ("text", "json_object", "json_schema")
_KEPT = ("previous_response_id", "conversation")  # what makes the server know items that the request lacks


def problems(request: SeenRequest, rules: Rules) -> list[str]:
    """What a strict server would refuse, a sentence each; none if it would take the request."""
    body = as_table(request.body)
    if body is None:
        return ["the body is not a JSON object"]
    found = _model_problems(body, rules) + _field_problems(body, rules) + _value_problems(body) + _text_problems(body)
    return found + tool_problems(body) + _input_problems(body, rules)


def _model_problems(body: dict[str, Any], rules: Rules) -> list[str]:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        return ["model: a name is needed"]
    if not knows_model(body, rules):
        return [f"model: `{model}` does not exist; there is {', '.join(rules.models)}"]
    return []


def _field_problems(body: dict[str, Any], rules: Rules) -> list[str]:
    found = [f"{field}: unsupported parameter" for field in rules.refuses if field in body]
    for field in body:
        if field in _INSTEAD:
            found.append(f"{field}: Unsupported parameter: it belongs to chat completions; {_INSTEAD[field]}")
        elif field not in _FIELDS and field not in rules.refuses:
            found.append(f"{field}: Unknown parameter")
    if all(body.get(field) is not None for field in _KEPT):
        found.append("previous_response_id: can't be used together with conversation")
    options = body.get("stream_options")
    if options is None:
        return found
    if body.get("stream") is not True:
        found.append("stream_options: only allowed when stream is true")
    unknown = [name for name in as_table(options) or {} if name != "include_obfuscation"]
    return found + [f"stream_options: Unknown parameter: '{name}'" for name in unknown]


def _value_problems(body: dict[str, Any]) -> list[str]:
    """Of the fields that are there and not null."""
    given = {field: value for field, value in body.items() if value is not None}
    found = [f"{field}: neither true nor false" for field in _FLAGS if not isinstance(given.get(field, True), bool)]
    for field, known in _CHOICES.items():
        if field in given and given[field] not in known:
            found.append(f"{field}: Invalid value: {given[field]!r}. Supported values are: {', '.join(known)}")
    for field, (least, most) in _RANGES.items():
        if field in given and not (_is_number(given[field]) and least <= given[field] <= most):
            found.append(f"{field}: not a number from {least} to {most}")
    tokens = given.get("max_output_tokens", _FEWEST_TOKENS)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < _FEWEST_TOKENS:
        found.append(f"max_output_tokens: expected a whole number of at least {_FEWEST_TOKENS}, not {tokens!r}")
    if not isinstance(given.get("instructions", ""), str):
        found.append("instructions: not a string")
    included = as_rows(given.get("include", []))
    if included is None:
        return [*found, "include: not a list"]
    unknown = [one for one in included if one not in _INCLUDABLE]
    return found + [f"include: Invalid value: {one!r}. Supported values are: {', '.join(_INCLUDABLE)}" for one in unknown]


def _text_problems(body: dict[str, Any]) -> list[str]:
    """Of `reasoning`, `text` and `metadata`."""
    found: list[str] = []
    tables = {field: as_table(body[field]) for field in ("reasoning", "text", "metadata") if body.get(field) is not None}
    found += [f"{field}: not an object" for field, table in tables.items() if table is None]
    effort = (tables.get("reasoning") or {}).get("effort")
    if effort is not None and effort not in _EFFORTS:
        found.append(f"reasoning.effort: Invalid value: {effort!r}. Supported values are: {', '.join(_EFFORTS)}")
    form = (tables.get("text") or {}).get("format")
    described = as_table(form) or {}
    kind = described.get("type")
    if form is not None and kind not in _FORMATS:
        found.append(f"text.format: Invalid value: {kind!r}. Supported values are: {', '.join(_FORMATS)}")
    elif kind == "json_schema" and (not described.get("name") or as_table(described.get("schema")) is None):
        found.append("text.format: a json_schema needs a name and a schema beside its type")
    metadata = tables.get("metadata") or {}
    if len(metadata) > 16 or not all(isinstance(value, str) and len(value) <= 512 for value in metadata.values()):
        found.append("metadata: at most 16 entries, each a string of at most 512 characters")
    return found


def _input_problems(body: dict[str, Any], rules: Rules) -> list[str]:
    given = body.get("input")
    if given is None:
        has_other = any(body.get(field) is not None for field in (*_KEPT, "prompt"))
        return [] if has_other else ["input: a string or a list of items is needed"]
    if isinstance(given, str):
        return [] if given.strip() else ["input: the text is empty or only whitespace"]
    listed = as_rows(given)
    if not listed:
        return ["input: a string or a list with at least one item is needed"]
    items: list[dict[str, Any]] = []
    found: list[str] = []
    for place, item in enumerate(listed):
        table = as_table(item)
        if table is None:
            return [*found, f"input[{place}]: not an object"]
        items.append(table)
        found += item_problems(table, f"input[{place}]", rules)
    found += _duplicate_problems(items) + _pairing_problems(body, items) + _reasoning_problems(body, items)
    if kind_of(items[-1]) == "message" and items[-1].get("role") == "assistant" and not rules.prefill:
        found.append("this model does not support prefill: the conversation must end with a user message or a tool output")
    return found + (_turn_problems(items) if rules.alternate else [])


def _duplicate_problems(items: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for item in items:
        own = item.get("id")
        if isinstance(own, str) and own in seen:
            found.append(f"Duplicate item found with id {own}. Remove duplicate items from your input and try again.")
        elif isinstance(own, str):
            seen.add(own)
    return found


def _pairing_problems(body: dict[str, Any], items: list[dict[str, Any]]) -> list[str]:
    """Each call has exactly one output, somewhere after it (S4.6)."""
    found: list[str] = []
    called: set[str] = set()
    lacking: list[str] = []  # calls that have no output yet
    knows_more = any(body.get(field) is not None for field in _KEPT)
    for place, item in enumerate(items):
        kind, call_id = kind_of(item), item.get("call_id")
        if not isinstance(call_id, str) or not call_id:
            continue  # told as a problem of the item
        if kind == "function_call":
            if call_id in called:
                found.append(f"input[{place}]: the call_id {call_id!r} was used before")
            else:
                lacking.append(call_id)
            called.add(call_id)
        elif kind == "function_call_output":
            if call_id in lacking:
                lacking.remove(call_id)
            elif call_id in called:
                found.append(f"input[{place}]: call {call_id!r} has an output already")
            elif not knows_more:
                found.append(f"No tool call found for function call output with call_id {call_id}.")
    return found + [f"No tool output found for function call {call_id}." for call_id in lacking]


def _reasoning_problems(body: dict[str, Any], items: list[dict[str, Any]]) -> list[str]:
    """Reasoning stands before what it led to, and brings what was thought: this server has not kept it.

    DeepSeek and LM Studio send no `encrypted_content`; theirs is in `content`.
    """
    found: list[str] = []
    is_kept = body.get("previous_response_id") is not None and body.get("store") is not False
    for place, item in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        own = item.get("id") or f"input[{place}]"  # with encrypted_content, the id may be left out
        if not _is_followed(items[place + 1 :]):
            found.append(f"Item '{own}' of type 'reasoning' was provided without its required following item.")
        encrypted = item.get("encrypted_content")
        if encrypted is not None and (not isinstance(encrypted, str) or not encrypted):
            found.append(f"input[{place}].encrypted_content: not a string with something in it")
        elif encrypted is None and not item.get("content") and not is_kept:
            found.append(f"Item with id '{own}' not found: it needs its encrypted_content, for nothing is stored")
    return found


def _is_followed(rest: list[dict[str, Any]]) -> bool:
    """Whether the next item that is no reasoning is an output of the model."""
    for item in rest:
        kind = kind_of(item)
        if kind == "message":
            return item.get("role") == "assistant"
        if kind != "reasoning":
            return not str(kind).endswith("_output")
    return False


def _turn_problems(items: list[dict[str, Any]]) -> list[str]:
    """As chat templates check it: system first, then user and assistant by turns.

    Not counted are calls and outputs, and what the assistant says before a call, which templates have in one message.
    """
    expected = "user"
    for place, item in enumerate(items):
        role = item.get("role") if kind_of(item) == "message" else None
        if role == "assistant" and any(kind_of(after) == "function_call" for after in items[place + 1 : place + 2]):
            continue
        if role in ("system", "developer"):
            if place:
                return [f"input[{place}]: a {role} message is only allowed first"]
        elif role in ("user", "assistant"):
            if role != expected:
                return [f"input[{place}]: roles must alternate user/assistant: {expected} was expected, not {role}"]
            expected = "assistant" if role == "user" else "user"
    return []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
