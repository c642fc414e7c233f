# The output items of the Responses API, while they are being said.
#
# Theory of operation. An item is opened by one event and closed by another; between them come the deltas of its parts
# (a message, reasoning) or of its arguments (a call). Each method gives the events that its step makes, without sequence
# numbers, and remembers what was said, so that the closing events, and the response that has all items, can repeat it.

"""Messages, reasoning and calls as items of a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from turnkeeper.testing.steps import Call, Refuse, Say, Think
from turnkeeper.testing.wording import spelled

Payload: TypeAlias = dict[str, Any]
"""The data of an event, `type` first, not yet numbered."""

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class PartKind(Struct, frozen=True, kw_only=True):
    """A kind of part: what it and its events are called.

    type: its own. within: the field of the item that lists it. part, text: what its events begin with. index: how they
    call its place. field: where the text stands in it. more: what else is in it. each_delta: what else is in its deltas.
    alone: each step makes a part of its own.
    """

    type: str
    within: Literal["content", "summary"] = "content"
    part: str = "response.content_part"
    text: str
    index: str = "content_index"
    field: str = "text"
    more: dict[str, Any] = {}
    each_delta: dict[str, Any] = {}
    alone: bool = False

    def filled(self, text: str) -> dict[str, Any]:
        """The part with this text."""
        return {"type": self.type, **self.more, self.field: text}


_TEXT = PartKind(
    type="output_text",
    text="response.output_text",
    more={"annotations": [], "logprobs": []},
    each_delta={"logprobs": []},
)
_REFUSAL = PartKind(type="refusal", text="response.refusal", field="refusal")
_SUMMARY = PartKind(
    type="summary_text",
    within="summary",
    part="response.reasoning_summary_part",
    text="response.reasoning_summary_text",
    index="summary_index",
    alone=True,
)
_REASONING = PartKind(type="reasoning_text", text="response.reasoning_text")


def kind_of(step: Say | Think | Refuse) -> PartKind:
    """The kind of part that the step is said in."""
    match step:
        case Say():
            return _TEXT
        case Refuse():
            return _REFUSAL
        case Think(field="reasoning_text"):
            return _REASONING
        case Think():
            return _SUMMARY


def is_open(step: Think) -> bool:
    """Whether the step is the reasoning itself, not a summary of it."""
    return kind_of(step) is _REASONING


class _Part:
    """A part of an item, and what was said in it."""

    def __init__(self, kind: PartKind, place: int) -> None:
        self.kind = kind
        self.place = place
        self.text = ""

    @property
    def filled(self) -> dict[str, Any]:
        return self.kind.filled(self.text)


class TextItem:
    """A message or a piece of reasoning.

    head: what is in the item from the beginning, its id and type among it. states: it has a status, as all have but
    OpenAI's reasoning.
    """

    def __init__(self, head: dict[str, Any], index: int, *, states: bool) -> None:
        self.status: Status = "in_progress"
        self._head = head
        self._index = index
        self._states = states
        self._parts: list[_Part] = []
        self._saying: _Part | None = None

    def opened(self) -> list[Payload]:
        """The event that begins the item."""
        return [_item_event("added", self._index, self.document)]

    def takes(self, step: Say | Think | Refuse) -> bool:
        """Whether the step can go on in this item: messages and reasoning of either kind don't mix."""
        if self._head["type"] == "message":
            return not isinstance(step, Think)
        return isinstance(step, Think) and self._states == is_open(step)

    def say(self, step: Say | Think | Refuse) -> list[Payload]:
        """The deltas of the step, and the beginning of a part if it needs a new one. Without pieces: nothing."""
        kind = kind_of(step)
        events: list[Payload] = []
        if not step.pieces:
            return events
        part = self._saying
        if part is None or part.kind is not kind or kind.alone:
            events += self._close_part()
            part = self._saying = _Part(kind, sum(one.kind.within == kind.within for one in self._parts))
            self._parts.append(part)
            events.append(self._event(f"{kind.part}.added", part=part.filled))
        for piece in step.pieces:
            part.text += piece
            events.append(self._event(f"{kind.text}.delta", delta=piece, **kind.each_delta))
        return events

    def close(self, status: Status) -> list[Payload]:
        """The end of the last part and of the item."""
        events = self._close_part()
        self.status = status
        return [*events, _item_event("done", self._index, self.document)]

    @property
    def document(self) -> dict[str, Any]:
        """The item as far as it was said."""
        said = {name: list[Any]() for name in ("content", "summary") if name in self._head}
        for part in self._parts:
            said[part.kind.within].append(part.filled)
        return self._head | said | ({"status": self.status} if self._states else {})

    def _close_part(self) -> list[Payload]:
        part = self._saying
        if part is None:
            return []
        kind = part.kind
        events = [
            self._event(f"{kind.text}.done", **{kind.field: part.text}, **kind.each_delta),
            self._event(f"{kind.part}.done", part=part.filled),
        ]
        self._saying = None
        return events

    def _event(self, name: str, **fields: Any) -> Payload:
        """An event of the part that is being said."""
        assert self._saying is not None
        place = {self._saying.kind.index: self._saying.place}
        return {"type": name, "item_id": self._head["id"], "output_index": self._index, **place, **fields}


class CallItem:
    """A function call. Without fragments, or with arguments as an object, the arguments are in the closed item only."""

    def __init__(self, head: dict[str, Any], index: int, call: Call) -> None:
        self.status: Status = "in_progress"
        self._head = head
        self._index = index
        self._fragments: Sequence[str] = () if call.as_object else call.fragments
        self._spelled = call.arguments if isinstance(call.arguments, str) else call.text or spelled(call.arguments)

    def opened(self) -> list[Payload]:
        """The event that begins the item."""
        return [_item_event("added", self._index, self.document | {"arguments": ""})]

    def deltas(self) -> list[Payload]:
        """The arguments, a fragment each."""
        return [self._event("delta", delta=fragment) for fragment in self._fragments]

    def close(self, status: Status) -> list[Payload]:
        """The end of the arguments and of the item."""
        self.status = status
        done = [self._event("done", arguments=self._spelled)] if self._fragments else []
        return [*done, _item_event("done", self._index, self.document)]

    @property
    def document(self) -> dict[str, Any]:
        """The item with all of its arguments."""
        return self._head | {"status": self.status, "arguments": self._spelled}

    def _event(self, name: str, **fields: Any) -> Payload:
        kind = f"response.function_call_arguments.{name}"
        return {"type": kind, "item_id": self._head["id"], "output_index": self._index, **fields}


Item: TypeAlias = TextItem | CallItem


def _item_event(name: str, index: int, item: dict[str, Any]) -> Payload:
    return {"type": f"response.output_item.{name}", "output_index": index, "item": item}
