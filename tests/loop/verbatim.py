"""A server of a model that calls in text, and its requests as a conversation like any other's (S10.1, S10.4)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

from turnkeeper.testing import Answer, SeenRequest
from turnkeeper.testing.openai_chat import OpenAIChat, OpenAIVoice
from turnkeeper.testing.steps import Call, Chunked, Interleaved, Say, Spoken, Together
from turnkeeper.testing.wire import SseEvent

_RESULT = re.compile(r"\[What (.*) returned:\]\n(.*)", re.DOTALL)
_CALL = re.compile(r"([\w.:-]+)\(.*\)")
_NUDGE = "(A tool is called by"


class VerbatimChat(OpenAIChat):
    """Chat completions of a model that writes its calls: the forms of S10.2 by turns."""

    def __init__(self) -> None:
        self._turn = itertools.count()

    def voice(self, answer: Answer, request: dict[str, Any] | SeenRequest, new_id: Callable[[], str]) -> OpenAIVoice:  # type: ignore[override]
        """Who gives this answer, with its calls in text."""
        assert isinstance(request, SeenRequest)
        body = request.body if isinstance(request.body, dict) else {}
        return _Voice(answer, body, new_id, next(self._turn))


class _Voice(OpenAIVoice):
    def __init__(self, answer: Answer, request: dict[str, Any], new_id: Callable[[], str], turn: int) -> None:
        self._turn = turn
        self._said = False
        told = Answer(tuple(self._told(step) for step in answer.steps))
        self._said = False
        super().__init__(told, request, new_id)

    def say(self, step: Spoken) -> list[SseEvent]:
        return super().say(self._told(step))

    def _told(self, step: Any) -> Any:
        match step:
            case Call():
                text = written(step, self._turn)
                before, self._said = ("\n" if self._said else ""), True
                size = max(1, len(text) // max(1, len(step.fragments)))
                return Say((before, *[text[at : at + size] for at in range(0, len(text), size)]))
            case Together() | Interleaved():
                parts: tuple[Chunked, ...] = tuple(self._told(one) for one in step.steps)
                return type(step)(parts)
            case Say():
                self._said = True
                return step
            case _:
                return step


def written(step: Call, turn: int) -> str:
    """A call in one of the forms, by turns; broken arguments as they are."""
    try:
        value = json.loads(step.text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not step.name:
        return f'<tool_call>{json.dumps({"name": step.name})[:-1]}, "arguments": {step.text}}}</tool_call>'
    python = all(str(key).isidentifier() for key in value)
    forms = [
        f"{step.name}({json.dumps(value, ensure_ascii=False)})",
        f"```json\n{json.dumps({'name': step.name, 'arguments': value}, ensure_ascii=False)}\n```",
        f"<tool_call>{json.dumps({'name': step.name, 'arguments': value}, ensure_ascii=False)}</tool_call>",
    ]
    if python and value:  # `f()` may be a mere mention where arguments are needed
        forms.append(f"{step.name}({', '.join(f'{key}={one!r}' for key, one in value.items())})")
    return forms[turn % len(forms)]


def conversation(request: SeenRequest) -> list[dict[str, Any]]:
    """The messages of a request with calls and results as native ones have them; the nudge is left out."""
    messages: list[dict[str, Any]] = []
    for message in request.body["messages"]:
        text = message["content"]
        if message["role"] == "user" and isinstance(text, str):
            text = text.split("\n\n" + _NUDGE)[0]
            if text.startswith(_NUDGE):
                continue
            for part in re.split(r"\n\n(?=\[What )", text):
                found = _RESULT.fullmatch(part)
                messages.append({"role": "tool", "content": found[2]} if found else {"role": "user", "content": part})
            continue
        if message["role"] == "assistant":
            lines = text.split("\n")
            calls: list[dict[str, Any]] = []
            while lines and (call := _CALL.fullmatch(lines[-1])):
                calls.insert(0, {"id": "", "function": {"name": call[1], "arguments": ""}})
                lines.pop()
            told: dict[str, Any] = {"role": "assistant", "content": "\n".join(lines) or None}
            messages.append(told | {"tool_calls": calls} if calls else told)
            continue
        if not text.startswith("You can call tools."):  # a system prompt of ours alone
            messages.append(message)
    return messages
