# Requests of the Messages API.
#
# Rule 1: roles alternate: the entries of one role in a row are the blocks of one message. Results stand before anything else
# that is said in their message.
# Rule 2: native content goes back unchanged to the model that made it, in its own order, as long as it says the same as the
# neutral message: text that people did not see is not sent (S2.5).
# Rule 3: where the model thinks, the server wants the chain of a turn to begin with that model's own signed thinking. Calls
# before it, which another model made, are retold as text (S3.10).
# Cache marks stand after the tools, the system prompt, the newest message of a person, and the last stable message (S3.10b).

"""Writes the neutral conversation as Messages requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from msgspec.json import decode, encode

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
    call_of,
    chain_begins,
    own_native,
    retold_result,
    without_pictures,
)
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage

FAMILY = "anthropic"
_VERSION = "2023-06-01"
_OUTPUT = 8192  # tokens of an answer, where neither user nor catalogue says how many; the API wants a number
_MARK = b',"cache_control":{"type":"ephemeral"}}'
_THINKING = ("thinking", "redacted_thinking")


class MessagesWriter:
    """Writes the requests of one attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._traits = model.traits
        self._thinks = table_of(model.extra.get("thinking")).get("type") == "enabled"
        self._entries = StableEntries(self._entry)
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_written = b""
        self._retold: set[str] = set()  # ids of calls that are told as text

    @property
    def path(self) -> str:
        """Where the request goes, below the base URL."""
        return "/messages"

    @property
    def native_prefill(self) -> bool:
        """Whether an unfinished reply is sent as such (S3.4); a model that thinks can't take it."""
        return self._traits.prefill and "thinking" not in self._model.extra

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request with `key`, "" for none."""
        own = {"Content-Type": "application/json", "Accept": "text/event-stream", "anthropic-version": _VERSION}
        if key:
            own["x-api-key"] = key
        return own | self._model.headers

    def body(self, prompt: Prompt) -> bytes:
        """The request's body."""
        parts = [b'{"model":', encode(self._model.name), b',"stream":true,', encode(self._options())[1:-1]]
        if prompt.tools and self._traits.tools == "native":
            parts += [b',"tools":', self._encode_tools(prompt.tools)]
        if prompt.system.strip():
            parts += [b',"system":[', _marked(encode({"type": "text", "text": prompt.system})), b"]"]
        parts += [b',"messages":[', b",".join(self._all_messages(prompt)), b"]}"]
        return b"".join(parts)

    def _options(self) -> dict[str, Any]:
        most = self._traits.max_output or _OUTPUT
        options: dict[str, Any] = {"max_tokens": self._model.output_limit or min(_OUTPUT, most)}
        if self._model.temperature is not None and self._traits.temperature and "thinking" not in self._model.extra:
            options["temperature"] = min(self._model.temperature, 1.0)
        return options | self._model.extra

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools:
            self._tools = tools
            written = [_tool(tool) for tool in tools]
            written[-1] = _marked(written[-1])
            self._tools_written = b"[" + b",".join(written) + b"]"
        return self._tools_written

    def _all_messages(self, prompt: Prompt) -> list[bytes]:
        entries = list(self._entries.of(prompt.messages))
        newest = max((place for place, one in enumerate(prompt.messages) if isinstance(one, UserMessage)), default=-1)
        for place in {newest, len(entries) - 1}:
            if place >= 0 and entries[place].content:
                entries[place] = Entry(entries[place].role, _mark_last(entries[place].content))
        resting = bool(entries) and self._stands_last(prompt.messages)
        said = "\n\n".join([text for text in (prompt.tail, GO_ON if resting and not prompt.prefill else "") if text])
        prefill = prompt.prefill.rstrip()
        if prefill and self.native_prefill:
            entries += [Entry("user", _text(said)), Entry("assistant", _text(prefill))]
        else:
            said = "\n\n".join([text for text in (CONTINUE if prefill else "", said) if text])
            entries += [Entry("assistant", _text(prefill)), Entry("user", _text(said))]
        return _grouped(entries)

    def _stands_last(self, messages: tuple[Message, ...]) -> bool:
        """The conversation ends with an assistant message that is not this model's own, paused at a tool of the server's."""
        last = messages[-1] if messages else None
        if not isinstance(last, AssistantMessage):
            return False
        part = own_native(last, FAMILY, self._model.name)
        blocks = list_of(part.data.get("content")) if part is not None and self._native(last) is not None else []
        return not blocks or text_of(table_of(blocks[-1]).get("type")) in ("text", "tool_use", *_THINKING)

    # Stable messages

    def _entry(self, message: Message, messages: Sequence[Message], place: int) -> Entry:
        match message:
            case UserMessage():
                return Entry("user", self._said_by_person(message.text, message.pictures))
            case AssistantMessage():
                return Entry("assistant", self._assistant(message, messages, place))
            case ToolMessage():
                return Entry("user", self._result(message, messages, place))

    def _said_by_person(self, text: str, pictures: tuple[Picture, ...]) -> bytes:
        if not self._traits.vision:
            text, pictures = without_pictures(text, pictures), ()
        return b",".join([part for part in [_text(text), *[encode(_picture(picture)) for picture in pictures]] if part])

    def _result(self, message: ToolMessage, messages: Sequence[Message], place: int) -> bytes:
        if message.call_id in self._retold:
            return self._said_by_person(retold_result(message, call_of(message, messages, place)), message.pictures)
        content: Any = message.content if message.content.strip() else NO_OUTPUT
        if message.pictures and self._traits.vision:
            content = [{"type": "text", "text": content}, *[_picture(picture) for picture in message.pictures]]
        elif message.pictures:
            content = without_pictures(message.content, message.pictures)
        return encode({"type": "tool_result", "tool_use_id": fit_call_id(message.call_id), "content": content})

    def _assistant(self, message: AssistantMessage, messages: Sequence[Message], place: int) -> bytes:
        if message.calls and self._must_retell(messages, place):
            self._retold |= {call.id for call in message.calls}
            return _text(message.text.rstrip())
        native = self._native(message)
        if native is not None:
            return native
        blocks = [_text(message.text.rstrip() if not message.calls else message.text)]
        blocks += [_tool_use(call) for call in message.calls]
        return b",".join([block for block in blocks if block])

    def _native(self, message: AssistantMessage) -> bytes | None:
        """This model's own content, unchanged but for the calls' ids; None where it says something else than the message."""
        part = own_native(message, FAMILY, self._model.name)
        if part is None:
            return None
        blocks = [table_of(block) for block in list_of(part.data.get("content"))]
        said = "".join([text_of(block.get("text")) for block in blocks if block.get("type") == "text"])
        asked = [block for block in blocks if block.get("type") == "tool_use"]
        if said.strip() != message.text.strip() or len(asked) != len(message.calls):
            return None
        calls = iter(message.calls)
        written: list[bytes] = []
        for block in blocks:
            written.append(_tool_use(next(calls)) if block.get("type") == "tool_use" else encode(block))
        return b",".join(written)

    def _must_retell(self, messages: Sequence[Message], place: int) -> bool:
        """Rule 3: no thinking of this model's own stands at or before `place` in this chain."""
        if not self._thinks:
            return False
        chain = messages[chain_begins(messages, place) : place + 1]
        return not any(isinstance(one, AssistantMessage) and self._begins_with_thinking(one) for one in chain)

    def _begins_with_thinking(self, message: AssistantMessage) -> bool:
        part = own_native(message, FAMILY, self._model.name)
        blocks = list_of(part.data.get("content")) if part is not None else []
        return bool(blocks) and table_of(blocks[0]).get("type") in _THINKING and self._native(message) is not None


