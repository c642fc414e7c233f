# The beginnings of calls, read as they come.
#
# A reader takes from the source as long as what it read may be a call, and raises NotACallError as soon as it can't: so only
# what may belong to a call is held back (S10.3). It finds the end of the call; what stands inside is read in shapes.py.

"""Readers of arguments and JSON objects in text."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from turnkeeper.providers.text_calls.shapes import Found, Shape, decode_object, read_object, read_parentheses
from turnkeeper.providers.text_calls.source import NoCallInItError, NotACallError, Reader, Source

BLANKS = re.compile(r"[ \t\r\n]*")
SPACES = re.compile(r"[ \t]*")
WORD = re.compile(r"[\w-]*")
_IN_QUOTES = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_KEY = re.compile(r"[a-z_]*")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_PLAIN = " \t\r\n,:.+-*/%^0123456789"
_CONSTANTS = frozenset(("true", "false", "null", "True", "False", "None", "e", "E"))
_KEYS = frozenset(("name", "function", "tool", "tool_name", "type", "id", "arguments", "parameters", "tool_calls"))
_BLANK = " \t\r\n"
_KEY_BEGINS = "\"'} \t\r\n"
_DEEPEST = 64


def parentheses(source: Source, name: str, shape: Shape) -> Reader[Found]:
    """A call's arguments, after its name: `(...)`."""
    yield from source.run(SPACES)
    if (yield from source.take()) != "(":
        raise NotACallError
    inside: list[str] = []
    yield from _balanced(source, ")", inside)
    return read_parentheses(name, "".join(inside)[:-1], shape)


def json_object(source: Source) -> Reader[dict[str, Any]]:
    """A JSON object that may say a call: its first key is one of those that calls have. The brace is the next character."""
    inside = [(yield from source.take()), (yield from source.run(BLANKS)), (yield from source.take())]
    if inside[-1] != '"':
        raise NotACallError
    key = yield from source.run(_KEY)
    quote = yield from source.take()
    if key not in _KEYS or quote != '"':
        raise NotACallError
    inside += [key, quote]
    yield from _balanced(source, "}", inside)
    value = decode_object("".join(inside))
    if value is None:
        raise NotACallError
    return value


def json_calls(source: Source, tools: dict[str, Shape]) -> Reader[list[Found]]:
    """One JSON object, or a list of them, each a call. The brace or bracket is the next character."""
    if (yield from source.peek()) == "{":
        calls = read_object((yield from json_object(source)), tools)
    else:
        yield from source.take()
        values = yield from json_list(source)
        calls = [call for value in values for call in read_object(value, tools)]
    if not calls:
        raise NotACallError
    return calls


def json_list(source: Source) -> Reader[list[dict[str, Any]]]:
    """A list of JSON objects, behind its bracket."""
    inside = ["[", (yield from source.run(BLANKS))]
    if (yield from source.peek()) != "{":
        raise NotACallError
    yield from _balanced(source, "]", inside)
    try:
        value: object = json.loads("".join(inside), strict=False)
    except (ValueError, RecursionError):
        raise NotACallError from None
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(dict[str, Any], one) for one in items if isinstance(one, dict)]


def _balanced(source: Source, closer: str, inside: list[str]) -> Reader[None]:
    """Takes up to the bracket that closes. Fails at the first character that no literal has."""
    stack = [closer]
    key_due = False  # in an object, behind its brace or a comma
    while stack:
        letter = yield from source.take()
        inside.append(letter)
        if key_due and letter not in _KEY_BEGINS:
            raise NotACallError
        if letter not in _BLANK:
            key_due = letter == "{" or (letter == "," and stack[-1] == "}")
        if letter in _CLOSERS:
            stack.append(_CLOSERS[letter])
            if len(stack) > _DEEPEST:
                raise NoCallInItError
        elif letter == stack[-1] and letter:
            stack.pop()
        elif letter in _IN_QUOTES:
            yield from _string(source, letter, inside)
        elif letter.isalpha() or letter == "_":
            yield from _word(source, letter, inside, keyword=len(stack) == 1 and closer == ")")
        elif not letter or letter not in _PLAIN:
            raise NotACallError


def _string(source: Source, quote: str, inside: list[str]) -> Reader[None]:
    while True:
        inside.append((yield from source.run(_IN_QUOTES[quote])))
        letter = yield from source.take()
        inside.append(letter)
        if letter == quote:
            return
        if not letter:
            raise NotACallError
        inside.append((yield from source.take()))  # what a backslash escapes


def _word(source: Source, first: str, inside: list[str], *, keyword: bool) -> Reader[None]:
    """A constant, or a keyword with its equals sign."""
    word = yield from source.run(WORD)
    inside.append(word)
    if first + word in _CONSTANTS:
        return
    if not keyword:
        raise NotACallError
    inside.append((yield from source.run(SPACES)))
    if (yield from source.peek()) != "=":
        raise NotACallError
    inside.append((yield from source.take()))
    if (yield from source.peek()) == "=":
        raise NotACallError
