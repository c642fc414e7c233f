# How keys fare, as a fold over refusals and successes (S3.3, S3.3a, S3.3b).
#
# Rule 1: pure. Times come in as arguments; the same calls in the same order give the same rests.
# Rule 2: a time that a server names is kept, however long. What we guess is short, and never shortens what was named.
# Rule 3: what is not the key's fault leaves it unharmed: a bot challenge, a dropped connection, a timeout, what was asked.
#
# Theory of operation. A refusal rests a holder (a key, all keys of its account, or a provider) for one model or for all. A
# key is ready when nothing that holds for it is unended. Most limits are a model's; spent credit is the account's; a refused
# key is out until somebody edits it. A rest of another kind (the server was overloaded) is short and only a preference:
# where nothing else is ready, such a key is asked all the same.

"""The health of keys."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.keys.entry import UNTIL_EDITED, Key, Rest
from turnkeeper.types.faults import ErrorKind, Fault

FIRST_GUESS_S = 60.0
"""How long a limit without a time rests; each further one in a row doubles it."""
LONGEST_GUESS_S = 900.0
"""The most that is guessed."""
OTHER_ERROR_S = 30.0
"""How long a key rests after a failure of the server that is no limit."""

_LIMITS: frozenset[ErrorKind] = frozenset({"rate_limit", "quota_exhausted", "credit_ceiling"})
_OTHER: frozenset[ErrorKind] = frozenset({"overloaded", "server"})


class Change(Struct, frozen=True):
    """What a refusal or a success did to the rests: these are new or longer, those have ended."""

    rests: tuple[Rest, ...] = ()
    ended: tuple[Rest, ...] = ()


class Health:
    """Who rests, and until when. rests: what is known from earlier."""

    def __init__(self, rests: Iterable[Rest] = ()) -> None:
        self._rests = {(rest.holder, rest.model): rest for rest in rests}

    @property
    def rests(self) -> tuple[Rest, ...]:
        """All rests that have not been taken back, ended ones too: their count of guesses still matters."""
        return tuple(self._rests.values())

    def rest_of(self, key: Key, model: str, now: float) -> Rest | None:
        """The rest that keeps `key` from being asked for `model` the longest; None where it is ready."""
        longest: Rest | None = None
        for holder in _holders(key):
            for place in ((holder, model), (holder, "")):
                rest = self._rests.get(place)
                if rest is None:
                    continue
                if now < rest.since:  # the clock went back: what is left is never more than it was at the beginning
                    rest = self._rests[place] = replace(rest, since=now, until=now + rest.until - rest.since)
                if rest.until > now and (longest is None or rest.until > longest.until):
                    longest = rest
        return longest

    def resting(self, key: Key, now: float) -> list[Rest]:
        """All rests that keep `key` from being asked for some model or for all, the longest first."""
        holders = _holders(key)
        found = [rest for rest in self._rests.values() if rest.holder in holders and rest.until > now]
        return sorted(found, key=lambda rest: (-rest.until, rest.model))

    def refused(self, key: Key, model: str, fault: Fault, now: float) -> Change:
        """Takes a refusal that came at `now`."""
        place = _resting(key, model, fault)
        if place is None:
            return Change()
        before = self._rests.get(place)
        lasts_s, guesses = _duration(fault, before)
        until = now + lasts_s
        if before is not None and before.until > until:  # S3.3a: a vaguer one never shortens it
            rest = replace(before, guesses=guesses, since=now)
        else:
            rest = Rest(*place, until, now, fault.kind, fault.said, guesses, named=fault.retry_after_s is not None)
        self._rests[place] = rest
        return Change(rests=(rest,))

    def succeeded(self, key: Key, model: str, began: float) -> Change:
        """Takes a success of a request that began at `began`: it ends rests whose refusal came before that."""
        places = [(holder, name) for holder in _holders(key) for name in (model, "")]
        ended = [rest for place in places if (rest := self._rests.get(place)) is not None and began > rest.since]
        for rest in ended:
            del self._rests[(rest.holder, rest.model)]
        return Change(ended=tuple(ended))

    def edited(self, key: Key) -> Change:
        """The key was edited, or found to work: its own rests end."""
        ended = [rest for rest in self._rests.values() if rest.holder == key.id]
        for rest in ended:
            del self._rests[(rest.holder, rest.model)]
        return Change(ended=tuple(ended))


def is_preference(rest: Rest) -> bool:
    """Whether a key that rests so may be asked all the same where nothing else is ready: no server asked us to wait."""
    return rest.kind in _OTHER and not rest.named


def _holders(key: Key) -> tuple[str, ...]:
    account = (f"account:{key.provider}/{key.account}",) if key.account else ()
    return (key.id, *account, f"provider:{key.provider}")


def _resting(key: Key, model: str, fault: Fault) -> tuple[str, str] | None:
    """Who rests for a fault, and for which model; None for nobody."""
    shared = f"account:{key.provider}/{key.account}" if key.account and fault.kind in _LIMITS else key.id
    match fault.rests:
        case "pair":
            return shared, model
        case "key":
            return (shared, "") if key.secret else None  # there is no key that could be mended or replaced
        case "provider":
            return f"provider:{key.provider}", ""
        case "nothing":
            return (key.id, model) if fault.kind in _OTHER else None


def _duration(fault: Fault, before: Rest | None) -> tuple[float, int]:
    """How long a refusal lets rest, in seconds, and the count of guesses with it."""
    guesses = before.guesses if before is not None else 0
    if fault.retry_after_s is not None:  # S3.3a: kept, however long; a past time means now
        return max(0.0, fault.retry_after_s), guesses
    if fault.kind == "auth":
        return UNTIL_EDITED, guesses
    if fault.kind in _OTHER:
        return OTHER_ERROR_S, guesses
    return min(LONGEST_GUESS_S, FIRST_GUESS_S * 2.0 ** min(guesses, 10)), guesses + 1
