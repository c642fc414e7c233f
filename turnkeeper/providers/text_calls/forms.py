# Markup that models write for their own servers, and that leaks where a server does not parse it (S10.5).
#
# One table: how each form begins, how it ends, and how what stands between is read. A beginning is compared without blanks
# and with one kind of bar, for servers break such tokens over lines and use `｜` or `|`, once or twice. A form that names no
# offered tool is text. One that does, and is broken or cut, is a call that can't run: the model is told, and people never see
# the markup as an answer.

"""The forms of leaked calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from msgspec import Struct

from turnkeeper.providers.counts import list_of, table_of
from turnkeeper.providers.text_calls.shapes import (
    Found,
    Shape,
    broken,
    decode_object,
    found,
    read_object,
    read_pairs,
    read_parentheses,
)
from turnkeeper.providers.text_calls.source import NotACallError, Reader, Source

Tools = dict[str, Shape]
Read = tuple[list[Found], str]
"""The calls, and the text that follows them."""

_LONGEST_OPENING = 80
_LONGEST_ENDING = 120
_CUT = "The call was cut off before its end, and did not run. Write it again, whole."
_UNREAD = "The arguments could not be read. Write one JSON object."
_B = r"\s*[｜|]{1,2}\s*"  # bars, as DeepSeek's tokens have them


class Form(Struct, frozen=True):
    """One form. opening: without blanks, bars as `|`. ending: what ends it; overlap: its longest match.

    read: the calls in what stands after the opening; whole: whether the ending came. special: the opening is a token of
    some model, which no prose has, so that a cut right after it is a call that was lost.
    """

    opening: str
    ending: re.Pattern[str]
    read: Callable[[str, Tools, bool], Read]
    special: bool = True


def leaked(source: Source, tools: Tools, begun: str = "") -> Reader[list[Found]]:
    """A leaked call, or several. begun: the beginning of the opening that was taken already. Raises NotACallError."""
    form = yield from _opening(source, begun)
    body, whole = yield from source.until(form.ending, _LONGEST_ENDING)
    read, rest = form.read(body, tools, whole)
    calls = [call for call in read if call.name in tools]
    if calls:
        if rest:
            source.push_back(rest)
        return calls
    if not whole and form.special and not body.strip():
        return [broken("", "", _CUT)]
    raise NotACallError


def _opening(source: Source, begun: str) -> Reader[Form]:
    """Reads on while what was read may be the opening of a form."""
    read, raw = begun, 0
    while raw < _LONGEST_OPENING:
        letter = yield from source.take()
        raw += 1
        if not letter:
            raise NotACallError
        if letter.isspace():
            continue
        letter = "|" if letter == "｜" else letter
        read += "" if letter == "|" and read.endswith("|") else letter
        possible = [form for form in FORMS if form.opening.startswith(read)]
        if not possible:
            raise NotACallError
        whole = next((form for form in possible if form.opening == read), None)
        if whole is not None:
            return whole
    raise NotACallError


def _cut_or(name: str, text: str, whole: bool) -> Found:
    return broken(name, text, _UNREAD if whole else _CUT)


# DeepSeek's DSML, and the same without bars: <invoke name="f"><parameter name="k" string="true">v</parameter></invoke>

_INVOKE = re.compile(rf"(?:<(?:{_B}DSML{_B})?\s*)?(?:invoke\s*)?name\s*=\s*[\"']([^\"'>]*)[\"']\s*>", re.DOTALL)
_PARAMETER = re.compile(
    rf"<(?:{_B}DSML{_B})?\s*parameter\s+name\s*=\s*[\"']([^\"'>]*)[\"']\s*(?:string\s*=\s*[\"'](true|false)[\"']\s*)?>"
    rf"(.*?)<\s*/\s*(?:{_B}DSML{_B})?\s*parameter\s*>",
    re.DOTALL,
)
_INVOKE_END = re.compile(rf"<\s*/\s*(?:{_B}DSML{_B})?\s*invoke\s*>")
_ANY_PARAMETER = re.compile(rf"<(?:{_B}DSML{_B})?\s*parameter\b")


def _dsml(body: str, tools: Tools, whole: bool) -> list[Found]:
    calls: list[Found] = []
    begins = list(_INVOKE.finditer(body))
    begins = [begin for begin in begins if not _is_parameter(body, begin)]
    for place, begin in enumerate(begins):
        inside = body[begin.end() : begins[place + 1].start() if place + 1 < len(begins) else len(body)]
        name = begin.group(1).strip()
        if name not in tools:
            continue
        parameters = _PARAMETER.findall(inside)
        ended = _INVOKE_END.search(inside) is not None
        if len(parameters) < len(_ANY_PARAMETER.findall(inside)) or (not parameters and not ended and not whole):
            calls.append(broken(name, inside.strip(), _CUT))
            continue
        value = None if parameters else decode_object(_INVOKE_END.split(inside)[0].strip())
        if value is not None:
            calls.append(found(name, value))
            continue
        pairs = [(key, text if text_kind == "true" else text.strip("\r\n")) for key, text_kind, text in parameters]
        typed = {key: text_kind == "true" for key, text_kind, _ in parameters if text_kind}
        calls.append(read_pairs(name, pairs, tools[name], typed=typed))
    return calls


def _is_parameter(body: str, begin: re.Match[str]) -> bool:
    return body[max(0, begin.start() - 40) : begin.start()].rstrip().endswith("parameter")


# DeepSeek's older tokens: function<｜tool▁sep｜>f\n```json\n{...}\n```

_OLD = re.compile(
    r"(?:function)?\s*<[｜|]tool▁sep[｜|]>\s*([\w.-]+)\s*(?:```(?:json)?)?\s*(\{.*?\})?\s*(?:```)?\s*"
    r"(<[｜|]tool▁call▁end[｜|]>|$)",
    re.DOTALL,
)


def _deepseek_old(body: str, tools: Tools, whole: bool) -> list[Found]:
    return [_named(name, text or "", tools, whole) for name, text, _ in _OLD.findall(body) if name in tools]


def _named(name: str, text: str, tools: Tools, whole: bool) -> Found:
    value = decode_object(text.strip())
    return found(name, value) if value is not None else _cut_or(name, text, whole)


# Kimi: functions.f:0<|tool_call_argument_begin|>{...}<|tool_call_end|>

_KIMI = re.compile(
    r"(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>(.*?)"
    r"(?:<\|tool_call_end\|>|<\|tool_calls?_section_end\|>|$)",
    re.DOTALL,
)
_KIMI_NAME = re.compile(r"(?:functions\.)?([\w.-]+?)(?::\d+)?\s*$")


def _kimi(body: str, tools: Tools, whole: bool) -> list[Found]:
    calls = [_named(name, text, tools, whole) for name, text in _KIMI.findall(body) if name in tools]
    if not calls and not whole:
        name = _KIMI_NAME.search(body)
        calls = [broken(name.group(1), body, _CUT)] if name is not None and name.group(1) in tools else []
    return calls


# Qwen: <function=f><parameter=k>v</parameter></function>; and Hermes: <tool_call>{...}</tool_call>; GLM: with arg_key

_QWEN_NAME = re.compile(r"\s*([^>\s]+)\s*>")
_QWEN_PARAMETER = re.compile(
    r"<parameter\s*=\s*([^>\s]+)\s*>(.*?)(?:</parameter>|(?=<parameter\s*=)|(?=</function>))", re.DOTALL
)
_ARGUMENT = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_GLM_NAME = re.compile(r"\s*([\w.-]+)\s*(?=<arg_key>|$|</tool_call>)")


def _qwen(body: str, tools: Tools, whole: bool) -> list[Found]:
    head = _QWEN_NAME.match(body)
    if head is None or head.group(1) not in tools:
        return []
    name, inside = head.group(1), body[head.end() :]
    pairs = [(key, _without_frame(text)) for key, text in _QWEN_PARAMETER.findall(inside)]
    if len(pairs) < len(re.findall(r"<parameter\s*=", inside)) or (not whole and "</function" not in inside):
        return [_cut_or(name, inside, False)]
    return [read_pairs(name, pairs, tools[name])]


def _without_frame(text: str) -> str:
    """The value of a parameter without the line breaks that the form puts round it."""
    text = text.removeprefix("\r\n").removeprefix("\n")
    return text.removesuffix("\n").removesuffix("\r")


def _tool_call(body: str, tools: Tools, whole: bool) -> list[Found]:
    inside = re.sub(r"<\s*/\s*tool_calls?\s*>\s*$", "", body).strip()
    if inside.startswith("<function"):
        return _qwen(re.sub(r"^<function\s*=", "", inside), tools, whole)
    if inside.startswith(("{", "[")):
        value = decode_object(inside)
        if value is not None:
            return read_object(value, tools)
        return _lost(inside, tools, whole)
    head = _GLM_NAME.match(inside)
    if head is None or head.group(1) not in tools:
        return []
    pairs = [(key.strip(), value.strip("\r\n")) for key, value in _ARGUMENT.findall(inside)]
    if len(pairs) < inside.count("<arg_key>") or not whole:
        return [_cut_or(head.group(1), inside, whole)]
    return [read_pairs(head.group(1), pairs, tools[head.group(1)])]


def _names_in(text: str) -> list[str]:
    return re.findall(r'"(?:name|function)"\s*:\s*"([^"]*)"', text)


# Mistral: [TOOL_CALLS]f{...}, f[ARGS]{...}, or a list of objects; several in a row. Llama: <|python_tag|>f(...) or an object

_MISTRAL_NAME = re.compile(r"\s*(?:\[TOOL_CALLS\])?\s*([\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\]\s*)?(?=\{)")


def _mistral(body: str, tools: Tools, whole: bool) -> Read:
    decoder = json.JSONDecoder(strict=False)
    text = body.removesuffix("</s>").strip()
    if text.startswith(("[", "{")):
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return _lost(text, tools, whole), ""
        return [call for one in list_of(value) or [value] for call in read_object(table_of(one), tools)], text[end:]
    calls: list[Found] = []
    at = 0
    while (head := _MISTRAL_NAME.match(text, at)) is not None:
        name = head.group(1)
        try:
            value, at = decoder.raw_decode(text, head.end())
        except (ValueError, RecursionError):
            return [*calls, broken(name, text[head.end() :], _CUT)], ""
        calls.append(found(name, table_of(value)))
    return calls, text[at:]


def _lost(text: str, tools: Tools, whole: bool) -> list[Found]:
    """The call that a broken object meant, as far as it says its name."""
    return [_cut_or(name, text, whole) for name in _names_in(text) if name in tools][:1]


_PRINTED = re.compile(r"print\((.*)\)", re.DOTALL)
_PYTHON_CALL = re.compile(r"(?:default_api\.)?([\w-]+)(?:\.call)?\s*\((.*)\)", re.DOTALL)
_PYTHON_NAME = re.compile(r"(?:default_api\.)?([\w-]+)(?:\.call)?\s*\(")


def _llama(body: str, tools: Tools, whole: bool) -> list[Found]:
    text = re.sub(r"<\|e(?:om|ot)_id\|>", "", body).strip()
    value = decode_object(text)
    if value is not None:
        return read_object(value, tools)
    printed = _PRINTED.fullmatch(text)
    text = printed.group(1).strip() if printed is not None else text.removeprefix("print(")
    head = _PYTHON_NAME.match(text)
    if head is None:
        return _lost(text, tools, whole)
    name = head.group(1)
    if name not in tools:
        return []
    call = _PYTHON_CALL.fullmatch(text)
    try:
        return [read_parentheses(name, call.group(2) if call else "", tools[name])]
    except NotACallError:
        return [_cut_or(name, text, whole)]


_DSML_END = re.compile(rf"<\s*/\s*(?:{_B}DSML{_B})?\s*(?:function_calls|tool_calls)\s*>")
_CALL_END = re.compile(r"<\s*/\s*tool_calls?\s*>")
_KIMI_END = re.compile(r"<\|tool_calls?_section_end\|>")
_NEVER = re.compile(r"(?!)")


def _only(read: Callable[[str, Tools, bool], list[Found]]) -> Callable[[str, Tools, bool], Read]:
    """For forms that have an ending of their own: nothing follows in what was read."""
    return lambda body, tools, whole: (read(body, tools, whole), "")


FORMS: tuple[Form, ...] = (
    Form("<|DSML|function_calls>", _DSML_END, _only(_dsml)),
    Form("<|DSML|tool_calls>", _DSML_END, _only(_dsml)),
    Form("<|DSML|invoke", _INVOKE_END, _only(_dsml)),
    Form("<function_calls>", _DSML_END, _only(_dsml), special=False),
    Form("<invokename=", _INVOKE_END, _only(lambda body, tools, whole: _dsml(f"name={body}", tools, whole)), special=False),
    Form("<|tool▁calls▁begin|>", re.compile(r"<[｜|]tool▁calls▁end[｜|]>"), _only(_deepseek_old)),
    Form("<|tool_calls_section_begin|>", _KIMI_END, _only(_kimi)),
    Form("<|tool_call_begin|>", re.compile(r"<\|tool_call_end\|>"), _only(_kimi)),
    Form("<tool_call>", _CALL_END, _only(_tool_call), special=False),
    Form("<function=", re.compile(r"</function>"), _only(_qwen), special=False),
    Form("<|python_tag|>", re.compile(r"<\|e(?:om|ot)_id\|>"), _only(_llama)),
    Form("[TOOL_CALLS]", re.compile(r"</s>"), _mistral),
)
"""Every form, by its opening."""


def read_tool_code(body: str, tools: Tools, whole: bool) -> list[Found]:
    """What stands in Gemma's fence ```` ```tool_code ````: a call a line, printed or not."""
    calls: list[Found] = []
    for line in body.strip().splitlines():
        calls += _llama(line, tools, whole)
    return calls
