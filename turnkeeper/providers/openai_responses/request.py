# Requests of the Responses API.
#
# Rule 1: nothing is stored at the server (`store: false`): the conversation is sent whole, and reasoning as the encrypted
# item that the model made of it.
# Rule 2: native items go back unchanged to the model that made them, as long as they say the same as the neutral message.
# A reasoning item goes only with the item that followed it (S3.10a).

"""Writes the neutral conversation as Responses requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from turnkeeper.providers.counts import list_of, table_of, text_of
from turnkeeper.providers.identifiers import fit_call_id, fit_tool_name
from turnkeeper.providers.model import Model
from turnkeeper.providers.writing import (
    CONTINUE,
    GO_ON,
    NO_OUTPUT,
    Entry,
    StableEntries,
    arguments_of,
    own_native,
    without_pictures,
)
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage

FAMILY = "openai-responses"
_LEAST_OUTPUT = 16  # tokens: the API refuses less


class ResponsesWriter:
    """Writes the requests of one attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._traits = model.traits
        self._entries = StableEntries(self._entry)
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_written = b""

    @property
    def path(self) -> str:
        """Where the request goes, below the base URL."""
        return "/responses"

    @property
    def native_prefill(self) -> bool:
        """Never: this API begins a new item (S3.4)."""
        return False

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request with `key`, "" for none."""
        own = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if key:
            own["Authorization"] = f"Bearer {key}"
        return own | self._model.headers

    def body(self, prompt: Prompt) -> bytes:
        """The request's body."""
        parts = [b'{"model":', encode(self._model.name), b',"stream":true,', encode(self._options())[1:-1]]
        if prompt.tools and self._traits.tools == "native":
            parts += [b',"tools":', self._encode_tools(prompt.tools)]
        if prompt.system.strip():
            parts += [b',"instructions":', encode(prompt.system)]
        parts += [b',"input":[', b",".join(self._items(prompt)), b"]}"]
        return b"".join(parts)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
        if self._model.temperature is not None and self._traits.temperature:
            options["temperature"] = self._model.temperature
        if self._model.output_limit is not None:
            options["max_output_tokens"] = max(_LEAST_OUTPUT, self._model.output_limit)
        return options | self._model.extra

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools:
            self._tools = tools
            self._tools_written = b"[" + b",".join([_tool(tool) for tool in tools]) + b"]"
        return self._tools_written

    def _items(self, prompt: Prompt) -> list[bytes]:
        items = [entry.content for entry in self._entries.of(prompt.messages) if entry.content]
        prefill = prompt.prefill.rstrip()
        if prefill:
            items.append(_said(prefill))
        last = prompt.messages[-1] if prompt.messages else None
        go_on = GO_ON if isinstance(last, AssistantMessage) and not prefill else ""
        said = "\n\n".join([text for text in (CONTINUE if prefill else "", go_on, prompt.tail) if text])
        if said:
            items.append(_message("user", [{"type": "input_text", "text": said}]))
        return items

    def _entry(self, message: Message, messages: Sequence[Message], place: int) -> Entry:
        match message:
            case UserMessage():
                parts = self._parts(message.text, message.pictures)
                return Entry("user", _message("user", parts) if parts else b"")
            case AssistantMessage():
                return Entry("assistant", self._assistant(message))
            case ToolMessage():
                return Entry("tool", self._result(message))

    def _parts(self, text: str, pictures: tuple[Picture, ...]) -> list[dict[str, Any]]:
        if not self._traits.vision:
            text, pictures = without_pictures(text, pictures), ()
        parts: list[dict[str, Any]] = [{"type": "input_text", "text": text}] if text.strip() else []
        for picture in pictures:
            url = f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
            parts.append({"type": "input_image", "image_url": url})
        return parts

    def _result(self, message: ToolMessage) -> bytes:
        output: Any = message.content if message.content.strip() else NO_OUTPUT
        if message.pictures and self._traits.vision:
            output = self._parts(output, message.pictures)
        elif message.pictures:
            output = without_pictures(output, message.pictures)
        return encode({"type": "function_call_output", "call_id": fit_call_id(message.call_id), "output": output})

    def _assistant(self, message: AssistantMessage) -> bytes:
        native = self._native(message)
        if native is not None:
            return native
        items = [_said(message.text)] if message.text.strip() else []
        items += [_call(call) for call in message.calls]
        return b",".join(items)

    def _native(self, message: AssistantMessage) -> bytes | None:
        """This model's own items; None where they say something else than the message."""
        part = own_native(message, FAMILY, self._model.name)
        if part is None:
            return None
        items = [table_of(item) for item in list_of(part.data.get("output"))]
        said = "".join([_text_of_message(item) for item in items])
        asked = sum(item.get("type") == "function_call" for item in items)
        if said.strip() != message.text.strip() or asked != len(message.calls):
            return None
        calls = iter(message.calls)
        written: list[bytes] = []
        for place, item in enumerate(items):
            following = items[place + 1].get("type") if place + 1 < len(items) else None
            match item.get("type"):
                case "function_call":
                    written.append(_call(next(calls)))
                case "message":
                    written += [_said(_text_of_message(item), item.get("phase"))] if _text_of_message(item).strip() else []
                case "reasoning":
                    if item.get("encrypted_content") and following not in (None, "reasoning"):
                        written.append(encode({name: value for name, value in item.items() if name != "status"}))
                case _:
                    written.append(encode(item))
        return b",".join(written)


def _text_of_message(item: dict[str, Any]) -> str:
    if item.get("type") != "message":
        return ""
    return "".join([text_of(table_of(part).get("text")) for part in list_of(item.get("content"))])


def _message(role: str, parts: list[dict[str, Any]]) -> bytes:
    return encode({"type": "message", "role": role, "content": parts})


def _said(text: str, phase: object = None) -> bytes:
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return encode(item | {"phase": phase} if phase else item)


def _call(call: ToolCall) -> bytes:
    name, call_id = fit_tool_name(call.name), fit_call_id(call.id)
    return encode({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments_of(call)})


def _tool(tool: ToolSpec) -> bytes:
    head = encode({"type": "function", "name": fit_tool_name(tool.name), "description": tool.description, "strict": False})
    return head[:-1] + b',"parameters":' + tool.parameters + b"}"
