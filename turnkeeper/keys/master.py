# The master key, with which API keys are encrypted at rest.
#
# It is looked for in the environment, in the system's keyring, and in a file that only its owner may read, in this order.
# While it is rotated there are two: the new one is put beside the old one first, then all keys are sealed anew in one
# transaction, then the new one takes the old one's place. A process that dies in between leaves both, and every key can be
# read, for each record names the master key that sealed it.

"""Finds, makes and rotates the master key."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from turnkeeper.errors import ConfigurationError

VARIABLE = "TURNKEEPER_MASTER_KEY"
NEW_VARIABLE = "TURNKEEPER_MASTER_KEY_NEW"
FILE_NAME = "master.key"
_BYTES = 32
_SERVICE = "turnkeeper"
_ENTRY = "master-key"
_NEW_ENTRY = "master-key-new"


class MasterKey(Struct, frozen=True):
    """A master key. id: what records call it. place: where it is, for people."""

    secret: bytes
    place: str

    @property
    def id(self) -> str:
        """Says which key it is, and nothing of it."""
        return blake2b(self.secret, digest_size=6, person=b"turnkeeper mkey").hexdigest()

    def __repr__(self) -> str:
        """Without the secret."""
        return f"MasterKey({self.id!r}, {self.place!r})"


class Place(Protocol):
    """Where a master key may be kept."""

    def read(self) -> list[MasterKey]:
        """The key, and one that is to take its place, if there is one. Raises ConfigurationError for a broken one."""
        ...

    def keep_new(self, secret: bytes) -> MasterKey:
        """Puts a key beside the one that is there."""
        ...

    def promote(self) -> None:
        """The new key takes the old one's place."""
        ...


def _no_keyring() -> Place | None:
    return None


class Masters:
    """All master keys that can be had.

    env: the environment. data_folder: where the file is. keyring: gives the system's keyring, or None where there is none;
    it is asked when a master key is first needed, for that may take a while.
    """

    def __init__(self, env: Mapping[str, str], data_folder: Path, *, keyring: Callable[[], Place | None] = _no_keyring) -> None:
        self._env = env
        self._keyring = keyring
        self.file = FilePlace(data_folder / FILE_NAME)

    @cached_property
    def _places(self) -> list[Place]:
        keyring = self._keyring()
        return [self.file] if keyring is None else [keyring, self.file]

    def all(self) -> list[MasterKey]:
        """Every master key, the one that new keys are sealed with first. Raises ConfigurationError for a broken one."""
        found = [decoded(self._env[name], name) for name in (VARIABLE, NEW_VARIABLE) if self._env.get(name, "").strip()]
        for place in self._places:
            try:
                found += place.read()
            except ConfigurationError:
                if not found:  # with a key in the environment, a keyring that is locked does not matter
                    raise
        return found

    def current(self) -> MasterKey:
        """The one that new keys are sealed with; made where there is none, in the keyring or else in the file."""
        found = self.all()
        return found[0] if found else self._make()

    def begin_rotation(self) -> MasterKey:
        """A new master key, kept beside the old one. Raises ConfigurationError where the environment must give it."""
        if self._env.get(VARIABLE, "").strip():
            new = self._env.get(NEW_VARIABLE, "").strip()
            if not new:
                raise ConfigurationError(
                    f"The master key comes from {VARIABLE}: put a new one into {NEW_VARIABLE} (such as of "
                    f"`openssl rand -base64 32`), run this again, and then move it to {VARIABLE}."
                )
            return decoded(new, NEW_VARIABLE)
        home = self._home()
        found = home.read()
        # A rotation that broke off may have sealed keys with its new one already: it is taken up again, never overwritten.
        return found[1] if len(found) > 1 else home.keep_new(secrets.token_bytes(_BYTES))

    def end_rotation(self) -> None:
        """All keys are sealed with the new master key: the old one is no longer needed."""
        if not self._env.get(VARIABLE, "").strip():
            self._home().promote()

    def _home(self) -> Place:
        return next((place for place in self._places if place.read()), self._places[0])

    def _make(self) -> MasterKey:
        place = self._places[0]
        place.keep_new(secrets.token_bytes(_BYTES))
        place.promote()
        return place.read()[0]


