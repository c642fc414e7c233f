"""A key, and a rest that it was sent to (S3.3, S3.3a)."""

from __future__ import annotations

from hashlib import blake2b

from msgspec import Struct

from turnkeeper.redaction import last_four
from turnkeeper.types.faults import ErrorKind

UNTIL_EDITED = float("inf")
"""The end of a rest that only an edit of the key ends."""


class Key(Struct, frozen=True):
    """One API key.

    id: its name in records and commands; it says nothing of the secret.
    provider: whose key it is, as `catalogue.provider_at` names the server of a model.
    secret: the key itself; "" for a server that wants none.
    scope: "" for the server's own pool, else the user whose personal key it is.
    account: the account that it belongs to, "" where that is not known: keys of one account share its limits.
    """

    id: str
    provider: str
    secret: str
    scope: str = ""
    account: str = ""

    @property
    def shown(self) -> str:
        """What may be shown of it."""
        return last_four(self.secret)

    def __repr__(self) -> str:
        """Without the secret: it appears nowhere (S3.3)."""
        return f"Key({self.id!r}, provider={self.provider!r}, scope={self.scope!r}, shown={self.shown!r})"


class Rest(Struct, frozen=True):
    """A time in which a key is not asked, because of a refusal.

    holder: who rests: a key's id, `account:NAME` for all keys of an account, or `provider:NAME` for all of a provider's.
    model: the model that it rests for, "" for all of them.
    until: when it ends, seconds since the epoch; UNTIL_EDITED where only an edit of the key ends it.
    since: when the refusal came: a success ends the rest only if its request began later.
    kind, said: the refusal's class, and the server's words, without secrets.
    guesses: how many refusals in a row came without a time; each doubles the next guess.
    named: the server named the end; where not, it is our guess.
    """

    holder: str
    model: str
    until: float
    since: float
    kind: ErrorKind
    said: str = ""
    guesses: int = 0
    named: bool = False


def configured_key_id(provider: str, secret: str) -> str:
    """The id of a key that stands in a configuration: the same in each process, so that its health survives a restart."""
    return "c" + blake2b(secret.encode(), digest_size=5, key=provider.encode()[:64], person=b"turnkeeper key").hexdigest()
