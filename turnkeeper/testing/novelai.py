# The NovelAI text family, spoken by a server.
#
# The service knows no roles, calls or reasoning: a script's texts are its tokens, one event a piece. A fragment ends with its
# last token, after at most `max_length` of them; the rest of the text is what the next request of the session gets.

"""Scripted answers as NovelAI's text service words them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.steps import Answer, Done, Error, Event, Fail, Finish, Say, Spoken, flat
from turnkeeper.testing.strict import Rules
from turnkeeper.testing.wire import Asked, SseEvent

_MOST_TOKENS = 150
_KNOWN = {"input", "model", "parameters", "prefix"}


class NovelAI:
    """The family: `POST {root}/ai/generate-stream`."""

    root = ""

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it."""
        if path not in ("/ai/generate-stream", "/ai/generate"):
            return 404
        return "answer" if method == "POST" else 405

    def key(self, headers: Mapping[str, str]) -> str:
        """The bearer token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def problems(self, request: SeenRequest, rules: Rules) -> list[str]:
        """What the service would refuse."""
        body = _table(request.body)
        found = [f"{name}: should not exist" for name in body if name not in _KNOWN]
        if not isinstance(body.get("input"), str) or not body.get("input"):
            found.append("input: must be a string that is not empty")
        model = body.get("model")
        if not isinstance(model, str) or (rules.models and model not in rules.models):
            found.append(f"model: {model!r} does not exist; there is {', '.join(rules.models)}")
        most = _table(body.get("parameters")).get("max_length")
        if not isinstance(most, int) or not 1 <= most <= _MOST_TOKENS:
            found.append(f"parameters.max_length: must be 1 to {_MOST_TOKENS}")
        if _table(body.get("parameters")).get("use_string") is not True:
            found.append("parameters.use_string: must be true, for the input is text")
        return found

    def refusal(self, request: SeenRequest, rules: Rules) -> Fail:
        """400, as the service words it."""
        return Fail(status=400, message="; ".join(request.problems))

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether the path is the streaming one."""
        return request.path.endswith("-stream")

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """`{"statusCode": ..., "message": ...}`."""
        return {"statusCode": status, "message": message or code or "The request failed."}

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The service lists none."""
        return {}

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> NovelVoice:
        """Who gives this answer."""
        return NovelVoice(answer)


NOVELAI = NovelAI()


class NovelVoice:
    """One fragment."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._number = 0
        tokens = sum(len(step.pieces) for step in flat(answer.steps) if isinstance(step, Say))
        self._last = tokens if answer.end is None else -1  # an answer that breaks off has no last token

    def say(self, step: Spoken) -> list[SseEvent]:
        """The step's events: a token each. Steps that this family has no words for say nothing."""
        match step:
            case Say():
                return [self._token(piece) for piece in step.pieces]
            case Event():
                return [SseEvent(step.data, step.name)]
            case Error():
                return [SseEvent(json.dumps({"statusCode": 500, "message": step.message}), "error")]
            case _:
                return []

    def end(self) -> list[SseEvent]:
        """Nothing, but for a fragment that had no text."""
        finished = any(isinstance(step, Finish | Done) for step in flat(self._answer.steps))
        return [] if self._last or finished else [self._event("", final=True)]

    def whole(self) -> dict[str, Any]:
        """The fragment as one document."""
        return {"output": "".join("".join(step.pieces) for step in flat(self._answer.steps) if isinstance(step, Say))}

    def _token(self, text: str) -> SseEvent:
        self._number += 1
        return self._event(text, final=self._number == self._last)

    def _event(self, text: str, *, final: bool) -> SseEvent:
        return SseEvent(json.dumps({"token": text, "ptr": self._number, "final": final}, ensure_ascii=False), "newToken")


def _table(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
