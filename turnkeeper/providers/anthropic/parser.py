# The Messages API: bytes in, stream events out. What all families do alike is in answer.py.
#
# Theory of operation. The answer is a row of content blocks, each begun, grown by deltas, and ended. Text and thinking go on
# at once; calls are complete when the answer is. All blocks are kept: where one is more than text and calls (thinking with
# its signature, the server's own tools), the whole row goes back to the model that made it, unchanged (S3.10).
# A second `message_start` with another id begins the answer anew: what was said of calls and thinking is void, text that
# people have seen stands (cases.md), and what the new message says again of it is not shown twice.

"""Parser of the Anthropic Messages family."""

from __future__ import annotations

from typing import Any

from msgspec import DecodeError
from msgspec.json import encode

from turnkeeper.providers.answer import AnswerOptions, AnswerParser
from turnkeeper.providers.anthropic.usage import UsageReport
from turnkeeper.providers.anthropic.wire import Delta, Event, decode_event, decode_text
from turnkeeper.providers.arguments import read_call
from turnkeeper.providers.counts import list_of, table_of, text_of
from turnkeeper.providers.finish import finish_reason
from turnkeeper.providers.identifiers import unique_call_id
from turnkeeper.providers.lenient import decode_json, without_halves
from turnkeeper.types.calls import Parsed
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    Heartbeat,
    NativePart,
    StartedOver,
    StreamEvent,
    ToolCallArguments,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)

FAMILY = "anthropic"
_PLAIN = b"event: content_block_delta\ndata: "
_PLAIN_BYTES = len(_PLAIN)
_NEUTRAL = ("text", "tool_use")  # blocks that the neutral message says as well


class _Block:
    """A content block whose pieces are still coming. position: of its call among the answer's calls, -1 for no call."""

    __slots__ = ("call_id", "data", "input", "position", "signature", "texts", "thinking")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.position = -1
        self.call_id = ""
        self.texts: list[str] = []
        self.thinking: list[str] = []
        self.signature: list[str] = []
        self.input: list[str] = []

    @property
    def kind(self) -> str:
        """The block's type, as the server calls it."""
        return text_of(self.data.get("type"))


