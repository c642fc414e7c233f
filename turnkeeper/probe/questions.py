# The questions, in the order in which they are asked. Each one is a short conversation with the endpoint; what its answer
# means is judged here, in words that a person can act on. A question that finds the endpoint unreachable, or the key refused,
# ends the probe (`StopProbing`): all others would find the same.

"""What an endpoint is asked."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnkeeper.probe.ask import Endpoint, Heard
from turnkeeper.probe.findings import Found
from turnkeeper.providers.counts import table_of
from turnkeeper.providers.text_calls.forms import FORMS
from turnkeeper.providers.text_calls.scanner import TextCalls
from turnkeeper.providers.text_calls.shapes import Found as FoundCall
from turnkeeper.providers.text_calls.shapes import shapes_of
from turnkeeper.providers.tokens import estimate_tokens
from turnkeeper.providers.transport import HttpRequest
from turnkeeper.types.faults import Fault
from turnkeeper.types.messages import Prompt, ToolSpec, UserMessage

WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city, now.",
    b'{"type":"object","properties":{"city":{"type":"string","description":"The city\'s name."}},"required":["city"]}',
    (("What is the weather in Oslo?", '{"city":"Oslo"}'),),
)
_SHAPES = shapes_of((WEATHER,))
_BEGUN = "1, 2, 3, 4, 5, 6, 7,"
_NOBODY = "turnkeeper-probe-no-such-model"
_HARBOUR = "the tide was high that day, and all of the boats stayed in the harbour until late in the evening."
_LINE_TOKENS = 26
_LONG_TOKENS = 6000  # of the prompt that shows whether the server cuts it
_LEAST_SHARE = 0.6  # of the tokens that were sent: a server that reports less has cut the prompt
_WINDOW_FIELDS = ("context_length", "max_model_len", "context_window", "n_ctx", "inputTokenLimit", "max_input_tokens")
_WINDOW_SAID = re.compile(
    r"(?:context|window|maximum|n_ctx)\D{0,60}?(\d[\d,]{2,9})\s*(?:tokens)?|(\d[\d,]{2,9}) tokens? (?:context|limit)",
    re.IGNORECASE,
)


class StopProbing(Exception):  # noqa: N818 - no error: the rest need not be asked
    """Nothing more can be found out; the sentence says why."""


class Asked(Struct):
    """What the questions share: the endpoint, what was found, all answers so far, and what the list of models says."""

    endpoint: Endpoint
    found: Found
    heard: list[Heard]
    entry: dict[str, Any]

    async def ask(self, text: str, *, tools: tuple[ToolSpec, ...] = (), prefill: str = "", **options: Any) -> Heard:
        """Asks one thing in the plain way, and keeps the answer."""
        needed = {"stream_usage": False} if self.found.usage_refused else {}
        needed |= {"ends_unmarked": True} if self.found.is_("ends", "no") else {}
        options["quirks"] = needed | options.get("quirks", {})
        prompt = Prompt("You are a helpful assistant.", (UserMessage(text),), tools, prefill=prefill)
        heard = await self.endpoint.ask(prompt, **options)
        self.heard.append(heard)
        return heard


Question = Callable[[Asked], Awaitable[None]]


async def plain_text(asked: Asked) -> None:
    """Streams, ends, usage and speed: of one answer in words."""
    found = asked.found
    text = "Write the numbers from one to thirty in English words, separated by commas. Write nothing else."
    heard = await asked.ask(text, most=300)
    if heard.fault is not None and heard.fault.kind == "bad_request" and asked.endpoint.model.traits.stream_usage:
        again = await asked.ask(text, most=300, quirks={"stream_usage": False})  # old servers refuse `stream_options`
        found.usage_refused = bool(again.text)
        heard = again if again.text else heard
    if heard.fault is not None and not heard.text:
        found.put("streams", "no", str(heard.fault))
        raise StopProbing(f"{str(heard.fault).rstrip('.')}. {heard.fault.advice}")
    if heard.streamed and heard.deltas > 1:
        found.put("streams", "yes", f"{heard.deltas} pieces")
    else:
        found.put("streams", "no", "the whole answer comes at once" if heard.text else "no text came")
    if heard.fault is not None:
        found.put("ends", "no", f"the answer broke off: {heard.fault}")
    elif heard.marked:
        found.put("ends", "yes", "with a finish reason")
    else:
        found.put("ends", "no", "no finish reason comes: an answer that is cut looks like a whole one")
    _usage(found, heard)
    _speed(found, heard)


def _usage(found: Found, heard: Heard) -> None:
    if heard.usage is not None:
        found.put("usage", "yes", f"{heard.usage.prompt:,} in, {heard.usage.output:,} out")
    elif found.usage_refused:
        found.put("usage", "no", "it refuses to be asked for them; tokens are estimated")
    else:
        found.put("usage", "no", "no counts come; tokens are estimated")


def _speed(found: Found, heard: Heard) -> None:
    if heard.first_s is None:
        return
    tokens = heard.usage.output if heard.usage is not None else estimate_tokens(heard.text + heard.reasoning)
    took = heard.last_s - heard.first_s
    rate = f", then {tokens / took:,.0f} tokens a second" if took > 0.05 and tokens > 1 else ""
    found.put("speed", "yes", f"first token after {heard.first_s:.2f} s{rate}")


async def native_tools(asked: Asked) -> None:
    """Native calls: one, and then two in one message."""
    found = asked.found
    heard = await asked.ask("What is the weather in Paris? Use the tool.", tools=(WEATHER,), quirks={"tools": "native"})
    if heard.fault is not None and not heard.calls:
        found.put("tools", "no", f"refused: {_short(heard.fault)}")
        found.put("parallel", "no", "no native calls")
        return
    if not heard.calls:
        how = _in_text(heard.text)
        found.put("tools", "no", f"no call came{f'; {how}' if how else ''}")
        found.put("parallel", "no", "no native calls")
        return
    right = heard.calls[0].name == WEATHER.name and "paris" in heard.calls[0].text.lower()
    found.put("tools", "yes" if right else "partly", _called(heard))
    both = await asked.ask(
        "What is the weather in Paris, and in Rome? Call the tool for both cities at once, in this one message.",
        tools=(WEATHER,),
        quirks={"tools": "native"},
    )
    count = len(both.calls)
    if both.fault is not None:
        found.put("parallel", "unknown", _short(both.fault))
    else:
        found.put("parallel", "yes" if count > 1 else "no", f"{count} calls in one message" if count > 1 else "one at a time")


async def forced_call(asked: Asked) -> None:
    """A call that the model would not make by itself."""
    extra = _forced(asked.endpoint.model.family)
    if not extra:
        asked.found.put("forced", "unknown", "this family has no such field")
        return
    heard = await asked.ask("Good morning!", tools=(WEATHER,), extra=extra, quirks={"tools": "native"})
    if heard.calls:
        asked.found.put("forced", "yes", _called(heard))
    else:
        asked.found.put("forced", "no", f"refused: {_short(heard.fault)}" if heard.fault is not None else "it is ignored")


def _forced(family: str) -> dict[str, Any]:
    match family:
        case "openai-chat":
            return {"tool_choice": {"type": "function", "function": {"name": WEATHER.name}}}
        case "openai-responses":
            return {"tool_choice": {"type": "function", "name": WEATHER.name}}
        case "anthropic":
            return {"tool_choice": {"type": "tool", "name": WEATHER.name}}
        case "gemini":
            calling = {"mode": "ANY", "allowedFunctionNames": [WEATHER.name]}
            return {"toolConfig": {"functionCallingConfig": calling}}
        case _:
            return {}


async def calls_in_text(asked: Asked) -> None:
    """Whether the model writes a call when tools are told of in its prompt, and whether any answer leaked markup."""
    heard = await asked.ask("What is the weather in Paris?", tools=(WEATHER,), quirks={"tools": "verbatim"})
    calls = _calls_in(heard.text, verbatim=True)
    if calls:
        asked.found.put("verbatim", "yes", f"{calls[0].name}({calls[0].text})"[:80])
    elif heard.fault is not None:
        asked.found.put("verbatim", "unknown", _short(heard.fault))
    else:
        asked.found.put("verbatim", "no", f"it said: {_quoted(heard.text)}")
    forms = sorted({form for one in asked.heard for form in _leaked(one)})
    if forms:
        asked.found.put("leaks", "yes", f"{', '.join(forms)}: Turnkeeper reads it as a call")
    else:
        asked.found.put("leaks", "no", f"none seen in {len(asked.heard)} answers")


async def prefill(asked: Asked) -> None:
    """Whether the model goes on in the middle of a sentence of its own."""
    heard = await asked.ask("Count from 1 to 20.", prefill=_BEGUN, quirks={"prefill": True}, most=40)
    said = heard.text.lstrip()
    if heard.fault is not None and not said:
        asked.found.put("prefill", "no", f"refused: {_short(heard.fault)}")
    elif said.startswith("8"):
        asked.found.put("prefill", "yes", f"after “{_BEGUN}” it said {_quoted(said)}")
    else:
        asked.found.put("prefill", "no", f"it does not go on, but says {_quoted(said)}")


async def reasoning(asked: Asked) -> None:
    """Where reasoning comes, in all answers so far."""
    heard = await asked.ask("Think step by step: what is 17 times 23?", most=400)
    with_some = [one for one in asked.heard if one.reasoning]
    if not with_some:
        asked.found.put("reasoning", "no" if heard.fault is None else "unknown", "none came")
        return
    raw = with_some[-1].raw
    fields = [
        name for name in ("reasoning_content", "reasoning_details", "reasoning", "thinking", "thought") if _has(raw, name)
    ]
    where = f"in the field `{fields[0]}`" if fields else "in the text, between tags" if b"think" in raw else "in its own events"
    asked.found.put("reasoning", "yes", f"{where}; it is kept apart from the answer")


async def window(asked: Asked) -> None:
    """The window: what the list of models says, and whether a long prompt is read whole."""
    found = asked.found
    stated = _stated(asked.entry)
    known = stated or asked.endpoint.model.traits.context_window
    tokens = min(_LONG_TOKENS, known * 3 // 4)
    lines = [f"Line {number}: {_HARBOUR}" for number in range(tokens // _LINE_TOKENS)]
    text = "\n".join([*lines, "What is the number of the last line? Answer with one number."])
    heard = await asked.ask(text, most=20)
    sent = estimate_tokens(text)
    if heard.fault is not None:
        said = _WINDOW_SAID.search(heard.fault.said) if heard.fault.kind == "context_length" else None
        number = int((said[1] or said[2]).replace(",", "")) if said else 0
        found.window = number if number >= 256 else stated
        if number >= 256:
            found.put("window", "yes", f"{number:,} tokens, as it says itself when it refuses more")
        else:
            kind = "no" if heard.fault.kind == "context_length" else "unknown"
            found.put("window", kind, f"about {sent:,} tokens were refused: {_short(heard.fault)}")
        return
    read = heard.usage.prompt if heard.usage is not None else 0
    if read and read < sent * _LEAST_SHARE:
        found.window = read
        found.put("window", "no", f"the prompt was cut in silence: {read:,} of about {sent:,} tokens were read")
        return
    found.window = stated
    whole = f"{read or sent:,} tokens were read whole" if read else f"about {sent:,} tokens were taken (no count came)"
    found.put("window", "yes" if read else "unknown", f"{f'{stated:,} stated; ' if stated else ''}{whole}")


async def errors(asked: Asked) -> None:
    """How mistakes are answered: a model that is not there, and a body that is no request."""
    unknown = await asked.ask("Hello.", name=_NOBODY, most=10)
    endpoint = asked.endpoint
    broken = await endpoint.send(
        HttpRequest(f"{endpoint.model.url}/chat/completions", {"Content-Type": "application/json"}, b"{"), None
    )
    said: list[str] = []
    if unknown.fault is None:
        said.append("an unknown model is answered by another one")
    else:
        said.append(f"unknown model: {unknown.fault.status or ''} {unknown.fault.kind}".replace("  ", " "))
    if endpoint.model.family == "openai-chat":
        status = broken.status if broken.fault is not None else 200
        said.append(f"broken request: {status} {broken.fault.kind if broken.fault is not None else 'answered'}")
    read = unknown.fault is not None and unknown.fault.kind in ("model_unavailable", "bad_request", "permission")
    asked.found.put("errors", "yes" if read else "partly", "; ".join(said))


QUESTIONS: tuple[tuple[str, Question], ...] = (
    ("an answer in words", plain_text),
    ("native tool calls", native_tools),
    ("a forced call", forced_call),
    ("calls in text", calls_in_text),
    ("a prefill", prefill),
    ("reasoning", reasoning),
    ("the context window", window),
    ("error answers", errors),
)
"""What is asked, in order, and what it is called while it is."""


def model_entries(heard: Heard) -> list[dict[str, Any]]:
    """The models of a list, whatever family's; each with its name under `id`."""
    try:
        document = table_of(msgspec.json.decode(heard.raw))
    except (msgspec.DecodeError, RecursionError):
        return []
    listed: object = document.get("data") or document.get("models")
    entries = [table_of(one) for one in cast(list[object], listed)] if isinstance(listed, list) else []
    named = [one | {"id": str(one.get("id") or one.get("name") or "").removeprefix("models/")} for one in entries]
    return [one for one in named if one["id"]]


