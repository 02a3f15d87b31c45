"""What commands that solve many fleets share: options, the plan, and rows as they are solved."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from fleetplan.planner.commands.shared import MOST_WORKERS, ExitCode, ratio
from fleetplan.planner.commands.terminal import console, progress

if TYPE_CHECKING:
    import pandas as pd

    from fleetplan.planner.plan import Plan
    from fleetplan.planner.questions.asked_plan import AskedPlan
    from fleetplan.planner.questions.resolving import Resolver
    from fleetplan.planner.questions.waited import Waited
    from fleetplan.planner.search import SearchLimits

PlanFile = Annotated[Path, typer.Argument(help="plan.json", metavar="PLAN.json", show_default=False)]
FleetOfPlan = Annotated[
    Path | None,
    typer.Option("--fleet", help="new path of the plan's fleet file", metavar="FLEET.yaml"),
]
SolveTimeLimit = Annotated[float, typer.Option(help="seconds for each solve", metavar="S", min=0.1)]
SolveGap = Annotated[str, typer.Option(help="stop each solve at this optimality gap", metavar="RATIO")]
MOST_SEED: Final = 2**31 - 1
"""Largest seed of CP-SAT and HiGHS, which hold it in 32 bits."""

Seed = Annotated[int, typer.Option(help="seed of the solver", min=0, max=MOST_SEED)]
Workers = Annotated[
    int, typer.Option("--workers", help="solves in parallel", metavar="N", min=1, max=MOST_WORKERS)
]
Full = Annotated[
    bool, typer.Option("--full", help="print every pool and placement in every moment, however many")
]
Backend = Annotated[
    str,
    typer.Option(
        help="where solves run: local, dask:// or dask://HOST:PORT of a scheduler", metavar="BACKEND"
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="the same answer for any --workers; limits work, not time"),
]

_RowT = TypeVar("_RowT")


@dataclasses.dataclass(frozen=True, slots=True)
class Solving:
    """How the fleets of a question are solved.

    Attributes
    ----------
    time_limit_s : float
        Of each solve. [s]
    gap : str
        As the option has it.
    seed : int
        Of the solver.
    workers : int
        Solves at a time.
    backend : str
        Where they run.
    deterministic : bool
        Whether the clock must not decide.
    """

    time_limit_s: float
    gap: str
    seed: int
    workers: int
    backend: str
    deterministic: bool


@contextmanager
def asking(
    plan_file: Path, fleet_file: Path | None, solving: Solving
) -> Iterator[tuple[AskedPlan, Resolver]]:
    """Open the plan with its fleet, and what solves changed fleets.

    A backend that is lost, and Ctrl-C before there is a row, end the command with one sentence.
    """
    from fleetplan.planner.jobs import BackendLostError, open_jobs
    from fleetplan.planner.questions.asked_plan import read_asked_plan
    from fleetplan.planner.questions.resolving import Resolver
    from fleetplan.planner.search import Remembered, SearchLimits, default_workers

    errors = console(stderr=True)
    asked = read_asked_plan(plan_file, fleet_file)
    searches = 1 if solving.deterministic else default_workers()
    limits = SearchLimits(
        solving.time_limit_s,
        ratio(solving.gap),
        solving.seed,
        searches,
        solving.deterministic,
        remembered=Remembered(),
    )
    try:
        with open_jobs(solving.backend, solving.workers) as run:
            yield (
                asked,
                Resolver(
                    limits,
                    progress(errors),
                    None,
                    asked.baseline,
                    run=run,
                ),
            )
    except BackendLostError as lost:
        errors.print(f"{lost}; the same command starts again", style="red", markup=False)
        raise typer.Exit(ExitCode.LIMIT) from lost


def expected(
    count: int, plan: Plan, limits: SearchLimits, noun: str = "solve", solves: int | None = None
) -> Waited:
    """So many rows, each solve of which may take as long as that of a plan did, within its limit.

    Parameters
    ----------
    count : int
        All rows.
    plan, limits : Plan, SearchLimits
        What was solved before, and the limits of each solve.
    noun : str
        What a row is, where it takes several solves.
    solves : int, optional
        How many solves all rows take; one each by default.
    """
    from fleetplan.planner.questions.waited import Waited

    solve_s = min(plan.solve.wall_s, limits.time_limit_s)
    return Waited(count, solve_s * (1 if solves is None else solves / max(count, 1)), noun)


def collected(
    rows: Iterator[_RowT],
    waited: Waited,
    name: Callable[[_RowT], str],
    keep: Callable[[Sequence[_RowT]], None],
    then: str = "",
    begun: bool = False,
) -> tuple[list[_RowT], ExitCode]:
    """Take rows as they are solved, and say how many are left; Ctrl-C and a lost backend keep what there is.

    Parameters
    ----------
    rows : Iterator
        As they are solved.
    waited : Waited
        How many there will be, and how long they may take.
    name : callable
        What a row answers, for the line of progress.
    keep : callable
        Writes the rows so far.
    then : str
        What is said of a command that was stopped beside how far it came.
    begun : bool
        Whether there is an answer without any row: what ends the command before the first one is then no
        reason to lose it.

    Returns
    -------
    tuple[list, ExitCode]
        The rows, and LIMIT where some are missing.
    """
    from fleetplan.planner.jobs import BackendLostError

    errors = console(stderr=True)
    say = progress(errors)
    if waited.count:
        say(waited.announced)
    found: list[_RowT] = []
    if begun or not waited.count:
        keep(found)
    try:
        for row in rows:
            found.append(row)
            say(f"{name(row)} ({waited.next()})")
            keep(found)
    except (KeyboardInterrupt, BackendLostError) as end:
        if not (found or begun):
            raise
        why = str(end) if isinstance(end, BackendLostError) else "stopped"
        errors.print(f"{why}: {len(found)} of {waited.counted} are done{then}", style="red", markup=False)
        return found, ExitCode.LIMIT
    return found, ExitCode.FOUND


def table_writer(
    path: Path | None, table: Callable[[Sequence[_RowT]], pd.DataFrame]
) -> Callable[[Sequence[_RowT]], None]:
    """Return what writes a table of rows into a CSV file, whole each time; nothing without a path."""
    from fleetplan.fleet.files import write_whole
    from fleetplan.planner.cells import csv_text

    def write(rows: Sequence[_RowT]) -> None:
        if path is not None:
            write_whole(path, csv_text(table(rows)))

    return write
