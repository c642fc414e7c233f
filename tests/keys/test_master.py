"""The master key: where it is found, made and rotated (S3.3)."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend

from turnkeeper.errors import ConfigurationError
from turnkeeper.keys.master import NEW_VARIABLE, VARIABLE, FilePlace, MasterKey, Masters, decoded, system_keyring

ONE = base64.b64encode(b"1" * 32).decode()
TWO = base64.b64encode(b"2" * 32).decode()


class Remembered:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.old: bytes | None = None
        self.new: bytes | None = None

    def read(self) -> list[MasterKey]:
        return [MasterKey(secret, "the keyring") for secret in (self.old, self.new) if secret is not None]

    def keep_new(self, secret: bytes) -> MasterKey:
        self.new = secret
        return MasterKey(secret, "the keyring")

    def promote(self) -> None:
        self.old, self.new = self.new, None


def test_the_first_use_makes_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    made = Masters({}, tmp_path / "data").current()
    path = tmp_path / "data" / "master.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Masters({}, tmp_path / "data").current() == made
    assert list(path.parent.iterdir()) == [path]


def test_the_environment_counts_before_the_keyring_and_the_keyring_before_the_file(tmp_path: Path) -> None:
    keyring = Remembered()
    keyring.old = b"2" * 32
    FilePlace(tmp_path / "master.key").keep_new(b"3" * 32)
    FilePlace(tmp_path / "master.key").promote()
    found = Masters({VARIABLE: ONE}, tmp_path, keyring=lambda: keyring).all()
    assert [key.secret[:1] for key in found] == [b"1", b"2", b"3"]


def test_a_new_key_is_made_in_the_keyring_where_there_is_one(tmp_path: Path) -> None:
    keyring = Remembered()
    made = Masters({}, tmp_path, keyring=lambda: keyring).current()
    assert keyring.old == made.secret
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "short", "é" * 40, base64.b64encode(b"1" * 31).decode(), "g" * 64])
def test_what_is_no_master_key_is_refused_by_its_place_and_never_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError, match="the place") as refused:
        decoded(text, "the place")
    assert not text or text not in str(refused.value)


def test_hex_and_base64_are_the_same_key() -> None:
    assert decoded((b"1" * 32).hex(), "a") == decoded(f"  {ONE}\n", "a")


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused_with_the_mend(tmp_path: Path, mode: int) -> None:
    Masters({}, tmp_path).current()
    path = tmp_path / "master.key"
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match=f"chmod 600 {path}"):
        Masters({}, tmp_path).all()


def test_a_file_that_is_no_text_or_a_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    path.write_bytes(b"\xff\xfe")
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match=r"master\.key can't be read"):
        Masters({}, tmp_path).all()
    path.unlink()
    path.mkdir(mode=0o700)
    with pytest.raises(ConfigurationError, match=r"master\.key can't be read"):
        Masters({}, tmp_path).all()


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(ConfigurationError, match="data/master.key can't be read: Not a directory"):
        Masters({}, tmp_path / "data").current()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_without_the_right_to_write_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="can't be written"):
        Masters({}, tmp_path).current()


def test_a_rotation_keeps_both_until_it_has_ended(tmp_path: Path) -> None:
    masters = Masters({}, tmp_path)
    old = masters.current()
    new = masters.begin_rotation()
    assert [one.id for one in masters.all()] == [old.id, new.id]
    masters.end_rotation()
    assert [one.id for one in masters.all()] == [new.id]


def test_a_rotation_that_broke_off_is_taken_up_with_its_own_new_key(tmp_path: Path) -> None:
    masters = Masters({}, tmp_path)
    masters.current()
    begun = masters.begin_rotation()
    assert Masters({}, tmp_path).begin_rotation().id == begun.id


def test_a_rotation_of_a_key_from_the_environment_wants_the_new_one_there_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=NEW_VARIABLE):
        Masters({VARIABLE: ONE}, tmp_path).begin_rotation()
    assert Masters({VARIABLE: ONE, NEW_VARIABLE: TWO}, tmp_path).begin_rotation().secret == b"2" * 32


def test_a_master_key_shows_itself_nowhere(tmp_path: Path) -> None:
    made = Masters({}, tmp_path).current()
    assert made.secret.hex() not in repr(made)
    assert str(made.secret) not in repr(made)


class MemoryKeyring(KeyringBackend):
    """A keyring that works, in memory."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._kept[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._kept[(service, username)]


class _Locked(MemoryKeyring):
    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked("Prompt dismissed..")


@pytest.fixture
def system() -> Iterator[Callable[[MemoryKeyring], None]]:
    """Puts a keyring in the place of the system's."""
    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


def test_the_keyring_keeps_and_rotates_a_key_and_no_file_is_written(
    tmp_path: Path, system: Callable[[MemoryKeyring], None]
) -> None:
    system(MemoryKeyring())
    masters = Masters({}, tmp_path, keyring=system_keyring)
    made = masters.current()
    assert masters.current().id == made.id
    new = masters.begin_rotation()
    masters.end_rotation()
    assert [one.id for one in masters.all()] == [new.id]
    assert list(tmp_path.iterdir()) == []


def test_a_locked_keyring_is_one_sentence_and_does_not_matter_beside_a_key_in_the_environment(
    tmp_path: Path, system: Callable[[MemoryKeyring], None]
) -> None:
    system(_Locked())
    with pytest.raises(ConfigurationError, match="keyring can't be used: Prompt dismissed; unlock it"):
        Masters({}, tmp_path, keyring=system_keyring).current()
    assert Masters({VARIABLE: ONE}, tmp_path, keyring=system_keyring).current().secret == b"1" * 32