class MessagesParser(AnswerParser):
    """Reads one answer."""

    def __init__(self, options: AnswerOptions | None = None) -> None:
        super().__init__(options)
        self._usage = UsageReport()
        self._message_id: str | None = None
        self._blocks: dict[int, _Block] = {}
        self._calls: list[_Block] = []
        self._said: str | None = None  # the stop reason
        self._text_block = -1  # the index of a text block that is open, for the hot path
        self._open_texts: list[str] = []  # the texts of that block
        self._resaid = ""  # text of a message before this one, as far as this one has not said it again

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that the answer was writing last, None where it asked for none (S3.4a)."""
        return text_of(self._calls[-1].data.get("name")) if self._calls else None

    # Events

    def _plain_text(self, data: bytes) -> str:
        if self._text_block < 0 or self._resaid or not data.startswith(_PLAIN):
            return ""
        if data.find(b"\n", _PLAIN_BYTES) != len(data) - 2 or data[-1] != 0x0A or len(data) > self.options.max_event_bytes:
            return ""
        try:
            plain = decode_text(data[_PLAIN_BYTES:-2])
        except (DecodeError, RecursionError):
            return ""
        text = plain.delta.text
        if plain.index != self._text_block or "<" in text or text[-1:] == "`":
            return ""
        self._open_texts.append(text)
        return text

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        if self.over:
            return
        event = decode_event(data)
        if event is None:
            self._not_read(data)
        elif event.error is not None:
            self._report_error(event.error, events)
        else:
            self._read_one(event, data, events)

    def _read_one(self, event: Event, data: bytes, events: list[StreamEvent]) -> None:
        self._chunks += 1
        match event.type:
            case "content_block_delta":
                if event.delta is not None:
                    self._grow(event.index or 0, event.delta, events)
            case "content_block_start":
                self._begin_block(event.index, event.content_block or {}, events)
            case "content_block_stop":
                self._text_block = -1
            case "message_start":
                self._begin_message(event.message or {}, events)
            case "message_delta":
                self._usage.closing(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._said = event.delta.stop_reason
            case "message_stop":
                events += self._finish(marked=True)
            case "ping":
                events.append(Heartbeat())
            case _:
                self._chunks -= 1
                self._not_read(data)

    def _read_document(self, body: bytes, events: list[StreamEvent]) -> bool:
        event = decode_event(body)
        if event is None:
            return False
        if event.error is not None:
            self._report_error(event.error, events)
            return True
        whole = table_of(decode_json(body))
        if "content" not in whole:
            return False
        self._chunks += 1
        self._usage.opening(whole.get("usage"))
        self._usage.closing(whole.get("usage"))
        for index, block in enumerate(list_of(whole.get("content"))):
            self._begin_block(index, table_of(block), events)
        self._said = text_of(whole.get("stop_reason")) or None
        return True

    # The message and its blocks

    def _begin_message(self, message: dict[str, Any], events: list[StreamEvent]) -> None:
        message_id = text_of(message.get("id"))
        if self._message_id is not None:
            if message_id == self._message_id:
                return
            if self._blocks:
                events.append(StartedOver())
                self._resaid = self._resaid or self._said_so_far()
            self._blocks, self._calls, self._reasoning, self._text_block = {}, [], [], -1
        self._message_id = message_id
        self._usage.opening(message.get("usage"))

    def _begin_block(self, index: int | None, data: dict[str, Any], events: list[StreamEvent]) -> None:
        place = len(self._blocks) if index is None else index
        block = self._blocks[place] = _Block(data)
        self._text_block = place if block.kind == "text" else -1
        self._open_texts = block.texts
        match block.kind:
            case "text":
                text = text_of(data.get("text"))
                block.texts.append(text)
                self._say(text, events)
            case "thinking":
                thinking = text_of(data.get("thinking"))
                block.thinking.append(thinking)
                block.signature.append(text_of(data.get("signature")))
                self._add_reasoning(thinking, events)
            case "tool_use":
                self._begin_call(block, events)
            case _:
                pass  # the server's own tools, and what is not known yet: kept, and sent back

    def _begin_call(self, block: _Block, events: list[StreamEvent]) -> None:
        block.position = len(self._calls)
        taken = [one.call_id for one in self._calls]
        block.call_id = unique_call_id(text_of(block.data.get("id")), taken, self.options.id_prefix)
        self._calls.append(block)
        events.append(ToolCallStarted(block.position, block.call_id, text_of(block.data.get("name"))))

    def _grow(self, index: int, delta: Delta, events: list[StreamEvent]) -> None:
        block = self._blocks.get(index)
        if block is None:  # a server that does not begin its blocks
            kind = {"thinking_delta": "thinking", "signature_delta": "thinking"}.get(delta.type, "text")
            self._begin_block(index, {"type": kind}, events)
            block = self._blocks[index]
        if delta.text:
            block.texts.append(delta.text)
            self._say(delta.text, events)
        if delta.thinking:
            block.thinking.append(delta.thinking)
            self._add_reasoning(delta.thinking, events)
        if delta.signature:
            block.signature.append(delta.signature)
        if delta.partial_json:
            block.input.append(delta.partial_json)
            if block.position >= 0:
                events.append(ToolCallArguments(block.position, delta.partial_json))
        if delta.citation is not None:
            block.data = block.data | {"citations": [*list_of(block.data.get("citations")), delta.citation]}

    def _say(self, text: str, events: list[StreamEvent]) -> None:
        """Visible text; what a message that began anew says again of the one before is left out."""
        if self._resaid:
            said = self._said_so_far()
            if self._resaid.startswith(said):
                return
            text = said.removeprefix(self._resaid)
            self._resaid = ""
        if text:
            self._add_text(text, events)

    def _said_so_far(self) -> str:
        return "".join(["".join(self._blocks[index].texts) for index in sorted(self._blocks)])

    # The end

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        self.over = True
        events: list[StreamEvent] = []
        self._close_text(events)
        usage = self._usage.usage()
        if usage is not None:
            events.append(UsageReported(usage, self._usage.said))
        reason = finish_reason(self._said)
        if self._fault is not None:
            return [*events, Finished(reason, self._said)] if reason else events
        if reason is None and not marked and not self.options.ends_unmarked:
            return [*events, self._unfinished()]
        if self._said == "model_context_window_exceeded":
            full = Fault("context_length", "request", said="the model's window was full before the answer was complete")
            return [*events, FaultReported(full), Finished("length", self._said)]
        for block in self._calls:
            events.append(self._ready(block, ended=reason not in (None, "length")))
        content = self._content()
        if any(block["type"] not in _NEUTRAL for block in content):
            events.append(NativePart(FAMILY, self.options.model, {"content": content}))
        return [*events, Finished(reason or "stop", self._said)]

    def _ready(self, block: _Block, *, ended: bool) -> ToolCallReady:
        given = table_of(block.data.get("input"))
        text = "".join(block.input) if block.input or not given else encode(given).decode()
        return ToolCallReady(block.position, read_call(block.call_id, text_of(block.data.get("name")), text, ended=ended))

    def _content(self) -> list[dict[str, Any]]:
        """The blocks as they are to be sent back."""
        content: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            made = dict(block.data)
            match block.kind:
                case "text":
                    made["text"] = without_halves("".join(block.texts))
                    if not made["text"].strip():
                        continue
                case "thinking":
                    made |= {"thinking": without_halves("".join(block.thinking)), "signature": "".join(block.signature)}
                    if not made["signature"]:
                        continue  # no server takes thinking that nobody signed
                case "":
                    continue
                case _:
                    if block.input:
                        arguments = read_call("", "", "".join(block.input), ended=False).arguments
                        made["input"] = arguments.value if isinstance(arguments, Parsed) else {}
                    if block.position >= 0:
                        made["id"] = block.call_id
            content.append(made)
        return content
