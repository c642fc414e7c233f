"""What a tool may know of the turn that called it, and do in it."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from turnkeeper.tools.results import Results

_NOTES_KEPT = 200  # of a channel
_CHANNELS_KEPT = 10_000


class Note(Struct, frozen=True):
    """Something that was to be remembered, and who asked for it."""

    user: str
    text: str


class Notes(Protocol):
    """The short-term memory."""

    async def keep(self, channel: str, user: str, text: str) -> None:
        """Remembers `text` for this channel."""
        ...

    async def find(self, channel: str, query: str, limit: int) -> list[Note]:
        """At most `limit` notes of the channel that fit `query`, the best and newest first; all fit an empty query."""
        ...


class MemoryNotes:
    """Notes that last as long as the process: the last 200 of a channel, for the 10,000 channels used last."""

    def __init__(self) -> None:
        self._notes: OrderedDict[str, deque[Note]] = OrderedDict()

    async def keep(self, channel: str, user: str, text: str) -> None:
        """Remembers `text`; what was remembered before in the same words is kept once."""
        notes = self._notes.setdefault(channel, deque(maxlen=_NOTES_KEPT))
        note = Note(user, text)
        if note in notes:
            notes.remove(note)
        notes.append(note)
        self._notes.move_to_end(channel)
        if len(self._notes) > _CHANNELS_KEPT:
            self._notes.popitem(last=False)

    async def find(self, channel: str, query: str, limit: int) -> list[Note]:
        """The notes that share most words with `query`, the newest first among equals."""
        return best_notes(list(self._notes.get(channel, ())), query, limit)


def best_notes(notes: list[Note], query: str, limit: int) -> list[Note]:
    """Those of `notes`, oldest first, that share words with `query`: best first, the newest first among equals."""
    wanted = set(query.casefold().split())
    newest = list(reversed(notes))
    if not wanted:
        return newest[:limit]
    scored = [(sum(word in note.text.casefold() for word in wanted), note) for note in newest]
    return [note for score, note in sorted(scored, key=lambda pair: -pair[0]) if score][:limit]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Given to a tool whose function has a parameter annotated `ToolContext`; the model does not see that parameter.

    channel, user, turn_id, call_id: whose call it is.
    say: posts a message into the channel, after what the model has written.
    notes: the short-term memory. folders: where files may be read. attachments: files that came with the message, by name.
    results: whole texts of results that were cut (S6.5).
    """

    channel: str
    user: str
    turn_id: str
    call_id: str
    say: Callable[[str], Awaitable[None]]
    notes: Notes
    results: Results
    folders: tuple[Path, ...] = ()
    attachments: Mapping[str, bytes] | None = None
