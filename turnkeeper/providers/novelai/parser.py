# NovelAI text: bytes in, stream events out. What all families do alike is in answer.py.
#
# Theory of operation. The service streams a fragment of about 150 tokens, an event each, and ends it. The session joins
# fragments and says at last why it stopped (session.py); a fragment alone ends with its last token. A text model goes on
# writing for everybody: where a line begins with the name of the person, the reply is over. And it may put down scene
# details, lines in square brackets of the form `[ Place: a tavern; Time: night ]`, which are metadata and not the reply.
# Text is held only while it may be the beginning of either.

"""Parser of the NovelAI text family."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from turnkeeper.providers.answer import AnswerOptions, AnswerParser
from turnkeeper.providers.counts import table_of
from turnkeeper.providers.finish import finish_reason
from turnkeeper.providers.lenient import decode_json, decode_leniently
from turnkeeper.types.stream import Finished, NativePart, StreamEvent

FAMILY = "novelai"
PERSON = "User:"
"""Begins a person's line in the text that the model continues."""

MODEL = "Assistant:"
"""Begins the model's own line."""

_BREAK = "***"
"""A line of its own: the story goes on elsewhere, so the reply is over."""

_SCENE = re.compile(r"\[[ \t]*([A-Za-z][\w ]{0,30}:[^\[\]\n]{0,400})\][ \t]*")
_LONGEST_SCENE = 460


class Token(Struct):
    """One event: a token's text. `finish` is the session's own last event."""

    token: str | None = None
    final: bool | None = None
    finish: str | None = None
    error: Any = None
    message: str | None = None
    statusCode: int | None = None  # noqa: N815


class PlainToken(Struct):
    """The event that nearly all events are; whatever does not fit it is read as a `Token`."""

    token: str
    final: bool = False
    finish: None = None
    error: None = None
    message: None = None


decode_plain = msgspec.json.Decoder(PlainToken).decode
"""The token in `data`; raises msgspec.DecodeError where it is any but a plain one."""

_decoder = msgspec.json.Decoder(Token)


def decode_token(data: bytes) -> Token | None:
    """The event in `data`, or None where it is no JSON object at all."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_leniently(data, Token)


class NovelParser(AnswerParser):
    """Reads one answer: a fragment, or a session's row of them."""

    def __init__(self, options: AnswerOptions | None = None) -> None:
        super().__init__(options)
        self._held = ""  # the beginning of a line that is not decided yet, with the line breaks before it
        self._in_line = False  # the line is an ordinary one
        self._scenes: list[str] = []
        self._said: str | None = None
        self._ended = False  # a fragment's last token came

    @property
    def call_in_progress(self) -> str | None:
        """Never: this family has no tool calls."""
        return None

    def _plain_text(self, data: bytes) -> str:
        if not self._in_line or self._held or data[:6] != b"event:" or data[-2:] != b"\n\n" or b"\r" in data:
            return ""
        begin = data.find(b"\ndata:")
        if begin < 0 or data.find(b"\n", begin + 6) != len(data) - 2 or len(data) > self.options.max_event_bytes:
            return ""
        try:
            plain = decode_plain(data[begin + 6 : -2])
        except (msgspec.DecodeError, RecursionError):
            return ""
        text = plain.token
        return "" if plain.final or "\n" in text or "<" in text or text[-1:] == "`" else text

    def _read_event(self, name: bytes, data: bytes, events: list[StreamEvent]) -> None:
        if self.over:
            return
        event = decode_token(data)
        if event is None or event == Token():
            self._not_read(data)
            return
        self._chunks += 1
        if event.error is not None or event.message is not None or name == b"error":
            said = decode_json(data)
            self._report_error(event.error if event.error is not None else said, events, said=said)
        if event.token:
            self._take(event.token, events)
        if event.final:
            self._ended = True
        if event.finish:
            self._said = event.finish
            if not self.over:
                events += self._finish(marked=True)

    def _read_document(self, body: bytes, events: list[StreamEvent]) -> bool:
        """The answer of a server that does not stream: `{"output": "..."}`."""
        value = table_of(decode_json(body))
        if isinstance(value.get("output"), str):
            self._chunks += 1
            self._ended = True
            self._take(value["output"], events)
            return True
        if "error" in value or "statusCode" in value:
            self._report_error(value, events)
            return True
        return False

    def _take(self, text: str, events: list[StreamEvent]) -> None:
        self._held += text
        while self._held and not self.over:
            if self._in_line:
                self._read_line(events)
            elif not self._decide_line(events):
                return

    def _read_line(self, events: list[StreamEvent]) -> None:
        """Lets an ordinary line through, up to its end."""
        line, mark, _ = self._held.partition("\n")
        self._add_text(line, events)
        self._held = self._held[len(line) :]
        self._in_line = not mark

    def _decide_line(self, events: list[StreamEvent]) -> bool:
        """What the line is that begins in the held text. Returns False while that can't be told."""
        line = self._held.lstrip()
        lead = self._held[: len(self._held) - len(line)]
        first, mark, rest = line.partition("\n")
        if not line or (not mark and (PERSON.startswith(line) or _BREAK.startswith(line.rstrip()))):
            return False
        if line.startswith(PERSON) or (mark and first.rstrip() == _BREAK):
            self._held = ""
            self._said = "stop"
            events += self._finish(marked=True)
        elif line[0] == "[" and not mark and len(line) <= _LONGEST_SCENE and "[" not in line[1:]:
            return False
        elif mark and (scene := _SCENE.fullmatch(first)):
            self._scenes.append(" ".join(scene.group(1).split()))
            self._held = lead + rest
        else:
            self._in_line = True
            self._add_text(lead, events)
            self._held = line
        return True

    def _close_line(self, events: list[StreamEvent]) -> None:
        """The text is complete: the held line is a scene, the beginning of a stop, or plain text after all."""
        held, self._held = self._held.rstrip(), ""
        line = held.lstrip()
        if scene := _SCENE.fullmatch(line):
            self._scenes.append(" ".join(scene.group(1).split()))
        elif line and line != _BREAK:
            self._add_text(held, events)

    def _finish(self, *, marked: bool) -> list[StreamEvent]:
        self.over = True
        events: list[StreamEvent] = []
        self._close_line(events)
        self._close_text(events)
        if self._scenes:
            events.append(NativePart(FAMILY, self.options.model, {"scene": self._scenes}))
        if self._fault is not None:
            return events
        if not marked and not self._ended:
            return [*events, self._unfinished()]
        return [*events, Finished(finish_reason(self._said) or "stop", self._said)]
