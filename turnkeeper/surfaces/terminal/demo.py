"""`turnkeeper demo`: a show of what the loop does, on a scripted provider; nothing leaves this machine."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click
from msgspec import Struct

from turnkeeper.engine import Engine
from turnkeeper.providers.model import Model
from turnkeeper.settings import Settings, environment
from turnkeeper.surfaces.terminal.painter import Painter, has_colour
from turnkeeper.testing import Answer, ScriptedProvider, call, cut, hang, say, wait
from turnkeeper.tools.builtin import builtin_tools
from turnkeeper.tools.tool import Tool, tool
from turnkeeper.types.turn import TurnResult

_ASIDE = "demo"


class Pace(Struct, frozen=True):
    """Seconds between words, and between scenes."""

    word_s: float = 0.3
    scene_s: float = 13.0


class Scene(Struct, frozen=True):
    """One scene. told: what the reader is about to see. said: what the person writes. stops_after_s: when /kill comes."""

    told: str
    said: str
    answers: tuple[Answer, ...]
    stops_after_s: float | None = None


def demo_command(*, fast: bool) -> int:
    """Plays the show. Returns the exit code: 0 where each scene ended as it should."""
    pace = Pace(word_s=0.0, scene_s=0.0) if fast else Pace()
    return asyncio.run(_play(pace))


async def _play(pace: Pace) -> int:
    async with ScriptedProvider(models=("first-model", "second-model")) as provider:
        models = [
            Model("openai-chat", name, base_url=provider.base_url, keys=["demo-key-0123456789"])
            for name in ("first-model", "second-model")
        ]
        settings = Settings(idle_timeout=60, tool_abandon_timeout=1)
        async with Engine(models, tools=_tools(), settings=settings) as engine:
            well = True
            scenes = _scenes(pace)
            for number, scene in enumerate(scenes, 1):
                _tell(f"\n{number}/{len(scenes)}  {scene.told}")
                well = await _scene(engine, provider, scene) and well
                await asyncio.sleep(pace.scene_s)
    _tell("\nThat was a script. `turnkeeper chat` talks with a real model; `turnkeeper turns` shows what happened in a turn.")
    return 0 if well else 1


async def _scene(engine: Engine, provider: ScriptedProvider, scene: Scene) -> bool:
    click.echo(click.style(f"› {scene.said}", bold=True) if _coloured() else f"› {scene.said}")
    provider.play(*scene.answers)
    painter = Painter(_write, colour=_coloured())
    running = asyncio.ensure_future(engine.run(scene.said, channel=_ASIDE, sink=painter))
    if scene.stops_after_s is not None:
        await asyncio.sleep(scene.stops_after_s)
        painter.end_line()
        click.echo(click.style("› /kill", bold=True) if _coloured() else "› /kill")
        await engine.stop(_ASIDE)
    result = await running
    painter.end_line()
    _tell(_summary(result))
    return result.end == ("stopped_by_user" if scene.stops_after_s is not None else "completed")


def _summary(result: TurnResult) -> str:
    tried = ", ".join(f"{one.model}: {one.end}" for one in result.attempts)
    return f"     ended {result.end}; requests {len(result.usage)}, tool calls {len(result.history)}; {tried}"


def _scenes(pace: Pace) -> list[Scene]:
    def words(text: str) -> Answer:
        return _slowly(text, pace.word_s)

    return [
        Scene(
            "A reply is streamed as it is written.",
            "Why are there tides?",
            (words("The moon pulls the sea towards it, and the earth turns under the bulge. So the water rises twice a day."),),
        ),
        Scene(
            "A tool is called, and its result goes back to the model.",
            "How much is 17 times 23?",
            (words("Let me calculate.") + call("calculate", {"expression": "17 * 23"}), words("17 times 23 is 391.")),
        ),
        Scene(
            "Three tools run side by side; results go back in the order of the calls.",
            "What is the weather in Lisbon, Oslo and Kyoto?",
            (
                call("weather", {"city": "Lisbon"}) + call("weather", {"city": "Oslo"}) + call("weather", {"city": "Kyoto"}),
                words("Lisbon has 19 degrees, Oslo 2, and Kyoto 11."),
            ),
        ),
        Scene(
            "A tool hangs. After its time limit it is cancelled, and the model is told.",
            "Ask the old printer if it is ready.",
            (call("ask_printer", {}), words("The printer did not answer. It may be switched off.")),
        ),
        Scene(
            "A call with wrong arguments runs nothing; the model reads what was wrong and mends it.",
            "Roll two dice.",
            (call("roll_dice", {"sides": "many"}), call("roll_dice", {"sides": 6, "count": 2}), words("Here they are.")),
        ),
        Scene(
            "The model dies in the middle of a sentence. Another one finishes it, and nothing is said twice.",
            "Tell me about the sea at night.",
            (
                words("At night the sea is black, and where the waves break it") + cut(),
                words("where the waves break it glows: tiny creatures light up when they are shaken."),
            ),
        ),
        Scene(
            "A reply that never ends is stopped with /kill: at once, and the connection is closed.",
            "Count all the waves.",
            (words("One wave, two waves, three waves, four waves, five waves, ") + hang(),),
            stops_after_s=max(0.5, 12 * pace.word_s),
        ),
        Scene(
            "After the stop, the next message is answered as if nothing had happened.",
            "All right. How many were there?",
            (words("I had counted to five when you stopped me."),),
        ),
    ]


def _slowly(text: str, word_s: float) -> Answer:
    pieces = [piece if place == 0 else f" {piece}" for place, piece in enumerate(text.split(" "))]
    answer = say(pieces[0], pieces=1)
    for piece in pieces[1:]:
        answer = answer + wait(word_s) + say(piece, pieces=1) if word_s else answer + say(piece, pieces=1)
    return answer


def _tools() -> list[Tool]:
    degrees = {"Lisbon": 19, "Oslo": 2, "Kyoto": 11}

    @tool(read_only=True)
    async def weather(city: str) -> dict[str, Any]:
        """The weather in a city of this show."""
        await asyncio.sleep(0.3)
        return {"city": city, "degrees": degrees.get(city)}

    @tool(timeout=2)
    async def ask_printer() -> str:
        """Asks the printer, which never answers."""
        await asyncio.Event().wait()
        return "ready"

    return [*builtin_tools(), weather, ask_printer]


def _tell(text: str) -> None:
    click.echo(click.style(text, dim=True) if _coloured() else text)


def _coloured() -> bool:
    return has_colour(environment(), terminal=sys.stdout.isatty())


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
