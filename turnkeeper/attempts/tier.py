"""What the turns of an engine share in the outer tier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from turnkeeper.attempts.server_route import Lender
from turnkeeper.attempts.silent import Pace
from turnkeeper.keys.ring import KeyRing
from turnkeeper.loop.window import WindowMeasure
from turnkeeper.providers.model import Model
from turnkeeper.providers.provider import Provider


@dataclass(frozen=True, slots=True)
class Tier:
    """Who is asked, what is known of them, and who keeps count.

    provider: makes a model ready to be asked with a key. measure: what is known of a model's window.
    fixed_tokens: what each request holds beside the conversation (system prompt, tools), about.
    clock: the wall clock, seconds since the epoch.
    """

    ring: KeyRing
    pace: Pace
    lender: Lender
    provider: Callable[[Model, str], Provider]
    measure: Callable[[Model], WindowMeasure]
    fixed_tokens: int
    clock: Callable[[], float]
