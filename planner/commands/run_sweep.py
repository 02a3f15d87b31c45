"""Run `plan sweep`: build the points of a grid, solve them, and write tables and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted, money
from fleetplan.fleet.files import write_whole
from fleetplan.planner.cells import csv_text
from fleetplan.planner.commands.many_solves import collected
from fleetplan.planner.commands.shared import ExitCode
from fleetplan.planner.commands.terminal import console, progress
from fleetplan.planner.questions.sweep.axes import SweepAxis, grid_points, read_axes, require_keys
from fleetplan.planner.questions.sweep.plots import write_sweep_plots
from fleetplan.planner.questions.sweep.results import PointResult, sweep_table
from fleetplan.planner.questions.sweep.run import SweepTask, at_a_time, points_before, run_sweep
from fleetplan.planner.questions.time_estimates import RemainingTime
from fleetplan.planner.report.headline import status_words
from fleetplan.planner.search import SearchLimits
from fleetplan.scenarios.load import load_fleet


@dataclass(frozen=True, slots=True)
class SweptGrid:
    """A sweep with the results so far.

    Attributes
    ----------
    axes : tuple[SweepAxis, ...]
        Axes of the grid.
    results : tuple[PointResult, ...]
        Results of the solved points; the last axis varies fastest.
    written : tuple[Path, ...]
        Paths of the table and the plots.
    """

    axes: tuple[SweepAxis, ...]
    results: tuple[PointResult, ...]
    written: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class GridBase:
    """Base of a grid: a fleet file with scenarios and assignments."""

    path: Path
    scenarios: tuple[str, ...]
    assignments: tuple[str, ...]


def tasks_of(ground: GridBase, axes: Sequence[SweepAxis], limits: SearchLimits) -> list[SweepTask]:
    """Return a task with the fleet of every point, so that all mistakes show before the first solve.

    Raises
    ------
    InputError
        Lists the mistakes of all points, each once.
    """
    require_keys(axes)
    tasks: list[SweepTask] = []
    issues: dict[tuple[str, str, str], Issue] = {}
    for point in grid_points(axes):
        try:
            fleet = load_fleet(
                ground.path,
                [*ground.scenarios, *point.scenarios],
                [*ground.assignments, *point.assignments],
            )
            tasks.append(SweepTask(point, point.edit(fleet), limits))
        except InputError as error:
            for each in point.told(error.issues):
                # A mistake in a key occurs at all its values.
                issues.setdefault((each.key_path, each.message, each.hint), each)
    if issues:
        raise InputError(issues.values())
    return tasks


def sweep(
    ground: GridBase, grid: Sequence[str], limits: SearchLimits, folder: Path, workers: tuple[int | None, str]
) -> tuple[SweptGrid, ExitCode]:
    """Solve a grid, and write its table after each point, and its plots at the end.

    Parameters
    ----------
    ground : GridBase
        Base of the grid.
    grid : Sequence[str]
        Values of `--grid`.
    limits : SearchLimits
        Limits of each solve.
    folder : Path
        Receives points/, sweep.csv and plots/.
    workers : tuple[int or None, str]
        Number of points solved in parallel, as in `run_sweep`, and the backend.

    Returns
    -------
    tuple[Swept, ExitCode]
        Solved points, and LIMIT if some are missing, in which case there are no plots.
    """
    axes = read_axes(grid)
    tasks = tasks_of(ground, axes, limits)
    before = points_before(tasks, folder)
    missing = [number for number, known in enumerate(before) if known is None]
    if len(missing) < len(tasks):
        known = counted(len(tasks), "point", "were")
        progress(console(stderr=True))(f"{len(tasks) - len(missing)} of {known} solved before")
    written: list[Path] = []

    def in_order(found: Sequence[tuple[int, PointResult]]) -> list[PointResult]:
        results = dict(enumerate(before)) | {missing[number]: result for number, result in found}
        return [result for result in results.values() if result is not None]

    def keep(found: Sequence[tuple[int, PointResult]]) -> None:
        written[:] = [write_whole(folder / "sweep.csv", csv_text(sweep_table(axes, in_order(found))))]

    found, code = collected(
        run_sweep([tasks[number] for number in missing], folder, *workers),
        _awaited(len(missing), limits, workers),
        lambda row: f"{tasks[missing[row[0]]].point.text}: {status_words(row[1].status)}",
        keep,
        "; the same command continues from here",
        begun=len(missing) < len(tasks),
    )
    results = in_order(found)
    if code is ExitCode.FOUND:
        written += write_sweep_plots(axes, sweep_table(axes, results), folder / "plots")
    return SweptGrid(axes, tuple(results), tuple(written)), code


def _awaited(count: int, limits: SearchLimits, workers: tuple[int | None, str]) -> RemainingTime:
    """Return an estimate in which every point takes its full time limit, with all workers busy."""
    rounds = math.ceil(count / at_a_time(count, *workers)) if count else 0
    return RemainingTime(count, rounds * limits.time_limit_s / max(count, 1), "point", at_most=True)


def print_sweep(swept: SweptGrid, out: RichConsole) -> None:
    """Print one line per point: TCO, gap, and accelerators in use by hardware."""
    table = Table(box=None, pad_edge=False)
    for axis in swept.axes:
        table.add_column(escape(axis.key), overflow="fold")
    table.add_column("TCO", justify="right")
    table.add_column("lower bound", justify="right")
    table.add_column("accelerators in use", overflow="fold")
    for result in swept.results:
        figures = {figure.metric: figure.value for figure in result.figures}
        used = [
            f"{name.removeprefix('in use: ')} {count:.0f}"
            for name, count in figures.items()
            if name.startswith("in use: ")
        ]
        place = [escape(value) for _, value in result.point]
        if figures:
            row = [money(figures["tco"]), money(figures["tco bound"]), escape(", ".join(used))]
        else:
            row = [status_words(result.status), "", ""]
        table.add_row(*place, *row)
    out.print(table)


def is_decided(results: Sequence[PointResult]) -> bool:
    """Return whether every point is infeasible or has a plan within the requested gap."""
    return all(result.status not in ("no_plan", "limit") for result in results)
