# The Google Gemini family, spoken by a server.
#
# Theory of operation. A step becomes parts, each in a chunk of its own with the counts so far. Calls have no ids unless the
# script gives one, and each is signed, as the models since Gemini 3 do. There is no end mark: the stream is over when the
# body ends, and the finish reason comes with the last chunk.

"""Scripted answers as Google's Gemini API words them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeGuard, assert_never
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import UNSET

from turnkeeper.testing import strict, strict_gemini
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.shapes import as_table, spells_object
from turnkeeper.testing.steps import (
    Answer,
    Call,
    Chunked,
    Done,
    Error,
    Event,
    Fail,
    Finish,
    Interleaved,
    Refuse,
    Say,
    Spoken,
    Think,
    Together,
    Usage,
    flat,
)
from turnkeeper.testing.wire import Asked, SseEvent
from turnkeeper.testing.wording import count, spelled

_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"}
_STATUSES: dict[int, tuple[str, str]] = {  # status -> its name, message
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "Requested entity was not found."),
    405: ("UNIMPLEMENTED", "Method not allowed."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The request timed out. Please try again."),
}


class Gemini:
    """The family: `POST {root}/models/NAME:streamGenerateContent`, `:generateContent`, `GET {root}/models`.

    Its wire differs from chat completions in what the verbs do:

    - A `call` is one part, with its arguments as an object, without an id unless one is given, and signed. An `index` has
      its texts come as `partialArgs`, a string value at a time. Text that is no JSON object can't be sent: such a call is
      left open where `finish("length")` or a break-off follows, else the answer ends as `MALFORMED_FUNCTION_CALL`.
    - `think` is a part marked `thought`.
    - `finish`: "stop", "tool_calls", "length" and "content_filter" become `STOP`, `STOP`, `MAX_TOKENS` and `SAFETY`; others
      are sent as they are. None ends the stream without a finish reason.
    - `refuse` blocks the prompt (`promptFeedback`), without a candidate. `usage` comes with each chunk.
    - `together` puts parts into one chunk. `interleave` sends the chunks of several steps by turns.
    - A request for a stream without `alt=sse` gets one JSON list.
    """

    root = "/v1beta"

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it."""
        rest = path.removeprefix(self.root)
        if rest == "/models":
            return "models" if method == "GET" else 405
        if rest.startswith("/models/") and rest.endswith((":streamGenerateContent", ":generateContent")):
            return "answer" if method == "POST" else 405
        return 404

    def key(self, headers: Mapping[str, str]) -> str:
        """`x-goog-api-key`."""
        return headers.get("x-goog-api-key", "")

    def problems(self, request: SeenRequest, rules: strict.Rules) -> list[str]:
        """What a strict server would refuse."""
        return strict_gemini.problems(request, rules)

    def refusal(self, request: SeenRequest, rules: strict.Rules) -> Fail:
        """404 for an unknown model, else 400."""
        known = not rules.models or model_of(request) in rules.models
        return Fail(status=400 if known else 404, message="; ".join(request.problems))

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether events are asked for; a stream without `alt=sse` is one document."""
        return "sse" in parse_qs(urlsplit(request.path).query).get("alt", ())

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """`{"error": {...}}`; an unknown key is a 400 in the body, as Google has it."""
        if status == 401:
            details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
            said = message or "API key not valid. Please pass a valid API key."
            return {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT", "details": details}}
        name, usual = _STATUSES.get(status, ("INTERNAL", "An internal error has occurred."))
        return {"error": {"code": status, "message": message or usual, "status": code or name}}

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The list of models."""
        methods = ["generateContent", "countTokens"]
        return {"models": [{"name": f"models/{name}", "supportedGenerationMethods": methods} for name in names]}

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> GeminiVoice:
        """Who gives this answer."""
        return GeminiVoice(answer, request, new_id)


GEMINI = Gemini()


def model_of(request: SeenRequest) -> str:
    """The model that a request's path names."""
    path = urlsplit(request.path).path
    return unquote(path.partition("/models/")[2].rpartition(":")[0])


Part = dict[str, Any]


