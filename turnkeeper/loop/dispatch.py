# Runs one tool, whatever it does.
#
# A tool may hang, ignore its cancellation, block its thread, raise anything, or return anything. So it runs in a task (or,
# a plain function, in a thread) of its own, and we wait for three things at once: its end, its time limit, a stop. After
# the last two it is cancelled and given `tool_abandon_timeout` to end; then it is abandoned, named in a warning, and what
# it may still return is dropped. A CancelledError that the tool raises itself is a failure like any other (S4.5a); only
# the cancellation of the turn's own task passes through.

"""Dispatches an admitted call."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.loop.admission import Admitted
from turnkeeper.loop.turn import Turn
from turnkeeper.redaction import Redactor
from turnkeeper.tools.context import Note, ToolContext
from turnkeeper.types.outcomes import Failed, Rejected, Succeeded, ToolOutcome, Unknown

_log = logging.getLogger(__name__)
_REASON_CHARS = 300


class Raised(Struct, frozen=True):
    """The tool raised. Exceptions are carried as values, so that none of them can end the loop's task."""

    error: BaseException


async def dispatch(turn: Turn, admitted: Admitted) -> ToolOutcome:
    """Runs the call's tool and returns what came of it. Raises nothing that a tool can cause."""
    tool = admitted.tool
    limit_s = tool.options.timeout or turn.settings.tool_timeout
    said: list[str] = []
    running = _start(turn, admitted, said)
    try:
        await asyncio.sleep(0)  # most tools are done in their first step, and cost no more than that
        if not running.done():
            await _wait(turn, running, limit_s)
        if running.done():
            return _with_said(_outcome(running, tool.name, turn.redactor), said)
        was_stopped = turn.signals.stopped
        await _end(turn, running, tool.name)
    except asyncio.CancelledError:
        await _end(turn, running, tool.name)
        raise
    if was_stopped:
        return Failed(
            "stopped", f"The person stopped the turn while {tool.name} was running; it may or may not have had its effect."
        )
    return Failed(
        "timed_out",
        f"{tool.name} did not finish within {limit_s:g} seconds and was cancelled; it may or may not have had its effect.",
    )


async def _wait(turn: Turn, running: asyncio.Future[object], limit_s: float) -> None:
    """Waits for the tool's end, its time limit or a stop, whichever comes first."""
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    listener = _resolver(stopped)
    turn.signals.listen(listener)
    try:
        await asyncio.wait({running, stopped}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        turn.signals.unlisten(listener)
        stopped.cancel()


def _start(turn: Turn, admitted: Admitted, said: list[str]) -> asyncio.Future[object]:
    tool, call = admitted.tool, admitted.asked.call
    arguments = dict(admitted.bound.kwargs)
    if tool.wants_context is not None:
        arguments[tool.wants_context] = ToolContext(
            channel=turn.channel,
            user=turn.user,
            turn_id=turn.id,
            call_id=call.id,
            say=_say(turn, said),
            notes=_TurnNotes(turn),
            folders=turn.services.folders,
            attachments=turn.services.attachments,
            results=turn.services.results,
        )
    if tool.is_async:
        return asyncio.ensure_future(_guarded(tool.function, arguments))
    return _in_thread(tool.function, arguments, tool.name)


def _say(turn: Turn, said: list[str]) -> Callable[[str], Awaitable[None]]:
    """Posts for a tool while its turn lasts, and keeps what was posted: people saw it, so it is in the history (S2.5)."""

    async def say(text: str) -> None:
        _refuse_late(turn)
        await turn.delivery.say(text)
        said.append(text)

    return say


def _with_said(outcome: ToolOutcome, said: list[str]) -> ToolOutcome:
    if not said or not isinstance(outcome, Succeeded):
        return outcome
    text = "\n".join(said)
    note = f"Posted to the channel by this tool: {text}"
    message = f"{outcome.message}\n{note}" if outcome.message else note
    return replace(outcome, delivered=outcome.delivered or text, message=message)


class _TurnNotes:
    """The short-term memory, while the turn lasts: nothing late is written for a turn that is over (S2.3)."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def keep(self, channel: str, user: str, text: str) -> None:
        _refuse_late(self._turn)
        await self._turn.services.notes.keep(channel, user, text)

    async def find(self, channel: str, query: str, limit: int) -> list[Note]:
        return await self._turn.services.notes.find(channel, query, limit)


def _refuse_late(turn: Turn) -> None:
    if turn.signals.over:
        raise RuntimeError("the turn is over: nothing more is done in its name")


async def _guarded(function: Callable[..., Any], arguments: dict[str, Any]) -> object:
    try:
        return await function(**arguments)
    except BaseException as error:  # SystemExit and its kin would end the whole loop; our own cancellation is seen below
        return Raised(error)


def _in_thread(function: Callable[..., Any], arguments: dict[str, Any], name: str) -> asyncio.Future[object]:
    """Runs a plain function in a daemon thread of its own: one that never returns holds up nothing, not even the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result: object = context.run(function, **arguments)
        except BaseException as error:  # carried to the loop's side as a value, whatever it is
            result = Raised(error)
        try:
            loop.call_soon_threadsafe(_resolve, future, result)
        except RuntimeError:
            _log.debug("The tool %s returned after the loop was closed.", name)

    threading.Thread(target=run, name=f"tool {name}", daemon=True).start()
    return future


async def _end(turn: Turn, running: asyncio.Future[object], name: str) -> None:
    """Cancels a tool and waits for its end; abandons it when it does not end (S6.4)."""
    running.cancel()
    if not running.done():
        await asyncio.wait({running}, timeout=turn.settings.tool_abandon_timeout)
    if not running.done():
        _log.warning("The tool %s ignores its cancellation and was abandoned; it may still be running.", name)
        turn.abandoned.add(running)
        running.add_done_callback(turn.abandoned.discard)


def _outcome(running: asyncio.Future[object], name: str, redactor: Redactor) -> ToolOutcome:
    if running.cancelled():
        return Failed("tool_execution_failed", f"{name} was cancelled from inside.")
    result = running.result()
    match result:
        case Raised(error=error):
            return _failure(error, name, redactor)
        case Succeeded() | Failed() | Rejected() | Unknown():
            return result
        case _:
            return Succeeded(result)


def _failure(error: BaseException, name: str, redactor: Redactor) -> Failed:
    """S6.5: a short safe reason for the model; the traceback goes to the log only."""
    _log.warning("The tool %s raised %s.", name, type(error).__name__, exc_info=error)
    try:
        said = " ".join(str(error).split())
    except Exception:  # an exception whose text raises: it has none
        said = ""
    said = redactor.text(said)[:_REASON_CHARS]
    return Failed("tool_execution_failed", f"{name} failed: {type(error).__name__}{': ' if said else ''}{said}")


def _resolver(future: asyncio.Future[None]) -> Callable[[], None]:
    def resolve() -> None:
        if not future.done():
            future.set_result(None)

    return resolve


def _resolve(future: asyncio.Future[object], result: object) -> None:
    if not future.done():
        future.set_result(result)
