# What is measured, and how repetitions become one figure.
#
# Both sides run alternately, in processes of their own that sleep while it is not their turn. The first repetition warms up
# and does not count. Noise only ever adds to a CPU time, so the best repetition is the figure; the median shows the noise.

"""Measures rows of the table."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

from msgspec import Struct

from bench.processes import BenchError, ServerProcess, WorkerProcess
from bench.scenarios import Scenario
from bench.server import Stats
from bench.worker import Measured, SideName

GROWTH_TARGET = 1.15
IMPORT_TARGET_S = 0.2
MEMORY_TARGET_KB = 60.0

_HELD_WITHIN_S = 60
_FEWER_BYTES = 0.9  # a side that sends less than this share of the reference's requests leaves something out
_IMPORT = "import time; begun = time.perf_counter(); import turnkeeper; print(time.perf_counter() - begun)"


class Effort(Struct, frozen=True):
    """How much is done for a row. share: of the turns that a scenario asks for."""

    repetitions: int
    share: float

    def turns(self, scenario: Scenario) -> int:
        """Turns of one repetition."""
        return scenario.turns if scenario.together else max(1, round(scenario.turns * self.share))


FULL = Effort(repetitions=12, share=1.0)
QUICK = Effort(repetitions=2, share=0.25)


class Costs(Struct, frozen=True):
    """What one side needed. us: CPU microseconds an event, one figure a repetition. wall_s: of a turn, the best."""

    us: list[float]
    wall_s: float
    requests: int
    request_bytes: int

    @property
    def best(self) -> float:
        """The best repetition."""
        return min(self.us)

    @property
    def median(self) -> float:
        """The median repetition."""
        return statistics.median(self.us)


class Growth(Struct, frozen=True):
    """CPU microseconds of a pass at the beginning and at the end of the long chain, both sides."""

    reference_first: float
    reference_last: float
    engine_first: float
    engine_last: float

    @property
    def first(self) -> float:
        """What the engine costs beyond the reference in passes 2 to 11."""
        return self.engine_first - self.reference_first

    @property
    def last(self) -> float:
        """The same in passes 90 to 99."""
        return self.engine_last - self.reference_last

    @property
    def ratio(self) -> float:
        """Last to first."""
        return self.last / self.first


class Row(Struct, frozen=True):
    """A line of the table. wrong: why the engine's result does not count, "" where it does. late_us: of a server's write."""

    name: str
    title: str
    events: int
    target: float | None
    reference: Costs
    engine: Costs
    late_us: float
    wrong: str = ""
    growth: Growth | None = None

    @property
    def ratio(self) -> float:
        """The engine's best to the reference's best."""
        return self.engine.best / self.reference.best

    @property
    def met(self) -> bool:
        """Whether the result is right and the target is met, if there is one."""
        return not self.wrong and (self.target is None or self.ratio <= self.target)


class Figure(Struct, frozen=True):
    """A single figure with its target. beside: the reference's, or another word on it."""

    name: str
    title: str
    value: float
    target: float
    unit: str
    beside: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value <= self.target


class _Trial:
    """One side's repetitions of a row."""

    def __init__(self, worker: WorkerProcess, server: ServerProcess, scenario: Scenario, turns: int) -> None:
        self._worker = worker
        self._server = server
        self._scenario = scenario
        self._turns = turns
        self._before = Stats()
        self._measured: list[Measured] = []
        self.digests: set[str] = set()

    def repeat(self, *, counts: bool) -> None:
        """One repetition."""
        before = self._server.stats()
        measured = self._worker.run(self._scenario, self._turns)
        after = self._server.stats()
        self.digests.update(measured.digests)
        self.late_us = 1e6 * (after.late_s - before.late_s) / max(1, after.writes - before.writes)
        self.requests = after.requests - before.requests
        self.request_bytes = after.received - before.received
        if counts:
            self._measured.append(measured)

    def costs(self) -> Costs:
        """What it needed."""
        events = self._turns * self._scenario.events
        together = self._scenario.together
        wall_s = min(one.wall_s for one in self._measured) / (1 if together else self._turns)
        return Costs([1e6 * one.cpu_s / events for one in self._measured], wall_s, self.requests, self.request_bytes)

    def passes(self) -> tuple[float, float]:
        """CPU microseconds of a pass: passes 2 to 11, and 90 to 99, each the median over all turns.

        The first pass is left out: it carries the turn's own beginning, which would make the engine's growth look smaller.
        """
        turns = [stamps for one in self._measured for stamps in one.stamps]
        first = statistics.median((stamps[10] - stamps[0]) / 10 for stamps in turns)
        last = statistics.median((stamps[98] - stamps[88]) / 10 for stamps in turns)
        return 1e6 * first, 1e6 * last


