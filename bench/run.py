# `make bench`. What is measured: measure.py. What is played: scenarios.py. Why the figures mean something: README.md.

"""The command: the engine against the bare reference, in a table."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

from bench import measure, report
from bench.figures import Figure
from bench.parsing import measure_parsers
from bench.processes import BenchError, ServerProcess
from bench.report import Report
from bench.scenarios import Scenario, all_scenarios
from bench.worker import SideName

ROWS = ("text", "passes", "long", "arguments", "many", "filter", "failover", "burst", "effectful")
FIGURES = ("import", "memory", "parse")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns the exit code: 1 where a result is wrong or, with --strict, a target is missed."""
    options = _parser().parse_args(arguments)
    try:
        with ServerProcess() as server:
            if options.profile:
                scenario, (_, side) = _scenario(options.profile)
                measure.profile(server, scenario, side)
                return 0
            return _measure(server, options)
    except BenchError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("--only", choices=[*ROWS, *FIGURES], action="append", help="this row only; may be given again")
    parser.add_argument("--quick", action="store_true", help="few repetitions, under 15 seconds: the figures are rough")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a target is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--profile", choices=ROWS, metavar="NAME", help="profile the engine in this row instead")
    parser.add_argument("--patience", type=float, metavar="S", help="seconds in all to wait for a quiet machine (60; quick: 0)")
    return parser


def _measure(server: ServerProcess, options: argparse.Namespace) -> int:
    effort = measure.QUICK if options.quick else measure.FULL
    patience = measure.Patience(effort.patience_s if options.patience is None else options.patience)
    made = Report(platform.python_version(), report.machine(), effort.repetitions, [], [])
    report.print_head(made)
    for name in _chosen(ROWS, options.only):
        scenario, sides = _scenario(name)
        made.rows.append(measure.measure_row(server, scenario, effort, patience, sides))
        report.print_row(made.rows[-1])
        sys.stdout.flush()
    print()
    for name in _chosen(FIGURES, options.only):
        for figure in _figures(server, name, effort):
            made.figures.append(figure)
            report.print_figure(figure)
        sys.stdout.flush()
    if options.json:
        options.json.write_bytes(report.as_json(made))
    wrong = any(row.wrong for row in made.rows)
    return 1 if wrong or (options.strict and not report.all_met(made)) else 0


def _figures(server: ServerProcess, name: str, effort: measure.Effort) -> list[Figure]:
    match name:
        case "memory":
            return [measure.measure_memory(server, all_scenarios()["held"], effort)]
        case "parse":
            return measure_parsers(effort.repetitions)
        case _:
            return [measure.measure_import(effort)]


def _chosen(names: tuple[str, ...], only: list[str] | None) -> list[str]:
    return [name for name in names if not only or name in only]


def _scenario(row: str) -> tuple[Scenario, tuple[SideName, SideName]]:
    """The scenario of a row, and the two who run it: mostly the reference and the engine."""
    scenarios = all_scenarios()
    match row:
        case "effectful":
            return scenarios["passes"], ("reference", "effectful")
        case "filter":
            return scenarios["filter"], ("unfiltered", "engine")
        case "failover":
            return scenarios["failover"], ("unbroken", "engine")
        case _:
            return scenarios[row], ("reference", "engine")


if __name__ == "__main__":
    sys.exit(main())
