# The OpenAI Responses family, spoken by a server.
#
# Theory of operation. An answer is a row of items (responses_items.py). A step goes on in the item that is open, or closes
# it and opens another; an item stays open until something else is said, so that `cut()` and `close()` leave it unfinished,
# as a lost connection does. The events that close it come with the next item or with the end. Each event gets its number
# last, and the first one of an answer has `response.created` and `response.in_progress` before it.

"""Scripted answers as OpenAI's Responses API and its relatives word them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, assert_never

from msgspec import UNSET

from turnkeeper.testing import strict, strict_responses
from turnkeeper.testing.openai_chat import OPENAI_CHAT
from turnkeeper.testing.responses_items import CallItem, Item, Payload, Status, TextItem, is_open
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.shapes import as_rows, as_table
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

_COMPLETED = ("completed", "stop", "tool_calls")  # finish reasons; the last two so that scripts serve several families
_ENCRYPTED = "reasoning.encrypted_content"
_ECHOED: dict[str, Any] = {  # what a response repeats of its request, and what it says where the request is silent
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "model": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
    "metadata": {},
}


class OpenAIResponses:
    """The family: `POST {root}/responses`, `GET {root}/models`.

    Its wire differs from chat completions in what the verbs do:

    - Of `call`, the options `index`, `legacy`, `name_in_each`, `name_split` and `late_id` have no meaning here and are
      ignored, and so are `as_parts` of `say` and `every_chunk` of `usage`. A call of `as_object`, or without a piece, has
      no deltas: its arguments are in its `response.output_item.done` only.
    - `think(..., "reasoning_text")` is reasoning as DeepSeek and LM Studio send it; in any other field it is a summary, a
      part each `think`, and `think("")` is an item without a summary. `encrypted_content` is sent to those who ask for
      it by `include`.
    - `finish`: "completed", "stop" and "tool_calls" complete the response, "failed" fails it, with what an `error` before
      it said; any other reason leaves it incomplete, "length" as `max_output_tokens`, the rest as named. None ends the
      items without an event that ends the response. No end mark is sent but by `done()`.
    - `error` is an event of type `error`; with a name, what it says is nested in `error`, as OpenAI was recorded.
    - `together` says one after another, for no two things share an event. `interleave` opens an item for each text and
      call and sends their events by turns.
    """

    root = "/v1"

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it."""
        match path.removeprefix(self.root), method:
            case "/responses", "POST":
                return "answer"
            case "/models", "GET":
                return "models"
            case "/responses" | "/models", _:
                return 405
            case _:
                return 404

    def key(self, headers: Mapping[str, str]) -> str:
        """The bearer token, or Azure's `api-key`."""
        return OPENAI_CHAT.key(headers)

    def problems(self, request: SeenRequest, rules: strict.Rules) -> list[str]:
        """What a strict server would refuse."""
        return strict_responses.problems(request, rules)

    def refusal(self, request: SeenRequest, rules: strict.Rules) -> Fail:
        """400, also for an unknown model."""
        known = strict.knows_model(request.body, rules)
        return Fail(status=400, message="; ".join(request.problems), code=None if known else "model_not_found")

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether `stream` is true."""
        return OPENAI_CHAT.wants_stream(request)

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """`{"error": {...}}`."""
        return OPENAI_CHAT.error(status, message, code)

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The list of models."""
        return OPENAI_CHAT.models(names)

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> ResponsesVoice:
        """Who gives this answer."""
        return ResponsesVoice(answer, as_table(request.body) or {}, new_id)


OPENAI_RESPONSES = OpenAIResponses()


