# What Gemini's answers and errors are put together from: statuses, paths, counts, and arguments in pieces; and how its
# requests are spelled.
#
# Rule: pure. Nothing here knows how far an answer has got; gemini_voice.py does.

"""The small words of the Gemini API."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs, unquote

from msgspec import UNSET, Struct

from turnkeeper.testing.steps import Answer, Call, Error, Say, Think, Usage, flat

Part: TypeAlias = dict[str, Any]
"""A part of a content."""

_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_CODES = {word: code for code, word in _WORDS.items()}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def status_word(status: int) -> str:
    """The word that stands beside a status."""
    return _WORDS.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")


class Target(Struct, frozen=True):
    """What a path with its query asks for. All "" where it is no path of a model."""

    model: str = ""
    method: str = ""
    alt: str = ""
    key: str = ""

    @staticmethod
    def of(path: str) -> Target:
        """Reads a path such as `/v1beta/models/NAME:METHOD?alt=sse`. Never raises."""
        where, _, query = path.partition("?")
        asked = parse_qs(query)
        _, _, named = unquote(where).partition("/models/")
        model, _, method = named.rpartition(":")
        return Target(model, method, asked.get("alt", [""])[-1], asked.get("key", [""])[-1])


class Weight(Struct, frozen=True):
    """Characters said and thought."""

    said: int = 0
    thought: int = 0

    def with_parts(self, parts: Iterable[Part]) -> Weight:
        """So much and these."""
        said, thought = self.said, self.thought
        for part in parts:
            if part.get("thought"):
                thought += len(part["text"])
            else:
                said += len(part["text"]) if "text" in part else _call_weight(part["functionCall"])
        return Weight(said, thought)


def _call_weight(call: dict[str, Any]) -> int:
    whole = len(json.dumps(call["args"], ensure_ascii=False)) if "args" in call else 0
    values = [str(value) for entry in call.get("partialArgs", ()) for name, value in entry.items() if name.endswith("Value")]
    return len(call.get("name", "")) + whole + sum(map(len, values))


class Counts(Struct, frozen=True):
    """The counts of a whole answer, and of how many characters. `extra` comes last, odd values included."""

    prompt: int
    candidates: int
    thoughts: int
    cached: int
    weight: Weight
    extra: dict[str, Any]

    @staticmethod
    def of(answer: Answer, body: object) -> Counts:
        """What the answer says of them, and the rest from the lengths, four characters a token."""
        weight = Weight()
        for step in flat(answer.steps):
            match step:
                case Say():
                    weight = Weight(weight.said + len("".join(step.pieces)), weight.thought)
                case Think():
                    weight = Weight(weight.said, weight.thought + len("".join(step.pieces)))
                case Call():
                    weight = Weight(weight.said + len(step.name) + len(step.text), weight.thought)
                case _:
                    pass
        given = answer.usage or Usage()
        request = cast(dict[str, Any], body) if isinstance(body, dict) else {}
        sent = len(compact([request.get("contents"), request.get("systemInstruction"), request.get("tools")]))
        prompt = _tokens(sent) if given.prompt is None else given.prompt
        thoughts = _tokens(weight.thought) if given.reasoning is None else given.reasoning
        if given.completion is None:
            return Counts(prompt, _tokens(weight.said), thoughts, given.cached, weight, given.extra)
        thoughts = min(thoughts, given.completion)
        return Counts(prompt, given.completion - thoughts, thoughts, given.cached, weight, given.extra)

    def at(self, said: Weight | None) -> dict[str, Any]:
        """`usageMetadata` when so much was said, None for all. Counts of 0 are left out, as the real server does."""
        candidates = self.candidates if said is None else _share(self.candidates, said.said, self.weight.said)
        thoughts = self.thoughts if said is None else _share(self.thoughts, said.thought, self.weight.thought)
        counts: dict[str, Any] = {"promptTokenCount": self.prompt}
        if candidates:
            counts["candidatesTokenCount"] = candidates
        counts["totalTokenCount"] = self.prompt + candidates + thoughts
        if self.cached:
            counts["cachedContentTokenCount"] = self.cached
        counts["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": self.prompt}]
        if thoughts:
            counts["thoughtsTokenCount"] = thoughts
        return counts | self.extra


def error(step: Error) -> dict[str, Any]:
    """The error inside a stream: its code is a status or the word for one."""
    match step.code:
        case int():
            code, word = step.code, status_word(step.code)
        case str():
            code, word = _CODES.get(step.code, 500), step.code
        case None:
            code, word = 500, "INTERNAL"
    return {"code": code, "message": step.message, "status": word}


def partial_arguments(given: Any, size: int) -> list[dict[str, Any]] | None:
    """`partialArgs` of an object, texts cut to so many characters; None for what has no such form."""
    if given is UNSET:
        return []
    if not isinstance(given, dict):
        return None
    entries: list[dict[str, Any]] = []
    for path, value in _leaves("$", cast(object, given)):
        match value:
            case None:
                entries.append({"jsonPath": path, "nullValue": "NULL_VALUE"})
            case bool():
                entries.append({"jsonPath": path, "boolValue": value})
            case int() | float():
                entries.append({"jsonPath": path, "numberValue": value})
            case str():
                cuts = [value[start : start + size] for start in range(0, len(value), size)]
                entries += [{"jsonPath": path, "stringValue": cut, "willContinue": True} for cut in cuts]
                entries.append({"jsonPath": path, "stringValue": ""})
            case _:
                return None  # an empty object or array: only values have a path
    return entries


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The values that hold no others, each with its JSON path; an empty object or list only below the top."""
    if isinstance(value, dict) and (value or path == "$"):
        for name, inner in cast(dict[str, object], value).items():
            step = f".{name}" if _PLAIN_KEY.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
            yield from _leaves(path + step, inner)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(cast(list[object], value)):
            yield from _leaves(f"{path}[{place}]", inner)
    else:
        yield path, cast(object, value)


def _share(total: int, done: int, of: int) -> int:
    """The part of a count that is reached when so many of its characters are out."""
    return total if done >= of else min(total, -(-total * done // of))


def _tokens(characters: int) -> int:
    return -(-characters // 4)


def compact(value: object) -> str:
    """JSON without spaces."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as servers send it that cut texts by UTF-16
        return json.dumps(value, separators=(",", ":"))
    return text


def table(value: object) -> dict[str, Any] | None:
    """An object of a request, its names as the documentation spells them: the server takes snake_case for camelCase."""
    return {camel(name): inner for name, inner in cast(dict[str, Any], value).items()} if isinstance(value, dict) else None


def items(value: object) -> list[Any] | None:
    """A list of a request."""
    return cast(list[Any], value) if isinstance(value, list) else None


def camel(name: str) -> str:
    """`system_instruction` as `systemInstruction`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def unknown_names(value: object, known: Container[str], where: str) -> list[str]:
    """What the server says of names in an object that it does not know. where: "" for the request itself."""
    names = cast(dict[str, object], value) if isinstance(value, dict) else {}
    at = f" at '{where}'" if where else ""
    return [
        f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.'
        for name in names
        if camel(name) not in known
    ]


def is_base64(text: object) -> bool:
    """Whether it spells bytes, one at least, in either alphabet, padded or not."""
    return isinstance(text, str) and _BASE64.fullmatch(text) is not None and len(text.rstrip("=")) % 4 != 1
