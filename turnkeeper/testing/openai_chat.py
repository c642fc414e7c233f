# The OpenAI chat-completions family, spoken by a server.
#
# Theory of operation. A step becomes chunks (what is in them, without the envelope that all share); `together` merges
# chunks, `interleave` shuffles them; last each gets its envelope and is one event. The role comes in a chunk of its own
# before the first delta, as OpenAI sends it.

"""Scripted answers as OpenAI's chat completions and its relatives word them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, assert_never

from msgspec import UNSET, Struct

from turnkeeper.testing import strict
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.shapes import as_table
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
from turnkeeper.testing.wording import CREATED, count, spelled

_DONE = SseEvent("[DONE]")
_ERRORS: dict[int, tuple[str, str, str | None]] = {  # status -> message, type, code
    400: ("The request was not valid.", "invalid_request_error", None),
    401: ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    402: ("Payment required.", "billing_error", "insufficient_credits"),
    403: ("You have no access to this.", "permission_error", None),
    404: ("Not found.", "invalid_request_error", None),
    405: ("This method is not allowed here.", "invalid_request_error", None),
    413: ("The request is too large.", "invalid_request_error", "request_too_large"),
    429: ("Rate limit reached. Please try again later.", "requests", "rate_limit_exceeded"),
    503: ("The server is overloaded. Please try again later.", "server_error", "overloaded"),
}


class OpenAIChat:
    """The family: `POST {root}/chat/completions`, `GET {root}/models`."""

    root = "/v1"

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it."""
        match path.removeprefix(self.root), method:
            case "/chat/completions", "POST":
                return "answer"
            case "/models", "GET":
                return "models"
            case "/chat/completions" | "/models", _:
                return 405
            case _:
                return 404

    def key(self, headers: Mapping[str, str]) -> str:
        """The bearer token, or Azure's `api-key`."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else headers.get("api-key", "")

    def problems(self, request: SeenRequest, rules: strict.Rules) -> list[str]:
        """What a strict server would refuse."""
        return strict.problems(request.body, rules)

    def refusal(self, request: SeenRequest, rules: strict.Rules) -> Fail:
        """404 for an unknown model, else 400."""
        said = "; ".join(request.problems)
        if not strict.knows_model(request.body, rules):
            return Fail(status=404, message=said, code="model_not_found")
        return Fail(status=400, message=said)

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether `stream` is true."""
        return (as_table(request.body) or {}).get("stream") is True

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """`{"error": {...}}`."""
        usual = _ERRORS.get(status, ("The server had an error.", "server_error", None))
        return {"error": {"message": message or usual[0], "type": usual[1], "param": None, "code": code or usual[2]}}

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The list of models."""
        entries = [{"id": name, "object": "model", "created": CREATED, "owned_by": "turnkeeper"} for name in names]
        return {"object": "list", "data": entries}

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> OpenAIVoice:
        """Who gives this answer."""
        return OpenAIVoice(answer, as_table(request.body) or {}, new_id)


OPENAI_CHAT = OpenAIChat()


class Chunk(Struct, frozen=True):
    """What is in a chunk. `finish` None is a null reason; `error` alone stands without an envelope."""

    delta: dict[str, Any] | None = None
    finish: str | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class OpenAIVoice:
    """One answer. `say` and `end` for a stream, `whole` for a document."""

    def __init__(self, answer: Answer, request: dict[str, Any], new_id: Callable[[], str]) -> None:
        self._answer = answer
        self._request = request
        self._new_id = new_id
        self._counts = _count(answer, request)
        self._usage_asked = (as_table(request.get("stream_options")) or {}).get("include_usage") is True
        self._id = f"chatcmpl-{new_id().removeprefix('call_')}"
        self._calls = 0
        self._role_said = False
        self._finished = False
        self._usage_said = False
        self._done_due = not answer.framing.no_done

    def say(self, step: Spoken) -> list[SseEvent]:
        """The step's events."""
        match step:
            case Event():
                return [SseEvent(step.data, step.name)]
            case Done():
                self._done_due = False
                return [_DONE]
            case Error() if step.name:
                return [SseEvent(spelled({"error": _error(step)}), step.name)]
            case _:
                return self._events(self._chunks(step))

    def end(self) -> list[SseEvent]:
        """Finish reason, counts and end mark, as far as they are still due."""
        chunks: list[Chunk] = []
        if not self._finished:
            chunks.append(Chunk(delta={}, finish=_usual_finish(self._answer)))
        wanted = self._usage_asked or self._answer.usage is not None
        if wanted and not self._usage_said:
            chunks.append(Chunk(usage=self._counts))
        return self._events(chunks) + ([_DONE] if self._done_due else [])

    def whole(self) -> dict[str, Any]:
        """The whole answer as one `chat.completion`, or as an error."""
        said = list(flat(self._answer.steps))
        for step in said:
            if isinstance(step, Error):
                return {"error": _error(step)}
        reasons = [step.reason for step in said if isinstance(step, Finish)]
        finish = reasons[-1] if reasons else _usual_finish(self._answer)
        choice = {"index": 0, "message": self._message(), "logprobs": None, "finish_reason": finish}
        return {**self._envelope("chat.completion"), "choices": [choice], "usage": self._counts}

    def _message(self) -> dict[str, Any]:
        """All deltas in one: pieces joined, calls without their index."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for step in flat(self._answer.steps):
            match step:
                case Say() | Think() | Refuse():
                    joined = _delta(step, "".join(step.pieces))
                    if joined.get("content") == "":
                        continue
                    message = _merged(message, joined)
                case Call(legacy=True):
                    message["function_call"] = {"name": step.name, "arguments": step.text}
                case Call():
                    function = {"name": step.name, "arguments": step.arguments if step.as_object else step.text}
                    entry = {"id": self._id_of(step), "type": "function", "function": function}
                    message.setdefault("tool_calls", []).append(_without_none(entry))
                case Error() | Finish() | Usage() | Done() | Event():
                    pass
                case _:
                    assert_never(step)
        return message

    def _chunks(self, step: Chunked) -> list[Chunk]:
        match step:
            case Say() | Think() | Refuse():
                return [Chunk(delta=_delta(step, piece)) for piece in step.pieces]
            case Call():
                return [Chunk(delta=delta) for delta in self._call(step)]
            case Error():
                return [Chunk(error=_error(step))]
            case Finish():
                return self._finish(step)
            case Usage():
                return self._usage()
            case Together():
                return [_one_chunk(chain.from_iterable(self._parts(step.steps)))]
            case Interleaved():
                turns = zip_longest(*self._parts(step.steps))
                return [chunk for turn in turns for chunk in turn if chunk is not None]
            case _:
                assert_never(step)

    def _parts(self, steps: tuple[Chunked, ...]) -> list[list[Chunk]]:
        return [[Chunk(usage=self._counts)] if isinstance(step, Usage) else self._chunks(step) for step in steps]

    def _finish(self, step: Finish) -> list[Chunk]:
        self._finished = True
        self._done_due = step.done and not self._answer.framing.no_done
        return [] if step.reason is None else [Chunk(delta={}, finish=step.reason)]

    def _usage(self) -> list[Chunk]:
        """The counts, if the finish reason is out; else `end` sends them, or each chunk has them."""
        return [Chunk(usage=self._counts)] if self._finished and not self._every_chunk else []

    def _call(self, step: Call) -> list[dict[str, Any]]:
        functions = _functions(step)
        if step.legacy:
            return [{"function_call": function} for function in functions]
        index = self._calls if step.index is UNSET else step.index
        self._calls += 1
        deltas: list[dict[str, Any]] = []
        for place, function in enumerate(functions):
            call_id = self._id_of(step) if place == int(step.late_id) else None
            kind = "function" if place == 0 else None
            deltas.append({"tool_calls": [_without_none({"index": index, "id": call_id, "type": kind, "function": function})]})
        return deltas

    def _id_of(self, step: Call) -> str | None:
        return self._new_id() if step.id is UNSET else step.id

    @property
    def _every_chunk(self) -> bool:
        return self._answer.usage is not None and self._answer.usage.every_chunk

    def _events(self, chunks: list[Chunk]) -> list[SseEvent]:
        events: list[SseEvent] = []
        for chunk in chunks:
            if chunk.delta and not self._role_said:
                self._role_said = True
                nothing = None if "tool_calls" in chunk.delta or "function_call" in chunk.delta else ""
                events.append(self._event(Chunk(delta={"role": "assistant", "content": nothing})))
            events.append(self._event(chunk))
        return events

    def _event(self, chunk: Chunk) -> SseEvent:
        if chunk.error is not None and chunk.delta is None:
            return SseEvent(spelled({"error": chunk.error}))
        choice = {"index": 0, "delta": chunk.delta, "logprobs": None, "finish_reason": chunk.finish}
        body = self._envelope("chat.completion.chunk") | {"choices": [] if chunk.delta is None else [choice]}
        if chunk.usage is not None or self._every_chunk:
            self._usage_said = True
            body["usage"] = self._counts
        elif self._usage_asked:
            body["usage"] = None
        if chunk.error is not None:
            body["error"] = chunk.error
        return SseEvent(spelled(body))

    def _envelope(self, kind: str) -> dict[str, Any]:
        model = self._request.get("model")
        return {"id": self._id, "object": kind, "created": CREATED, "model": model}


def _delta(step: Say | Think | Refuse, text: str) -> dict[str, Any]:
    match step:
        case Say(as_parts=True):
            return {"content": [{"type": "text", "text": text}]}
        case Say():
            return {"content": text}
        case Refuse():
            return {"refusal": text}
        case Think(field="content"):
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}
        case Think(field="reasoning_details"):
            detail = {"type": "reasoning.text", "text": text, "index": 0, "format": None}
            return {"reasoning": text, "reasoning_details": [detail]}
        case Think():
            return {step.field: text}
        case _:
            assert_never(step)


def _functions(step: Call) -> list[dict[str, Any]]:
    """What `function` is in each delta of a call: one piece is the whole call, else the name comes before the arguments."""
    if step.as_object:
        return [{"name": step.name, "arguments": step.arguments}]
    first, rest = ("", step.fragments) if len(step.fragments) != 1 else (step.fragments[0], ())
    functions: list[dict[str, Any]] = [{"name": step.name, "arguments": first}]
    if step.name_split:
        half = len(step.name) // 2
        functions = [{"name": step.name[:half], "arguments": ""}, {"name": step.name[half:], "arguments": first}]
    functions += [{"arguments": fragment} for fragment in rest]
    if step.late_id and len(functions) == 1:
        functions.append({"arguments": ""})
    return [{"name": step.name} | function for function in functions] if step.name_in_each else functions


def _one_chunk(chunks: Iterable[Chunk]) -> Chunk:
    delta: dict[str, Any] | None = None
    one = Chunk()
    for chunk in chunks:
        if chunk.delta is not None:
            delta = _merged(delta or {}, chunk.delta)
        finish = one.finish if chunk.finish is None else chunk.finish
        one = Chunk(delta, finish, chunk.usage or one.usage, chunk.error or one.error)
    return one


def _merged(delta: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both deltas in one: texts and lists are joined."""
    merged = dict(delta)
    for name, value in other.items():
        have: Any = merged.get(name)
        joins = type(have) is type(value) and isinstance(value, str | list)
        merged[name] = have + value if joins else value
    return merged


def _usual_finish(answer: Answer) -> str:
    calls = [step for step in flat(answer.steps) if isinstance(step, Call)]
    if not calls:
        return "stop"
    return "function_call" if calls[-1].legacy else "tool_calls"


def _count(answer: Answer, request: dict[str, Any]) -> dict[str, Any]:
    counts = count(answer, {"messages": request.get("messages"), "tools": request.get("tools")})
    given = answer.usage or Usage()
    return {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    } | given.extra


def _error(step: Error) -> dict[str, Any]:
    return {"message": step.message, "type": step.kind, "param": None, "code": step.code}


def _without_none(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not None}
