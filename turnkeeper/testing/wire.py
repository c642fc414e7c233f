# What a wire family is to the scripted provider.
#
# To add one: a module with a class that has the methods of `Family`, and one that has those of `Voice`; give an instance
# as `ScriptedProvider(family=...)`. Nothing else knows what a family's bytes look like.

"""The seam between scripts and the families that word them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.steps import Answer, Fail, Spoken
from turnkeeper.testing.strict import Rules

Asked: TypeAlias = Literal["answer", "models"]
"""What a request is for."""


class SseEvent(Struct, frozen=True):
    """A server-sent event before framing: data of one line, and the `event:` field, "" for none."""

    data: str
    name: str = ""


class Voice(Protocol):
    """One answer in the words of a family. Made for each request, because it counts calls and remembers what was said."""

    def say(self, step: Spoken) -> list[SseEvent]:
        """The step's events."""
        ...

    def end(self) -> list[SseEvent]:
        """What a well-ended stream still lacks: finish reason, counts, end mark."""
        ...

    def whole(self) -> dict[str, Any] | list[Any]:
        """All of the answer as one document."""
        ...


class Family(Protocol):
    """How a family is spoken to, and how it answers what is no answer of a model."""

    root: str
    """The path of the base URL."""

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it (404, 405)."""
        ...

    def key(self, headers: Mapping[str, str]) -> str:
        """The key that a request carries, "" for none."""
        ...

    def problems(self, request: SeenRequest, rules: Rules) -> list[str]:
        """What a strict server would refuse in the request, a sentence each."""
        ...

    def refusal(self, request: SeenRequest, rules: Rules) -> Fail:
        """How a strict server refuses a request with `problems`."""
        ...

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether the request asks for a stream."""
        ...

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """The body of an error answer."""
        ...

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The body of the list of models."""
        ...

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> Voice:
        """Who gives this answer to this request. new_id: makes ids for calls that have none."""
        ...


@runtime_checkable
class OwnKeys(Protocol):
    """What a family has besides, if its keys may stand in the path or a wrong one is not refused by 401."""

    def key_in(self, path: str) -> str:
        """The key in a path with its query, "" for none. Asked where `Family.key` finds none."""
        ...

    def wrong_key(self, key: str) -> Fail:
        """How a request is refused that carries this key, "" for none."""
        ...
