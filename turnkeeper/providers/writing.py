# What the request writers of all families share.
#
# Rule 1: a request extends the one before it, byte for byte, up to its last stable message (S3.10b).
# Rule 2: a message is encoded once: its bytes are kept beside it, so that a pass costs what it adds, and a copy of the rest.

"""Conversation pieces that are written once, and what is said where a server can't take a message as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnkeeper.providers.identifiers import fit_tool_name
from turnkeeper.types.calls import Parsed, ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, NativePart, Picture, ToolMessage, UserMessage

CONTINUE = (
    "Your last message was cut off. Continue it from exactly where it stops: write only what comes next, "
    "do not repeat anything, do not begin again, do not comment."
)
"""The instruction form of a continuation (S3.4), for models that can't take a prefill."""

GO_ON = "Go on from there."
"""Said after an assistant message that stands last, to a model that did not write it."""

NO_OUTPUT = "(no output)"
"""Stands for an empty result (S2.5a)."""

PICTURES = "The pictures that the tool calls above returned:"


class Entry(NamedTuple):
    """What a message becomes: its role in the family's words, and its content, encoded; b"" for nothing."""

    role: str
    content: bytes


Write = Callable[[Message, Sequence[Message], int], Entry]
"""Writes the message at a place of the conversation."""


class StableEntries:
    """The entries of the stable messages; only what was not sent before is written.

    A conversation only grows at its end, or loses its beginning: where the first and the last message that were sent stand
    in their places, so do those between them.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._messages: list[Message] = []
        self._entries: list[Entry] = []

    def of(self, messages: tuple[Message, ...]) -> list[Entry]:
        """The entries of `messages`, in order, one each."""
        sent = len(self._messages)
        grown = sent and sent <= len(messages) and messages[0] is self._messages[0] and messages[sent - 1] is self._messages[-1]
        if not grown:
            self._messages, self._entries = [], []
        for place in range(len(self._messages), len(messages)):
            self._entries.append(self._write(messages[place], messages, place))
            self._messages.append(messages[place])
        return self._entries


def own_native(message: AssistantMessage, family: str, model: str) -> NativePart | None:
    """The part that this model of this family made, None where another one did (S3.10)."""
    return next((part for part in message.native if part.family == family and part.model == model), None)


def chain_begins(messages: Sequence[Message], place: int) -> int:
    """Where the chain of passes that `place` belongs to begins: right after the last message of a person."""
    while place and not isinstance(messages[place - 1], UserMessage):
        place -= 1
    return place


def batch_pictures(messages: Sequence[Message], place: int) -> tuple[Picture, ...]:
    """At the last result of a batch, the pictures of the whole batch; they stand after it (S3.10a)."""
    if place + 1 < len(messages) and isinstance(messages[place + 1], ToolMessage):
        return ()
    first = place
    while first and isinstance(messages[first - 1], ToolMessage):
        first -= 1
    return tuple(picture for one in messages[first : place + 1] if isinstance(one, ToolMessage) for picture in one.pictures)


def without_pictures(text: str, pictures: tuple[Picture, ...]) -> str:
    """The text, with words in place of pictures (S3.10)."""
    return "\n".join([text, *[str(picture) for picture in pictures]]).strip()


def arguments_of(call: ToolCall) -> str:
    """What the model wrote, where it is an object; what is cut or broken is not replayed as its call (S6.1)."""
    return call.text if isinstance(call.arguments, Parsed) else "{}"


def retold_result(message: ToolMessage, call: ToolCall | None) -> str:
    """A call and its result as words, for a server that can't take them as such (S3.10)."""
    asked = f"{fit_tool_name(message.name)}({arguments_of(call)})" if call is not None else fit_tool_name(message.name)
    return f"[The tool call {asked} was made earlier in this conversation. Its result:]\n{message.content.strip() or NO_OUTPUT}"


def call_of(message: ToolMessage, messages: Sequence[Message], place: int) -> ToolCall | None:
    """The call that the result at `place` answers."""
    for earlier in reversed(messages[:place]):
        if isinstance(earlier, AssistantMessage):
            return next((call for call in earlier.calls if call.id == message.call_id), None)
        if isinstance(earlier, UserMessage):
            return None
    return None
