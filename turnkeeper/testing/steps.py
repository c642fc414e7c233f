# What a scripted answer does, step by step.
#
# Rule 1: a step knows no wire. What it looks like in bytes is the family's business (wire.py), and the framing's.
# Rule 2: an impossible order is refused where the answer is put together, not found out while it is served.

"""The steps of scripted answers, and the answer that they make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType


class Say(Struct, frozen=True, tag=True):
    """Visible text, a delta a piece. as_parts: each piece as a list of content parts, as Mistral sends it."""

    pieces: tuple[str, ...]
    as_parts: bool = False


class Think(Struct, frozen=True, tag=True):
    """Reasoning, a delta a piece, in the field of that name."""

    pieces: tuple[str, ...]
    field: str


class Refuse(Struct, frozen=True, tag=True):
    """A refusal in the model's own words, a delta a piece."""

    pieces: tuple[str, ...]


class Call(Struct, frozen=True, tag=True, kw_only=True):
    """A tool call. `id` and `index` are made when they are left out, and not sent when they are None.

    in_pieces: the fragments were asked for; else they are only how most families would cut the arguments.
    """

    name: str
    arguments: dict[str, Any] | str
    fragments: tuple[str, ...]
    id: str | UnsetType | None = UNSET
    index: int | UnsetType | None = UNSET
    as_object: bool = False
    legacy: bool = False
    name_in_each: bool = False
    name_split: bool = False
    late_id: bool = False
    in_pieces: bool = False

    @property
    def text(self) -> str:
        """The arguments as they are spelled."""
        return "".join(self.fragments)


class Error(Struct, frozen=True, tag=True):
    """An error inside a stream that began well. name: the event's `event:` field."""

    message: str
    code: str | int | None = None
    kind: str = "server_error"
    name: str = ""


class Finish(Struct, frozen=True, tag=True):
    """The finish reason as the server words it, None for a stream that names none. done: the end mark follows."""

    reason: str | None
    done: bool = True


class Usage(Struct, frozen=True, tag=True, kw_only=True):
    """The reported counts; what is None is reckoned from the lengths. extra: further fields, or odd values of known ones."""

    prompt: int | None = None
    completion: int | None = None
    cached: int = 0
    reasoning: int | None = None
    every_chunk: bool = False
    extra: dict[str, Any] = {}


class Done(Struct, frozen=True, tag=True):
    """The end mark of the stream, here."""


class Event(Struct, frozen=True, tag=True):
    """Any event, spelled by hand."""

    data: str
    name: str = ""


class Together(Struct, frozen=True, tag=True):
    """Steps that share one chunk."""

    steps: tuple[Chunked, ...]


class Interleaved(Struct, frozen=True, tag=True):
    """Steps whose chunks come by turns."""

    steps: tuple[Chunked, ...]


Chunked: TypeAlias = Say | Think | Refuse | Call | Error | Finish | Usage | Together | Interleaved
"""What is said in chunks, which can be arranged."""

Spoken: TypeAlias = Chunked | Done | Event
"""What a family puts into its own words."""


class Wait(Struct, frozen=True, tag=True):
    """Nothing for a time, on the loop's clock. before_head: even the headers wait."""

    seconds: float
    before_head: bool = False


class Keepalive(Struct, frozen=True, tag=True):
    """Comments, each followed by a wait."""

    times: int
    every_s: float
    text: str


class Raw(Struct, frozen=True, tag=True):
    """Bytes as they are."""

    data: bytes


class Fail(Struct, frozen=True, tag=True, kw_only=True):
    """An HTTP error instead of an answer. body: None for the family's own error shape."""

    status: int
    headers: dict[str, str] = {}
    body: dict[str, Any] | str | bytes | None = None
    message: str = ""
    code: str | None = None


class Cut(Struct, frozen=True, tag=True):
    """The connection is lost. reset: by RST, else by a FIN in the middle of the body."""

    after_bytes: int | None = None
    reset: bool = True


class Close(Struct, frozen=True, tag=True):
    """The body ends in an orderly way, without finish reason or end mark."""


class Hang(Struct, frozen=True, tag=True):
    """Not another byte until the client leaves."""


