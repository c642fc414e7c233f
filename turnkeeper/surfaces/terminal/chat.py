# A conversation in a terminal.
#
# With a terminal: a prompt that can be typed into at any time. What is typed while the model writes is a follow-up: the
# engine lets it interrupt (S5.4). Ctrl-C stops what runs; a second Ctrl-C, or one with nothing running, leaves.
# Without one (piped input): each line is a message, answered before the next is read.

"""The chat loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TypeAlias

from turnkeeper.engine import Engine
from turnkeeper.errors import TurnkeeperError
from turnkeeper.surfaces.terminal.live import LiveText
from turnkeeper.surfaces.terminal.painter import Painter, printable
from turnkeeper.types.turn import TurnResult

CHANNEL = "terminal"

MakePainter: TypeAlias = Callable[[Callable[[str], None]], Painter]
"""Makes the sink that writes with a function that takes text, half a line too."""

_HELP = "Type a message. /kill stops the reply, /new begins a new conversation, /quit leaves. Ctrl-C stops, twice leaves."


async def chat_piped(engine: Engine, make_painter: MakePainter) -> bool:
    """Answers each line of standard input. Returns whether all were answered well."""
    painter = make_painter(_write_now)
    well = True
    while line := await asyncio.to_thread(sys.stdin.readline):
        text = line.strip()
        if not text:
            continue
        if text in ("/quit", "/exit"):
            break
        well = await _piped_line(engine, painter, text) and well
    return well


async def chat_live(engine: Engine, make_painter: MakePainter) -> None:
    """A chat with a prompt, until the person leaves."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.patch_stdout import patch_stdout

    session: PromptSession[str] = PromptSession(erase_when_done=True)  # the growing text in it goes on in the next one
    live = LiveText(_write_now, session.app.invalidate)
    painter = make_painter(live.write)
    chat = _Live(engine, painter)
    with patch_stdout(raw=True):
        async with asyncio.TaskGroup() as turns:
            while True:
                try:
                    text = await session.prompt_async(lambda: f"{live.open}\n› " if live.open else "› ")
                except KeyboardInterrupt:
                    if await chat.interrupt():
                        break
                    continue
                except EOFError:
                    break
                if text.strip():
                    _write_now(f"› {printable(text.strip())}\n")
                if not await chat.take(text.strip(), turns):
                    break
            await engine.stop(CHANNEL)


class _Live:
    """What a person at the prompt can do."""

    def __init__(self, engine: Engine, painter: Painter) -> None:
        self._engine = engine
        self._painter = painter
        self._running = 0
        self._interrupted = False

    async def interrupt(self) -> bool:
        """Ctrl-C. Returns whether to leave."""
        if self._running and not self._interrupted:
            self._interrupted = True
            await self._engine.stop(CHANNEL)
            return False
        return True

    async def take(self, text: str, turns: asyncio.TaskGroup) -> bool:
        """A line from the prompt. Returns False where it asks to leave."""
        self._interrupted = False
        match text:
            case "":
                return True
            case "/quit" | "/exit":
                return False
            case "/kill" | "/stop":
                if not await self._engine.stop(CHANNEL):
                    self._say("Nothing to stop.")
            case "/new":
                await self._engine.new_context(CHANNEL)
                self._say("A new conversation begins.")
            case "/help" | "/?":
                self._say(_HELP)
            case _ if text.startswith("/"):
                self._say(f"There is no command {text.split()[0]}. {_HELP}")
            case _:
                turns.create_task(self._answer(text), name="answer")
        return True

    async def _answer(self, text: str) -> None:
        self._running += 1
        try:
            result = await self._engine.run(text, channel=CHANNEL, sink=self._painter)
            self._painter.end_line()
            self._say(ending(result))
        except TurnkeeperError as problem:
            self._say(str(problem))
        finally:
            self._running -= 1

    def _say(self, text: str) -> None:
        if text:
            self._painter.end_line()
            self._painter.grow(f"{text}\n")


def ending(result: TurnResult) -> str:
    """What is said after a turn that did not simply complete; notices have said the rest already."""
    match result.end:
        case "stopped_by_user":
            return "(stopped)"
        case "follow_up_interrupt":
            return "(making way for your next message)"
        case _:
            return ""


async def _piped_line(engine: Engine, painter: Painter, text: str) -> bool:
    if text == "/new":
        await engine.new_context(CHANNEL)
        return True
    if text in ("/kill", "/stop"):
        await engine.stop(CHANNEL)
        return True
    result = await engine.run(text, channel=CHANNEL, sink=painter)
    painter.end_line()
    return result.end in ("completed", "follow_up_interrupt")


def _write_now(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
