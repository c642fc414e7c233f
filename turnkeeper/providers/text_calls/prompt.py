# How a model that calls in text is told of tools, calls and results (S10.1).
#
# The schemas stand in the system prompt, which does not change while the tools don't; calls and results of the conversation
# are told as text, each message always in the same words (S3.10b). The nudge stands after the last stable message. All of it
# is made for one attempt: the neutral prompt, and other models, know nothing of it.
# Tiny models learn from examples only: for them (catalogue: `worked_examples`) each tool's own examples are played as earlier
# turns, and a line a tool stands for its schema.

"""Turns a prompt with tools into one that a model without native tools understands."""

from __future__ import annotations

from typing import Any

from msgspec.json import decode, encode
from msgspec.structs import replace

from turnkeeper.providers.counts import table_of, text_of
from turnkeeper.providers.identifiers import fit_tool_name
from turnkeeper.providers.writing import NO_OUTPUT
from turnkeeper.types.calls import Parsed, ToolCall
from turnkeeper.types.messages import AssistantMessage, Message, Prompt, ToolMessage, ToolSpec, UserMessage

_HEAD = (
    "You can call tools. To call one, write its call on a line of its own, with named arguments, and nothing after it: "
    "{example}. You are then told what it returned. Never invent a result. Where no tool is needed, answer in words.\n"
    "The tools:"
)
_SHORT_HEAD = 'You can call a tool. A call is one line: name(argument="value"). Write nothing else then.\nTools:'
_NUDGE = "(A tool is called by its call alone on a line, such as {example}. Else answer in words.)"
_MOST_EXAMPLES = 4


class TextPrompts:
    """Makes the prompts of one attempt. worked: the tools' examples are played as earlier turns."""

    def __init__(self, *, worked: bool) -> None:
        self._worked = worked
        self._tools: tuple[ToolSpec, ...] | None = None
        self._section = ""
        self._examples: tuple[Message, ...] = ()
        self._told: dict[int, tuple[Message, Message]] = {}  # by the message's identity, so that its bytes stay the same
        self._asked: dict[str, str] = {}  # calls as they were written, by id

    def told(self, prompt: Prompt) -> Prompt:
        """The prompt in text. Without tools it is as it was, but for calls and results of the conversation."""
        if prompt.tools is not self._tools:
            self._tools = prompt.tools
            self._section = self._describe(prompt.tools)
            self._examples = _examples(prompt.tools) if self._worked else ()
        messages = tuple(self._message(message) for message in prompt.messages)
        system = "\n\n".join([part for part in (prompt.system.strip(), self._section) if part])
        nudge = "" if self._worked or not prompt.tools or prompt.prefill else _NUDGE.format(example=_example(prompt.tools))
        tail = "\n\n".join([part for part in (prompt.tail, nudge) if part])
        return Prompt(system, self._examples + messages, (), tail, prompt.prefill)

    def _describe(self, tools: tuple[ToolSpec, ...]) -> str:
        if not tools:
            return ""
        if self._worked:
            return "\n".join([_SHORT_HEAD, *[_signature(tool) for tool in tools]])
        lines = [
            encode({"name": fit_tool_name(tool.name), "description": tool.description}).decode()[:-1]
            + f',"parameters":{tool.parameters.decode()}}}'
            for tool in tools
        ]
        shown = [(tool, said, arguments) for tool in tools for said, arguments in tool.examples[:1]][:_MOST_EXAMPLES]
        examples = [
            f'- "{said}": {_written(fit_tool_name(tool.name), table_of(decode(arguments)))}' for tool, said, arguments in shown
        ]
        return "\n".join(
            [
                _HEAD.format(example=_example(tools)),
                "```json",
                *lines,
                "```",
                *(["For example:", *examples] if examples else []),
            ]
        )

    def _message(self, message: Message) -> Message:
        kept = self._told.get(id(message))
        if kept is None or kept[0] is not message:
            kept = self._told[id(message)] = (message, self._in_text(message))
        return kept[1]

    def _in_text(self, message: Message) -> Message:
        match message:
            case UserMessage():
                return message
            case AssistantMessage():
                if not message.calls:
                    return message
                written = [written_call(call) for call in message.calls]
                self._asked |= {call.id: text for call, text in zip(message.calls, written, strict=True)}
                return replace(message, text="\n".join([message.text.strip(), *written]).strip(), calls=())
            case ToolMessage():
                return UserMessage(self._result(message), message.pictures)

    def _result(self, message: ToolMessage) -> str:
        content = message.content.strip() or NO_OUTPUT
        if self._worked:
            return f"The tool says: {content}\nTell me the answer in one sentence."
        return f"[What {self._asked.get(message.call_id, fit_tool_name(message.name))} returned:]\n{content}"


def written_call(call: ToolCall) -> str:
    """A call as a model that calls in text would write it."""
    value = call.arguments.value if isinstance(call.arguments, Parsed) else {}
    return _written(fit_tool_name(call.name), value)


def _written(name: str, value: dict[str, Any]) -> str:
    if all(key.isidentifier() for key in value):
        return f"{name}({', '.join(f'{key}={encode(one).decode()}' for key, one in value.items())})"
    return f"{name}({encode(value).decode()})"


def _examples(tools: tuple[ToolSpec, ...]) -> tuple[Message, ...]:
    """The tools' examples as earlier turns, the last ones of each tool's nearest to the question."""
    messages: list[Message] = []
    for tool in tools:
        for said, arguments in (tool.examples or _made_up(tool))[:_MOST_EXAMPLES]:
            value = table_of(decode(arguments))
            messages += [UserMessage(said), AssistantMessage(_written(fit_tool_name(tool.name), value))]
    return tuple(messages)


def _made_up(tool: ToolSpec) -> tuple[tuple[str, str], ...]:
    """An example from the schema alone, for a tool that brings none."""
    said = tool.description.partition(".")[0].strip() or f"Use {tool.name}"
    return ((f"{said}.", encode(_sample(tool)).decode()),)


def _example(tools: tuple[ToolSpec, ...]) -> str:
    """A call of the first tool, as an example of the form."""
    tool = tools[0]
    value = table_of(decode(tool.examples[0][1])) if tool.examples else _sample(tool)
    return f"`{_written(fit_tool_name(tool.name), value)}`"


def _sample(tool: ToolSpec) -> dict[str, Any]:
    """Arguments as they might be: the needed ones, or the first."""
    schema = table_of(decode(tool.parameters))
    properties = table_of(schema.get("properties"))
    needed = [name for name in properties if name in (schema.get("required") or ())] or list(properties)[:1]
    return {name: _value(table_of(properties[name])) for name in needed}


def _value(schema: dict[str, Any]) -> Any:
    values: list[Any] = schema.get("enum") or []
    if values:
        return values[0]
    kinds: dict[str, Any] = {"integer": 3, "number": 1.5, "boolean": True, "array": [], "object": {}}
    return schema.get("default", kinds.get(text_of(schema.get("type")), "..."))


def _signature(tool: ToolSpec) -> str:
    names = table_of(table_of(decode(tool.parameters)).get("properties"))
    return f"{fit_tool_name(tool.name)}({', '.join(names)}) - {tool.description.partition('.')[0].partition(':')[0].strip()}."
