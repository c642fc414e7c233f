# Which key is asked next (S3.3).
#
# Among the keys that are ready: the one that this channel used last with this model, while the provider may still hold its
# prompt in a cache; else the one that was used longest ago. Used means picked: channels that begin in the same moment get
# different keys. Where none is ready, one that rests only by our preference is asked (health.py).
# Records of who used what are kept in memory: after a restart the order of use begins anew, the rests do not.

"""The keys of all providers, and the choice among them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.keys.entry import UNTIL_EDITED, Key, Rest, configured_key_id
from turnkeeper.keys.health import Change, Health, is_preference
from turnkeeper.providers.catalogue import provider_at
from turnkeeper.providers.model import Model
from turnkeeper.types.faults import Fault

_CHANNELS = 10_000  # whose last key is remembered


class Ready(Struct, frozen=True):
    """This key may be asked now."""

    key: Key


class Resting(Struct, frozen=True):
    """All keys that were not tried yet rest; `rest` is the one that ends first, and `keys` how many there are."""

    rest: Rest
    keys: int


class NoKey(Struct, frozen=True):
    """There is no key that was not tried yet. `empty`: nor is there one at all."""

    empty: bool


class KeyRing:
    """The keys of all providers.

    keys: those of the store. rests: what is known of their health.
    warm_s: for how many seconds a provider may hold a prompt in its cache (S3.3).
    changed: told of each change of health, so that it can be stored; it must not block.
    """

    def __init__(
        self,
        keys: Iterable[Key] = (),
        rests: Iterable[Rest] = (),
        *,
        warm_s: float = 300.0,
        changed: Callable[[Change], None] = lambda _: None,
    ) -> None:
        self._pools: dict[tuple[str, str], list[Key]] = {}
        self._health = Health(rests)
        self._warm_s = warm_s
        self._changed = changed
        self._used: dict[str, tuple[float, int]] = {}  # by key id: when it was picked last, and the number of the pick
        self._picks = 0
        self._accounts: dict[str, str] = {}  # by key id: what the provider's answers say whose it is
        self._last: OrderedDict[tuple[str, str, str], tuple[str, float]] = OrderedDict()  # by channel, server and model
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Takes up a key; one whose secret the pool has already is not taken twice."""
        pool = self._pools.setdefault((key.provider, key.scope), [])
        if all(other.secret != key.secret for other in pool):
            pool.append(key)

    def remove(self, key_id: str) -> None:
        """Forgets a key."""
        for pool in self._pools.values():
            pool[:] = [key for key in pool if key.id != key_id]

    def secrets(self) -> list[str]:
        """All secrets, for the redactor (S16.2a)."""
        return [key.secret for pool in self._pools.values() for key in pool]

    def pool(self, model: Model, scope: str = "") -> list[Key]:
        """The keys that `model` may be asked with. scope: "" for the server's own, else the user whose keys they are.

        A model that names keys itself is asked with these; else with those that the store has for its provider. A server
        for which there is none at all is asked without one: a local server wants none, another says so itself.
        """
        provider = provider_at(model.url)
        stored = self._pools.get((provider, scope), [])
        if model.keys and not scope:
            known = {key.secret: key for key in stored}
            own = [Key(configured_key_id(provider, secret), provider, secret) for secret in dict.fromkeys(model.keys)]
            stored = [known.get(key.secret, key) for key in own]
        elif not stored and not scope:
            stored = [Key(f"none:{provider}", provider, "")]
        return [self._with_account(key) for key in stored] if self._accounts else stored

    def look(self, model: Model, scope: str, channel: str, now: float, tried: Collection[str] = ()) -> Ready | Resting | NoKey:
        """Which key would be asked now. tried: ids of keys that have had their try in this turn with this model."""
        pool = self.pool(model, scope)
        left = [key for key in pool if key.id not in tried]
        if not left:
            return NoKey(empty=not pool)
        rests = {key.id: self._health.rest_of(key, model.name, now) for key in left}
        ready = [key for key in left if rests[key.id] is None]
        if ready:
            return Ready(self._best(ready, model, channel, now))
        first_rest = min((rest for rest in rests.values() if rest is not None), key=lambda rest: rest.until)
        return Resting(first_rest, len(left))

    def least_resting(self, model: Model, scope: str, now: float, tried: Collection[str] = ()) -> Key | None:
        """A key that rests, but only by our preference: asked where nothing else is ready. None where there is none."""
        found: list[tuple[float, Key]] = []
        for key in self.pool(model, scope):
            rest = self._health.rest_of(key, model.name, now)
            if key.id not in tried and rest is not None and is_preference(rest):
                found.append((rest.until, key))
        return min(found, key=lambda one: one[0])[1] if found else None

    def picked(self, key: Key, model: Model, channel: str, now: float) -> None:
        """The key is asked now: it counts as used from this moment on (S3.3a)."""
        self._picks += 1
        self._used[key.id] = (now, self._picks)
        place = (channel, model.url, model.name)
        self._last[place] = (key.id, now)
        self._last.move_to_end(place)
        if len(self._last) > _CHANNELS:
            self._last.popitem(last=False)

    def refused(self, key: Key, model: Model, fault: Fault, now: float) -> None:
        """The provider refused a request with this key, or broke."""
        change = self._health.refused(key, model.name, fault, now)
        kept = tuple(rest for rest in change.rests if not (key.id.startswith("c") and rest.until == UNTIL_EDITED))
        if kept:  # a key of the configuration is edited there: a restart is its edit, so such a rest is not stored
            self._changed(replace(change, rests=kept))

    def succeeded(self, key: Key, model: Model, began: float) -> None:
        """A request that began at `began` was answered."""
        change = self._health.succeeded(key, model.name, began)
        if change.ended:
            self._changed(change)

    def belongs(self, key: Key, account: str) -> None:
        """An answer said which account the key belongs to: keys of one account share its limits (S3.3a)."""
        if account and not key.account:
            self._accounts[key.id] = account

    def rest_of(self, key: Key, model: Model, now: float) -> Rest | None:
        """What keeps a key from being asked."""
        return self._health.rest_of(key, model.name, now)

    def _with_account(self, key: Key) -> Key:
        account = self._accounts.get(key.id, "")
        return replace(key, account=account) if account and not key.account else key

    def _best(self, ready: list[Key], model: Model, channel: str, now: float) -> Key:
        last_id, at = self._last.get((channel, model.url, model.name), ("", 0.0))
        if 0 <= now - at <= self._warm_s:
            warm = next((key for key in ready if key.id == last_id), None)
            if warm is not None:
                return warm
        return min(ready, key=lambda key: self._used.get(key.id, (0.0, 0))[1])
