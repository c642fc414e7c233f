"""Checks Gemini requests as a strict server would."""

from __future__ import annotations

from turnkeeper.testing.gemini_words import Target
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.strict import Rules


def problems(request: SeenRequest, rules: Rules) -> list[str]:
    """What a strict server would refuse, a sentence each; none if it would take the request."""
    return [] if knows_model(request, rules) else [f"models/{Target.of(request.path).model} is not found"]


def knows_model(request: SeenRequest, rules: Rules) -> bool:
    """False if the path names a model that the server does not have."""
    return not rules.models or Target.of(request.path).model in rules.models
