"""Prints what was measured."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.cores import client_core, server_core
from bench.figures import QUIET, Figure, Growth, Row


class Report(Struct):
    """All of a run, as `--json` writes it."""

    python: str
    machine: str
    repetitions: int
    rows: list[Row]
    figures: list[Figure]


def as_json(report: Report) -> bytes:
    """All of it, with ratios and verdicts."""
    values: dict[str, Any] = msgspec.to_builtins(report)
    for made, written in zip(report.rows, values["rows"], strict=True):
        written |= {"ratio": made.ratio, "met": made.met}
        if made.growth is not None:
            written["growth"] |= {"ratio": made.growth.ratio, "met": made.growth.met}
    for figure, written in zip(report.figures, values["figures"], strict=True):
        written["met"] = figure.met
    return msgspec.json.format(msgspec.json.encode(values))


def machine() -> str:
    """The processor, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()


def print_head(report: Report) -> None:
    """What the figures are, before they come."""
    print(f"Python {report.python}, {report.machine}; server on core {server_core()}, client on core {client_core()}.")
    if server_core() == client_core():
        print("There is one core only: server and client share it, and the figures are not worth much.")
    print("CPU microseconds of the client for each server-sent event: best tenth of the turns (median).\n")
    print(f"{'':<11}{'scenario':<36}{'events':>7}{'reference':>17}{'engine':>17}{'ratio':>8}{'target':>8}")


def print_row(row: Row) -> None:
    """A line of the table."""
    target = f"{row.target:.1f}" if row.target is not None else "-"
    title = f"{row.title}{', effects' if row.name == 'effectful' else ''}"
    costs = [f"{side.figure:8.1f} ({side.median:6.1f})" for side in (row.reference, row.engine)]
    print(f"{row.name:<11}{title:<36}{row.events:>7}{costs[0]:>17}{costs[1]:>17}{row.ratio:>8.2f}{target:>8}  {_verdict(row)}")
    if row.name == "effectful":
        print(f"{'':<11}a turn took {1e3 * row.engine.wall_s:.1f} ms, with the reference {1e3 * row.reference.wall_s:.1f} ms")
    if row.growth is not None:
        _print_growth(row.growth)


def print_figure(figure: Figure) -> None:
    """A single figure."""
    verdict = "met" if figure.met else "MISSED"
    beside = f" ({figure.beside})" if figure.beside else ""
    said = f"{figure.value:.3g} {figure.unit}{beside}, target {figure.target:g} {figure.unit}"
    print(f"{figure.name:<23}{figure.title}: {said}  {verdict}")


def all_met(report: Report) -> bool:
    """Whether each target of the run is met."""
    growths = [row.growth for row in report.rows if row.growth is not None]
    return all(one.met for one in [*report.rows, *report.figures]) and all(one.met for one in growths)


def _print_growth(growth: Growth) -> None:
    verdict = "met" if growth.met else "MISSED"
    print(f"{'':<11}microseconds a pass, first ten and last ten of the chain:")
    print(f"{'':<13}engine {growth.engine_first:.0f} and {growth.engine_last:.0f}", end=", ")
    print(f"reference {growth.reference_first:.0f} and {growth.reference_last:.0f}")
    print(f"{'':<13}engine less reference {growth.first:.0f} and {growth.last:.0f}", end=": ")
    print(f"{growth.ratio:.2f} times, target {growth.target:g}  {verdict}")


def _verdict(row: Row) -> str:
    if row.wrong:
        return f"WRONG: {row.wrong}"
    verdict = "for information" if row.target is None else "met" if row.met else "MISSED"
    doubts = [f"busy: others took {row.others:.0%} of the core"] if row.others > QUIET else []
    if row.late > QUIET:
        doubts.append(f"the server was late by {row.late:.0%} of the pause between two writes")
    return f"{verdict} ({'; '.join(doubts)})" if doubts else verdict
