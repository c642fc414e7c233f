"""What passes used, as a fold over the journal (S15.2). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from turnkeeper.journal.events import Admitted, AttemptStarted, PassEnded, Recorded
from turnkeeper.types.usage import Usage

KINDS = ("Admitted", "AttemptStarted", "PassEnded")
"""The events that this fold reads."""


class Entry(Struct, frozen=True):
    """One pass on the ledger. at: seconds since the epoch. scope: whose key paid, a user's, or "" the server's."""

    at: float
    turn_id: str
    channel: str
    user: str
    server: str
    model: str
    scope: str
    usage: Usage


class Spent(Struct, frozen=True):
    """A sum. tokens: read and written. cost: US dollars, of the passes whose price is known; unpriced: tokens of the others."""

    passes: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    estimated: int = 0

    def plus(self, usage: Usage) -> Spent:
        """The sum with one more pass."""
        tokens = usage.prompt + usage.output
        return Spent(
            self.passes + 1,
            self.tokens + tokens,
            self.cost + (usage.cost or 0.0),
            self.unpriced + (tokens if usage.cost is None else 0),
            self.estimated + (tokens if usage.estimated else 0),
        )


def entries(events: Iterable[Recorded]) -> list[Entry]:
    """The passes among `events`, in order. Of a turn whose beginning is not among them, user and server are "" """
    admitted: dict[str, Admitted] = {}
    asked: dict[str, AttemptStarted] = {}
    found: list[Entry] = []
    for one in events:
        match one.event:
            case Admitted():
                admitted[one.turn_id] = one.event
            case AttemptStarted():
                asked[one.turn_id] = one.event
            case PassEnded(usage=Usage() as usage):
                who, whom = admitted.get(one.turn_id), asked.get(one.turn_id)
                user, server = (who.user, who.server) if who is not None else ("", "")
                model, scope = (whom.model, whom.scope) if whom is not None else ("", "")
                found.append(Entry(one.at, one.turn_id, one.channel, user, server, model, scope, usage))
            case _:
                pass
    return found


def summed(found: Iterable[Entry], by: Callable[[Entry], str]) -> dict[str, Spent]:
    """Sums by what `by` says of each entry, in the order in which they first appear."""
    sums: dict[str, Spent] = {}
    for entry in found:
        name = by(entry)
        sums[name] = sums.get(name, Spent()).plus(entry.usage)
    return sums
