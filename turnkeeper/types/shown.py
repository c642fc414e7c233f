"""What a reader of a running turn is told, as it happens (`Engine.stream`)."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from turnkeeper.types.turn import HistoryEntry, Notice, TurnResult


class TextShown(Struct, frozen=True, tag=True):
    """More text of the message that is being written."""

    text: str


class MessageShown(Struct, frozen=True, tag=True):
    """A message is complete: its final text."""

    text: str


class ToolBegan(Struct, frozen=True, tag=True):
    """A tool is about to run. `arguments`: bounded, without secrets."""

    name: str
    arguments: str


class ToolEnded(Struct, frozen=True, tag=True):
    """A call has its outcome."""

    entry: HistoryEntry
    took_s: float


class NoticeGiven(Struct, frozen=True, tag=True):
    """We told people something beside the reply."""

    notice: Notice


class TurnEnded(Struct, frozen=True, tag=True):
    """The turn is over. Always the last event."""

    result: TurnResult


Shown: TypeAlias = TextShown | MessageShown | ToolBegan | ToolEnded | NoticeGiven | TurnEnded
