"""The verbs of a script: each makes an `Answer` of one step, and `+` joins them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypedDict, Unpack

from msgspec import UnsetType

from turnkeeper.testing import steps
from turnkeeper.testing.steps import Answer, Chunked, Step

_TOKEN = 4  # characters of a piece when nothing else is asked for


class CallOptions(TypedDict, total=False):
    """The options of `call`."""

    id: str | None
    index: int | None
    as_object: bool
    legacy: bool
    name_in_each: bool
    name_split: bool
    late_id: bool


class FramingOptions(TypedDict, total=False):
    """The options of `framing`."""

    crlf: bool
    cr: bool
    bom: bool
    no_blank_at_end: bool
    no_done: bool
    chunk_bytes: int | None
    gzip: bool
    brotli: bool
    content_type: str | UnsetType | None


def say(text: str, *, pieces: int | Sequence[str] | None = None, as_parts: bool = False) -> Answer:
    """Visible text.

    pieces: None for deltas of about a token (4 characters), a number of deltas, or the deltas themselves.
    as_parts: each delta's content is a list of parts instead of a string.
    """
    return _one(steps.Say(_split(text, pieces), as_parts))


def think(text: str, field: str = "reasoning_content", *, pieces: int | Sequence[str] | None = None) -> Answer:
    """Reasoning, in `field`: "reasoning_content", "reasoning", "reasoning_details" (with "reasoning" beside it, as
    OpenRouter does) or "content" (as a thinking part, as Mistral does). For tags in the text, say them."""
    return _one(steps.Think(_split(text, pieces), field))


def refuse(text: str, *, pieces: int | Sequence[str] | None = None) -> Answer:
    """A refusal in the model's own words. Its finish reason stays `stop`; for another add `finish("content_filter")`."""
    return _one(steps.Refuse(_split(text, pieces)))


def call(
    name: str,
    arguments: dict[str, Any] | str,
    *,
    pieces: int | Sequence[str] | None = None,
    **options: Unpack[CallOptions],
) -> Answer:
    """A tool call; several in one answer are parallel calls.

    arguments: an object, or its text: any text, also broken or cut off.
    id: made up when left out; None sends none, "" an empty one.
    index: counted when left out; None sends none.
    pieces: as in `say`. One piece is the whole call in one delta, else name and id come before the arguments.
    as_object: the arguments travel as an object instead of a string (in one delta).
    legacy: the `function_call` of old servers.
    name_in_each: the name is repeated in each delta. name_split: it comes in two halves.
    late_id: the id comes in the second delta only.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    asked = pieces is not None
    return _one(steps.Call(name=name, arguments=arguments, fragments=_split(text, pieces), in_pieces=asked, **options))


def wait(seconds: float, *, before_head: bool = False) -> Answer:
    """Nothing for so many seconds of the loop's clock. before_head: at the beginning, the headers wait too."""
    return _one(steps.Wait(seconds, before_head))


def keepalive(n: int, every_s: float, *, text: str = " keep-alive") -> Answer:
    """`n` comment lines, each followed by `every_s` seconds of nothing."""
    return _one(steps.Keepalive(n, every_s, text))


def raw(data: bytes) -> Answer:
    """These bytes. An answer that says nothing else gets no finish reason and no end mark: good for recordings."""
    return _one(steps.Raw(data))


def event(data: str | Mapping[str, Any], name: str = "") -> Answer:
    """One event spelled by hand, framed as the others are; an answer of nothing else gets no finish reason and end mark.

    data: a mapping is written as JSON. name: the `event:` field.
    """
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return _one(steps.Event(text, name))


def together(*answers: Answer) -> Answer:
    """All that these say, in one chunk: reasoning and text, text and a call, the last text with finish reason and usage."""
    return _one(steps.Together(_chunked(answers)))


def interleave(*answers: Answer) -> Answer:
    """What these say, a chunk of each by turns: the fragments of parallel calls."""
    return _one(steps.Interleaved(_chunked(answers)))


def error(message: str, *, code: str | int | None = None, type: str = "server_error", name: str = "") -> Answer:  # noqa: A002
    """An error inside the stream. Nothing is added after it; add `done()` or `finish(...)` for servers that do.

    name: the `event:` field, for servers that send `event: error`.
    """
    return _one(steps.Error(message, code, type, name))


