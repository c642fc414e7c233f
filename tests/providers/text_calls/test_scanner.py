"""Calls in text: what people see and what runs, at every cut (S10.2, S10.3, S10.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnkeeper.providers.text_calls.scanner import TextCalls
from turnkeeper.providers.text_calls.shapes import Found, shapes_of
from turnkeeper.types.calls import Parsed
from turnkeeper.types.messages import ToolSpec


def spec(name: str, required: list[str], **kinds: str) -> ToolSpec:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in kinds.items()}, "required": required}
    return ToolSpec(name, "", json.dumps(schema).encode())


SHAPES = shapes_of(
    (
        spec("get_weather", ["city"], city="string", days="integer"),
        spec("roll_dice", [], sides="integer", count="integer"),
        spec("calculate", ["expression"], expression="string"),
        spec("current_time", [], zone="string"),
        spec("search", ["query"], query="string", exact="boolean"),
    )
)
PARIS = [("get_weather", {"city": "Paris"})]
W = "get_weather"
BAR = "｜"


def read(text: str, cuts: list[int] | None = None, *, verbatim: bool = True) -> tuple[str, list[tuple[str, Any]]]:
    """What people see, and the calls; a call that can't run has its problem in place of arguments."""
    scanner = TextCalls(SHAPES, verbatim=verbatim)
    places = [0, *(cuts or []), len(text)]
    pieces = [piece for a, b in zip(places, places[1:], strict=False) for piece in scanner.feed(text[a:b])]
    pieces += scanner.close()
    shown = "".join(piece for piece in pieces if isinstance(piece, str))
    calls = [one for one in pieces if isinstance(one, Found)]
    return shown, [(one.name, one.arguments.value if isinstance(one.arguments, Parsed) else "broken") for one in calls]


def dsml(inside: str, wrapper: str = "function_calls", bar: str = BAR) -> str:
    return f"<{bar}DSML{bar}{wrapper}>\n{inside}\n</{bar}DSML{bar}{wrapper}>"


def invoke(name: str, *parameters: str, bar: str = BAR) -> str:
    return "\n".join([f'<{bar}DSML{bar}invoke name="{name}">', *parameters, f"</{bar}DSML{bar}invoke>"])


def parameter(key: str, value: str, kind: str = "true", bar: str = BAR) -> str:
    return f'<{bar}DSML{bar}parameter name="{key}" string="{kind}">{value}</{bar}DSML{bar}parameter>'


