"""`@tool`: makes a tool of a typed function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypedDict, Unpack, overload

from docstring_parser import parse
from msgspec import Struct
from msgspec.json import encode

from turnkeeper.errors import ToolDefinitionError
from turnkeeper.tools.context import ToolContext
from turnkeeper.tools.schema import Signature, bind, read_signature, schema_of
from turnkeeper.types.messages import ToolSpec

_NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,128}")  # what a server can't take is fitted (S3.10a)


class ToolOptions(Struct, frozen=True, kw_only=True):
    """A tool's nature.

    read_only: it changes nothing, so it may run beside others (S4.5) and needs no record before it starts.
    idempotent: a second run does no harm, so a resume may run it again (S15.1).
    timeout: seconds for one call, None for the engine's `tool_timeout` (S6.4).
    silent: nothing more needs to be said after it (S9.1).
    requires_follow_up: the model must say something about its result (S9.2).
    approval: a person is asked before each call.
    examples: what a person says, and the arguments of the call that answers it; for small models that call in text.
    triggers: words that expose it in deliberate mode; none for always (S6.2).
    available: asked at each call; a sentence says why the tool can't be used now, None that it can (S6.3).
    """

    read_only: bool = False
    idempotent: bool = False
    timeout: float | None = None
    silent: bool = False
    requires_follow_up: bool = False
    approval: bool = False
    triggers: tuple[str, ...] = ()
    available: Callable[[], str | None] | None = None
    examples: tuple[tuple[str, dict[str, Any]], ...] = ()


class ToolKeywords(TypedDict, total=False):
    """The options of `@tool`, as ToolOptions explains them, and `name`: the tool's, where it is not the function's."""

    name: str
    read_only: bool
    idempotent: bool
    timeout: float | None
    silent: bool
    requires_follow_up: bool
    approval: bool
    triggers: tuple[str, ...]
    available: Callable[[], str | None]
    examples: tuple[tuple[str, dict[str, Any]], ...]


class Bound(Struct, frozen=True):
    """Arguments that fit: the function's keyword arguments, without its context."""

    kwargs: dict[str, Any]


class Problems(Struct, frozen=True):
    """Arguments that do not fit: a line for each wrong field, with the problem and the expected type (S6.3)."""

    lines: tuple[str, ...]


class Tool:
    """A function that a model may call. Calling it calls the function."""

    def __init__(self, function: Callable[..., Any], name: str, options: ToolOptions) -> None:
        if not _NAME.fullmatch(name):
            raise ToolDefinitionError(f"{name!r} can't be a tool's name: 1 to 128 characters without blanks.")
        if options.timeout is not None and not options.timeout > 0:
            raise ToolDefinitionError(f"The tool {name!r}: `timeout` must be more than 0 seconds.")
        self.name = name
        self.function = function
        self.options = options
        self.is_async = inspect.iscoroutinefunction(function)
        self._signature: Signature = read_signature(function, name, ToolContext)
        self.wants_context = self._signature.context
        self.spec = _spec(function, name, self._signature, options.examples)
        for said, arguments in options.examples:
            wrong = self.bind(arguments)
            if isinstance(wrong, Problems):
                raise ToolDefinitionError(f"The tool {name!r}: the example {said!r} has wrong arguments: {wrong.lines[0]}.")
        self.__doc__ = function.__doc__

    def bind(self, value: dict[str, Any]) -> Bound | Problems:
        """What the function would be called with for these arguments of a model; never raises."""
        bound = bind(self._signature, value)
        return Problems(tuple(bound)) if isinstance(bound, list) else Bound(bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolKeywords]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolKeywords]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a typed function, plain or async: `@tool`, or `@tool(read_only=True, ...)`.

    Its description and those of its parameters come from the docstring (Google, NumPy or reST style), its schema from the
    annotations. A parameter annotated `ToolContext` is given by us. The function returns any value, or `Succeeded(...)` to
    say more. A plain function runs in a thread. Raises ToolDefinitionError, naming function, parameter and mend.
    """

    def make(made_of: Callable[..., Any]) -> Tool:
        chosen: dict[str, Any] = dict(options)
        name = chosen.pop("name", None) or getattr(made_of, "__name__", "")
        try:
            return Tool(made_of, name, ToolOptions(**chosen))
        except TypeError as problem:
            raise ToolDefinitionError(f"The tool {name!r} has an option that there is not: {problem}.") from None

    return make(function) if function is not None else make


def _spec(
    function: Callable[..., Any], name: str, signature: Signature, examples: tuple[tuple[str, dict[str, Any]], ...]
) -> ToolSpec:
    doc = parse(inspect.getdoc(function) or "")
    said = [part for part in (doc.short_description, doc.long_description) if part]
    descriptions = {one.arg_name: " ".join((one.description or "").split()) for one in doc.params}
    schema = schema_of(signature, name, {key: text for key, text in descriptions.items() if text})
    try:
        parameters = encode(schema)
    except TypeError as problem:
        raise ToolDefinitionError(f"The tool {name!r} has a default that can't be written as JSON: {problem}.") from None
    shown = tuple((said_by_person, encode(arguments).decode()) for said_by_person, arguments in examples)
    return ToolSpec(name, "\n\n".join(said), parameters, shown)
