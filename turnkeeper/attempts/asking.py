"""Whom an engine's turns ask: its models, the keys for them, and what is known of both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from turnkeeper.attempts.plan import Plan, chain_of, ordered, place_of, plan_for
from turnkeeper.attempts.server_route import Lender
from turnkeeper.attempts.silent import Pace
from turnkeeper.attempts.tier import Tier
from turnkeeper.host import Host
from turnkeeper.keys.entry import Key, Rest
from turnkeeper.keys.health import Change
from turnkeeper.keys.ring import KeyRing
from turnkeeper.keys.store import Keeper
from turnkeeper.loop.window import Weight, WindowMeasure
from turnkeeper.providers.model import Model
from turnkeeper.providers.provider import Provider, Shared
from turnkeeper.redaction import Redactor
from turnkeeper.settings import Settings
from turnkeeper.types.turn import TurnResult

_log = logging.getLogger(__name__)


class Asking:
    """The models and keys of an engine.

    models: in order; the first leads. shared: what all providers use. fixed_tokens: what each request holds beside the
    conversation (system prompt, tools), about.
    """

    def __init__(self, models: Sequence[Model], settings: Settings, host: Host, shared: Shared, fixed_tokens: int) -> None:
        self._models = chain_of(models)
        self._settings = settings
        self._host = host
        self._shared = shared
        self.fixed_tokens = fixed_tokens
        self._measures: dict[tuple[str, str], WindowMeasure] = {}
        self._keeper = Keeper(host.keys) if host.keys is not None else None
        self._tier: Tier | None = None  # made when the first turn needs it, for keys are read from a store

    async def tier(self, redactor: Redactor) -> Tier:
        """What turns share; keys and their health are read from the store, once, and `redactor` learns the keys.

        Raises TurnkeeperError where the store can't be read.
        """
        if self._tier is not None:
            return self._tier
        keys: list[Key] = []
        rests: list[Rest] = []
        if self._host.keys is not None:
            keys, rests = await asyncio.to_thread(self._host.keys.load)
            redactor.learn(key.secret for key in keys)
        changed = self._keeper.note if self._keeper is not None else _nobody_told
        self._tier = self._tier or Tier(
            ring=KeyRing(keys, rests, warm_s=self._settings.prompt_cache_ttl, changed=changed),
            pace=Pace(self._settings.silent_model_memory),
            lender=Lender(self._settings, self._host.opted_out),
            provider=lambda model, key: Provider(model, key, self._shared),
            measure=self.measure,
            fixed_tokens=self.fixed_tokens,
            clock=self._host.clock,
        )
        return self._tier

    def plan(self, user: str, tier: Tier) -> Plan:
        """Whom a turn of `user` may ask, in order."""
        chance = self._host.random if self._settings.random_lead else None
        models = ordered(self._models, tier.pace.silent(self._host.clock()), chance)
        return plan_for(user, models, tier.ring, lend=self._settings.lend_models)

    def leading(self, plan: Plan) -> Model:
        """The model that the conversation is made to fit first."""
        return plan.planned[0].model if plan.planned else self._models[0]

    def measure(self, model: Model) -> WindowMeasure:
        """What is known of a model's window."""
        measure = self._measures.get(place_of(model))
        if measure is None:
            measure = self._measures[place_of(model)] = WindowMeasure(model.family, model.traits.context_window)
        return measure

    def observe(self, leading: Model, result: TurnResult, weight: Weight) -> None:
        """What the leading model reported for the turn's first request corrects how its window is measured (S3.10a)."""
        first = result.usage[0] if result.usage else None
        if first is None or first.estimated or first.model != leading.name:
            return
        sent = weight + Weight(self.fixed_tokens)
        cut = self.measure(leading).observe(sent, first.input + first.cache_read + first.cache_write)
        if cut is not None:
            _log.warning("%s: %s.", first.model, cut)

    async def aclose(self) -> None:
        """Returns when what is known of keys is stored."""
        if self._keeper is not None:
            await self._keeper.aclose()


def _nobody_told(_: Change) -> None:
    """Health that is kept in memory only."""
