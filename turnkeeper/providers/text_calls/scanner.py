# Calls in text that streams (S10.2, S10.3, S10.5).
#
# Rule 1: what is released, and which calls are found, never depends on where the text was cut.
# Rule 2: text without calls comes out as it went in. Only what may be a call is held, and no longer than it may be one.
# Rule 3: linear. A reader looks at each character once; a candidate that fails costs its own length, and what is looked at
# again after it begins behind its first sign.
#
# Theory of operation. The scanner looks for signs: the name of a tool, a brace or bracket, `<`, a backtick. At one it starts a
# reader (a generator, source.py), which takes characters for as long as they may be a call. It returns calls, and the text
# goes on behind them; or it fails, and what it took is released and looked at again from behind the sign. A fence or a code
# span that is no call is passed by: what is quoted in it stays text. A call has nothing but calls behind it on its line: in
# "search(query='x') finds it" somebody speaks of one.

"""Finds calls in streamed text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from turnkeeper.providers.text_calls.forms import leaked, read_tool_code
from turnkeeper.providers.text_calls.grammar import BLANKS, SPACES, WORD, json_calls, json_list, parentheses
from turnkeeper.providers.text_calls.shapes import Found, Shape, read_object
from turnkeeper.providers.text_calls.source import NoCallInItError, NotACallError, Reader, Source

Piece: TypeAlias = str | Found
"""What comes out: text that may be shown, or a call."""

_MARKS = ("`", "<", "[", "{")
_LIMIT = 2**20  # characters that one candidate may have
_ON_A_LINE = 16  # calls that are read on one line: the rest of a longer row is looked at call by call
_INFO = re.compile(r"[\w+-]*")
_FENCE_CALLS = ("", "json", "python", "py", "tool_code", "tool_call", "tool_calls", "javascript", "js", "plaintext", "text")
_FENCE_END = re.compile(r"\n[ \t]{0,8}```")
_FENCE_ENDING = re.compile(r"\n[ \t]{0,8}`{0,2}\Z")
_LINE_ENDS = ("", "\n", "\r")
_SPAN_END = re.compile(r"[`\n]")


class TextCalls:
    """A filter for one text.

    tools: the offered ones, by the names that the model reads.
    verbatim: the model calls in text (S10.2); else only leaked markup is looked for (S10.5).
    """

    def __init__(self, tools: dict[str, Shape], *, verbatim: bool) -> None:
        self._tools = tools
        self._verbatim = verbatim
        names = "|".join(re.escape(name) for name in sorted(tools, key=len, reverse=True))
        named = rf"|(?<![\w.`-])(?:{names})(?=[ \t]{{0,8}}\()" if verbatim and names else ""
        self._sign = re.compile(rf"[`<{{\[]{named}" if verbatim else r"[`<\[]")
        self._tail = re.compile(r"(?<![\w.`-])[A-Za-z_][\w-]*[ \t]{0,8}\Z") if verbatim and names else None
        self._longest = max((len(name) for name in tools), default=0)
        self._held = ""  # the beginning of a sign
        self._before = "\n"  # the last character that was released
        self._blank = True  # the line, as far as it was released, holds only blanks
        self._alone = True  # so it was where the present reader began
        self._opened = False  # the present reader has read the first line of a fence
        self._fence = ""  # the fence that we are in, which is no call
        self._span = False  # we are in a code span that is none
        self._source: Source | None = None
        self._reader: Reader[list[Found]] | None = None
        self._skip = 1
        self._name = ""

    @property
    def name_in_progress(self) -> str | None:
        """The name of the call that is being read, as far as it is known; None where none is."""
        return self._name if self._reader is not None else None

    def passes(self, text: str) -> bool:
        """Whether `text` is neither part of a call nor begins one: then it may be shown as it is, and counts as released."""
        if self._reader is not None or self._held or self._fence or self._span or self._sign.search(text) is not None:
            return False
        if self._tail is not None and self._hold_from(text, 0, ended=False) < len(text):
            return False
        self._before = text[-1]
        if "\n" in text:
            self._blank = not text.rpartition("\n")[2].strip(" \t")
        elif self._blank and text.strip(" \t"):
            self._blank = False
        return True

    def feed(self, text: str) -> list[Piece]:
        """What is certain with this text."""
        out: list[Piece] = []
        if self._source is not None:
            self._source.give(text)
            self._go_on(out)
        else:
            text, self._held = self._held + text, ""
            self._scan(text, 0, out)
        return out

    def close(self) -> list[Piece]:
        """What is left: what was held as the beginning of a call was one, or is text."""
        out: list[Piece] = []
        while self._source is not None:
            self._source.ended = True
            self._go_on(out)
        held, self._held = self._held, ""
        self._release(held, out)
        return out

    # Readers

    def _go_on(self, out: list[Piece]) -> None:
        """Lets the reader read on, and scans what follows when it is done."""
        source = self._source
        assert source is not None
        behind = self._read(out)
        if behind is not None:
            self._scan(*behind, out, ended=source.ended)

    def _read(self, out: list[Piece]) -> tuple[str, int] | None:
        """Lets the reader read. Returns the text and where it goes on; None where the reader waits for more."""
        source, reader = self._source, self._reader
        assert source is not None
        assert reader is not None
        try:
            try:
                next(reader)
            except StopIteration as done:
                calls: list[Found] = done.value
                if source.over_limit:
                    raise NotACallError from None
                out += calls
                self._source = self._reader = None
                self._before, self._blank = "\n", False
                return source.piece, source.at
        except NotACallError as problem:
            self._source = self._reader = None
            text, start = source.all()
            at = start + (source.taken if isinstance(problem, NoCallInItError) else self._skip)
            self._pass_by(text[start:at])
            self._release(text[start:at], out)
            return text, at
        return None

    def _pass_by(self, sign: str) -> None:
        """A fence or a code span that is no call: what stands in it is text."""
        if sign.startswith("```"):
            self._fence = "```" if self._alone or self._opened else ""
        elif sign == "`":
            self._span = True

    def _start(self, text: str, at: int, read: Callable[[Source], Reader[list[Found]]], skip: int) -> None:
        self._source = Source(text, at, limit=_LIMIT)
        self._reader = read(self._source)
        self._skip = skip

    # Text

    def _scan(self, text: str, at: int, out: list[Piece], *, ended: bool = False) -> None:
        """Releases text up to the next sign, and lets its reader read."""
        while True:
            if self._fence or self._span:
                at = self._pass_quoted(text, at, out, ended=ended)
                if at < 0:
                    return
            found = self._sign.search(text, at)
            if found is not None and found.start() == 0 and found.group() not in _MARKS and self._in_word():
                found = self._sign.search(text, 1)
            end = found.start() if found is not None else self._hold_from(text, at, ended=ended)
            self._release(text[at:end], out)
            if found is None:
                self._held = text[end:]
                return
            self._begin(text, found)
            assert self._source is not None
            self._source.ended = ended
            behind = self._read(out)
            if behind is None:
                return
            text, at = behind

    def _begin(self, text: str, found: re.Match[str]) -> None:
        at, sign = found.start(), found.group()
        self._alone, self._opened = self._blank, False
        self._name = "" if sign in _MARKS else sign
        match sign:
            case "`":
                self._start(text, at, self._quoted, 1)
            case "<" | "[":
                self._start(text, at, self._marked, 1)
            case "{":
                self._start(text, at, self._object, 1)
            case _:
                self._start(text, at, lambda source: self._called(source, sign), len(sign))

    def _in_word(self) -> bool:
        return self._before.isalnum() or self._before in "_.`-"

    def _hold_from(self, text: str, at: int, *, ended: bool) -> int:
        """Where the beginning of a name may stand at the end of the text."""
        if self._tail is None or ended:
            return len(text)
        found = self._tail.search(text, max(at, len(text) - self._longest - 9))
        if found is None or (found.start() == 0 and self._in_word()):
            return len(text)
        word = found.group().rstrip(" \t")
        whole = len(word) < len(found.group())
        begun = word in self._tools if whole else any(name.startswith(word) for name in self._tools)
        return found.start() if begun else len(text)

    def _pass_quoted(self, text: str, at: int, out: list[Piece], *, ended: bool) -> int:
        """Releases up to the end of the fence or span that we are in. Returns where the text goes on, -1 where it ends."""
        end = _FENCE_END if self._fence else _SPAN_END
        found = end.search(text, at)
        if found is not None:
            self._fence, self._span = "", False
            self._release(text[at : found.end()], out)
            return found.end()
        keep = len(text)
        if self._fence and not ended:  # the end of the fence may be coming
            ending = _FENCE_ENDING.search(text, at)
            keep = ending.start() if ending is not None else keep
        self._release(text[at:keep], out)
        self._held = text[keep:]
        return -1

    def _release(self, text: str, out: list[Piece]) -> None:
        if not text:
            return
        self._before = text[-1]
        line = text.rpartition("\n")[2]
        self._blank = (self._blank or "\n" in text) and not line.strip(" \t")
        if out and isinstance(out[-1], str):
            out[-1] += text
        else:
            out.append(text)

    # What may be a call

    def _called(self, source: Source, name: str) -> Reader[list[Found]]:
        """`name(...)`. Without arguments it is a call only where nothing else stands on its line."""
        for _ in name:
            yield from source.take()
        call = yield from parentheses(source, name, self._tools[name])
        if call.text == "{}" and not self._alone:
            raise NotACallError
        return (yield from self._to_line_end(source, [call]))

    def _object(self, source: Source) -> Reader[list[Found]]:
        """An object with a name and arguments."""
        calls = yield from json_calls(source, self._tools)
        return (yield from self._to_line_end(source, calls))

    def _to_line_end(self, source: Source, calls: list[Found]) -> Reader[list[Found]]:
        """`calls` and those behind them; no call where their line goes on with anything else."""
        while len(calls) < _ON_A_LINE:
            yield from source.run(SPACES)
            letter = yield from source.peek()
            if letter in (".", ",", ";"):
                yield from source.take()
                yield from source.run(SPACES)
                letter = yield from source.peek()
                if letter in _LINE_ENDS and not self._alone:  # the end of a sentence that speaks of it
                    raise NotACallError
            if letter in _LINE_ENDS or letter == "<":  # a mark that should not have been sent
                return calls
            calls = calls + (yield from self._item(source))
        return calls

    def _marked(self, source: Source) -> Reader[list[Found]]:
        """A leaked form; for a model that calls in text also a list of objects."""
        sign = yield from source.take()
        if self._verbatim and sign == "[" and (yield from source.peek()) != "T":
            values = yield from json_list(source)
            calls = [call for value in values for call in read_object(value, self._tools)]
            if not calls:
                raise NotACallError
            return (yield from self._to_line_end(source, calls))
        return (yield from leaked(source, self._tools, sign))

    def _quoted(self, source: Source) -> Reader[list[Found]]:
        """A fence or a code span that holds nothing but calls."""
        ticks = ""
        while (yield from source.peek()) == "`" and len(ticks) < 3:
            ticks += yield from source.take()
        if len(ticks) == 3:
            self._skip = 3
            return (yield from self._fenced(source))
        if len(ticks) == 2 or not self._verbatim:
            self._skip = len(ticks)
            raise NotACallError
        calls = yield from self._item(source)
        if (yield from source.take()) != "`":
            raise NotACallError
        return (yield from self._to_line_end(source, calls))

    def _fenced(self, source: Source) -> Reader[list[Found]]:
        info = yield from source.run(_INFO)
        yield from source.run(SPACES)
        if (yield from source.take()) not in ("\n", "\r"):
            raise NotACallError
        self._opened = True
        if info.lower() not in _FENCE_CALLS or (not self._verbatim and info.lower() != "tool_code"):
            raise NotACallError
        if info.lower() == "tool_code":
            body, whole = yield from source.until(re.compile(r"```"), 2)
            calls = read_tool_code(body.removesuffix("```"), self._tools, whole)
            if not calls:
                raise NotACallError
            return calls
        calls: list[Found] = []
        while True:
            yield from source.run(BLANKS)
            letter = yield from source.peek()
            if letter in ("`", "") and calls:
                ticks = 0
                while ticks < 3 and (yield from source.peek()) == "`":
                    yield from source.take()
                    ticks += 1
                if ticks in (0, 3):
                    return calls
                raise NotACallError
            calls += yield from self._item(source)

    def _item(self, source: Source) -> Reader[list[Found]]:
        """One call where nothing but a call may stand."""
        letter = yield from source.peek()
        if letter in ("{", "["):
            return (yield from json_calls(source, self._tools))
        if letter == "<":
            return (yield from leaked(source, self._tools))
        name = yield from source.run(WORD)
        if name not in self._tools:
            raise NotACallError
        return [(yield from parentheses(source, name, self._tools[name]))]