def _stated(entry: dict[str, Any]) -> int:
    """The window that a list of models states."""
    places = [entry, table_of(entry.get("meta")), table_of(entry.get("top_provider"))]
    for place in places:
        for name in _WINDOW_FIELDS:
            value = place.get(name)
            if isinstance(value, int) and value >= 256:
                return value
    return 0


def _calls_in(text: str, *, verbatim: bool) -> list[FoundCall]:
    reader = TextCalls(_SHAPES, verbatim=verbatim)
    return [piece for piece in [*reader.feed(text), *reader.close()] if not isinstance(piece, str)]


def _leaked(heard: Heard) -> list[str]:
    """The names of the forms that leaked into an answer."""
    return [_form_of(text) for text in (heard.text, heard.reasoning) if text and _calls_in(text, verbatim=False)]


def _form_of(text: str) -> str:
    plain = text.replace("\\n", "").replace(" ", "").replace("｜", "|")
    first = [(plain.find(form.opening), form.opening) for form in FORMS if form.opening in plain]
    return min(first)[1] if first else "```tool_code"


def _in_text(text: str) -> str:
    """How a call stands in the text of an answer that should have had a native one."""
    if _calls_in(text, verbatim=False):
        return f"it leaks into the text as {_form_of(text)}"
    return "it stands in the text" if _calls_in(text, verbatim=True) else f"it said: {_quoted(text)}"


def _called(heard: Heard) -> str:
    return ", ".join(f"{call.name}({call.text})" for call in heard.calls)[:80]


def _has(raw: bytes, name: str) -> bool:
    return f'"{name}":'.encode() in raw.replace(b'": ', b'":')


def _short(fault: Fault | None) -> str:
    return str(fault)[:160] if fault is not None else ""


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:59] + "…")