def finish(reason: str | None, done: bool = True) -> Answer:
    """The finish reason in the server's words, odd ones too; "" is sent as such, None sends none at all.

    done: whether the end mark (`[DONE]`) comes at the end. May be said several times; the last one's `done` counts.
    """
    return _one(steps.Finish(reason, done))


def done() -> Answer:
    """The end mark here and not at the end, for what some servers send after it."""
    return _one(steps.Done())


def usage(
    *,
    prompt: int | None = None,
    completion: int | None = None,
    cached: int = 0,
    reasoning: int | None = None,
    every_chunk: bool = False,
    **extra: Any,
) -> Answer:
    """The token counts: sent after the finish reason, also when nobody asked for them.

    prompt, completion: in all, as the family counts them (with `cached` and `reasoning` in them); made up from the
    lengths when left out. every_chunk: they are in each chunk. Other names are added to the counts as they are, and
    replace what they name: `usage(prompt_tokens=-1)`, `usage(completion_tokens="12")`.
    """
    return _one(
        steps.Usage(
            prompt=prompt, completion=completion, cached=cached, reasoning=reasoning, every_chunk=every_chunk, extra=extra
        )
    )


def whole() -> Answer:
    """One `application/json` document instead of a stream. Requests that ask for no stream get one anyway."""
    return _one(steps.Whole())


def framing(**options: Unpack[FramingOptions]) -> Answer:
    """How the body is laid out; it may stand anywhere in the answer, once.

    crlf, cr: lines end in CRLF, in CR; with both, events end in LF, CRLF and CR by turns.
    bom: a byte order mark first. no_blank_at_end: no blank line after the last event. no_done: no end mark.
    chunk_bytes: the body is written in pieces of so many bytes, each its own network read for a client in this loop.
    gzip, brotli: the body is compressed, each event so that it can be read at once.
    content_type: another one than the family's; None for none.
    """
    return _one(steps.Framing(**options))


def fail(
    status: int,
    headers: Mapping[str, str] | None = None,
    body: dict[str, Any] | str | bytes | None = None,
    *,
    message: str = "",
    code: str | None = None,
) -> Answer:
    """An HTTP error instead of an answer.

    body: JSON, a text (a page if it begins with "<") or bytes; None for the family's error shape with `message` and
    `code`, which have fitting defaults.
    """
    return _one(steps.Fail(status=status, headers=dict(headers or {}), body=body, message=message, code=code))


def cut(after_bytes: int | None = None, *, reset: bool = True) -> Answer:
    """The connection is lost (RST) after what was said, once a client in this loop had the chance to read it.

    after_bytes: so many bytes into the body, if it gets so far; 0 is right after the headers. Where nothing was said
    and no number is given, the connection is lost before the headers.
    reset: False for a FIN in the middle of the body, as a proxy that goes away leaves it.
    """
    return _one(steps.Cut(after_bytes, reset))


def close() -> Answer:
    """The body ends in an orderly way, without finish reason and end mark; before the headers, if nothing was said."""
    return _one(steps.Close())


def hang() -> Answer:
    """Headers, and then not another byte until the client leaves."""
    return _one(steps.Hang())


def never_start() -> Answer:
    """Not even headers until the client leaves."""
    return _one(steps.NeverStart())


def _one(step: Step) -> Answer:
    return Answer((step,))


def _chunked(answers: Sequence[Answer]) -> tuple[Chunked, ...]:
    chunked: list[Chunked] = []
    for step in [step for answer in answers for step in answer.steps]:
        if not isinstance(step, Chunked):
            raise ValueError(f"{type(step).__name__} is not said in chunks: it can't be arranged with others")
        chunked.append(step)
    return tuple(chunked)


def _split(text: str, pieces: int | Sequence[str] | None) -> tuple[str, ...]:
    """The deltas of a text."""
    if pieces is None:
        return tuple(text[start : start + _TOKEN] for start in range(0, len(text), _TOKEN))
    if isinstance(pieces, int):
        if pieces < 1:
            raise ValueError(f"pieces={pieces}: at least one is needed")
        number = min(pieces, len(text)) or 1
        borders = [len(text) * place // number for place in range(number + 1)]
        return tuple(text[begin:end] for begin, end in pairwise(borders))
    if "".join(pieces) != text:
        raise ValueError(f"the pieces do not make up the text: {''.join(pieces)!r} is not {text!r}")
    return tuple(pieces)
