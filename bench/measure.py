# How a row is measured.
#
# Both sides run alternately, in processes of their own that sleep while it is not their turn; who begins alternates too. The
# first repetition warms up and does not count. Others' work on the client's core makes both sides dearer alike (what it throws
# out of the caches has to come back), and so a ratio better than it is: we wait for quiet as long as `Patience` lasts, measure
# how much of the core others took, and a row with much of it is marked.

"""Measures."""

from __future__ import annotations

import subprocess
import sys
import time

from msgspec import Struct

from bench.cores import busy_s, client_core
from bench.figures import QUIET, Figure, Growth, Row, costs_of, passes_of
from bench.processes import BenchError, ServerProcess, WorkerProcess
from bench.scenarios import Scenario
from bench.worker import Cost, SideName

_HELD_WITHIN_S = 60.0
_LOOK_S = 0.2  # how long is looked whether the core is quiet
_FEWER_BYTES = 0.9  # a side that sends less than this share of the reference's requests leaves something out
_IMPORT = "import time; begun = time.perf_counter(); import turnkeeper; print(time.perf_counter() - begun)"


class Effort(Struct, frozen=True):
    """How much is done.

    share: of the turns that a scenario asks for. patience_s: seconds in all to wait for a quiet machine.
    imports: repetitions of the import. live: turns between which memory is compared.
    """

    repetitions: int
    share: float
    patience_s: float
    imports: int
    live: tuple[int, int]

    def turns(self, scenario: Scenario) -> int:
        """Turns of one repetition."""
        return scenario.turns if scenario.together else max(1, round(scenario.turns * self.share))


FULL = Effort(repetitions=12, share=1.0, patience_s=60.0, imports=5, live=(50, 250))
QUICK = Effort(repetitions=1, share=0.25, patience_s=0.0, imports=1, live=(20, 60))


class Patience:
    """Waits until others leave the client's core alone, `left_s` seconds in all."""

    def __init__(self, left_s: float) -> None:
        self._left_s = left_s

    def wait(self) -> None:
        """Returns once the core is quiet, or when there is no patience left."""
        while self._left_s > 0:
            busy = busy_s(client_core())
            time.sleep(_LOOK_S)
            if busy_s(client_core()) - busy < QUIET * _LOOK_S:
                return
            self._left_s -= _LOOK_S


class _Trial:
    """One side's repetitions of a row."""

    def __init__(self, worker: WorkerProcess, server: ServerProcess, scenario: Scenario, turns: int) -> None:
        self._worker = worker
        self._server = server
        self._scenario = scenario
        self._turns = turns
        self._process_s = self._others_s = self._took_s = 0.0
        self.costs: list[Cost] = []
        self.digests: set[str] = set()
        self.late = 0.0
        self.requests = self.request_bytes = 0

    @property
    def others(self) -> float:
        """The share of the client's core that other processes took."""
        return max(0.0, self._others_s / self._took_s)

    def repeat(self, *, counts: bool) -> None:
        """One repetition."""
        before = self._server.stats()
        begun_s, busy_before_s = time.perf_counter(), busy_s(client_core())
        measured = self._worker.run(self._scenario, self._turns)
        busy, took_s = busy_s(client_core()) - busy_before_s, time.perf_counter() - begun_s
        after = self._server.stats()
        self.digests.update(measured.digests)
        self.late = (after.late_s - before.late_s) / max(1, after.writes - before.writes) / self._scenario.gap_s
        self.requests = after.requests - before.requests
        self.request_bytes = after.received - before.received
        own_s, self._process_s = measured.process_s - self._process_s, measured.process_s
        if counts:
            self.costs += measured.turns
            self._others_s += busy - own_s
            self._took_s += took_s


