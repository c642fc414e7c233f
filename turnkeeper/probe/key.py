# A list of models, or the account's own page, is the cheapest question that wants a key. A server that shows its list to
# anybody says nothing about the key: it is asked once more with a key that can't be right, to tell the two apart.

"""Asks a provider whether a key works."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.keys.owners import Owner
from turnkeeper.probe.ask import Endpoint, Heard
from turnkeeper.providers.model import Model
from turnkeeper.providers.transport import Transport
from turnkeeper.types.faults import ErrorKind, Fault

_WRONG = "turnkeeper-no-such-key-000000000000"
_OF_THE_KEY: frozenset[ErrorKind] = frozenset({"auth", "permission", "quota_exhausted", "credit_ceiling"})

Verdict: TypeAlias = Literal["works", "refused", "unclear"]


class Checked(Struct, frozen=True):
    """What a check found. said: in a few words. fault: the refusal, where there was one."""

    verdict: Verdict
    said: str
    fault: Fault | None = None


async def check(owner: Owner, secret: str, transport: Transport, timeout_s: float, now: float) -> Checked:
    """Asks the server of `owner` once or twice, spending no tokens; raises nothing that a server can cause.

    timeout_s: the longest that one answer may take, in seconds. now: seconds since the epoch.
    """
    if owner.family == "novelai":
        return Checked("unclear", "this family has nothing to ask for that costs no tokens")
    model = Model(owner.family, "unnamed", owner.base_url, keys=[secret])
    path = "/key" if owner.provider == "openrouter" else "/models"
    heard = await Endpoint(model, transport, timeout_s, lambda: now).get(path)
    if heard.fault is not None:
        refused = heard.fault.kind in _OF_THE_KEY
        return Checked("refused" if refused else "unclear", str(heard.fault), heard.fault)
    wrong = await Endpoint(replace(model, keys=[_WRONG]), transport, timeout_s, lambda: now).get(path)
    if wrong.fault is None:
        return Checked("unclear", "the server answers, but it would answer anybody; only a chat will tell")
    return Checked("works", _credit(heard))


def _credit(heard: Heard) -> str:
    """What OpenRouter tells of a key's credit; "" where nothing is told."""
    try:
        answer: Any = json.loads(heard.raw)
    except ValueError:
        return ""
    data = cast(dict[str, Any], answer).get("data") if isinstance(answer, dict) else None
    left = cast(dict[str, Any], data).get("limit_remaining") if isinstance(data, dict) else None
    return f"credit left: ${left:.2f}" if isinstance(left, int | float) and not isinstance(left, bool) else ""
