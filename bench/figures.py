# What repetitions become.
#
# A turn is measured alone where it runs alone. Noise adds to its CPU time, so the best turns are the figure: the tenth
# percentile, for the very best one is an accident. The median shows the noise. One kind of noise takes away: when the client
# was kept off its core, events pile up and come in one read. A turn in which that happened does not count (`waits`: the client
# must have gone to sleep for nearly each event). Where many turns run at once the client has no time to sleep, noise goes both
# ways, and the median is the figure.

"""The figures of the benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from msgspec import Struct

from bench.scenarios import Scenario
from bench.worker import Cost

QUIET = 0.1
"""Up to this share of others' work on the client's core the figures hold."""

_ONE_BY_ONE = 0.9  # waits for each event
_ENOUGH = 3  # turns that must be left


class Costs(Struct, frozen=True):
    """What one side needed.

    figure, median: CPU microseconds an event. all_us: of each turn that was measured, in the order of the turns.
    one_by_one: the share of turns in which the events were read one by one.
    wall_s: of a turn, the median. others: the share of the client's core that other processes took meanwhile.
    """

    figure: float
    median: float
    all_us: list[float]
    one_by_one: float
    wall_s: float
    others: float


def costs_of(scenario: Scenario, turns: Sequence[Cost], *, turns_each: int, others: float) -> Costs:
    """The figures of `turns`. turns_each: how many turns one entry stands for."""
    events = turns_each * scenario.events
    paced = [turn for turn in turns if turn.waits >= _ONE_BY_ONE * events]
    counted = paced if len(paced) >= _ENOUGH and not scenario.together else turns
    us = sorted(1e6 * turn.cpu_s / events for turn in counted)
    median = statistics.median(us)
    return Costs(
        figure=median if scenario.together else us[len(us) // 10],
        median=median,
        all_us=[1e6 * turn.cpu_s / events for turn in turns],
        one_by_one=len(paced) / len(turns),
        wall_s=statistics.median(turn.wall_s for turn in turns),
        others=others,
    )


class Growth(Struct, frozen=True):
    """CPU microseconds of a pass at the beginning (passes 2 to 11) and at the end (90 to 99) of the long chain.

    The first pass is left out: it carries the turn's own beginning, which would make the engine's growth look smaller.
    """

    reference_first: float
    reference_last: float
    engine_first: float
    engine_last: float
    target: float = 1.15

    @property
    def first(self) -> float:
        """What the engine costs beyond the reference at the beginning."""
        return self.engine_first - self.reference_first

    @property
    def last(self) -> float:
        """The same at the end; the reference's own growth is that of the bytes it sends."""
        return self.engine_last - self.reference_last

    @property
    def ratio(self) -> float:
        """Last to first."""
        return self.last / self.first

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.ratio <= self.target


def passes_of(turns: Sequence[Cost]) -> tuple[float, float]:
    """CPU microseconds of a pass at the beginning and at the end of the long chain: medians over the turns."""
    first = statistics.median((turn.stamps[10] - turn.stamps[0]) / 10 for turn in turns)
    last = statistics.median((turn.stamps[98] - turn.stamps[88]) / 10 for turn in turns)
    return 1e6 * first, 1e6 * last


class Row(Struct, frozen=True):
    """A line of the table.

    late: how late the server was with a write in the mean, as a share of the pause between two.
    wrong: why the engine's result does not count, "" where it does.
    """

    name: str
    title: str
    events: int
    target: float | None
    reference: Costs
    engine: Costs
    late: float
    wrong: str = ""
    growth: Growth | None = None

    @property
    def ratio(self) -> float:
        """The engine's figure to the reference's."""
        return self.engine.figure / self.reference.figure

    @property
    def others(self) -> float:
        """The share of the client's core that other processes took."""
        return max(self.reference.others, self.engine.others)

    @property
    def met(self) -> bool:
        """Whether the result is right and the target is met, if there is one."""
        return not self.wrong and (self.target is None or self.ratio <= self.target)


class Figure(Struct, frozen=True):
    """A single figure with its target. beside: the reference's."""

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