def measure_row(server: ServerProcess, scenario: Scenario, effort: Effort, side: SideName = "engine") -> Row:
    """Runs reference and `side` alternately."""
    turns = effort.turns(scenario)
    with WorkerProcess("reference", server) as bare, WorkerProcess(side, server) as full:
        reference, engine = _Trial(bare, server, scenario, turns), _Trial(full, server, scenario, turns)
        for repetition in range(effort.repetitions + 1):
            for trial in (reference, engine) if repetition % 2 else (engine, reference):
                trial.repeat(counts=repetition > 0)
    return Row(
        name=side if side == "effectful" else scenario.name,
        title=scenario.title,
        events=scenario.events,
        target=scenario.target if side == "engine" else None,
        reference=reference.costs(),
        engine=engine.costs(),
        late_us=engine.late_us,
        wrong=_wrong(scenario, reference, engine),
        growth=Growth(*reference.passes(), *engine.passes()) if scenario.name == "long" else None,
    )


def _wrong(scenario: Scenario, reference: _Trial, engine: _Trial) -> str:
    """Why the engine's result can't be compared; raises when it is the reference's fault."""
    expected = {scenario.outcome.digest}
    if reference.digests != expected:
        raise BenchError(f"The reference did not get the outcome of `{scenario.name}`: the benchmark itself is broken.")
    if engine.digests != expected:
        return "another end, text or call than the server sent"
    if engine.requests != reference.requests:
        return f"{engine.requests} requests where the reference made {reference.requests}"
    if engine.request_bytes < _FEWER_BYTES * reference.request_bytes:
        return f"{engine.request_bytes} bytes of requests where the reference sent {reference.request_bytes}"
    return ""


def measure_import(repetitions: int = 5) -> Figure:
    """How long `import turnkeeper` takes in a fresh interpreter: the best of some."""
    took = [float(subprocess.check_output([sys.executable, "-c", _IMPORT], text=True)) for _ in range(repetitions + 1)]
    return Figure("import", "import turnkeeper", min(took[1:]), IMPORT_TARGET_S, "s")


def measure_memory(server: ServerProcess, scenario: Scenario, *, few: int = 50, many: int = 250) -> Figure:
    """Resident memory for each live turn between `few` and `many` of them, held half-way through their answers."""
    kilobytes: dict[str, float] = {}
    sides: tuple[SideName, SideName] = ("reference", "engine")
    for side in sides:
        resident = [_resident_while_held(server, side, scenario, turns) for turns in (few, many)]
        kilobytes[side] = (resident[1] - resident[0]) / (many - few) / 1024
    beside = f"reference {kilobytes['reference']:.0f} KB"
    return Figure("memory", "a further concurrent turn", kilobytes["engine"], MEMORY_TARGET_KB, "KB", beside)


def _resident_while_held(server: ServerProcess, side: SideName, scenario: Scenario, turns: int) -> int:
    """The memory of a process of its own: one that had run turns before would have room left from them."""
    with WorkerProcess(side, server) as worker:
        worker.begin(scenario, turns)
        given_up = time.monotonic() + _HELD_WITHIN_S
        while server.stats().held < turns:
            if time.monotonic() > given_up:
                raise BenchError(f"{turns} turns at once were not half-way after {_HELD_WITHIN_S} seconds.")
            time.sleep(0.05)
        time.sleep(0.2)  # what is on its way arrives
        resident = worker.resident_bytes()
        server.release()
        worker.result()
    return resident


def count_reads(server: ServerProcess, scenario: Scenario, side: SideName) -> float:
    """Network reads for each event, to see that they come one by one."""
    turns = FULL.turns(scenario)
    with tempfile.TemporaryFile("w+") as said:
        with WorkerProcess(side, server, "--reads", errors=said) as worker:
            worker.run(scenario, turns)
        said.seek(0)
        return int(said.read().split()[-1]) / (turns * scenario.events)


def profile(server: ServerProcess, scenario: Scenario, side: SideName) -> None:
    """Prints where the engine's own thread spends its time."""
    with WorkerProcess(side, server, "--profile", errors=sys.stdout) as worker:
        for _ in range(4):
            worker.run(scenario, FULL.turns(scenario))
