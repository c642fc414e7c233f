# What a strict server refuses in a Gemini request.
#
# The rules of strict.py hold here too: pure; the strictest of the real servers counts; a sentence names the place. Where the
# real server has a sentence of its own, that one is used: clients read it to learn what was wrong.
# In three parts: the request and its settings here, contents in gemini_contents.py, tools and schemas in gemini_tools.py.

"""Checks Gemini requests as a strict server would (S2.5a, S4.6)."""

from __future__ import annotations

from typing import Any

from turnkeeper.testing.gemini_contents import content_problems, part_problems, signature_problems, turn_problems
from turnkeeper.testing.gemini_tools import schema_problems, tool_problems
from turnkeeper.testing.gemini_words import Target, items, table, unknown_names
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.strict import Rules

_REQUEST = {
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "store",
}
_CACHED = {"systemInstruction", "tools", "toolConfig"}  # what the cached part of a request has already
_RANGES: dict[str, tuple[float, float]] = {  # of settings that are numbers
    "temperature": (0, 2),
    "topP": (0, 1),
    "presencePenalty": (-2, 2),
    "frequencyPenalty": (-2, 2),
}
_LEASTS = {"maxOutputTokens": 1, "topK": 1, "candidateCount": 1, "seed": -(2**31), "logprobs": 0}  # of whole numbers
_CONFIG = {
    *_RANGES,
    *_LEASTS,
    *("stopSequences", "thinkingConfig", "responseMimeType", "responseSchema", "responseJsonSchema", "responseLogprobs"),
    *("responseModalities", "mediaResolution", "speechConfig", "imageConfig", "enableEnhancedCivicAnswers"),
}
_MIME_TYPES = ("text/plain", "application/json", "text/x.enum")
_STOPS = 5  # the most that are taken
_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH")


def problems(request: SeenRequest, rules: Rules) -> list[str]:
    """What a strict server would refuse, a sentence each; none if it would take the request. `rules.roles` is not used."""
    own = table(request.body)
    found = _model_problems(request, rules)
    if own is None:
        return [*found, "the body is not a JSON object"]
    found += unknown_names(request.body, _REQUEST, "")
    if "cachedContent" in own and own.keys() & _CACHED:
        found.append("CachedContent can not be used with a request that sets system_instruction, tools or tool_config")
    found += [f"{field}: unsupported parameter" for field in rules.refuses if field in own]
    found += _system_problems(own) + tool_problems(own) + _config_problems(own) + _safety_problems(own)
    contents = items(own.get("contents"))
    if not contents:
        return [*found, "contents: contents is not specified"]
    for place, content in enumerate(contents):
        found += content_problems(content, f"contents[{place}]")
    known = [content for content in map(table, contents) if content is not None]
    if len(known) < len(contents):
        return found  # told above; what is left has lost its order
    found += turn_problems(known, alternate=rules.alternate, prefill=rules.prefill)
    return found + (signature_problems(known) if "gemini-3" in Target.of(request.path).model else [])


def knows_model(request: SeenRequest, rules: Rules) -> bool:
    """False if the path names a model that the server does not have."""
    return not rules.models or Target.of(request.path).model in rules.models


def _model_problems(request: SeenRequest, rules: Rules) -> list[str]:
    target = Target.of(request.path)
    if not target.model:
        return ["the path names no model"]
    if knows_model(request, rules):
        return []
    said = f"models/{target.model} is not found for API version v1beta, or is not supported for {target.method}."
    return [f"{said} There is {', '.join(rules.models)}"]


def _system_problems(request: dict[str, Any]) -> list[str]:
    if "systemInstruction" not in request:
        return []
    where = "systemInstruction"
    own = table(request[where])
    if own is None:
        return [f"{where}: not an object"]
    found = unknown_names(request[where], {"role", "parts"}, where)
    parts = items(own.get("parts"))
    if not parts:
        return [*found, f"{where}.parts: contents.parts must not be empty."]
    for place, part in enumerate(parts):
        found += part_problems(part, f"{where}.parts[{place}]")
        if "text" not in (table(part) or {}):
            found.append(f"{where}.parts[{place}]: only text is allowed here")
    return found


def _config_problems(request: dict[str, Any]) -> list[str]:
    if "generationConfig" not in request:
        return []
    where = "generationConfig"
    own = table(request[where])
    if own is None:
        return [f"{where}: not an object"]
    found = unknown_names(request[where], _CONFIG, where)
    for name, (least, most) in _RANGES.items():
        value = own.get(name)
        if name in own and not (isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most):
            found.append(f"{where}.{name}: {value!r} is no number from {least} to {most}")
    for name, least in _LEASTS.items():
        value = own.get(name)
        if name in own and not (isinstance(value, int) and not isinstance(value, bool) and value >= least):
            found.append(f"{where}.{name}: {value!r} is no whole number from {least} up")
    stops = items(own.get("stopSequences", []))
    if stops is None or len(stops) > _STOPS or not all(isinstance(stop, str) and stop for stop in stops):
        found.append(f"{where}.stopSequences: not a list of at most {_STOPS} texts")
    if "thinkingConfig" in own:
        found += _thinking_problems(own["thinkingConfig"], f"{where}.thinkingConfig")
    return found + _format_problems(own, where)


def _format_problems(config: dict[str, Any], where: str) -> list[str]:
    mime_type = config.get("responseMimeType", "text/plain")
    found = [] if mime_type in _MIME_TYPES else [f"{where}.responseMimeType: allowed are {', '.join(_MIME_TYPES)}"]
    schemas = [name for name in ("responseSchema", "responseJsonSchema") if name in config]
    if len(schemas) > 1:
        found.append(f"{where}: responseSchema and responseJsonSchema exclude each other")
    if schemas and mime_type == "text/plain":
        found.append(f"{where}.{schemas[0]}: only allowed when responseMimeType is application/json")
    if "responseSchema" in config:
        found += schema_problems(config["responseSchema"], f"{where}.responseSchema")
    return found


def _thinking_problems(config: object, where: str) -> list[str]:
    own = table(config)
    if own is None:
        return [f"{where}: not an object"]
    found = unknown_names(config, {"includeThoughts", "thinkingBudget", "thinkingLevel"}, where)
    budget, level = own.get("thinkingBudget"), own.get("thinkingLevel")
    if not isinstance(own.get("includeThoughts", False), bool):
        found.append(f"{where}.includeThoughts: neither true nor false")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < -1):
        found.append(f"{where}.thinkingBudget: {budget!r} is no whole number from -1 up")
    if level is not None and (not isinstance(level, str) or level.upper() not in _LEVELS):
        found.append(f"{where}.thinkingLevel: {level!r} is unknown; known are {', '.join(_LEVELS)}")
    if budget is not None and level is not None:
        found.append(f"{where}: You can only set only one of thinking budget and thinking level.")
    return found


def _safety_problems(request: dict[str, Any]) -> list[str]:
    settings = items(request.get("safetySettings", []))
    if settings is None:
        return ["safetySettings: not a list"]
    found: list[str] = []
    for place, setting in enumerate(settings):
        own = table(setting) or {}
        if not isinstance(own.get("category"), str) or not isinstance(own.get("threshold"), str):
            found.append(f"safetySettings[{place}]: category and threshold are needed")
        found += unknown_names(setting, {"category", "threshold", "method"}, f"safetySettings[{place}]")
    return found
