# The order of messages that a server takes.
#
# Rule 1: what stands only grows (S3.10b). A message is encoded once; only a user message that stands last, and is followed by
# another where user and assistant must take turns, is written anew: with the same beginning, longer.
# Rule 2: where they must take turns and nothing can be joined, the other side says a few neutral words. They are part of the
# request only, never of the record.
#
# Chat templates count turns without calls and results: user, [calls, results]*, assistant, user, ... So a user message after
# results (the pictures of a tool, or a new turn after one that was stopped) is out of turn, like a second one in a row.

"""The messages of a request, encoded, in an order that the server takes."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

from msgspec.json import encode

Content: TypeAlias = str | list[dict[str, Any]]
"""What a message says: text, or parts of text and pictures."""

_GO_ON = "(go on)"
_READ = "(I have read the results.)"


class Rows:
    """Messages as JSON, in order.

    alternate: user and assistant must take turns. parts: user messages always are lists of parts, so that a picture may join
    one that was text.
    """

    def __init__(self, *, alternate: bool = False, parts: bool = False) -> None:
        self.written: list[bytes] = []
        self._alternate = alternate
        self._parts = parts
        self._open: Content | None = None  # of the user message that stands last
        self._turn: Literal["user", "assistant"] = "user"

    def branch(self) -> Rows:
        """The same rows, to go on with for one request only."""
        other = Rows(alternate=self._alternate, parts=self._parts)
        other.written = [*self.written]
        other._open, other._turn = self._open, self._turn
        return other

    def add(self, message: dict[str, Any]) -> None:
        """A message that takes no part in the turns: the system prompt, a result."""
        self.written.append(encode(message))
        self._open = None

    def user(self, content: Content, *, join: bool = False) -> None:
        """What the user says. join: with the user message before it, if there is one, even where turns don't count."""
        said = _as_parts(content) if self._parts else content
        if self._open is not None and (self._alternate or join):
            self.written.pop()
            said = _joined(self._open, said)
        elif self._alternate and self._turn == "assistant":
            self.written.append(encode({"role": "assistant", "content": _READ}))
        self.written.append(encode({"role": "user", "content": said}))
        self._open, self._turn = said, "assistant"

    def assistant(self, message: dict[str, Any]) -> None:
        """What the model said or asked for."""
        if "tool_calls" not in message:
            if self._alternate and self._turn == "user":
                self.user(_GO_ON)
            self._turn = "user"
        self.add(message)


def _joined(first: Content, second: Content) -> Content:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: Content) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], [{"type": "text", "text": content}]) if isinstance(content, str) else content
