"""The sink of `Engine.stream`: hands what happens to one reader."""

from __future__ import annotations

import asyncio
from collections import deque

from turnkeeper.delivery.sink import Outgoing
from turnkeeper.types.outcomes import Expression
from turnkeeper.types.shown import MessageShown, NoticeGiven, Shown, TextShown, ToolBegan, ToolEnded
from turnkeeper.types.turn import HistoryEntry, Notice


class Streaming:
    """Keeps events for a reader. Text that the reader has not taken yet is joined, so a slow reader costs no memory."""

    def __init__(self) -> None:
        self._events: deque[Shown] = deque()
        self._text: list[str] = []
        self._waiting = asyncio.Event()
        self._closed = False

    def grow(self, text: str) -> None:
        """More text."""
        self._text.append(text)
        self._waiting.set()

    def post(self, message: Outgoing) -> str:
        """A message is complete."""
        self._put(MessageShown(message.text))
        return message.nonce

    def express(self, expression: Expression, nonce: str) -> str:
        """An expression is shown, in words."""
        self._put(MessageShown(str(expression)))
        return nonce

    def notice(self, notice: Notice) -> str:
        """A notice was given."""
        self._put(NoticeGiven(notice))
        return ""

    def tool_started(self, name: str, arguments: str) -> None:
        """A tool begins."""
        self._put(ToolBegan(name, arguments))

    def tool_finished(self, entry: HistoryEntry, took_s: float) -> None:
        """A tool ended."""
        self._put(ToolEnded(entry, took_s))

    def close(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._waiting.set()

    async def next(self) -> Shown | None:
        """The next event; None when all have been read and nothing more will come."""
        while not self._events and not self._text:
            if self._closed:
                return None
            self._waiting.clear()
            await self._waiting.wait()
        if self._events:
            return self._events.popleft()
        return self._take_text()

    def _put(self, event: Shown) -> None:
        if self._text:
            self._events.append(self._take_text())
        self._events.append(event)
        self._waiting.set()

    def _take_text(self) -> TextShown:
        text = "".join(self._text)
        self._text.clear()
        return TextShown(text)
