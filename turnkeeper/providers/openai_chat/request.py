# Chat-completions requests.
#
# Rule 1: a request extends the one before it, byte for byte, up to its last stable message (S3.10b): fields in one fixed
# order, tools before messages, what changes (tail, continuation) after the last stable message.
# Rule 2: a message is encoded once. `RequestWriter` keeps the bytes beside the message and joins them for each pass, so a
# pass costs what it adds, and the copying of the rest.

"""Writes the neutral conversation as chat-completions requests."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from msgspec.json import encode

from turnkeeper.providers.model import Model
from turnkeeper.types.calls import Parsed, ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage

FAMILY = "openai-chat"

CONTINUE = (
    "Your last message was cut off. Continue it from exactly where it stops: write only what comes next, "
    "do not repeat anything, do not begin again, do not comment."
)
"""The instruction form of a continuation (S3.4), for models that can't take a prefill."""


class RequestWriter:
    """Writes the requests of one attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._traits = model.traits
        self._messages: list[Message] = []
        self._written: list[bytes] = []
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_written = b""

    @property
    def path(self) -> str:
        """Where the request goes, below the base URL."""
        return "/chat/completions"

    @property
    def native_prefill(self) -> bool:
        """Whether an unfinished reply is sent as such, rather than with an instruction to go on (S3.4)."""
        return self._traits.prefill

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request with `key`, "" for none."""
        own = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if key:
            own["Authorization"] = f"Bearer {key}"
        return own | self._model.headers

    def body(self, prompt: Prompt) -> bytes:
        """The request's body."""
        parts = [b'{"model":', encode(self._model.name), b',"stream":true']
        parts.append(self._options())
        if prompt.tools and self._traits.tools == "native":
            parts += [b',"tools":', self._encode_tools(prompt.tools)]
        parts += [b',"messages":[', b",".join(self._all_messages(prompt)), b"]}"]
        return b"".join(parts)

    def _options(self) -> bytes:
        options: dict[str, Any] = {}
        if self._traits.stream_usage:
            options["stream_options"] = {"include_usage": True}
        if self._model.temperature is not None:
            options["temperature"] = self._model.temperature
        if self._model.max_output_tokens is not None:
            options[self._traits.max_tokens_field] = self._model.max_output_tokens
        options |= self._model.extra
        return b"," + encode(options)[1:-1] if options else b""

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools:
            self._tools = tools
            self._tools_written = b"[" + b",".join([_tool(tool) for tool in tools]) + b"]"
        return self._tools_written

    def _all_messages(self, prompt: Prompt) -> list[bytes]:
        written: list[bytes] = []
        if prompt.system.strip():
            written.append(encode({"role": "system", "content": prompt.system}))
        written += self._stable(prompt.messages)
        if prompt.prefill.strip():
            written.append(encode({"role": "assistant", "content": prompt.prefill.rstrip()}))
            if not self._traits.prefill:
                written.append(encode({"role": "user", "content": CONTINUE}))
        if prompt.tail:
            written.append(encode({"role": "user", "content": prompt.tail}))
        return written

    def _stable(self, messages: tuple[Message, ...]) -> list[bytes]:
        """The bytes of the stable messages; only what was not sent before is encoded.

        A conversation only grows at its end, or loses its beginning: where the first and the last message that were sent
        stand in their places, so do those between them.
        """
        sent = len(self._messages)
        if not (
            sent <= len(messages) and sent and messages[0] is self._messages[0] and messages[sent - 1] is self._messages[-1]
        ):
            self._messages, self._written = [], []
        for place in range(len(self._messages), len(messages)):
            written = self._message(messages[place], messages, place)
            if written:
                self._written.append(written)
            self._messages.append(messages[place])
        return self._written

    def _message(self, message: Message, messages: tuple[Message, ...], place: int) -> bytes:
        match message:
            case UserMessage():
                return encode({"role": "user", "content": self._user_content(message.text, message.pictures)})
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                result = encode({"role": "tool", "tool_call_id": message.call_id, "content": message.content})
                pictures = _batch_pictures(messages, place)
                if not pictures:
                    return result
                said = "The pictures that the tool calls above returned:"
                return result + b"," + encode({"role": "user", "content": self._user_content(said, pictures)})

    def _assistant(self, message: AssistantMessage) -> bytes:
        fields: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if message.calls:
            fields["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": _name(call.name), "arguments": _arguments(call)}}
                for call in message.calls
            ]
        elif not message.text.strip():
            return b""  # S2.5a: nothing empty is sent
        wanted = self._traits.reasoning_field
        for part in message.native:  # S3.10: reasoning goes back to the model that made it, and to no other
            if wanted and part.family == FAMILY and part.model == self._model.name and wanted in part.data:
                fields[wanted] = part.data[wanted]
        return encode(fields)

    def _user_content(self, text: str, pictures: tuple[Picture, ...]) -> str | list[dict[str, Any]]:
        if not pictures:
            return text
        if not self._traits.vision:  # S3.10: media is turned into text for models that can't see
            return "\n".join([text, *[str(picture) for picture in pictures]]).strip()
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        for picture in pictures:
            url = f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        return parts


def _batch_pictures(messages: tuple[Message, ...], place: int) -> tuple[Picture, ...]:
    """At the last result of a batch, the pictures of the whole batch; they stand after it (S3.10a)."""
    if place + 1 < len(messages) and isinstance(messages[place + 1], ToolMessage):
        return ()
    first = place
    while first and isinstance(messages[first - 1], ToolMessage):
        first -= 1
    return tuple(picture for one in messages[first : place + 1] if isinstance(one, ToolMessage) for picture in one.pictures)


def _name(name: str) -> str:
    """A call's name in the letters that servers take; a tool's own name is made of them."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _arguments(call: ToolCall) -> str:
    """What the model wrote, where it is an object; what is cut or broken is not replayed as its call (S6.1)."""
    return call.text if isinstance(call.arguments, Parsed) else "{}"


def _tool(tool: ToolSpec) -> bytes:
    head = encode({"name": tool.name, "description": tool.description})[:-1]
    return b'{"type":"function","function":' + head + b',"parameters":' + tool.parameters + b"}}"
