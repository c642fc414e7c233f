"""What the families share when they word an answer: the time, the spelling of JSON, the counts of tokens."""

from __future__ import annotations

import json

from msgspec import Struct

from turnkeeper.testing.steps import Answer, Call, Refuse, Say, Think, Usage, flat

CREATED = 1_764_600_000
"""When each answer was made, in seconds: a fixed time, so that the same script gives the same bytes."""


class Counts(Struct, frozen=True, kw_only=True):
    """Tokens. `cached` are in `prompt`, `reasoning` in `completion`."""

    prompt: int
    cached: int
    completion: int
    reasoning: int


def count(answer: Answer, sent: object) -> Counts:
    """What the answer says of its counts, and the rest from the lengths, four characters a token.

    sent: what of the request is read by the model.
    """
    said, thought = 0, 0
    for step in flat(answer.steps):
        match step:
            case Say() | Refuse():
                said += len("".join(step.pieces))
            case Think():
                thought += len("".join(step.pieces))
            case Call():
                said += len(step.name) + len(step.text)
            case _:
                pass
    given = answer.usage or Usage()
    reasoning = _tokens(thought) if given.reasoning is None else given.reasoning
    return Counts(
        prompt=_tokens(len(spelled(sent))) if given.prompt is None else given.prompt,
        cached=given.cached,
        completion=_tokens(said) + reasoning if given.completion is None else given.completion,
        reasoning=reasoning,
    )


def spelled(value: object) -> str:
    """The value as JSON on one line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as servers send it that cut texts by UTF-16
        return json.dumps(value, separators=(",", ":"))
    return text


def _tokens(characters: int) -> int:
    return -(-characters // 4)
