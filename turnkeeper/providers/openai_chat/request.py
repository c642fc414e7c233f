# Chat-completions requests.
#
# Rule 1: a request extends the one before it, byte for byte, up to its last stable message (S3.10b): fields in one fixed
# order, tools before messages, what changes (tail, continuation) after the last stable message.
# Rule 2: a message is encoded once. `RequestWriter` keeps the bytes beside the messages and joins them for each pass, so a
# pass costs what it adds, and the copying of the rest.
# Rule 3: how this server wants it is read from the model's traits (catalogue.toml) and nowhere else; no name of a server or
# a model stands here. In which order messages may stand is `rows.py`'s.

"""Writes the neutral conversation as chat-completions requests."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from msgspec.json import decode, encode

from turnkeeper.providers.identifiers import fit_call_id, fit_tool_name
from turnkeeper.providers.model import Model
from turnkeeper.providers.openai_chat.rows import Content, Rows
from turnkeeper.providers.schema_dialect import fit_schema
from turnkeeper.providers.writing import CONTINUE, GO_ON, NO_OUTPUT, PICTURES, arguments_of, batch_pictures, without_pictures
from turnkeeper.types.calls import ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, ToolSpec, UserMessage
from turnkeeper.types.stream import NativePart

FAMILY = "openai-chat"

_NO_REASONING = "."  # neither DeepSeek nor Moonshot takes empty text for it
_CONTINUED = b',"add_generation_prompt":false,"continue_final_message":true'  # vLLM refuses the one without the other


class RequestWriter:
    """Writes the requests of one attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._traits = model.traits
        self._system = ""
        self._messages: list[Message] = []
        self._rows = self._new_rows("")
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
        parts += [b',"messages":[', b",".join(self._all_messages(prompt)), b"]"]
        if prompt.prefill.strip() and self._traits.prefill and self._traits.prefill_field == "continue_final_message":
            parts.append(_CONTINUED)  # after the messages: before them it would break the prefix (S3.10b)
        return b"".join([*parts, b"}"])

    def _options(self) -> bytes:
        options: dict[str, Any] = {}
        if self._traits.stream_usage:
            options["stream_options"] = {"include_usage": True}
        if self._model.temperature is not None and self._traits.temperature:
            options["temperature"] = self._model.temperature
        if self._model.output_limit is not None:
            options[self._traits.max_tokens_field] = self._model.output_limit
        options |= self._model.extra
        return b"," + encode(options)[1:-1] if options else b""

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools:
            self._tools = tools
            self._tools_written = b"[" + b",".join([self._tool(tool) for tool in tools]) + b"]"
        return self._tools_written

    def _tool(self, tool: ToolSpec) -> bytes:
        parameters = tool.parameters
        if self._traits.refused_schema_keywords:
            parameters = encode(fit_schema(decode(parameters, type=dict[str, Any]), self._traits.refused_schema_keywords))
        head = encode({"name": fit_tool_name(tool.name), "description": tool.description})[:-1]
        return b'{"type":"function","function":' + head + b',"parameters":' + parameters + b"}}"

    def _all_messages(self, prompt: Prompt) -> list[bytes]:
        rows = self._stable(prompt.system, prompt.messages)
        unfinished = prompt.prefill.rstrip()  # S3.4b
        last = prompt.messages[-1] if prompt.messages else None
        go_on = GO_ON if isinstance(last, AssistantMessage) and not unfinished else ""  # a pass that another server paused
        tail = "\n\n".join([said for said in (go_on, prompt.tail) if said])
        if not unfinished and not tail:
            return rows.written
        rows = rows.branch()
        if unfinished and not self._traits.prefill:
            rows.assistant(self._reasoned({"role": "assistant", "content": unfinished}))
            rows.user(CONTINUE)
        if tail:
            rows.user(tail, join=self._traits.tools == "verbatim")  # small models take a message of its own for the question
        if unfinished and self._traits.prefill:  # it must stand last
            mark = self._traits.prefill_field
            flag = {mark: True} if mark in ("prefix", "partial") else {}
            rows.assistant(self._reasoned({"role": "assistant", "content": unfinished} | flag))
        return rows.written

    def _new_rows(self, system: str) -> Rows:
        traits = self._traits
        rows = Rows(alternate=traits.alternate, parts=traits.alternate and traits.vision)
        if system.strip():
            if traits.system_role == "user":
                rows.user(system)
            else:
                rows.add({"role": traits.system_role, "content": system})
        return rows

    def _stable(self, system: str, messages: tuple[Message, ...]) -> Rows:
        """The system prompt and the stable messages; only what was not sent before is encoded.

        A conversation only grows at its end, or loses its beginning: where the first and the last message that were sent
        stand in their places, so do those between them.
        """
        sent = len(self._messages)
        if not (
            system == self._system
            and 0 < sent <= len(messages)
            and messages[0] is self._messages[0]
            and messages[sent - 1] is self._messages[-1]
        ):
            self._system, self._messages, self._rows = system, [], self._new_rows(system)
        for place in range(len(self._messages), len(messages)):
            self._write(messages, place)
            self._messages.append(messages[place])
        return self._rows

    def _write(self, messages: tuple[Message, ...], place: int) -> None:
        match messages[place]:
            case UserMessage() as said:
                joins = place == 0 and self._traits.system_role == "user"
                self._rows.user(self._user_content(said.text, said.pictures) or "(no text)", join=joins)
            case AssistantMessage() as said:
                self._write_assistant(said, _first_result(messages, place + 1))
            case ToolMessage() as result:
                content = result.content if result.content.strip() else NO_OUTPUT  # S2.5a
                self._rows.add({"role": "tool", "tool_call_id": self._id(result.call_id), "content": content})
                self._write_next_call(messages, place)
                pictures = batch_pictures(messages, place)
                if pictures:
                    self._rows.user(self._user_content(PICTURES, pictures))

    def _write_assistant(self, message: AssistantMessage, first: ToolMessage | None) -> None:
        said = message.text if message.text.strip() else None
        fields: dict[str, Any] = {"role": "assistant", "content": said}
        calls = message.calls
        if not self._traits.parallel_calls and first is not None:
            calls = tuple(call for call in calls if call.id == first.call_id) or calls
        if calls:
            fields["tool_calls"] = [self._call(call) for call in calls]
        elif said is None:
            return  # S2.5a: nothing empty is sent
        self._rows.assistant(self._reasoned(fields, message.native))

    def _write_next_call(self, messages: tuple[Message, ...], place: int) -> None:
        """Where each call has its own message, that of the result to come stands after the result before it."""
        following = _first_result(messages, place + 1)
        if self._traits.parallel_calls or following is None:
            return
        while place and isinstance(messages[place], ToolMessage):
            place -= 1
        asked = messages[place]
        calls = asked.calls if isinstance(asked, AssistantMessage) else ()
        for call in calls:
            if call.id == following.call_id:
                self._rows.assistant(self._reasoned({"role": "assistant", "content": None, "tool_calls": [self._call(call)]}))

    def _reasoned(self, message: dict[str, Any], native: tuple[NativePart, ...] = ()) -> dict[str, Any]:
        """An assistant message with the reasoning that this server wants back."""
        wanted = self._traits.reasoning_field
        if not wanted:
            return message
        for part in native:  # S3.10: reasoning goes back to the model that made it, and to no other
            if part.family == FAMILY and part.model == self._model.name and wanted in part.data:
                message[wanted] = part.data[wanted]
        if self._traits.reasoning_required and not message.get(wanted):
            message[wanted] = _NO_REASONING
        return message

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": fit_tool_name(call.name), "arguments": arguments_of(call)}
        return {"id": self._id(call.id), "type": "function", "function": function}

    def _id(self, original: str) -> str:
        return fit_call_id(original, self._traits.call_ids)

    def _user_content(self, text: str, pictures: tuple[Picture, ...]) -> Content:
        if not pictures:
            return text if text.strip() else ""
        if not self._traits.vision:  # S3.10: media is turned into text for models that can't see
            return without_pictures(text, pictures)
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
        for picture in pictures:
            url = f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        return parts


def _first_result(messages: tuple[Message, ...], place: int) -> ToolMessage | None:
    """The message at `place` where it is a result, the next one of a batch."""
    message = messages[place] if place < len(messages) else None
    return message if isinstance(message, ToolMessage) else None