def measure_row(
    server: ServerProcess,
    scenario: Scenario,
    effort: Effort,
    patience: Patience,
    sides: tuple[SideName, SideName] = ("reference", "engine"),
) -> Row:
    """Runs both sides alternately: the first one is what the second one is compared with."""
    turns = effort.turns(scenario)
    against, side = sides
    with WorkerProcess(against, server) as bare, WorkerProcess(side, server) as full:
        reference, engine = _Trial(bare, server, scenario, turns), _Trial(full, server, scenario, turns)
        for repetition in range(effort.repetitions + 1):
            patience.wait()
            for trial in (reference, engine) if repetition % 2 else (engine, reference):
                trial.repeat(counts=repetition > 0)
    each = turns if scenario.together else 1
    return Row(
        name=side if side == "effectful" else scenario.name,
        title=scenario.title,
        events=scenario.events,
        target=scenario.target if side == "engine" else None,
        reference=costs_of(scenario, reference.costs, turns_each=each, others=reference.others),
        engine=costs_of(scenario, engine.costs, turns_each=each, others=engine.others),
        late=max(reference.late, engine.late),
        wrong=_wrong(scenario, reference, engine),
        growth=_growth(reference, engine) if scenario.name == "long" else None,
    )


def _wrong(scenario: Scenario, reference: _Trial, engine: _Trial) -> str:
    """Why the engine's result can't be compared; raises when it is the reference's fault."""
    expected = {scenario.outcome.digest}
    if reference.digests != expected:
        raise BenchError(f"The reference did not get the outcome of `{scenario.name}`: the benchmark itself is broken.")
    if engine.digests != expected:
        return "another end, text or call than the server sent"
    if engine.requests != reference.requests and not scenario.carried:
        return f"{engine.requests} requests where the reference made {reference.requests}"
    if engine.request_bytes < _FEWER_BYTES * reference.request_bytes:
        return f"{engine.request_bytes} bytes of requests where the reference sent {reference.request_bytes}"
    return ""


def _growth(reference: _Trial, engine: _Trial) -> Growth | None:
    if any(len(cost.stamps) < 99 for cost in [*reference.costs, *engine.costs]):
        return None  # the chain broke off, which makes the row wrong
    return Growth(*passes_of(reference.costs), *passes_of(engine.costs))


def measure_import(effort: Effort) -> Figure:
    """How long `import turnkeeper` takes in a fresh interpreter: the best of some, files in the system's cache."""
    command = [sys.executable, "-c", _IMPORT]
    took = [float(subprocess.check_output(command, text=True)) for _ in range(effort.imports + 1)]
    return Figure("import", "import turnkeeper", min(took[1:]), 0.2, "s")


def measure_memory(server: ServerProcess, scenario: Scenario, effort: Effort) -> Figure:
    """Resident memory for each further live turn; the turns are held half-way through their answers."""
    few, many = effort.live
    kilobytes: list[float] = []
    sides: tuple[SideName, ...] = ("reference", "engine")
    for side in sides:
        resident = [_resident_while_held(server, side, scenario, turns) for turns in (few, many)]
        kilobytes.append((resident[1] - resident[0]) / (many - few) / 1024)
    beside = f"{many} live turns against {few}; reference {kilobytes[0]:.0f} KB"
    return Figure("memory", "each further live turn", kilobytes[1], 60.0, "KB", beside)


def _resident_while_held(server: ServerProcess, side: SideName, scenario: Scenario, turns: int) -> int:
    """The memory of a process of its own: one that had run turns before would have room left from them."""
    with WorkerProcess(side, server) as worker:
        worker.begin(scenario, turns)
        given_up = time.monotonic() + _HELD_WITHIN_S
        while server.stats().held < turns:
            if time.monotonic() > given_up:
                raise BenchError(f"{turns} turns at once were not half-way after {_HELD_WITHIN_S:g} seconds.")
            time.sleep(0.05)
        time.sleep(0.2)  # what is on its way arrives
        resident = worker.resident_bytes()
        server.release()
        worker.result()
    return resident


def profile(server: ServerProcess, scenario: Scenario, side: SideName) -> None:
    """Prints where the engine's own thread spends its time, the first repetition left out."""
    with WorkerProcess(side, server, "--profile", errors=sys.stdout) as worker:
        for _ in range(4):
            worker.run(scenario, FULL.turns(scenario))
