# The Responses API: bytes in, stream events out. What all families do alike is in answer.py.
#
# Theory of operation. The answer is a row of output items (messages, reasoning, calls, the server's own tools), told apart
# by `output_index`: ids of items change on some servers while they stream. Deltas are read as they come; what only a `done`
# event or the final response says is read there, for servers that send no deltas. The last event holds the whole response
# with its status and usage. Items that the neutral message can't hold go back to the model that made them (S3.10).

"""Parser of the OpenAI Responses family."""

from __future__ import annotations

from typing import Any

from msgspec import DecodeError

from turnkeeper.providers.answer import AnswerOptions, AnswerParser
from turnkeeper.providers.arguments import read_call
from turnkeeper.providers.counts import list_of, table_of, text_of
from turnkeeper.providers.finish import finish_reason
from turnkeeper.providers.identifiers import unique_call_id
from turnkeeper.providers.lenient import decode_json
from turnkeeper.providers.openai_responses.usage import read_usage
from turnkeeper.providers.openai_responses.wire import Event, decode_event, decode_text
from turnkeeper.types.faults import Fault
from turnkeeper.types.stream import (
    FaultReported,
    Finished,
    FinishReason,
    NativePart,
    StreamEvent,
    TextRevised,
    ToolCallArguments,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)

FAMILY = "openai-responses"
_PLAIN = b"event: response.output_text.delta\ndata: "
_PLAIN_BYTES = len(_PLAIN)
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class _Item:
    """An output item whose pieces are still coming. position: of its call among the answer's calls, -1 for no call."""

    __slots__ = ("arguments", "call_id", "data", "position", "said", "summary", "texts")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.position = -1
        self.call_id = ""
        self.arguments: list[str] = []
        self.texts: list[str] = []
        self.said = False  # reasoning or a refusal came in deltas, or the item was read whole
        self.summary = -1  # the part of the reasoning's summary that is being written

    @property
    def kind(self) -> str:
        """The item's type, as the server calls it."""
        return text_of(self.data.get("type"))


