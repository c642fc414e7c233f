# Which fragment belongs to which call.
#
# The standard says: fragments of one call share an `index`; the first carries `id` and name. Servers differ (cases.md):
# no index, index 0 for all, ids missing, changing or shared, names repeated or split, whole calls one after another.
# In order of trust: a fragment with an unknown index begins a call; one with a known index belongs to it unless it clearly
# begins another: a new id together with a name, or a name after a complete object. Without index: the id, then a new
# name, then the order. Ids are made unique here, once, so that request and record agree (S4.6).

"""Assembles tool calls from the fragments of chat completions."""

from __future__ import annotations

from msgspec.json import encode

from turnkeeper.providers.arguments import is_whole_object, read_call
from turnkeeper.providers.identifiers import unique_call_id
from turnkeeper.providers.openai_chat.wire import CallDelta, Function
from turnkeeper.types.stream import StreamEvent, ToolCallArguments, ToolCallReady, ToolCallStarted


class _OpenCall:
    """A call whose fragments are still coming."""

    __slots__ = ("id", "name", "pieces", "position", "said_id", "started")

    def __init__(self, position: int, said_id: str, own_id: str, name: str) -> None:
        self.position = position
        self.said_id = said_id  # as the server sent it; "" for none
        self.id = own_id
        self.name = name
        self.pieces: list[str] = []
        self.started = False

    @property
    def complete(self) -> bool:
        """The arguments are one whole object: looked at only where a fragment may begin another call."""
        return bool(self.pieces) and is_whole_object("".join(self.pieces))

    @property
    def may_go_on(self) -> bool:
        """Arguments have begun and do not end as an object does."""
        return bool(self.pieces) and not self.pieces[-1].rstrip().endswith("}")


class CallAssembler:
    """Collects the calls of one answer.

    prefix: what ids made by us begin with; unique to the pass, so that they are unique in the turn.
    """

    __slots__ = ("_by_index", "_by_said_id", "_calls", "_last", "_prefix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_said_id: dict[str, _OpenCall] = {}
        self._last: _OpenCall | None = None

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def last_name(self) -> str:
        """The name of the call that was being written last, "" for none."""
        return self._last.name if self._last else ""

    def add(self, fragment: CallDelta) -> list[StreamEvent]:
        """Takes one fragment. Returns the events that it makes certain."""
        function = fragment.function or Function()
        name = function.name or ""
        text = _text_of(function)
        call = self._find(fragment, name, text)
        if call is None:
            call = self._begin(fragment, name)
        elif name and name != call.name and not call.pieces:
            call.name = name if name.startswith(call.name) else call.name + name
        if fragment.index is not None:
            self._by_index[fragment.index] = call
        self._last = call
        return self._extend(call, text)

    def add_legacy(self, function: Function) -> list[StreamEvent]:
        """Takes a fragment of the old `function_call` form, which has one call an answer."""
        return self.add(CallDelta(index=0, id=None, function=function))

    def close(self, *, ended: bool) -> list[StreamEvent]:
        """The finished calls, in the order in which they began.

        ended: the provider finished of its own accord; otherwise arguments that stop midway are Truncated (S6.1).
        """
        events: list[StreamEvent] = []
        for call in self._calls:
            if not call.started:
                events.append(ToolCallStarted(call.position, call.id, call.name))
            made = read_call(call.id, call.name, "".join(call.pieces), ended=ended)
            events.append(ToolCallReady(call.position, made))
        return events

    def _find(self, fragment: CallDelta, name: str, text: str) -> _OpenCall | None:
        said_id = fragment.id or ""
        if fragment.index is None:
            known = self._by_said_id.get(said_id) if said_id else self._last
            if known is not None and not said_id and name and name != known.name:
                return None
        else:
            known = self._by_index.get(fragment.index)
            if known is None:  # a new index, but for a server that counts fragments and repeats the id
                return self._by_said_id.get(said_id) if said_id and not name else None
        return None if known is None or self._begins_another(known, said_id, name, text) else known

    def _begins_another(self, known: _OpenCall, said_id: str, name: str, text: str) -> bool:
        if not name:
            return False
        opens_object = text.lstrip().startswith("{")
        if said_id and known.said_id and said_id != known.said_id:
            return opens_object or not text or not known.may_go_on
        if known.pieces and name != known.name:
            return True
        return opens_object and known.complete

    def _begin(self, fragment: CallDelta, name: str) -> _OpenCall:
        position = len(self._calls)
        said_id = fragment.id or ""
        call = _OpenCall(position, said_id, unique_call_id(said_id, [one.id for one in self._calls], self._prefix), name)
        self._calls.append(call)
        if said_id:
            self._by_said_id[said_id] = call
        return call

    def _extend(self, call: _OpenCall, text: str) -> list[StreamEvent]:
        if not text:
            return []
        call.pieces.append(text)
        if call.started:
            return [ToolCallArguments(call.position, text)]
        call.started = True  # the name is whole once arguments come
        return [ToolCallStarted(call.position, call.id, call.name), ToolCallArguments(call.position, text)]


def _text_of(function: Function) -> str:
    arguments = function.arguments
    if isinstance(arguments, dict):
        return encode(arguments).decode()
    return arguments or ""