VERBATIM: list[tuple[str, str, str, list[tuple[str, Any]]]] = [  # what it is, the text, what is seen, what runs
    ("an object in parentheses", 'get_weather({"city": "Paris"})', "", PARIS),
    ("prose before", 'Let me look. get_weather({"city": "Paris"})', "Let me look. ", PARIS),
    ("prose after", 'get_weather({"city": "Paris"})\nOne moment.', "\nOne moment.", PARIS),
    ("two on lines", 'get_weather(city="Paris")\nroll_dice(sides=6)', "\n", [*PARIS, ("roll_dice", {"sides": 6})]),
    ("keywords, single quotes", "get_weather(city='Paris')", "", PARIS),
    ("several keywords", "roll_dice(sides=6, count=2)", "", [("roll_dice", {"sides": 6, "count": 2})]),
    ("by place", "get_weather('Paris', 3)", "", [(W, {"city": "Paris", "days": 3})]),
    ("a lone one, one is required", "get_weather('Paris')", "", PARIS),
    ("a lone one, none is required of several", "roll_dice(6)", "roll_dice(6)", []),
    ("a lone one, the only one there is", 'current_time("Tokyo")', "", [("current_time", {"zone": "Tokyo"})]),
    ("Python's constants", "search(query='x', exact=True)", "", [("search", {"query": "x", "exact": True})]),
    ("JSON's constants", "search(query='x', exact=false)", "", [("search", {"query": "x", "exact": False})]),
    ("an expression", "calculate(1234*77)", "", [("calculate", {"expression": "1234*77"})]),
    ("a number for a text", "calculate(42)", "", [("calculate", {"expression": "42"})]),
    ("a bracketed expression", "calculate((1 + 2) * 3)", "", [("calculate", {"expression": "(1 + 2) * 3"})]),
    ("a negative number", "roll_dice(sides=-6)", "", [("roll_dice", {"sides": -6})]),
    ("brackets in quotes", 'get_weather(city="Pa)r(is")', "", [(W, {"city": "Pa)r(is"})]),
    ("escaped quotes", 'get_weather({"city": "a \\"b\\" )"})', "", [(W, {"city": 'a "b" )'})]),
    (
        "nested objects",
        'search({"query": "x", "f": {"a": [1, {"b": 2}]}})',
        "",
        [("search", {"query": "x", "f": {"a": [1, {"b": 2}]}})],
    ),
    ("a dict in Python's quotes", "get_weather({'city': 'Paris'})", "", PARIS),
    ("in a code span", 'Now: `get_weather({"city": "Paris"})`', "Now: ", PARIS),
    ("in a fence", '```\nget_weather({"city": "Paris"})\n```', "", PARIS),
    ("in a Python fence", "Here:\n```python\nget_weather(city='Paris')\n```\nDone.", "Here:\n\nDone.", PARIS),
    ("two in a fence", "```\nget_weather('Paris')\nroll_dice(sides=6)\n```", "", [*PARIS, ("roll_dice", {"sides": 6})]),
    ("a fence without an end", '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}', "", PARIS),
    ("an object with a name", '{"name": "get_weather", "arguments": {"city": "Paris"}}', "", PARIS),
    ("an object in a fence", '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```', "", PARIS),
    ("parameters for arguments", '{"name": "get_weather", "parameters": {"city": "Paris"}}', "", PARIS),
    ("arguments as text", '{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}', "", PARIS),
    ("arguments first", '{"arguments": {"city": "Paris"}, "name": "get_weather"}', "", PARIS),
    ("OpenAI's shape", '{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}', "", PARIS),
    (
        "a list of objects",
        '[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "roll_dice"}]',
        "",
        [*PARIS, ("roll_dice", {})],
    ),
    ("a tag", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', "", PARIS),
    ("a tag without an end", '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}', "", PARIS),
    ("keys and values", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>", "", PARIS),
    (
        "typed keys and values",
        "<tool_call>roll_dice\n<arg_key>sides</arg_key>\n<arg_value>6</arg_value>\n</tool_call>",
        "",
        [("roll_dice", {"sides": 6})],
    ),
    ("no arguments, alone on its line", "I roll.\nroll_dice()\n", "I roll.\n\n", [("roll_dice", {})]),
    ("no arguments, a mention", "Use roll_dice() for that.", "Use roll_dice() for that.", []),
    ("no arguments where some are needed", "get_weather()", "get_weather()", []),
    ("a mere mention", "I know get_weather and roll_dice.", "I know get_weather and roll_dice.", []),
    ("a mention with a parameter's name", "Call get_weather(city) first.", "Call get_weather(city) first.", []),
    ("an unknown name", 'get_whether({"city": "Paris"})', 'get_whether({"city": "Paris"})', []),
    ("a longer name", 'forget_weather({"city": "Paris"})', 'forget_weather({"city": "Paris"})', []),
    ("a method", 'api.get_weather({"city": "Paris"})', 'api.get_weather({"city": "Paris"})', []),
    (
        "code that uses it",
        "```python\nx = get_weather('Paris')\nprint(x)\n```",
        "```python\nx = get_weather('Paris')\nprint(x)\n```",
        [],
    ),
    ("code, then a call", "```\nplain\n```\nget_weather('Paris')", "```\nplain\n```\n", PARIS),
    ("a span that is no call, then a call", "Use `get_weather` so: get_weather('Paris')", "Use `get_weather` so: ", PARIS),
    (
        "a common word in prose",
        "You may search (or not) for a search(s) box.",
        "You may search (or not) for a search(s) box.",
        [],
    ),
    ("an object that is no call", '{"name": "Ann", "age": 3}', '{"name": "Ann", "age": 3}', []),
    ("an object of data", '{"city": "Paris"}', '{"city": "Paris"}', []),
    ("quotes never closed", 'get_weather("Par', 'get_weather("Par', []),
    ("brackets never closed", "get_weather({", "get_weather({", []),
    ("half a name", "get_wea", "get_wea", []),
    ("less than", "1 < 2 and <b>bold</b>", "1 < 2 and <b>bold</b>", []),
    ("a list in prose", "[1] and [link](x)", "[1] and [link](x)", []),
    ("a call that is spoken of", "Write get_weather('Paris') to see it.", "Write get_weather('Paris') to see it.", []),
    (
        "a span that is spoken of",
        'The call `search(query="cats")` would find cats.',
        'The call `search(query="cats")` would find cats.',
        [],
    ),
    (
        "at the end of a sentence that speaks of it",
        "You may write get_weather('Paris').",
        "You may write get_weather('Paris').",
        [],
    ),
    ("alone with a full stop", "get_weather('Paris').\nWell.", "\nWell.", PARIS),
    ("in a quotation", "She said \"search('all of it')\" twice.", "She said \"search('all of it')\" twice.", []),
    (
        "code in a fence that begins behind prose",
        "So: ```python\ndef f(q):\n    return search(query=q, exact=True)\n    return search('x')\n```\nDone.",
        "So: ```python\ndef f(q):\n    return search(query=q, exact=True)\n    return search('x')\n```\nDone.",
        [],
    ),
    (
        "an object that is spoken of",
        'Then {"name": "roll_dice", "arguments": {}} rolls.',
        'Then {"name": "roll_dice", "arguments": {}} rolls.',
        [],
    ),
    ("two on one line", "get_weather('Paris'), roll_dice(sides=6)", "", [*PARIS, ("roll_dice", {"sides": 6})]),
    (
        "two on one line, then prose",
        "get_weather('Paris') roll_dice(sides=6) do it.",
        "get_weather('Paris') roll_dice(sides=6) do it.",
        [],
    ),
    ("a call, then a stray token", "get_weather('Paris')<|im_end|>", "<|im_end|>", PARIS),
    ("in a list", "1. get_weather('Paris')\n2. roll_dice(sides=6)", "1. \n2. ", [*PARIS, ("roll_dice", {"sides": 6})]),
]
LEAKED: list[tuple[str, str, str, list[tuple[str, Any]]]] = [
    ("DSML", dsml(invoke(W, parameter("city", "Paris"))), "", PARIS),
    ("DSML, text before", "One moment.\n" + dsml(invoke(W, parameter("city", "Paris"))), "One moment.\n", PARIS),
    ("DSML, plain bars", dsml(invoke(W, parameter("city", "Paris", bar="|"), bar="|"), bar="|"), "", PARIS),
    ("DSML, two bars", dsml(invoke(W, parameter("city", "Paris", bar="||"), bar="||"), bar="||"), "", PARIS),
    ("DSML, tool_calls", dsml(invoke(W, parameter("city", "Paris")), "tool_calls"), "", PARIS),
    ("DSML, no wrapper", invoke(W, parameter("city", "Paris")), "", PARIS),
    (
        "DSML, broken over lines",
        dsml(invoke(W, parameter("city", "Paris"))).replace(f"<{BAR}DSML{BAR}invoke", f"<{BAR}\nDSML\n{BAR}\ninvoke"),
        "",
        PARIS,
    ),
    (
        "DSML, two calls",
        dsml(invoke(W, parameter("city", "Paris")) + invoke("roll_dice", parameter("sides", "6", "false"))),
        "",
        [*PARIS, ("roll_dice", {"sides": 6})],
    ),
    (
        "DSML, typed",
        dsml(invoke("search", parameter("query", "6"), parameter("exact", "true", "false"))),
        "",
        [("search", {"query": "6", "exact": True})],
    ),
    ("DSML, unterminated after its call", dsml(invoke(W, parameter("city", "Paris")))[:-30], "", PARIS),
    (
        "DSML, cut in a value",
        f'<{BAR}DSML{BAR}function_calls><{BAR}DSML{BAR}invoke name="get_weather"><{BAR}DSML{BAR}parameter name="city" string="true">Par',
        "",
        [(W, "broken")],
    ),
    ("DSML, cut at once", f"<{BAR}DSML{BAR}function_calls>", "", [("", "broken")]),
    ("DSML, an unknown name", dsml(invoke("nope")), dsml(invoke("nope")), []),
    (
        "Kimi",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        "",
        PARIS,
    ),
    (
        "Kimi, broken",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": <|tool_call_end|><|tool_calls_section_end|>',
        "",
        [(W, "broken")],
    ),
    (
        "Kimi, unterminated",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Pa',
        "",
        [(W, "broken")],
    ),
    ("Mistral", '[TOOL_CALLS]get_weather{"city": "Paris"}', "", PARIS),
    (
        "Mistral, text before, several",
        'Sure. [TOOL_CALLS]get_weather{"city": "Paris"}[TOOL_CALLS]roll_dice{"sides": 6}',
        "Sure. ",
        [*PARIS, ("roll_dice", {"sides": 6})],
    ),
    ("Mistral, a list", '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]', "", PARIS),
    ("Mistral, with ARGS", '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}', "", PARIS),
    ("Mistral, cut", '[TOOL_CALLS]get_weather{"city": "Par', "", [(W, "broken")]),
    ("Qwen", "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>", "", PARIS),
    (
        "Qwen in a tag, typed",
        "<tool_call>\n<function=roll_dice>\n<parameter=sides>\n6\n</parameter>\n</function>\n</tool_call>",
        "",
        [("roll_dice", {"sides": 6})],
    ),
    ("Qwen, cut", "<function=get_weather>\n<parameter=city>\nPar", "", [(W, "broken")]),
    ("Hermes", '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>', "", PARIS),
    ("Hermes, broken", '<tool_call>{"name": "get_weather", "arguments": {"city": }}</tool_call>', "", [(W, "broken")]),
    ("Llama", '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}<|eom_id|>', "", PARIS),
    ("Llama, Python", '<|python_tag|>get_weather.call(city="Paris")', "", PARIS),
    ("Gemma", '```tool_code\nprint(default_api.get_weather(city="Paris"))\n```', "", PARIS),
    (
        "DeepSeek's older tokens",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "",
        PARIS,
    ),
    (
        "the same with angle brackets only",
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n</function_calls>',
        "",
        PARIS,
    ),
    ("quoted in a span", "It writes `<tool_call>` and then an object.", "It writes `<tool_call>` and then an object.", []),
    (
        "quoted in code",
        "```xml\n<function=get_weather>\n</function>\n```",
        "```xml\n<function=get_weather>\n</function>\n```",
        [],
    ),
    ("named in prose", "The <tool_call> tag opens a call.", "The <tool_call> tag opens a call.", []),
    ("an unknown name", "<function=nope>\n</function>", "<function=nope>\n</function>", []),
    ("a plain call is none here", 'get_weather({"city": "Paris"})', 'get_weather({"city": "Paris"})', []),
    ("an object is none here", '{"name": "get_weather", "arguments": {}}', '{"name": "get_weather", "arguments": {}}', []),
]


def check_all_cuts(text: str, expected: tuple[str, list[Any]], *, verbatim: bool) -> None:
    assert read(text, verbatim=verbatim) == expected
    assert read(text, list(range(1, len(text))), verbatim=verbatim) == expected
    for place in range(1, len(text)):
        assert read(text, [place], verbatim=verbatim) == expected, text[:place]


@pytest.mark.parametrize(("text", "seen", "runs"), [case[1:] for case in VERBATIM], ids=[case[0] for case in VERBATIM])
def test_a_call_of_a_model_that_calls_in_text(text: str, seen: str, runs: list[Any]) -> None:
    check_all_cuts(text, (seen, runs), verbatim=True)


@pytest.mark.parametrize(("text", "seen", "runs"), [case[1:] for case in LEAKED], ids=[case[0] for case in LEAKED])
def test_leaked_markup(text: str, seen: str, runs: list[Any]) -> None:
    check_all_cuts(text, (seen, runs), verbatim=False)


ALPHABET = ["get_weather", "roll_dice", "search", "(", ")", "{", "}", "[", "]", '"', "'", "`", "```", "\n", " ", "<", ">", "=", ",", ":", "a", "1",
            '{"name": "', "arguments", "<tool_call>", "</tool_call>", "<function=", "｜", "DSML", "[TOOL_CALLS]", "city", "\\", "json", "get", "()"]  # fmt: skip
soup = st.lists(st.sampled_from(ALPHABET), max_size=30).map("".join)


@settings(max_examples=400)
@given(text=soup, cuts=st.lists(st.integers(0, 200), max_size=12), verbatim=st.booleans())
@example(text="```\nget_weather('a')", cuts=[1, 2], verbatim=True)
@example(text="x get_weather   (1)", cuts=[2, 13], verbatim=True)
def test_what_is_found_never_depends_on_the_cuts(text: str, cuts: list[int], verbatim: bool) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    assert read(text, places, verbatim=verbatim) == read(text, verbatim=verbatim)
    assert read(text, list(range(1, len(text))), verbatim=verbatim) == read(text, verbatim=verbatim)


@settings(max_examples=300)
@given(text=st.lists(soup | st.text(max_size=20), max_size=6).map("".join), verbatim=st.booleans())
def test_text_without_calls_comes_out_as_it_went_in(text: str, verbatim: bool) -> None:
    seen, calls = read(text, list(range(3, len(text), 3)), verbatim=verbatim)
    assert calls or seen == text


@pytest.mark.parametrize(
    "text",
    [
        "get_weather(" * 1_000,
        "get_weather([" * 1_000,
        '{"arguments":' * 1_000,
        "`" * 3_000,
        "<" * 3_000,
        'get_weather("' * 1_000,
        "get_weather('" + '"get_weather(' * 1_000,
        "[{" * 1_000,
        "get_weather(" + "[" * 1_000 + "]" * 1_000 + ")",
        "\x00" * 100 + "get_weather(\x00)",
        "```\n" * 1_000,
    ],
    ids=lambda text: text[:24],
)
def test_candidates_that_open_and_fail_come_out_as_they_went_in(text: str) -> None:
    assert read(text, list(range(7, len(text), 7))) == (text, [])


def test_a_candidate_of_a_megabyte_is_read_and_a_larger_one_is_text() -> None:
    large = 'search({"query": "' + "x" * 1_000_000 + '"})'
    cuts = list(range(4096, len(large), 4096))
    assert read(large, cuts)[1][0][0] == "search"
    larger = 'search({"query": "' + "x" * 2_000_000 + '"})'
    for pieces in ([], list(range(4096, len(larger), 4096))):
        assert read(larger, pieces) == (larger, [])


def test_text_is_held_only_while_it_may_be_a_call() -> None:
    scanner = TextCalls(SHAPES, verbatim=True)
    shown = [scanner.feed(piece) for piece in ("The ", "get", "_we", "ather", " tool", " and", " {", '"x"', ": 1}")]
    assert shown == [["The "], [], [], [], ["get_weather tool"], [" and"], [" "], ['{"x"'], [": 1}"]]
