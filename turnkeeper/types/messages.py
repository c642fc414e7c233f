"""The neutral conversation: what any provider family is given, before it is written in that family's words."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from turnkeeper.types.calls import ToolCall
from turnkeeper.types.stream import NativePart


class Picture(Struct, frozen=True, tag=True):
    """A picture that a person sent or a tool returned.

    data: the file's bytes. media_type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    """

    data: bytes
    media_type: str

    def __str__(self) -> str:
        """What stands in its place where the model can't see."""
        return f"[picture, {max(1, len(self.data) // 1024)} KB]"


class UserMessage(Struct, frozen=True, tag=True):
    """Something a person, or the channel, said."""

    text: str
    pictures: tuple[Picture, ...] = ()


class AssistantMessage(Struct, frozen=True, tag=True):
    """What the model said and asked for in one pass."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    native: tuple[NativePart, ...] = ()


class ToolMessage(Struct, frozen=True, tag=True):
    """The one result of one call (S4.6). `content` is what the model reads."""

    call_id: str
    name: str
    content: str
    pictures: tuple[Picture, ...] = ()


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


class ToolSpec(Struct, frozen=True, tag=True):
    """A tool as a model is told of it.

    parameters: a JSON Schema object, encoded. examples: what a person says, and the arguments of the call that answers it,
    as JSON; for models that learn to call from examples (S10.1).
    """

    name: str
    description: str
    parameters: bytes
    examples: tuple[tuple[str, str], ...] = ()


class Prompt(Struct, frozen=True):
    """All that one pass sends: in this order, so that a request extends the one before it (S3.10b).

    system: the system prompt, "" for none.
    messages: the conversation, the trigger and this turn's chain.
    tail: said to the model in this pass only and kept nowhere (S9.4a).
    prefill: the assistant's own unfinished text that this pass is to carry on, "" for none (S3.4).
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tail: str = ""
    prefill: str = ""
