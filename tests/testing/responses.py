"""What the tests of the Responses family share: scripts worded without a server."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from turnkeeper.testing import Answer, SeenRequest
from turnkeeper.testing.openai_responses import OPENAI_RESPONSES
from turnkeeper.testing.steps import Spoken

REQUEST = {"model": "gpt-x", "stream": True, "input": "why tides?"}
ENCRYPTED = {"include": ["reasoning.encrypted_content"]}


def voice_of(answer: Answer, fields: dict[str, Any]) -> Any:
    numbers = count(1)
    body = REQUEST | fields
    seen = SeenRequest(at=0.0, path="/v1/responses", headers={}, body=body, raw=b"", key="")
    return OPENAI_RESPONSES.voice(answer, seen, lambda: f"call_{next(numbers)}")


def voiced(answer: Answer, *, ended: bool = True, **fields: Any) -> list[Any]:
    """The data of all events: JSON, or its text. Each is named as its type, and numbered in order."""
    voice = voice_of(answer, fields)
    sent = [one for step in answer.steps if isinstance(step, Spoken) for one in voice.say(step)]
    sent += voice.end() if ended else []
    events = [json.loads(one.data) if one.data.startswith("{") else one.data for one in sent]
    own = [one for one in events if isinstance(one, dict) and "sequence_number" in one]
    assert [one["sequence_number"] for one in own] == list(range(len(own)))
    assert [one.name for one in sent if one.name] == [one["type"] for one in own]
    return events


def of_type(kind: str, events: list[Any]) -> list[Any]:
    return [one for one in events if isinstance(one, dict) and one.get("type") == f"response.{kind}"]
