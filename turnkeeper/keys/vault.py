# API keys at rest (S3.3): AES-256-GCM, a random nonce for each sealing, and what the record says in clear (id, provider, scope)
# as associated data, so that a sealed key can't be moved to another record. Methods block; the engine calls them in threads.

"""The encrypted store of API keys, and of the rests of keys."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct, to_builtins
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from turnkeeper.errors import ConfigurationError, JournalError
from turnkeeper.journal.database import Database, open_database, short
from turnkeeper.keys import table
from turnkeeper.keys.entry import Key, Rest
from turnkeeper.keys.master import MasterKey, Masters
from turnkeeper.redaction import last_four

_log = logging.getLogger(__name__)
_NONCE_BYTES = 12
_T = TypeVar("_T")


class StoredKey(Struct, frozen=True):
    """A key as the store has it. base_url: of a server that the catalogue does not know. master: which one sealed it."""

    id: str
    provider: str
    scope: str
    account: str
    base_url: str
    last_four: str
    added_at: float
    master: str
    sealed: bytes

    @property
    def bound(self) -> bytes:
        """What the sealed key is bound to."""
        return f"{self.id}\0{self.provider}\0{self.scope}".encode()


class NewKey(Struct, frozen=True):
    """A key to be added. The fields are those of `Key`; base_url: where the server is, if the catalogue does not know it."""

    provider: str
    secret: str
    scope: str = ""
    account: str = ""
    base_url: str = ""


class Vault:
    """The keys in a database, which may be the journal's.

    url: of the database; it is opened when it is first needed. masters: the master keys that can be had.
    Its methods raise JournalError where the database can't be used, and ConfigurationError for what a person can mend.
    """

    def __init__(self, url: str, masters: Masters) -> None:
        self._url = url
        self._masters = masters
        self._opened: Database | None = None

    def all(self) -> list[StoredKey]:
        """All keys, sealed, in the order in which they were added."""
        return self._do(lambda connection: [StoredKey(**row) for row in connection.execute(table.keys).mappings()])

    def add(self, new: NewKey, now: float) -> StoredKey:
        """Adds a key. Raises ConfigurationError for one that no server could have given, or that is there already."""
        _check(new.secret)
        for stored, secret in self._open_all():
            if secret == new.secret and (stored.provider, stored.scope) == (new.provider, new.scope):
                raise ConfigurationError(f"This key of {new.provider} is there already, as {stored.id}.")
        master = self._masters.current()
        bare = StoredKey(
            f"k{secrets.token_hex(4)}",
            new.provider,
            new.scope,
            new.account,
            new.base_url,
            last_four(new.secret),
            now,
            master.id,
            b"",
        )
        row = to_builtins(bare) | {"sealed": _seal(bare, new.secret, master)}
        self._do(lambda connection: connection.execute(table.add_key, row))
        return StoredKey(**row)

    def replace(self, name: str, secret: str) -> StoredKey:
        """Puts another secret in the place of a key's, and ends its rests (S3.3). name: an id, or how only one begins."""
        _check(secret)
        stored, master = self.find(name), self._masters.current()

        def work(connection: Connection) -> None:
            connection.execute(table.seal_key, _sealing(stored, secret, master))
            connection.execute(table.remove_rests_of, {"rest_holder": stored.id})

        self._do(work)
        return stored

    def remove(self, name: str) -> StoredKey:
        """Removes a key with its rests. name: an id, or how only one begins."""
        stored = self.find(name)

        def work(connection: Connection) -> None:
            connection.execute(table.remove_key, {"key_id": stored.id})
            connection.execute(table.remove_rests_of, {"rest_holder": stored.id})

        self._do(work)
        return stored

    def find(self, name: str) -> StoredKey:
        """The key whose id begins with `name`. Raises ConfigurationError where none or several do."""
        found = [stored for stored in self.all() if name and stored.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ConfigurationError(f"More than one key begins with {name!r}; write more of its id.")
        raise ConfigurationError(f"There is no key {name!r}; `turnkeeper keys list` shows them.")

    def rotate(self) -> int:
        """Seals all keys with a new master key, all or none.

        Returns how many. Raises ConfigurationError where one can't be read.
        """
        opened = self._open_all()
        if len(opened) < len(self.all()):
            raise ConfigurationError(
                "Some keys can't be read; remove them (`turnkeeper keys list` shows which) and rotate then."
            )
        new = self._masters.begin_rotation()
        rows = [_sealing(stored, secret, new) for stored, secret in opened]
        if rows:
            self._do(lambda connection: connection.execute(table.seal_key, rows))
        self._masters.end_rotation()
        return len(rows)

    def rests(self) -> list[Rest]:
        """All rests on record."""
        return self._do(lambda connection: [Rest(**row) for row in connection.execute(table.rests).mappings()])

    def opened(self) -> list[tuple[StoredKey, Key]]:
        """All keys that can be read; those that can't are named in the log."""
        return [(one, Key(one.id, one.provider, secret, one.scope, one.account)) for one, secret in self._open_all()]

    def load(self) -> tuple[list[Key], list[Rest]]:
        """For the engine: all keys that can be read, and all rests."""
        return [key for _, key in self.opened()], self.rests()

    def save(self, rests: Sequence[Rest], ended: Sequence[Rest]) -> None:
        """For the engine: puts new or longer rests on record, and takes ended ones away."""

        def work(connection: Connection) -> None:
            for rest in [*rests, *ended]:
                connection.execute(table.remove_rest, {"rest_holder": rest.holder, "rest_model": rest.model})
            for rest in rests:
                connection.execute(table.add_rest, to_builtins(rest) | {"said": rest.said[:400]})

        self._do(work)

    def close(self) -> None:
        """Closes the database."""
        if self._opened is not None:
            self._opened.engine.dispose()
            self._opened = None

    def _open_all(self) -> list[tuple[StoredKey, str]]:
        stored = self.all()
        if not stored:
            return []
        masters = {master.id: master for master in self._masters.all()}
        opened = [(one, secret) for one in stored if (secret := _unseal(one, masters.get(one.master))) is not None]
        lost = [one.id for one in stored if one.id not in {done.id for done, _ in opened}]
        if lost:
            _log.error(
                "The keys %s can't be read: the master key that sealed them is not in TURNKEEPER_MASTER_KEY, the keyring "
                "or %s. Bring it back, or remove them and add them anew.",
                ", ".join(lost),
                self._masters.file.path,
            )
        return opened

    def _do(self, work: Callable[[Connection], _T]) -> _T:
        database = self._opened = self._opened or open_database(self._url)
        try:
            with database.engine.begin() as connection:
                return work(connection)
        except SQLAlchemyError as problem:
            raise JournalError(f"The keys in {database.name} can't be read or written: {short(problem)}.") from None


def _sealing(stored: StoredKey, secret: str, master: MasterKey) -> dict[str, Any]:
    sealed = _seal(stored, secret, master)
    return {"key_id": stored.id, "new_master": master.id, "new_sealed": sealed, "new_last_four": last_four(secret)}


def _seal(stored: StoredKey, secret: str, master: MasterKey) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(master.secret).encrypt(nonce, secret.encode(), stored.bound)


def _unseal(stored: StoredKey, master: MasterKey | None) -> str | None:
    """The secret; None where the master key is missing, or the record was tampered with."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if master is None:
        return None
    nonce, sealed = stored.sealed[:_NONCE_BYTES], stored.sealed[_NONCE_BYTES:]
    try:
        return AESGCM(master.secret).decrypt(nonce, sealed, stored.bound).decode()
    except (InvalidTag, ValueError):
        return None


def _check(secret: str) -> None:
    named = re.match(r"(?:export\s+)?[A-Z][A-Z0-9_]*=", secret)
    if named:
        raise ConfigurationError(f"This is a line of an environment file; give the key alone, without {named.group()!r}.")
    if len(secret) < 8 or len(secret) > 4000 or not secret.isascii() or re.search(r"[\s\"'`]", secret):
        raise ConfigurationError(
            "This is no API key: it is empty, shorter than 8 or longer than 4,000 characters, or holds blanks, quotes or "
            "characters that no key has."
        )
