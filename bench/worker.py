# One side, in a process of its own, on the client's core: `python -m bench.worker SIDE PORT`.
#
# A line of JSON on the standard input says which turns to run; a line on the standard output says what they cost. Between
# two commands the process sleeps. It never makes the scenarios: megabytes of them, freed, would be room that hides what turns
# take. CPU time is the whole process's, with all its threads (the journal's writer, for one).

"""Runs turns of one side and measures them."""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

import msgspec
from msgspec import Struct

from bench.cores import client_core, pin
from bench.reference import Reference
from bench.scenarios import PROMPT, Call, Outcome
from bench.tools import tool_functions

SideName: TypeAlias = Literal["reference", "engine", "effectful", "unfiltered", "unbroken"]
"""Who runs the turns: the bare reference; the engine; the engine with tools that wait for the journal; without the filter of
calls in text; and with a server whose stream does not break."""


class Command(Struct):
    """Run `turns` turns of the scenario that `model` plays, together or one after another."""

    model: str
    turns: int
    together: bool


class Cost(Struct):
    """Seconds of CPU and of the clock.

    waits: how often the process went to sleep to wait for something, which it does for each event that it reads alone.
    stamps: CPU seconds from the beginning to each tool call.
    """

    cpu_s: float
    wall_s: float
    waits: int
    stamps: list[float]


class Measured(Struct):
    """What they cost.

    turns: each turn that ran alone, or one entry for all that ran together.
    digests: of the outcomes, each kind once.
    process_s: CPU seconds that the process has used since it began.
    """

    turns: list[Cost]
    digests: list[str]
    process_s: float


class Side(Protocol):
    """Who runs turns."""

    async def turn(self, model: str, channel: str) -> object:
        """Runs one turn in `channel`."""
        ...

    def outcome(self, result: object) -> Outcome:
        """What `turn` returned, as both sides say it."""
        ...

    async def forget(self, channels: list[str]) -> None:
        """Makes the next turn in each channel a first one. Not measured."""
        ...

    async def close(self) -> None:
        """Ends all."""
        ...


class ReferenceSide:
    """The reference."""

    def __init__(self, port: int, stamps: list[float]) -> None:
        self._reference = Reference(port, tool_functions(stamps))

    async def turn(self, model: str, channel: str) -> Outcome:
        return await self._reference.turn(model, PROMPT)

    def outcome(self, result: object) -> Outcome:
        assert isinstance(result, Outcome)
        return result

    async def forget(self, channels: list[str]) -> None:
        """It remembers nothing."""

    async def close(self) -> None:
        await self._reference.close()


class EngineSide:
    """The engine as users get it: default settings, journal in a file, delivery, guards.

    side: "effectful" has tools that may change something, and wait for the journal before each call.
    """

    def __init__(self, port: int, stamps: list[float], side: SideName) -> None:
        from turnkeeper import Engine, Model, tool

        self._folder = tempfile.TemporaryDirectory(prefix="turnkeeper-bench-")
        keys = ["sk-bench-0123456789abcdef", "sk-bench-fedcba9876543210"]
        quirks = {"tools": "none"} if side == "unfiltered" else {}
        suffix = "-whole" if side == "unbroken" else ""
        url = f"http://127.0.0.1:{port}/v1"
        self._make = lambda name: Engine(
            models=[Model("openai-chat", name + suffix, base_url=url, keys=keys, quirks=quirks)],
            tools=[tool(read_only=side != "effectful")(function) for function in tool_functions(stamps)],
            journal=f"sqlite:///{Path(self._folder.name) / f'{name}.db'}",
        )
        self._engines: dict[str, Engine] = {}

    async def turn(self, model: str, channel: str) -> object:
        engine = self._engines.get(model)
        if engine is None:
            engine = self._engines[model] = self._make(model)
        return await engine.run(PROMPT, channel=channel)

    def outcome(self, result: object) -> Outcome:
        from turnkeeper import TurnResult

        assert isinstance(result, TurnResult)
        calls = tuple(Call(entry.call.name, entry.call.text, entry.content) for entry in result.history)
        return Outcome(result.end, result.text, calls)

    async def forget(self, channels: list[str]) -> None:
        for engine in self._engines.values():
            await asyncio.gather(*[engine.new_context(channel) for channel in channels])

    async def close(self) -> None:
        for engine in self._engines.values():
            await engine.aclose()
        self._folder.cleanup()


class Worker:
    """Measures a side."""

    def __init__(self, side: Side, stamps: list[float]) -> None:
        self._side = side
        self._stamps = stamps

    async def run(self, command: Command) -> Measured:
        """Runs the turns of a command, each in a channel of its own that is known and empty."""
        channels = [f"channel{number}" for number in range(command.turns)]
        await self._side.forget(channels)
        run = self._together if command.together else self._in_a_row
        gc.collect()
        costs: list[Cost] = []
        results = await run(command.model, channels, costs)
        digests = sorted({self._side.outcome(result).digest for result in results})
        return Measured(costs, digests, time.process_time())

    async def _together(self, model: str, channels: list[str], costs: list[Cost]) -> list[object]:
        with self._measuring(costs):
            return await asyncio.gather(*[self._side.turn(model, channel) for channel in channels])

    async def _in_a_row(self, model: str, channels: list[str], costs: list[Cost]) -> list[object]:
        results: list[object] = []
        for channel in channels:
            with self._measuring(costs):
                results.append(await self._side.turn(model, channel))
        return results

    @contextmanager
    def _measuring(self, costs: list[Cost]) -> Iterator[None]:
        self._stamps.clear()
        waits = _waits()
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        yield
        cpu_end_s, wall_end_s = time.process_time(), time.perf_counter()
        stamps = [stamp - cpu_s for stamp in self._stamps]
        costs.append(Cost(cpu_end_s - cpu_s, wall_end_s - wall_s, _waits() - waits, stamps))


def _waits() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def side_named(name: SideName, port: int, stamps: list[float]) -> Side:
    """The side called `name`."""
    if name == "reference":
        return ReferenceSide(port, stamps)
    return EngineSide(port, stamps, name)


async def obey(side: Side, stamps: list[float], profile: cProfile.Profile | None) -> None:
    """Runs one command after another until the input ends. The first one is not profiled: it only warms up."""
    worker = Worker(side, stamps)
    warm = False
    try:
        for line in sys.stdin:  # blocks the loop, as it should: nothing of ours runs between two commands
            if profile is not None and warm:
                profile.enable()
            measured = await worker.run(msgspec.json.decode(line, type=Command))
            if profile is not None:
                profile.disable()
            warm = True
            print(msgspec.json.encode(measured).decode(), flush=True)
    finally:
        await side.close()


def settle_malloc() -> None:
    """Frees a block that is larger than asyncio's read buffer of 256 KiB.

    Until a process has done so once, glibc gets each such buffer from the system and gives it back: 10 microseconds a read.
    Engines have done it by importing large modules; a bare process has not, and would lose by that alone.
    """
    bytes(2**19)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker")
    parser.add_argument("side", choices=get_args(SideName))
    parser.add_argument("port", type=int)
    parser.add_argument("--profile", action="store_true", help="print where the time went, to standard error")
    options = parser.parse_args()
    pin(client_core())
    settle_malloc()
    stamps: list[float] = []
    profile = cProfile.Profile() if options.profile else None
    asyncio.run(obey(side_named(options.side, options.port, stamps), stamps, profile))
    if profile is not None:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
