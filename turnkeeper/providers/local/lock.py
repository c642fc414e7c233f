"""A lock file that one process at a time can hold, and that the system lets go when its holder dies."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class HeldError(Exception):
    """Somebody else holds the lock."""


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Hold the lock at `path` for the length of the block. Raises HeldError at once where another holds it.

    The file stays: removing it would let a third hold a new file of the same name.
    """
    with path.open("ab") as file:
        _take(file)
        yield  # closing the file lets go


if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> None:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise HeldError from None
else:
    import fcntl

    def _take(file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError from None
