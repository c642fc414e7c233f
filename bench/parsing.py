# What a parser costs beyond the least that reads the same text: the event split off, its JSON decoded into a typed struct of
# just what is needed, the text appended. Each event is fed alone, as one network read. And how the time of a call's arguments
# grows with their size: twice the bytes may take little more than twice the time.

"""The parsers of all families against a bare decode."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from bench.figures import Figure
from turnkeeper.providers.answer import AnswerOptions
from turnkeeper.providers.families import find_family
from turnkeeper.types.stream import TextDelta, ToolCallReady

_CHUNKS = 400
_PIECE = 4096
_LARGE = 2**20


class _ChatDelta(Struct):
    content: str | None = None


class _ChatChoice(Struct):
    delta: _ChatDelta


class _Chat(Struct):
    choices: list[_ChatChoice]


class _Message(Struct):
    delta: _MessageDelta | None = None


class _MessageDelta(Struct):
    text: str | None = None


class _Response(Struct):
    delta: str | None = None


class _GeminiPart(Struct):
    text: str | None = None


class _GeminiContent(Struct):
    parts: list[_GeminiPart]


class _GeminiCandidate(Struct):
    content: _GeminiContent


class _Gemini(Struct):
    candidates: list[_GeminiCandidate]


class _Novel(Struct):
    token: str | None = None


class Wire(Struct, frozen=True):
    """How a family's stream looks: its beginning, a piece of text, the end; a call's beginning, a piece, and the end of that.

    kind, text: the reference's struct, and how it gets at the text.
    """

    kind: type[Struct]
    text: Callable[[Any], str | None]
    begin: list[dict[str, Any]]
    say: Callable[[str], dict[str, Any]]
    end: list[dict[str, Any]]
    call: list[dict[str, Any]]
    argue: Callable[[str], dict[str, Any]] | None
    called: list[dict[str, Any]]
    named: bool = False
    done: bool = False


def _chat(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-bench0123456789", "object": "chat.completion.chunk", "created": 1764600000, "model": "gpt-x"}
    return head | {"choices": [choice]}


def _fragment(text: str) -> dict[str, Any]:
    return _chat({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


def _gemini(part: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
    candidate |= {"finishReason": finish} if finish else {}
    counts = {"promptTokenCount": 20, "candidatesTokenCount": 40, "totalTokenCount": 60}
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-x", "responseId": "bench0123456789"}


def _partial(text: str, *, more: bool = True) -> dict[str, Any]:
    value = {"jsonPath": "$.text", "stringValue": text} | ({"willContinue": True} if more else {})
    return _gemini({"functionCall": {"partialArgs": [value], "willContinue": True}})


def _block(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


_START = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 20, "output_tokens": 1}}}
_USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
_FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": ""}
_COMPLETED = {"type": "response.completed", "response": {"status": "completed", "output": []}}
_NAMED = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}

WIRES: dict[str, Wire] = {
    "openai-chat": Wire(
        _Chat,
        lambda event: event.choices[0].delta.content,
        [_chat({"role": "assistant", "content": ""})],
        lambda text: _chat({"content": text}),
        [_chat({}, "stop")],
        [_chat({"role": "assistant", "tool_calls": [_NAMED]})],
        _fragment,
        [_chat({}, "tool_calls")],
        done=True,
    ),
    "anthropic": Wire(
        _Message,
        lambda event: event.delta.text if event.delta else None,
        [_START, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}],
        lambda text: _block(0, {"type": "text_delta", "text": text}),
        [{"type": "content_block_stop", "index": 0}, {"type": "message_stop"}],
        [_START, {"type": "content_block_start", "index": 0, "content_block": _USE}],
        lambda text: _block(0, {"type": "input_json_delta", "partial_json": text}),
        [{"type": "content_block_stop", "index": 0}, {"type": "message_stop"}],
        named=True,
    ),
    "openai-responses": Wire(
        _Response,
        lambda event: event.delta,
        [{"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}}],
        lambda text: {
            "type": "response.output_text.delta",
            "sequence_number": 7,
            "item_id": "msg_bench0123456789",
            "output_index": 0,
            "content_index": 0,
            "delta": text,
            "logprobs": [],
        },
        [_COMPLETED],
        [{"type": "response.output_item.added", "output_index": 0, "item": _FUNCTION}],
        lambda text: {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text},
        [_COMPLETED],
        named=True,
    ),
    "gemini": Wire(
        _Gemini,
        lambda event: event.candidates[0].content.parts[0].text,
        [],
        lambda text: _gemini({"text": text}),
        [_gemini({"text": ""}, "STOP")],
        [_gemini({"functionCall": {"name": "f", "willContinue": True}})],
        _partial,
        [_partial("", more=False), _gemini({"functionCall": {}}, "STOP")],
    ),
    "novelai": Wire(
        _Novel,
        lambda event: event.token,
        [],
        lambda text: {"token": text, "ptr": 3, "final": False},
        [{"token": "", "ptr": 4, "final": True}],
        [],
        None,
        [],
        named=True,
    ),
}


def measure_parsers(repetitions: int) -> list[Figure]:
    """The ratio of each family, and how each family's arguments grow."""
    return [figure for family in WIRES for figure in _figures(family, repetitions)]