class NeverStart(Struct, frozen=True, tag=True):
    """Not even headers until the client leaves."""


Ending: TypeAlias = Fail | Cut | Close | Hang | NeverStart
"""What comes last in an answer that does not end well."""


class Whole(Struct, frozen=True, tag=True):
    """One JSON document instead of a stream."""


class Framing(Struct, frozen=True, tag=True, kw_only=True):
    """How the body's bytes are laid out; `framing` says what each means."""

    crlf: bool = False
    cr: bool = False
    bom: bool = False
    no_blank_at_end: bool = False
    no_done: bool = False
    chunk_bytes: int | None = None
    gzip: bool = False
    brotli: bool = False
    content_type: str | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.gzip and self.brotli:
            raise ValueError("a body has one compression: gzip or brotli")
        if self.chunk_bytes is not None and self.chunk_bytes < 1:
            raise ValueError(f"chunk_bytes={self.chunk_bytes}: at least one is needed")


Pause: TypeAlias = Wait | Keepalive | Raw
Manner: TypeAlias = Whole | Framing
Step: TypeAlias = Spoken | Pause | Ending | Manner


class Answer(Struct, frozen=True):
    """What the server does with one request. Answers are joined by `+`. Raises ValueError for an impossible order."""

    steps: tuple[Step, ...] = ()

    def __add__(self, other: Answer) -> Answer:
        return Answer(self.steps + other.steps)

    def __post_init__(self) -> None:
        played = [step for step in self.steps if not isinstance(step, Manner | Usage)]
        for step in played[:-1]:
            if isinstance(step, Ending):
                raise ValueError(f"nothing can follow {_called(step)}: it ends the answer")
        if isinstance(self.end, Fail | NeverStart):
            for step in played[:-1]:
                if not isinstance(step, Wait):
                    raise ValueError(
                        f"{_called(step)} can't stand before {_called(self.end)}: the headers would be out already"
                    )
        if sum(isinstance(step, Framing) for step in self.steps) > 1:
            raise ValueError("an answer has one framing(): name all that it needs in it")

    @property
    def end(self) -> Ending | None:
        """The step that breaks the answer off, None if it ends well."""
        return next((step for step in self.steps if isinstance(step, Ending)), None)

    @property
    def framing(self) -> Framing:
        """How the bytes are laid out."""
        return next((step for step in self.steps if isinstance(step, Framing)), Framing())

    @property
    def whole(self) -> bool:
        """Whether it is one JSON document even where a stream was asked for."""
        return any(isinstance(step, Whole) for step in self.steps)

    @property
    def says_nothing(self) -> bool:
        """Whether it is broken off before anything came, headers included."""
        match self.end:
            case None | Hang():
                return False
            case Cut() as cut if cut.after_bytes is not None:
                return False
            case _:
                return all(isinstance(step, Wait | Ending | Manner | Usage) for step in self.steps)

    @property
    def ends_itself(self) -> bool:
        """Whether no finish reason and end mark are added: all was spelled by hand, or there was an error."""
        said = list(flat(self.steps))
        if any(isinstance(step, Finish) for step in said):
            return False
        by_hand = any(isinstance(step, Raw | Event) for step in self.steps)
        only_by_hand = by_hand and all(isinstance(step, Event | Done) for step in said)
        return only_by_hand or any(isinstance(step, Error) for step in said)

    @property
    def usage(self) -> Usage | None:
        """The counts that it reports of its own accord."""
        return next((step for step in flat(self.steps) if isinstance(step, Usage)), None)


Simple: TypeAlias = Say | Think | Refuse | Call | Error | Finish | Usage | Done | Event
"""What is said, without its arrangement."""


def flat(steps: tuple[Step, ...] | tuple[Chunked, ...]) -> Iterator[Simple]:
    """What the steps say, in order, arrangements dissolved."""
    for step in steps:
        if isinstance(step, Together | Interleaved):
            yield from flat(step.steps)
        elif isinstance(step, Simple):
            yield step


def _called(step: Step) -> str:
    """The verb that makes the step, as it is typed."""
    names = {"NeverStart": "never_start", "Interleaved": "interleave"}
    name = type(step).__name__
    return f"{names.get(name, name.lower())}()"
