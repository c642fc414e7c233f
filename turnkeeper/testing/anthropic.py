# The Anthropic Messages family, spoken by a server.
#
# Theory of operation. An answer is a row of content blocks. A step goes on in the block that is open, or ends it and begins
# another; the open block is ended by the next one or by the end, so that `cut()` leaves it unfinished, as a lost connection
# does. Before the first block stands `message_start`, with a number of output tokens that is a placeholder.

"""Scripted answers as Anthropic's Messages API words them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, assert_never

from msgspec import UNSET

from turnkeeper.testing import strict, strict_anthropic
from turnkeeper.testing.openai_chat import OPENAI_CHAT
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
from turnkeeper.testing.wording import count, spelled

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_ERRORS: dict[int, tuple[str, str]] = {  # status -> type, message
    400: ("invalid_request_error", "The request was not valid."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found."),
    405: ("invalid_request_error", "Method Not Allowed"),
    413: ("request_too_large", "Request exceeds the maximum size."),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    529: ("overloaded_error", "Overloaded"),
}


class Anthropic:
    """The family: `POST {root}/messages`, `GET {root}/models`.

    Its wire differs from chat completions in what the verbs do:

    - Of `call`, only `id` and `pieces` have a meaning; arguments without a piece have no deltas.
    - `think` is a thinking block with a signature; in the field "redacted_thinking" a block of which only data is sent.
    - `finish`: "stop", "length", "tool_calls" and "content_filter" become `end_turn`, `max_tokens`, `tool_use` and `refusal`;
      others are sent as they are. None ends the message without a stop reason.
    - `refuse` is text that ends in `refusal`. `usage(cached=...)` is told apart from `input_tokens`, as this family does.
    - `error` is an `event: error`. `together` says one after another; `interleave` sends the deltas of several blocks by turns.
    """

    root = "/v1"

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it."""
        match path.removeprefix(self.root), method:
            case "/messages", "POST":
                return "answer"
            case "/models", "GET":
                return "models"
            case "/messages" | "/models", _:
                return 405
            case _:
                return 404

    def key(self, headers: Mapping[str, str]) -> str:
        """`x-api-key`, or a bearer token."""
        return headers.get("x-api-key", "") or OPENAI_CHAT.key(headers)

    def problems(self, request: SeenRequest, rules: strict.Rules) -> list[str]:
        """What a strict server would refuse."""
        return strict_anthropic.problems(request, rules)

    def refusal(self, request: SeenRequest, rules: strict.Rules) -> Fail:
        """404 for an unknown model, else 400."""
        known = strict.knows_model(request.body, rules)
        return Fail(status=400 if known else 404, message="; ".join(request.problems))

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether `stream` is true."""
        return OPENAI_CHAT.wants_stream(request)

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """`{"type": "error", "error": {...}}`."""
        kind, usual = _ERRORS.get(status, ("api_error", "Internal server error"))
        return {"type": "error", "error": {"type": code or kind, "message": message or usual}, "request_id": "req_scripted"}

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The list of models."""
        entries = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names]
        return {"data": entries, "has_more": False}

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> MessagesVoice:
        """Who gives this answer."""
        return MessagesVoice(answer, as_table(request.body) or {}, new_id)


ANTHROPIC = Anthropic()

Payload = dict[str, Any]