class ResponsesVoice:
    """One answer. `say` and `end` for a stream, `whole` for a document."""

    def __init__(self, answer: Answer, request: dict[str, Any], new_id: Callable[[], str]) -> None:
        self._answer = answer
        self._request = request
        self._new_id = new_id
        self._name = new_id().removeprefix("call_")  # in the ids of the response and its items
        self._encrypts = _ENCRYPTED in (as_rows(request.get("include")) or [])
        self._items: list[Item] = []
        self._open: list[Item] = []
        self._number = 0
        self._failed: Error | None = None
        self._final: dict[str, Any] | None = None
        self._finished = False

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
        """What closes the open items, and `response.completed`, if no finish reason was said."""
        return [] if self._finished else self._events(self._finish("completed"))

    def whole(self) -> dict[str, Any]:
        """The whole answer as one response, or as an error."""
        for step in flat(self._answer.steps):
            if isinstance(step, Error):
                return {"error": {"message": step.message, "type": step.kind, "param": None, "code": step.code}}
        for step in self._answer.steps:
            if isinstance(step, Spoken):
                self.say(step)
        self.end()
        return self._final or self._response("completed")

    def _payloads(self, step: Chunked) -> list[Payload]:
        match step:
            case Say() | Think() | Refuse():
                return self._text(step)
            case Call():
                return self._close() + self._begin(step)
            case Error():
                return [self._error(step)]
            case Finish():
                return self._finish(step.reason)
            case Usage():
                return []  # the final event has the counts
            case Together():
                return list(chain.from_iterable(self._payloads(one) for one in step.steps))
            case Interleaved():
                return self._interleaved(step)
            case _:
                assert_never(step)

    def _text(self, step: Say | Think | Refuse) -> list[Payload]:
        if not step.pieces and not isinstance(step, Think):
            return []
        match self._open:
            case [TextItem() as item] if item.takes(step):
                return item.say(step)
            case _:
                return self._close() + self._begin(step)

    def _interleaved(self, step: Interleaved) -> list[Payload]:
        """Items by turns; what is no item comes after them."""
        closing = self._close()
        said = list(flat(step.steps))
        tracks = [self._begin(one) for one in said if isinstance(one, Say | Think | Refuse | Call)]
        events = [event for turn in zip_longest(*tracks) for event in turn if event is not None]
        for one in said:
            if isinstance(one, Error | Finish):
                events += self._payloads(one)
        return closing + events

    def _begin(self, step: Say | Think | Refuse | Call) -> list[Payload]:
        """A new item, with all that the step says in it. It stays open."""
        index = len(self._items)
        if isinstance(step, Call):
            item = CallItem(self._call_head(step, index), index, step)
            events = item.opened() + item.deltas()
        else:
            states = not isinstance(step, Think) or is_open(step)
            item = TextItem(self._text_head(step, index), index, states=states)
            events = item.opened() + item.say(step)
        self._items.append(item)
        self._open.append(item)
        return events

    def _text_head(self, step: Say | Think | Refuse, index: int) -> dict[str, Any]:
        if not isinstance(step, Think):
            return {"id": f"msg_{self._name}_{index}", "type": "message", "role": "assistant", "content": []}
        head: dict[str, Any] = {"id": f"rs_{self._name}_{index}", "type": "reasoning", "summary": [], "content": []}
        if is_open(step):
            return head
        return head | {"encrypted_content": f"gAAAAA{self._name}_{index}==" if self._encrypts else None}

    def _call_head(self, step: Call, index: int) -> dict[str, Any]:
        call_id = self._new_id() if step.id is UNSET else step.id
        named = {} if call_id is None else {"call_id": call_id}
        return {"id": f"fc_{self._name}_{index}", "type": "function_call", **named, "name": step.name}

    def _close(self, status: Status = "completed") -> list[Payload]:
        closing = [event for item in self._open for event in item.close(status)]
        self._open.clear()
        return closing

    def _error(self, step: Error) -> Payload:
        self._failed = step
        said = {"code": step.code, "message": step.message, "param": None}
        return {"type": "error", "error": {"type": step.kind, **said}} if step.name else {"type": "error", **said}

    def _finish(self, reason: str | None) -> list[Payload]:
        self._finished = True
        if reason is None:
            return self._close()
        if reason in _COMPLETED:
            closing = self._close()
            self._final = self._response("completed")
        elif reason == "failed":
            self._close("incomplete")  # OpenAI leaves items as they are when a response fails
            closing = []
            self._final = self._response("failed", error=self._failure())
        else:
            closing = self._close("incomplete")
            named = {"reason": "max_output_tokens" if reason == "length" else reason}
            self._final = self._response("incomplete", incomplete_details=named)
        return [*closing, {"type": f"response.{self._final['status']}", "response": self._final}]

    def _failure(self) -> dict[str, Any]:
        failed = self._failed or Error("The server had an error.")
        return {"code": failed.code or failed.kind, "message": failed.message}

    def _response(self, status: str, **fields: Any) -> dict[str, Any]:
        """The response as it is now."""
        running = status == "in_progress"
        head = {"id": f"resp_{self._name}", "object": "response", "created_at": CREATED, "status": status}
        own = {
            "completed_at": CREATED + 1 if status == "completed" else None,
            "error": None,
            "incomplete_details": None,
            "output": [item.document for item in self._items] if not running else [],
            "usage": None if running or status == "failed" else _usage(self._answer, self._request),
        }
        echoed = {name: self._request.get(name, usual) for name, usual in _ECHOED.items()}
        return head | own | echoed | fields

    def _events(self, payloads: list[Payload]) -> list[SseEvent]:
        if payloads and not self._number:
            begun = self._response("in_progress")
            payloads = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")] + payloads
        return [self._event(payload) for payload in payloads]

    def _event(self, payload: Payload) -> SseEvent:
        name = payload["type"]
        numbered = {"type": name, "sequence_number": self._number} | payload
        self._number += 1
        return SseEvent(spelled(numbered), name)


def _usage(answer: Answer, request: dict[str, Any]) -> dict[str, Any]:
    counts = count(answer, {name: request.get(name) for name in ("instructions", "input", "tools")})
    given = answer.usage or Usage()
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.completion,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.prompt + counts.completion,
    } | given.extra