class ResponsesParser(AnswerParser):
    """Reads one answer."""

    def __init__(self, options: AnswerOptions | None = None) -> None:
        super().__init__(options)
        self._items: dict[int, _Item] = {}
        self._calls: list[_Item] = []
        self._refusal: list[str] = []
        self._status: str | None = None
        self._incomplete = ""
        self._usage: object = None

    @property
    def call_in_progress(self) -> str | None:
        """The name of the call that the answer was writing last, None where it asked for none (S3.4a)."""
        return text_of(self._calls[-1].data.get("name")) if self._calls else None

    # Events

    def _plain_text(self, data: bytes) -> str:
        if not data.startswith(_PLAIN) or data.find(b"\n", _PLAIN_BYTES) != len(data) - 2 or data[-1] != 0x0A:
            return ""
        try:
            plain = decode_text(data[_PLAIN_BYTES:-2])
        except (DecodeError, RecursionError):
            return ""
        text = plain.delta
        item = self._items.get(plain.output_index)
        if item is None or "<" in text or text[-1:] == "`" or len(data) > self.options.max_event_bytes:
            return ""
        item.texts.append(text)
        return text

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        if self.over:
            return
        event = decode_event(data)
        if event is None:
            self._not_read(data)
        else:
            self._read_one(event, data, events)

    def _read_one(self, event: Event, data: bytes, events: list[StreamEvent]) -> None:
        kind = event.type
        if kind == "error" or (not kind and event.error is not None):
            self._chunks += 1
            said = decode_json(data)
            self._report_error(event.error if event.error is not None else said, events, said=said)
        elif kind in _ENDS:
            self._chunks += 1
            self._end(event.response or {}, events)
            events += self._finish(marked=True)
        elif kind.startswith("response."):
            self._chunks += 1
            self._read_part(event, events)
        elif data.strip() != b"[DONE]":
            self._not_read(data)

    def _read_part(self, event: Event, events: list[StreamEvent]) -> None:
        index = event.output_index if event.output_index is not None else max(self._items, default=0)
        delta = event.delta if isinstance(event.delta, str) else ""
        match event.type:
            case "response.output_item.added":
                self._begin(index, event.item or {}, events)
            case "response.output_item.done":
                self._complete(index, event.item or {}, events)
            case "response.output_text.delta":
                self._say(self._item(index, "message"), delta, events)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(self._item(index, "reasoning"), event.summary_index or 0, delta, events)
            case "response.refusal.delta":
                self._item(index, "message").said = True
                self._refusal.append(delta)
            case "response.function_call_arguments.delta":
                self._argue(self._item(index, "function_call"), delta, events)
            case "response.function_call_arguments.done":
                self._settle(self._item(index, "function_call"), event.arguments, events)
            case _:
                pass  # the server's own tools at work, parts that `done` says again, and what is not known yet

    def _read_document(self, body: bytes, events: list[StreamEvent]) -> bool:
        value = table_of(decode_json(body))
        if value.get("error") and "output" not in value:
            self._report_error(value["error"], events)
            return True
        if value.get("object") != "response" and "output" not in value:
            return False
        self._chunks += 1
        self._end(value, events)
        return True

    # Items

    def _item(self, index: int, kind: str) -> _Item:
        """The item of this index; a server that does not begin its items gets one of this kind."""
        return self._items.setdefault(index, _Item({"type": kind}))

    def _begin(self, index: int, data: dict[str, Any], events: list[StreamEvent]) -> None:
        item = self._items[index] = _Item(data)
        if item.kind == "function_call":
            self._begin_call(item, events)

    def _begin_call(self, item: _Item, events: list[StreamEvent]) -> None:
        item.position = len(self._calls)
        taken = [one.call_id for one in self._calls]
        item.call_id = unique_call_id(text_of(item.data.get("call_id")), taken, self.options.id_prefix)
        self._calls.append(item)
        events.append(ToolCallStarted(item.position, item.call_id, text_of(item.data.get("name"))))

    def _complete(self, index: int, data: dict[str, Any], events: list[StreamEvent]) -> None:
        """The item as it stands at its end; what of it did not come in deltas is read now."""
        if index not in self._items:
            self._begin(index, data, events)
        item = self._items[index]
        item.data = item.data | data
        match item.kind:
            case "function_call":
                if item.position < 0:
                    self._begin_call(item, events)
                self._settle(item, text_of(data.get("arguments")), events)
            case "message" if not item.said:
                parts = [table_of(part) for part in list_of(data.get("content"))]
                self._refusal += [refusal for part in parts if (refusal := text_of(part.get("refusal")))]
                self._settle_text(item, "".join([text_of(part.get("text")) for part in parts]), events)
            case "reasoning" if not item.said:
                for place, part in enumerate([*list_of(data.get("summary")), *list_of(data.get("content"))]):
                    self._think(item, place, text_of(table_of(part).get("text")), events)
            case _:
                pass
        item.said = True

    def _say(self, item: _Item, text: str, events: list[StreamEvent]) -> None:
        if text:
            item.texts.append(text)
            self._add_text(text, events)

    def _settle_text(self, item: _Item, whole: str, events: list[StreamEvent]) -> None:
        """The text as the server says it at the end: what of it did not come in deltas is read now."""
        said = "".join(item.texts)
        if whole.startswith(said):
            self._say(item, whole[len(said) :], events)
        elif whole:
            item.texts = [whole]
            events.append(TextRevised(said, whole))

    def _think(self, item: _Item, part: int, text: str, events: list[StreamEvent]) -> None:
        item.said = True
        if item.summary not in (-1, part) and text:
            text = f"\n\n{text}"
        item.summary = part if text else item.summary
        self._add_reasoning(text, events)

    def _argue(self, item: _Item, text: str, events: list[StreamEvent]) -> None:
        if item.position < 0:
            self._begin_call(item, events)
        if text:
            item.arguments.append(text)
            events.append(ToolCallArguments(item.position, text))

    def _settle(self, item: _Item, whole: str | None, events: list[StreamEvent]) -> None:
        """The arguments as the server says them at the end: they count, whatever the deltas said."""
        if item.position < 0:
            self._begin_call(item, events)
        if whole and whole != "".join(item.arguments):
            item.arguments = [whole]
            events.append(ToolCallArguments(item.position, whole))

    # The end

    def _end(self, response: dict[str, Any], events: list[StreamEvent]) -> None:
        """Reads the whole response, which the last event holds."""
        known = sorted(self._items)  # the list has no gaps where the indexes of the stream may have some
        for place, item in enumerate(list_of(response.get("output"))):
            index = known[place] if place < len(known) else max(known, default=0) + 1 + place
            if place >= len(known) or not self._items[index].said:
                self._complete(index, table_of(item), events)
        self._usage = response.get("usage")
        self._status = text_of(response.get("status")) or None
        self._incomplete = text_of(table_of(response.get("incomplete_details")).get("reason"))
        if response.get("error"):
            self._report_error(response["error"], events)

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        self.over = True
        events: list[StreamEvent] = []
        self._close_text(events)
        usage = read_usage(self._usage)
        if usage is not None:
            events.append(UsageReported(usage, table_of(self._usage)))
        reason = self._reason()
        if self._fault is not None:
            return [*events, Finished(reason, self._status)] if self._status else events
        if self._status is None and not marked and not self.options.ends_unmarked:
            return [*events, self._unfinished()]
        if self._status in ("failed", "cancelled"):
            broken = Fault("server", "model", said=f"the server ended the answer as {self._status} and said no more")
            return [*events, FaultReported(broken), Finished(reason, self._status)]
        if self._refusal:
            said = "".join(self._refusal)[:300]
            blocked = FaultReported(Fault("content_blocked", "request", said=said))
            return [*events, blocked, Finished("content_filter", self._status)]
        for item in self._calls:
            name = text_of(item.data.get("name"))
            call = read_call(item.call_id, name, "".join(item.arguments), ended=reason not in ("length", "unknown"))
            events.append(ToolCallReady(item.position, call))
        events += self._native()
        return [*events, Finished(reason, self._status)]

    def _reason(self) -> FinishReason:
        if self._status == "completed" or self._status is None:
            return "tool_calls" if self._calls else "stop"
        if self._status == "incomplete":
            return finish_reason(self._incomplete) or "length"
        return "unknown"

    def _native(self) -> list[StreamEvent]:
        items: list[dict[str, Any]] = []
        for index in sorted(self._items):
            item = self._items[index]
            items.append(item.data | {"call_id": item.call_id} if item.position >= 0 else item.data)
        more = any(one.get("type") not in ("message", "function_call") or "phase" in one for one in items)
        return [NativePart(FAMILY, self.options.model, {"output": items})] if more else []