class MessagesVoice:
    """One answer. `say` and `end` for a stream, `whole` for a document."""

    def __init__(self, answer: Answer, request: dict[str, Any], new_id: Callable[[], str]) -> None:
        self._answer = answer
        self._request = request
        self._new_id = new_id
        self._name = new_id().removeprefix("call_")
        self._begun = False
        self._blocks = 0
        self._open: str = ""  # the kind of the block that is open
        self._finished = False
        self._reason: str | None = None

    def say(self, step: Spoken) -> list[SseEvent]:
        """The step's events."""
        match step:
            case Event():
                return [SseEvent(step.data, step.name)]
            case Done():
                return [SseEvent("[DONE]")]
            case _:
                return self._events(self._payloads(step))

    def end(self) -> list[SseEvent]:
        """What closes the open block, the stop reason, the counts, and `message_stop`, as far as they are still due."""
        return [] if self._finished else self._events(self._finish(self._usual_reason()))

    def whole(self) -> dict[str, Any]:
        """The whole answer as one message, or as an error."""
        said = list(flat(self._answer.steps))
        for step in said:
            if isinstance(step, Error):
                return self._error(step)
        blocks: list[dict[str, Any]] = []
        for step in said:
            if isinstance(step, Say | Refuse) and step.pieces:
                blocks.append({"type": "text", "text": "".join(step.pieces)})
            elif isinstance(step, Think):
                blocks.append(self._thinking(step, "".join(step.pieces), signature=_signature(step)))
            elif isinstance(step, Call):
                blocks.append(self._call_head(step) | {"input": step.arguments if isinstance(step.arguments, dict) else {}})
        reasons = [step.reason for step in said if isinstance(step, Finish)]
        reason = _worded(reasons[-1]) if reasons else self._usual_reason()
        return self._message(blocks, reason) | {"usage": self._usage(closing=True)}

    def _payloads(self, step: Chunked) -> list[Payload]:
        match step:
            case Say() | Refuse():
                self._reason = "refusal" if isinstance(step, Refuse) else self._reason
                return self._text(step)
            case Think():
                return [*self._close(), *self._think(step)]
            case Call():
                return [*self._close(), *self._call(step)]
            case Error():
                return [self._error(step)]
            case Finish():
                return self._finish(_worded(step.reason))
            case Usage():
                return []  # the closing event has the counts
            case Together():
                return [payload for one in step.steps for payload in self._payloads(one)]
            case Interleaved():
                return self._interleaved(step)
            case _:
                assert_never(step)

    def _text(self, step: Say | Refuse) -> list[Payload]:
        if not step.pieces:
            return []
        begun: list[Payload] = []
        if self._open != "text":
            begun = [*self._close(), self._begin({"type": "text", "text": ""})]
        return [*begun, *[self._delta({"type": "text_delta", "text": piece}) for piece in step.pieces]]

    def _think(self, step: Think) -> list[Payload]:
        if step.field == "redacted_thinking":
            return [self._begin(self._thinking(step, "", signature="")), *self._close()]
        deltas = [self._delta({"type": "thinking_delta", "thinking": piece}) for piece in step.pieces]
        begun = self._begin(self._thinking(step, "", signature=""))
        for delta in deltas:
            delta["index"] = begun["index"]
        signed = self._delta({"type": "signature_delta", "signature": _signature(step)})
        return [begun, *deltas, signed, *self._close()]

    def _thinking(self, step: Think, text: str, *, signature: str) -> dict[str, Any]:
        if step.field == "redacted_thinking":
            return {"type": "redacted_thinking", "data": b64encode("".join(step.pieces).encode()).decode()}
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _call(self, step: Call) -> list[Payload]:
        begun = self._begin(self._call_head(step) | {"input": {}})
        fragments = () if step.arguments == {} else step.fragments
        return [begun, *[self._delta({"type": "input_json_delta", "partial_json": piece}) for piece in fragments]]

    def _call_head(self, step: Call) -> dict[str, Any]:
        call_id = self._new_id() if step.id is UNSET else step.id
        named = {} if call_id is None else {"id": call_id}
        return {"type": "tool_use", **named, "name": step.name}

    def _interleaved(self, step: Interleaved) -> list[Payload]:
        """Blocks begun together, their deltas by turns; what is no block comes after them."""
        closing = self._close()
        tracks: list[list[Payload]] = []
        after: list[Payload] = []
        for one in flat(step.steps):
            if isinstance(one, Say | Think | Call):
                track = self._payloads(one)
                tracks.append([payload for payload in track if payload["type"] != "content_block_stop"])
                self._open = ""
            elif isinstance(one, Error | Finish):
                after += self._payloads(one)
        ended = [{"type": "content_block_stop", "index": track[0]["index"]} for track in tracks if track]
        return [*closing, *[one for turn in zip_longest(*tracks) for one in turn if one is not None], *ended, *after]

    def _begin(self, block: dict[str, Any]) -> Payload:
        self._open = block["type"]
        self._blocks += 1
        return {"type": "content_block_start", "index": self._blocks - 1, "content_block": block}

    def _delta(self, delta: dict[str, Any]) -> Payload:
        return {"type": "content_block_delta", "index": self._blocks - 1, "delta": delta}

    def _close(self) -> list[Payload]:
        if not self._open:
            return []
        self._open = ""
        return [{"type": "content_block_stop", "index": self._blocks - 1}]

    def _finish(self, reason: str | None) -> list[Payload]:
        self._finished = True
        closing = self._close()
        if reason is None:
            return closing
        said = {"stop_reason": reason, "stop_sequence": None}
        return [
            *closing,
            {"type": "message_delta", "delta": said, "usage": self._usage(closing=True)},
            {"type": "message_stop"},
        ]

    def _usual_reason(self) -> str:
        called = any(isinstance(step, Call) for step in flat(self._answer.steps))
        return self._reason or ("tool_use" if called else "end_turn")

    def _error(self, step: Error) -> Payload:
        kind = step.code if isinstance(step.code, str) else "api_error" if step.kind == "server_error" else step.kind
        return {"type": "error", "error": {"type": kind, "message": step.message}}

    def _message(self, content: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        head = {"id": f"msg_{self._name}", "type": "message", "role": "assistant", "model": self._request.get("model")}
        return head | {"content": content, "stop_reason": reason, "stop_sequence": None}

    def _usage(self, *, closing: bool) -> dict[str, Any]:
        counts = count(self._answer, {name: self._request.get(name) for name in ("system", "messages", "tools")})
        given = self._answer.usage or Usage()
        return {
            "input_tokens": counts.prompt - counts.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": counts.cached,
            "output_tokens": counts.completion if closing else 1,
        } | (given.extra if closing else {})

    def _events(self, payloads: list[Payload]) -> list[SseEvent]:
        if payloads and not self._begun:
            self._begun = True
            message = self._message([], None) | {"usage": self._usage(closing=False)}
            payloads = [{"type": "message_start", "message": message}, *payloads[:1], {"type": "ping"}, *payloads[1:]]
        return [SseEvent(spelled(payload), payload["type"]) for payload in payloads]


def _worded(reason: str | None) -> str | None:
    return _REASONS.get(reason, reason) if reason is not None else None


def _signature(step: Think) -> str:
    """A signature that is made of what it signs, as far as a script can."""
    return b64encode(f"signed:{''.join(step.pieces)[:24]}".encode()).decode()