class GeminiVoice:
    """One answer. `say` and `end` for a stream, `whole` for a document."""

    def __init__(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> None:
        self._answer = answer
        self._model = model_of(request)
        self._streams = request.path.partition("?")[0].endswith(":streamGenerateContent")
        self._sent = as_table(request.body) or {}
        self._name = new_id().removeprefix("call_")
        self._finished = False
        self._refused = False
        reasons = [step.reason for step in flat(answer.steps) if isinstance(step, Finish)]
        self._cut = reasons[-1:] == ["length"] or answer.end is not None
        self._malformed = "" if self._cut else next((_malformed(step) for step in flat(answer.steps) if _is_broken(step)), "")

    def say(self, step: Spoken) -> list[SseEvent]:
        """The step's events."""
        match step:
            case Event():
                return [SseEvent(step.data, step.name)]
            case Done():
                return [SseEvent("[DONE]")]
            case _:
                return [SseEvent(spelled(chunk)) for chunk in self._chunks(step)]

    def end(self) -> list[SseEvent]:
        """The finish reason, if none was said."""
        if self._finished or self._refused:
            return []
        return [SseEvent(spelled(self._chunk([{"text": ""}], "MALFORMED_FUNCTION_CALL" if self._malformed else "STOP")))]

    def whole(self) -> Any:
        """The whole answer: one document, or a list of chunks where a stream was asked for without `alt=sse`."""
        said = list(flat(self._answer.steps))
        for step in said:
            if isinstance(step, Error):
                return self._error(step)
        if any(isinstance(step, Refuse) for step in said):
            return self._blocked()
        parts = [_whole_part(step) for step in said if isinstance(step, Say | Think | Call)]
        reasons = [step.reason for step in said if isinstance(step, Finish) and step.reason is not None]
        chunk = self._chunk(parts, _REASONS.get(reasons[-1], reasons[-1]) if reasons else "STOP")
        return [chunk] if self._streams else chunk

    def _chunks(self, step: Chunked) -> list[dict[str, Any]]:
        match step:
            case Say() | Think() | Call():
                return [self._chunk([part]) for part in _parts(step, cut=self._cut)]
            case Refuse():
                self._refused = True
                return [self._blocked()]
            case Error():
                return [self._error(step)]
            case Finish():
                self._finished = True
                reason = _REASONS.get(step.reason, step.reason) if step.reason is not None else None
                return [] if reason is None else [self._chunk([{"text": ""}], reason)]
            case Usage():
                return []  # each chunk has the counts
            case Together():
                said = [
                    part
                    for one in flat(step.steps)
                    if isinstance(one, Say | Think | Call)
                    for part in _parts(one, cut=self._cut)
                ]
                ends = [chunk for one in flat(step.steps) if isinstance(one, Finish) for chunk in self._chunks(one)]
                reason = ends[-1]["candidates"][0]["finishReason"] if ends else None
                return [self._chunk(said, reason)]
            case Interleaved():
                turns = zip_longest(*[self._chunks(one) for one in step.steps])
                return [chunk for turn in turns for chunk in turn if chunk is not None]
            case _:
                assert_never(step)

    def _chunk(self, parts: list[Part], reason: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}}
        candidate |= {"finishReason": reason} if reason else {}
        candidate |= {"finishMessage": self._malformed} if reason == "MALFORMED_FUNCTION_CALL" else {}
        return {"candidates": [candidate | {"index": 0}], **self._tail()}

    def _blocked(self) -> dict[str, Any]:
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **self._tail()}

    def _tail(self) -> dict[str, Any]:
        counts = count(self._answer, {name: self._sent.get(name) for name in ("systemInstruction", "contents", "tools")})
        given = self._answer.usage or Usage()
        usage: dict[str, Any] = {
            "promptTokenCount": counts.prompt,
            "candidatesTokenCount": counts.completion - counts.reasoning,
            "totalTokenCount": counts.prompt + counts.completion,
        }
        usage |= {"cachedContentTokenCount": counts.cached} if counts.cached else {}
        usage |= {"thoughtsTokenCount": counts.reasoning} if counts.reasoning else {}
        return {"usageMetadata": usage | given.extra, "modelVersion": self._model, "responseId": f"r{self._name}"}

    def _error(self, step: Error) -> dict[str, Any]:
        code = step.code if isinstance(step.code, int) else 500
        return {"error": {"code": code, "message": step.message, "status": _STATUSES.get(code, ("INTERNAL", ""))[0]}}


def _parts(step: Say | Think | Call, *, cut: bool) -> list[Part]:
    """The parts of a step in a stream, a chunk each. cut: the answer ends for want of room."""
    match step:
        case Say():
            return [{"text": piece} for piece in step.pieces]
        case Think():
            return [{"text": piece, "thought": True} for piece in step.pieces]
        case Call():
            if _is_broken(step):
                return [{"functionCall": {"name": step.name, "willContinue": True}}] if cut else []
            arguments = _arguments(step)
            texts = bool(arguments) and all(isinstance(one, str) for one in arguments.values())
            return _streamed(step, arguments) if texts and step.index is not UNSET else [_call(step)]


def _arguments(step: Call) -> dict[str, Any]:
    if isinstance(step.arguments, dict):
        return step.arguments
    return json.loads(step.arguments) if spells_object(step.arguments) else {}


def _is_broken(step: object) -> TypeGuard[Call]:
    """A call whose arguments are no object, which this wire can't say; no arguments at all are an empty one."""
    return (
        isinstance(step, Call)
        and isinstance(step.arguments, str)
        and bool(step.arguments)
        and not spells_object(step.arguments)
    )


def _malformed(step: Call) -> str:
    return f"Malformed function call: print(default_api.{step.name}({step.text}))"


def _whole_part(step: Say | Think | Call) -> Part:
    match step:
        case Say():
            return {"text": "".join(step.pieces)}
        case Think():
            return {"text": "".join(step.pieces), "thought": True}
        case Call():
            return _call(step)


def _call(step: Call) -> Part:
    named: dict[str, Any] = {"name": step.name, "args": _arguments(step)}
    named |= {"id": step.id} if isinstance(step.id, str) and step.id else {}
    return {"functionCall": named, "thoughtSignature": b64encode(f"signed:{step.name}".encode()).decode()}


def _streamed(step: Call, arguments: dict[str, str]) -> list[Part]:
    """A call whose texts come in two halves each, as values with paths."""
    begun = _call(step)
    del begun["functionCall"]["args"]
    begun["functionCall"]["willContinue"] = True
    parts = [begun]
    for name, value in arguments.items():
        half = len(value) // 2
        for text in (value[:half], value[half:]):
            piece = {"jsonPath": f"$.{name}", "stringValue": text, "willContinue": True}
            parts.append({"functionCall": {"partialArgs": [piece], "willContinue": True}})
    return [*parts, {"functionCall": {}}]