class FilePlace:
    """A file that only its owner may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new = path.with_name(f"{path.name}.new")

    def read(self) -> list[MasterKey]:
        """The keys in the file and in the one beside it."""
        return [key for path in (self.path, self._new) if (key := _read(path)) is not None]

    def keep_new(self, secret: bytes) -> MasterKey:
        """Writes a key into the file beside it."""
        try:
            self._new.parent.mkdir(parents=True, exist_ok=True)
            self._new.unlink(missing_ok=True)
            handle = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(base64.b64encode(secret).decode() + "\n")
                file.flush()
                os.fsync(handle)
        except OSError as problem:
            raise ConfigurationError(f"The master key can't be written to {self._new}: {problem.strerror}.") from None
        return MasterKey(secret, str(self.path))

    def promote(self) -> None:
        """Renames the new file over the old one."""
        self._new.replace(self.path)


class KeyringPlace:
    """The system's keyring, by the package `keyring`."""

    def read(self) -> list[MasterKey]:
        """The keys in the keyring. Raises ConfigurationError where it is locked or broken."""
        with _keyring_errors():
            stored = [self._get(name) for name in (_ENTRY, _NEW_ENTRY)]
        return [decoded(one, "the keyring") for one in stored if one]

    def keep_new(self, secret: bytes) -> MasterKey:
        """Puts a key beside the other."""
        import keyring

        with _keyring_errors():
            keyring.set_password(_SERVICE, _NEW_ENTRY, base64.b64encode(secret).decode())
        return MasterKey(secret, "the keyring")

    def promote(self) -> None:
        """The new entry takes the old one's place."""
        import keyring

        with _keyring_errors():
            new = self._get(_NEW_ENTRY)
            if new:
                keyring.set_password(_SERVICE, _ENTRY, new)
                keyring.delete_password(_SERVICE, _NEW_ENTRY)

    def _get(self, entry: str) -> str | None:
        import keyring

        return keyring.get_password(_SERVICE, entry)


@contextmanager
def _keyring_errors() -> Generator[None]:
    """A keyring's refusal, as what a person can mend."""
    from keyring.errors import KeyringError

    try:
        yield
    except KeyringError as problem:
        said = str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
        raise ConfigurationError(
            f"The system's keyring can't be used: {said}; unlock it, or give a master key in {VARIABLE}."
        ) from None


def system_keyring() -> Place | None:
    """The system's keyring; None where the package is not installed, or there is no keyring that works."""
    try:
        import keyring
        from keyring.backends import fail, null
    except ImportError:
        return None
    backend = keyring.get_keyring()
    return None if isinstance(backend, fail.Keyring | null.Keyring) else KeyringPlace()


def decoded(text: str, place: str) -> MasterKey:
    """A master key from 32 bytes in base64 or hex. Raises ConfigurationError that names the place and not the key."""
    text = text.strip()
    secret = b""
    try:
        secret = bytes.fromhex(text) if len(text) == 2 * _BYTES else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        secret = b""
    if len(secret) != _BYTES:
        raise ConfigurationError(
            f"The master key in {place} is not {_BYTES} bytes in base64 or hex; `openssl rand -base64 {_BYTES}` makes one."
        )
    return MasterKey(secret, place)


def _read(path: Path) -> MasterKey | None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            raise ConfigurationError(
                f"The master key {path} can be read by others (mode {mode:03o}): run `chmod 600 {path}`, and rotate it "
                "with `turnkeeper keys rotate` if somebody may have read it."
            )
        return decoded(path.read_text("utf-8"), str(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise ConfigurationError(f"The master key {path} can't be read: {reason}.") from None
