# Requests of Gemini's streamGenerateContent.
#
# Rule 1: the results of a batch are the parts of one content, in the order of the calls; nothing else stands in it.
# Rule 2: native parts go back unchanged, with their signatures, to the model that made them, as long as they say the same as
# the neutral message. Where the model takes calls only with its own signature, calls without one are retold as text (S3.10).
# Rule 3: ids are sent only where the server gave them: else calls and results are matched by their order.

"""Writes the neutral conversation as Gemini requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from msgspec.json import decode, encode

from turnkeeper.providers.counts import list_of, table_of, text_of
from turnkeeper.providers.identifiers import fit_tool_name
from turnkeeper.providers.model import Model
from turnkeeper.providers.schema_dialect import GEMINI_REFUSED, fit_schema
from turnkeeper.providers.writing import (
    CONTINUE,
    GO_ON,
    NO_OUTPUT,
    PICTURES,
    Entry,
    StableEntries,
    arguments_of,
    batch_pictures,
    call_of,
    own_native,
    retold_result,
    without_pictures,
)
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage

FAMILY = "gemini"
_ROLES = {"user": b"user", "results": b"user", "pictures": b"user", "model": b"model"}


class GeminiWriter:
    """Writes the requests of one attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._traits = model.traits
        self._entries = StableEntries(self._entry)
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_written = b""
        self._retold: set[str] = set()  # ids of calls that are told as text
        self._own_ids: dict[str, str] = {}  # the server's own ids of calls, by ours

    @property
    def path(self) -> str:
        """Where the request goes, below the base URL."""
        return f"/models/{quote(self._model.name.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"

    @property
    def native_prefill(self) -> bool:
        """Whether an unfinished reply is sent as such (S3.4)."""
        return self._traits.prefill

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request with `key`, "" for none."""
        own = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if key:
            own["x-goog-api-key"] = key
        return own | self._model.headers

    def body(self, prompt: Prompt) -> bytes:
        """The request's body."""
        options = encode(self._options())[1:-1]
        parts = [b"{", options, b"," if options else b""]
        if prompt.tools and self._traits.tools == "native":
            parts += [b'"tools":', self._encode_tools(prompt.tools), b","]
        if prompt.system.strip():
            parts += [b'"systemInstruction":', encode({"parts": [{"text": prompt.system}]}), b","]
        parts += [b'"contents":[', b",".join(self._contents(prompt)), b"]}"]
        return b"".join(parts)

    def _options(self) -> dict[str, Any]:
        own: dict[str, Any] = {}
        if self._model.output_limit is not None:
            own["maxOutputTokens"] = self._model.output_limit
        if self._model.temperature is not None and self._traits.temperature:
            own["temperature"] = self._model.temperature
        generation = own | table_of(self._model.extra.get("generationConfig"))
        return self._model.extra | ({"generationConfig": generation} if generation else {})

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools:
            self._tools = tools
            self._tools_written = encode([{"functionDeclarations": [_tool(tool) for tool in tools]}])
        return self._tools_written

    def _contents(self, prompt: Prompt) -> list[bytes]:
        entries = list(self._entries.of(prompt.messages))
        last = prompt.messages[-1] if prompt.messages else None
        prefill = prompt.prefill.rstrip()
        go_on = GO_ON if isinstance(last, AssistantMessage) and not prefill else ""
        if prefill and self.native_prefill:
            entries += [Entry("user", _text(prompt.tail)), Entry("model", _text(prefill))]
        else:
            said = "\n\n".join([text for text in (CONTINUE if prefill else "", go_on, prompt.tail) if text])
            entries += [Entry("model", _text(prefill)), Entry("user", _text(said))]
        return _grouped(entries)

    # Stable messages

    def _entry(self, message: Message, messages: Sequence[Message], place: int) -> Entry:
        match message:
            case UserMessage():
                return Entry("user", self._said_by_person(message.text, message.pictures))
            case AssistantMessage():
                return Entry("model", self._assistant(message))
            case ToolMessage():
                return self._result(message, messages, place)

    def _said_by_person(self, text: str, pictures: tuple[Picture, ...]) -> bytes:
        if not self._traits.vision:
            text, pictures = without_pictures(text, pictures), ()
        return b",".join([part for part in [_text(text), *[encode(_picture(picture)) for picture in pictures]] if part])

    def _result(self, message: ToolMessage, messages: Sequence[Message], place: int) -> Entry:
        if message.call_id in self._retold:
            told = retold_result(message, call_of(message, messages, place))
            return Entry("user", self._said_by_person(told, message.pictures))
        response: dict[str, Any] = {
            "name": fit_tool_name(message.name),
            "response": {"result": message.content if message.content.strip() else NO_OUTPUT},
        }
        if message.call_id in self._own_ids:
            response["id"] = self._own_ids[message.call_id]
        written = encode({"functionResponse": response})
        pictures = batch_pictures(messages, place)
        if pictures:
            return Entry("results+pictures", written + b"\n" + self._said_by_person(PICTURES, pictures))
        return Entry("results", written)

    def _assistant(self, message: AssistantMessage) -> bytes:
        native = self._native(message)
        if native is not None:
            return native
        if message.calls and self._traits.signed_calls:
            self._retold |= {call.id for call in message.calls}
            return _text(message.text)
        parts = [_text(message.text), *[encode({"functionCall": _call(call)}) for call in message.calls]]
        return b",".join([part for part in parts if part])

    def _native(self, message: AssistantMessage) -> bytes | None:
        """This model's own parts; None where they say something else than the message, or lack a signature that is due."""
        native = own_native(message, FAMILY, self._model.name)
        if native is None:
            return None
        parts = [table_of(part) for part in list_of(native.data.get("parts"))]
        said = "".join([text_of(part.get("text")) for part in parts if not part.get("thought")])
        asked = [part for part in parts if "functionCall" in part]
        if said.strip() != message.text.strip() or len(asked) != len(message.calls):
            return None
        if asked and self._traits.signed_calls and not asked[0].get("thoughtSignature"):
            return None
        calls = iter(message.calls)
        written: list[bytes] = []
        for part in parts:
            if "functionCall" not in part:
                written.append(encode(part))
                continue
            call = next(calls)
            own_id = text_of(table_of(part["functionCall"]).get("id"))
            if own_id:
                self._own_ids[call.id] = own_id
            written.append(encode(part | {"functionCall": _call(call) | ({"id": own_id} if own_id else {})}))
        return b",".join(written)