def _grouped(entries: list[Entry]) -> list[bytes]:
    """The messages: entries of one role in a row are the blocks of one."""
    messages: list[bytes] = []
    role, blocks = "", list[bytes]()
    for entry in [*entries, Entry("", b"{}")]:
        if not entry.content:
            continue
        if entry.role != role:
            if blocks:
                messages.append(b'{"role":"' + role.encode() + b'","content":[' + b",".join(blocks) + b"]}")
            role, blocks = entry.role, []
        blocks.append(entry.content)
    return messages


def _text(text: str) -> bytes:
    return encode({"type": "text", "text": text}) if text.strip() else b""


def _tool_use(call: ToolCall) -> bytes:
    head = encode({"type": "tool_use", "id": fit_call_id(call.id), "name": fit_tool_name(call.name)})
    return head[:-1] + b',"input":' + arguments_of(call).encode("utf-8", "replace") + b"}"


def _picture(picture: Picture) -> dict[str, Any]:
    data = b64encode(picture.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": picture.media_type, "data": data}}


def _tool(tool: ToolSpec) -> bytes:
    head = encode({"name": fit_tool_name(tool.name), "description": tool.description})[:-1]
    return head + b',"input_schema":' + tool.parameters + b"}"


def _marked(block: bytes) -> bytes:
    return block[:-1] + _MARK


def _mark_last(content: bytes) -> bytes:
    """The mark on the last block of an entry; thinking takes none."""
    if b'thinking"' in content and table_of(list_of(decode(b"[" + content + b"]"))[-1]).get("type") in _THINKING:
        return content
    return _marked(content)
