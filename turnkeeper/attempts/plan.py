"""Which models a turn may ask, in which order, and with whose keys (S3.1, S3.3c, S3.8)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.keys.ring import KeyRing
from turnkeeper.providers.model import Model


class Planned(Struct, frozen=True):
    """A model that may be asked. scope: whose keys, a user's, or "" for the server's own."""

    model: Model
    scope: str = ""


class Plan(Struct, frozen=True):
    """Whom a turn may ask.

    planned: in order. loan: the server's models, for when a user's own keys have failed (S3.8).
    """

    planned: tuple[Planned, ...]
    loan: tuple[Planned, ...] = ()


def plan_for(user: str, models: Sequence[Model], ring: KeyRing, *, lend: bool) -> Plan:
    """The plan of a turn of `user` over `models`, which are in order.

    A user with keys of their own is asked with these, and may be lent the server's when they have failed; others use the
    server's. lend: false where each user has to bring a key (S3.8).
    """
    servers = tuple(Planned(model) for model in models)
    own = tuple(Planned(model, user) for model in models if user and ring.pool(model, user))
    if own:
        return Plan(own, servers)
    return Plan(servers if lend else ())


def chain_of(models: Sequence[Model]) -> tuple[Model, ...]:
    """The chain as it is configured, each model once: one that is named twice has the keys of both, in the first place."""
    chain: dict[tuple[str, str], Model] = {}
    for model in models:
        place = place_of(model)
        first = chain.get(place)
        if first is None:
            chain[place] = model
        elif set(model.keys) - set(first.keys):
            chain[place] = replace(first, keys=list(dict.fromkeys([*first.keys, *model.keys])))
    return tuple(chain.values())


def ordered(chain: Sequence[Model], silent: frozenset[tuple[str, str]], lead: random.Random | None = None) -> tuple[Model, ...]:
    """The order in which a turn asks the chain.

    silent: the places of models that timed out lately; they come after the others (S3.3c). lead: moves one member, by chance,
    to the front; none is dropped, none repeated (S3.1). None keeps the configured order.
    """
    order = list(chain)
    if lead is not None and len(order) > 1:
        order.insert(0, order.pop(lead.randrange(len(order))))
    return tuple(sorted(order, key=lambda model: place_of(model) in silent))  # stable: else as they were


def place_of(model: Model) -> tuple[str, str]:
    """What makes two models the same: where they are, and their name there."""
    return model.url, model.name