def _grouped(entries: list[Entry]) -> list[bytes]:
    """The contents: entries of one kind in a row are the parts of one; pictures stand in one of their own."""
    flat: list[Entry] = []
    for entry in entries:
        if entry.role == "results+pictures":
            written, _, pictures = entry.content.partition(b"\n")
            flat += [Entry("results", written), Entry("user", pictures)]
        elif entry.content:
            flat.append(entry)
    contents: list[bytes] = []
    role, parts = "", list[bytes]()
    for entry in [*flat, Entry("", b"")]:
        if entry.role != role:
            if parts:
                contents.append(b'{"role":"' + _ROLES[role] + b'","parts":[' + b",".join(parts) + b"]}")
            role, parts = entry.role, []
        parts.append(entry.content)
    return contents


def _text(text: str) -> bytes:
    return encode({"text": text}) if text.strip() else b""


def _picture(picture: Picture) -> dict[str, Any]:
    return {"inlineData": {"mimeType": picture.media_type, "data": b64encode(picture.data).decode()}}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": fit_tool_name(call.name), "args": decode(arguments_of(call).encode("utf-8", "replace"))}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    made: dict[str, Any] = {"name": fit_tool_name(tool.name), "description": tool.description}
    parameters = fit_schema(table_of(decode(tool.parameters)), GEMINI_REFUSED)
    return made | {"parameters": parameters} if parameters.get("properties") else made
