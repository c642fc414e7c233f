# What a server wrote into an error answer, whatever shape it has.
#
# Every maker has a shape of their own, and relays put one into the other: a list round it (Gemini), a string of JSON in a
# message (LiteLLM, OpenRouter's `metadata.raw`), the printed form of a Python dict. So the body is walked from outside to
# inside by the names of its fields, and nothing is expected to be there.
# Not here: what any of it means (classify.py), times that it names (retry_after.py).

"""Code, message and status of any error body (S12.4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnkeeper.redaction import Redactor

_CODES = ("code", "type", "status", "__type", "error_type", "errorcode", "error_code", "reason")
_STATUSES = ("status_code", "statuscode", "code", "status")
_MESSAGES = ("message", "msg", "error_description", "errormessage", "title")
_WITHIN = ("error", "errors", "detail", "details", "response", "metadata", "innererror", "raw", "body", "exception")
_NO_CODES = ("", "error", "response.failed")  # they say that it is an error, not which
_DEEPEST = 8
_LONGEST = 4000  # characters of one message that are looked at
_ITEMS = 8  # of a list that are looked at
_QUOTED = 300  # characters of a server's words that are kept
_BLANKS = b"\xef\xbb\xbf \t\r\n"  # and a byte order mark
_PRINTED_CODE = re.compile(r"""['"](?:code|type|status)['"]\s*:\s*['"]([\w.-]{3,60})['"]""")
_ECHO = re.compile(r"""['"]input['"]: """)  # from here on a printed pydantic error quotes the conversation
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_SHAPES = Redactor()  # S16.2a: by shape here, by value where the configured keys are known


class ErrorBody(Struct, frozen=True):
    """What an error body says.

    codes: names that it gives the error, in lower case, the outermost first.
    said: all of its messages on one line, the outermost first, not yet fit to be shown: see `one_line`.
    status: the status that the body names, the innermost of several, or None.
    relayed: the error is that of a maker behind the server that answered.
    value: the body with the JSON in its strings read, or its text.
    """

    codes: tuple[str, ...] = ()
    said: str = ""
    status: int | None = None
    relayed: bool = False
    value: object = None


def read_body(body: bytes) -> ErrorBody:
    """Reads the body of an error answer. It never fails: what is not JSON is its own message."""
    try:
        value: object = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = body.decode("utf-8", "replace")
    return read_value(value)


def read_value(value: object) -> ErrorBody:
    """Reads an error that has been decoded already, such as one inside a stream."""
    notes = _Notes()
    opened = notes.walk(value, 0)
    said: list[str] = []
    for message in notes.messages:
        if message and not any(message in other for other in said):
            said.append(message)
    if not said and not isinstance(value, str | None):
        said = notes.codes[:1]
    line = " ".join(": ".join(said)[:_LONGEST].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    return ErrorBody(tuple(dict.fromkeys(notes.codes)), line, notes.status, notes.relayed, opened)


def is_json(body: bytes) -> bool:
    """Whether a body begins as JSON does."""
    return body.lstrip(_BLANKS)[:1] in (b"{", b"[")


def is_page(content_type: str, body: bytes) -> bool:
    """Whether an answer is a web page, or XML, rather than an API's. Some send JSON and call it a page."""
    return body.lstrip(_BLANKS)[:1] == b"<" or ("html" in content_type.lower() and not is_json(body))


def page_text(body: bytes) -> str:
    """What a person would read on a page, in short."""
    return one_line(_MARKUP.sub(" ", body[:_LONGEST].decode("utf-8", "replace")), 200)


def one_line(text: str, longest: int = _QUOTED) -> str:
    """`text` fit to be shown: without secrets and line breaks, cut at a blank, so that no part of a secret stays behind."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[:_LONGEST]).split())
    line = _SHAPES.text(line)
    if len(line) <= longest:
        return line
    return (line[: longest - 1].rpartition(" ")[0] or line[: longest - 1]) + "…"


class _Notes:
    """What one walk through a body has found."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.messages: list[str] = []
        self.status: int | None = None
        self.relayed = False

    def walk(self, value: object, depth: int) -> object:
        """Notes what `value` says; gives it back with the JSON in its strings read."""
        if depth > _DEEPEST:
            return None
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, list):
            return [self.walk(item, depth + 1) for item in cast(list[object], value)[:_ITEMS]]
        if isinstance(value, dict):
            return self._table(cast(dict[Any, Any], value), depth)
        return value

    def _text(self, text: str, depth: int) -> object:
        text = text[: 16 * _LONGEST]
        found = _embedded(text)
        if found is None:
            self.codes += [code.lower() for code in _PRINTED_CODE.findall(text[:_LONGEST])]
            self.messages.append(_ECHO.split(text[:_LONGEST])[0].strip())
            return text
        before, inner = found
        known = len(self.messages)
        opened = self.walk(inner, depth + 1)
        if len(self.messages) == known:  # no error in there: the text only quotes some JSON
            self.messages.append(text[:_LONGEST].strip())
            return text
        self.messages.insert(known, before)
        self.relayed = self.relayed or bool(before)
        return [before, opened]

    def _table(self, table: dict[Any, Any], depth: int) -> object:
        named = {str(name).lower(): value for name, value in list(table.items())[:64]}
        self.relayed = self.relayed or isinstance(named.get("provider_name"), str)
        if "loc" in named and isinstance(named.get("msg"), str):  # FastAPI says where in the request the trouble is
            self.messages.append(f"{_place(named['loc'])}: {named['msg']}")
            return named
        self._note_codes(named)
        opened = dict(named)
        for name in _MESSAGES:
            if isinstance(named.get(name), str):
                opened[name] = self._text(named[name], depth)
        for name in _WITHIN:
            if name in named:
                opened[name] = self.walk(named[name], depth + 1)
        return opened

    def _note_codes(self, named: dict[str, Any]) -> None:
        for name in _CODES:
            code = named.get(name)
            if isinstance(code, str) and code.lower() not in _NO_CODES:
                self.codes.append(code[:100].lower())
        stated = (status for name in _STATUSES if (status := _status(named.get(name))) is not None)
        self.status = next(stated, self.status)


def _embedded(text: str) -> tuple[str, object] | None:
    """The words before it and the value, where a text is JSON or ends in some: `OpenAIException - {"error": ...}`."""
    start = text.find("{")
    listed = text.find("[{")
    start = listed if 0 <= listed < start else start
    if start < 0:
        return None
    for candidate in (text[start:], text[start:].replace("\\n", " ").replace('\\"', '"')):  # the second: b'...' as printed
        try:
            value, _ = json.JSONDecoder().raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        return (text[:start].strip(" -:\n"), value) if value else None
    return None


def _status(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
        value = int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _place(loc: object) -> str:
    parts: Iterable[object] = cast(list[object], loc) if isinstance(loc, list) else [loc]
    return ".".join(str(part) for part in parts)