def _figures(family: str, repetitions: int) -> list[Figure]:
    wire = WIRES[family]
    events = _rendered(wire, [*wire.begin, *[wire.say(f" word{n % 10}") for n in range(_CHUNKS)], *wire.end])
    reference, parser = [], []
    for _ in range(repetitions):
        reference.append(_timed(lambda: _read_bare(wire, events)))
        parser.append(_timed(lambda: _read(family, events)))
    low = repetitions // 10
    bare, ours = sorted(reference)[low] / _CHUNKS, sorted(parser)[low] / _CHUNKS
    beside = f"{ours:.2f} microseconds an event, bare decode {bare:.2f}"
    figures = [Figure(f"parse {family}", "parser to bare decode", ours / bare, 2.0, "times", beside)]
    if wire.argue is not None:
        once, twice = (min(_argued(family, size) for _ in range(max(2, repetitions // 2))) for size in (_LARGE, 2 * _LARGE))
        beside = f"1 MB of arguments in 4 KB pieces {once / 1000:.1f} ms, 2 MB {twice / 1000:.1f} ms"
        figures.append(Figure(f"grow {family}", "twice the arguments", twice / once, 2.6, "times", beside))
    return figures


def _argued(family: str, size: int) -> float:
    wire = WIRES[family]
    assert wire.argue is not None
    text = "x" * size if family == "gemini" else json.dumps({"text": "x" * (size - 12)})
    pieces = [wire.argue(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE)]
    events = _rendered(wire, [*wire.call, *pieces, *wire.called])
    return _timed(lambda: _read(family, events))


def _read(family: str, events: list[bytes]) -> None:
    parser = find_family(family).parser(AnswerOptions("m"))
    found = [event for data in events for event in parser.feed(data)]
    found += parser.close()
    if not any(isinstance(event, TextDelta | ToolCallReady) for event in found):
        raise AssertionError(f"{family}: the parser found neither text nor a call")


def _read_bare(wire: Wire, events: list[bytes]) -> None:
    decode = msgspec.json.Decoder(wire.kind).decode
    texts: list[str] = []
    for data in events:
        for event in data.split(b"\n\n"):
            at = event.find(b"data: ")
            if at >= 0 and event[at + 6 : at + 7] == b"{":
                text = wire.text(decode(event[at + 6 :]))
                if text:
                    texts.append(text)
    if not texts:
        raise AssertionError("the reference found no text")


def _rendered(wire: Wire, events: list[dict[str, Any]]) -> list[bytes]:
    named = [f"event: {one.get('type', 'newToken')}\n" if wire.named else "" for one in events]
    made = [f"{name}data: {json.dumps(one)}\n\n".encode() for name, one in zip(named, events, strict=True)]
    return [*made, b"data: [DONE]\n\n"] if wire.done else made


def _timed(run: Callable[[], None]) -> float:
    """CPU microseconds."""
    begin = time.process_time_ns()
    run()
    return (time.process_time_ns() - begin) / 1000
