"""Shared parts of commands that solve many fleets: options, the plan, and collecting rows."""

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
    from fleetplan.planner.questions.loaded_plan import LoadedPlan
    from fleetplan.planner.questions.resolving import Resolver
    from fleetplan.planner.questions.time_estimates import RemainingTime
    from fleetplan.planner.search import SearchLimits

PlanFile = Annotated[Path, typer.Argument(help="plan.json", metavar="PLAN.json", show_default=False)]
FleetOfPlan = Annotated[
    Path | None,
    typer.Option("--fleet", help="new path of the plan's fleet file", metavar="FLEET.yaml"),
]
SolveTimeLimit = Annotated[float, typer.Option(help="seconds for each solve", metavar="S", min=0.1)]
SolveGap = Annotated[str, typer.Option(help="stop each solve at this optimality gap", metavar="RATIO")]
MOST_SEED: Final = 2**31 - 1
"""Largest seed of CP-SAT and HiGHS, which store it in 32 bits."""

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
        help="backend of the solves: local, dask://, or dask://HOST:PORT of a scheduler", metavar="BACKEND"
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="the same answer for any --workers; limits work, not time"),
]

_RowT = TypeVar("_RowT")


@dataclasses.dataclass(frozen=True, slots=True)
class Solving:
    """Options for solving the fleets of a question.

    Attributes
    ----------
    time_limit_s : float
        Time limit of each solve. [s]
    gap : str
        Optimality gap as given by the user.
    seed : int
        Seed of the solver.
    workers : int
        Number of solves in parallel.
    backend : str
        Backend that runs the solves.
    deterministic : bool
        Whether results must not depend on time.
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
) -> Iterator[tuple[LoadedPlan, Resolver]]:
    """Open the plan with its fleet, and a resolver for changed fleets.

    A lost backend, and Ctrl-C before the first row, end the command with one sentence.
    """
    from fleetplan.planner.jobs import BackendLostError, open_jobs
    from fleetplan.planner.questions.loaded_plan import read_asked_plan
    from fleetplan.planner.questions.resolving import Resolver
    from fleetplan.planner.search import ProgramCache, SearchLimits, default_workers

    errors = console(stderr=True)
    asked = read_asked_plan(plan_file, fleet_file)
    searches = 1 if solving.deterministic else default_workers()
    limits = SearchLimits(
        solving.time_limit_s,
        ratio(solving.gap),
        solving.seed,
        searches,
        solving.deterministic,
        program_cache=ProgramCache(),
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
) -> RemainingTime:
    """Return an estimate of the time for all rows: each solve takes as long as the plan's, within its limit.

    Parameters
    ----------
    count : int
        Number of rows.
    plan, limits : Plan, SearchLimits
        Plan of the earlier solve, and the limits of each solve.
    noun : str
        Name of a row that takes several solves.
    solves : int, optional
        Number of solves for all rows; one per row by default.
    """
    from fleetplan.planner.questions.time_estimates import RemainingTime

    solve_s = min(plan.solve.wall_s, limits.time_limit_s)
    return RemainingTime(count, solve_s * (1 if solves is None else solves / max(count, 1)), noun)


def collected(
    rows: Iterator[_RowT],
    waited: RemainingTime,
    name: Callable[[_RowT], str],
    keep: Callable[[Sequence[_RowT]], None],
    then: str = "",
    begun: bool = False,
) -> tuple[list[_RowT], ExitCode]:
    """Collect rows as they are solved and print progress; Ctrl-C and a lost backend keep finished rows.

    Parameters
    ----------
    rows : Iterator
        Rows in the order of their solves.
    waited : RemainingTime
        Estimate of the number of rows and their time.
    name : callable
        Returns the text of a row for the progress line.
    keep : callable
        Writes the rows so far.
    then : str
        Text appended to the message of an interrupted command.
    begun : bool
        Whether the command has an answer without rows, so that an interrupt before the first row keeps it.

    Returns
    -------
    tuple[list, ExitCode]
        The rows, and LIMIT if some are missing.
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
    """Return a function that writes rows to a CSV file, in full each time; a no-op without a path."""
    from fleetplan.fleet.files import write_whole
    from fleetplan.planner.cells import csv_text

    def write(rows: Sequence[_RowT]) -> None:
        if path is not None:
            write_whole(path, csv_text(table(rows)))

    return write
