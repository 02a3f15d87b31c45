"""`plan optables measure` and `plan optables compare`: operator tables of your own machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.fleet.figures import counted
from fleetplan.planner.commands.terminal import echo

if TYPE_CHECKING:
    from fleetplan.perfmodel.optables import MeasuredRows
    from fleetplan.planner.commands.measuring import Measured

WORST_SHOWN = 5


def measure(
    hardware: Annotated[str, typer.Option(help="name of the hardware in plans", metavar="NAME")],
    out: Annotated[Path, typer.Option(help="folder of the points, the table and the figures", metavar="DIR")],
    fleet_file: Annotated[
        Path | None, typer.Option("--for", help="measure for the models of a fleet", metavar="FLEET.yaml")
    ] = None,
    device: Annotated[str, typer.Option(help="cuda, cuda:NUMBER or cpu", metavar="NAME")] = "cuda",
    threads: Annotated[int, typer.Option(help="threads of a CPU", min=1)] = 1,
    ranks: Annotated[
        int, typer.Option(help="processes for measuring collectives; 1 for none", min=1, max=72)
    ] = 1,
    budget_minutes: Annotated[
        float | None, typer.Option(help="start no new point after this time", min=0)
    ] = None,
    target: Annotated[
        float, typer.Option(help="refine until interpolation errors are below this", min=0.01, max=1)
    ] = 0.05,
    step_tokens: Annotated[int, typer.Option(help="maximum tokens of a step", min=64)] = 8192,
    allow_busy: Annotated[
        bool, typer.Option("--allow-busy", help="measure even if others use the GPU")
    ] = False,
) -> None:
    """Measure operators of this machine.

    After an interruption, the same command continues.

    Writes optable.csv (for `optables:` of a fleet file or plan optables import) and hardware.yaml into DIR.
    Needs the extra microbench. Example: plan optables measure --hardware H200-SXM --for fleet.yaml --out h200
    """
    from fleetplan.perfmodel.microbench.session import MeasuringGoal
    from fleetplan.perfmodel.microbench.sites import Extent
    from fleetplan.perfmodel.microbench.timing import TimingEffort
    from fleetplan.planner.commands.measure_progress import MeasureProgress
    from fleetplan.planner.commands.measuring import MeasureOptions, measure_machine
    from fleetplan.planner.commands.shared import load
    from fleetplan.planner.commands.terminal import console

    errors = console(stderr=True)
    fleet = None if fleet_file is None else load(fleet_file, None, None, errors)
    wanted = MeasureOptions(hardware, out, device, threads, allow_busy, ranks, fleet)
    budget_s = None if budget_minutes is None else budget_minutes * 60
    goal = MeasuringGoal(target, budget_s, Extent(step_tokens))
    try:
        with MeasureProgress(errors) as progress:
            measured = measure_machine(wanted, goal, TimingEffort(), progress, progress.say)
    except KeyboardInterrupt:
        echo(f"interrupted; {out} holds the measurements so far; the same command continues", err=True)
        raise typer.Exit(130) from None
    _print_outcome(measured)


def compare_tables(
    first: Annotated[Path, typer.Argument(help="a table", metavar="A.csv")],
    second: Annotated[
        str,
        typer.Argument(help="another table, or `packaged:FRAMEWORK`", metavar="B.csv"),
    ],
    hardware: Annotated[str, typer.Option(help="hardware of both tables", metavar="NAME")],
) -> None:
    """Compare two tables of one hardware.

    Prints the times of B over those of A, at the points of A.

    Points of A without neighbours in B are left out. Example: plan optables compare own.csv packaged:vllm
    --hardware H200-SXM
    """
    from fleetplan.fleet.catalog import accelerators
    from fleetplan.perfmodel.microbench.comparison import differences
    from fleetplan.planner.commands.optables import new_table, print_table
    from fleetplan.planner.commands.shared import hardware_option

    hardware = hardware_option(hardware)
    part = accelerators()[hardware]
    own = _rows_of_file(first, hardware)
    other = _packaged(part.measured_system, second, own) if second.startswith("packaged:") else None
    if other is None:
        other = _rows_of_file(Path(second), hardware)
    lines = new_table(
        ("operator", "dtype"), ("points", "compared", "p10", "median", "p90"), ("differs most",)
    )
    for each in differences(own, other, part):
        ratios = [f"{value:.3f}" if each.n_compared else "" for value in each.quantiles]
        worst = "; ".join(f"{label} ({ratio:.2f})" for label, ratio in each.worst[:1])
        counts = (str(each.n_points), str(each.n_compared))
        lines.add_row(each.kind.value, each.dtype, *counts, *ratios, worst)
    print_table(lines)


def _rows_of_file(path: Path, hardware: str) -> list[MeasuredRows]:
    from fleetplan.fleet.errors import InputError, Issue
    from fleetplan.perfmodel.optables import fastest, read_own_table

    table = read_own_table(path, hardware)
    for issue in table.rejected:
        echo(str(issue), err=True)
    if not table.parts:
        raise InputError([Issue(str(path), 0, 0, "", "no row can be used")])
    tables: dict[tuple[str, str], list[MeasuredRows]] = {}
    for part in table.parts:
        tables.setdefault((part.rows.kind.value, part.rows.dtype), []).append(part.rows)
    return [fastest(each) for each in tables.values()]


def _packaged(system: str | None, name: str, own: list[MeasuredRows]) -> list[MeasuredRows]:
    from fleetplan.fleet.errors import InputError, Issue, names_hint
    from fleetplan.perfmodel.optables import FAMILIES, FRAMEWORKS, TableLibrary

    framework = name.partition(":")[2]
    if framework not in FRAMEWORKS:
        hint = names_hint(framework, FRAMEWORKS)
        raise InputError([Issue(name, 0, 0, "", f"{framework!r} is not a framework", hint)])
    if system is None:
        raise InputError([Issue(name, 0, 0, "", "the package has no tables for this hardware")])
    library = TableLibrary(system)
    found = [library.rows(rows.kind, rows.dtype, framework) for rows in own if rows.kind in FAMILIES]
    return [chosen.rows for chosen in found if chosen is not None]


def _print_outcome(measured: Measured) -> None:
    from fleetplan.perfmodel.microbench.timing import quantile_of

    journal, ratios = measured.journal, [each.ratio for each in measured.errors]
    new = sum(outcome.new_points for outcome in measured.outcomes)
    echo(f"{counted(len(journal.measured), 'point')} ({new} new), {len(journal.skipped)} left out")
    for reason in dict.fromkeys(journal.skipped.values()):
        count = sum(each == reason for each in journal.skipped.values())
        echo(f"  {count} left out: {reason}")
    if ratios:
        median, high = (quantile_of(ratios, share) for share in (0.5, 0.9))
        echo(f"cross-validation error of points: {median:.1%} (median), {high:.1%} (90th percentile)")
    for each in measured.errors[:WORST_SHOWN]:
        echo(f"  {each.site.at(each.values).label}: {each.ratio:.0%}")
    late = sum(outcome.disturbed for outcome in measured.outcomes)
    if late:
        echo(
            f"{counted(late, 'point', 'were')} measured while the machine was slow; the same "
            f"command repeats them"
        )
    if any(outcome.over_budget for outcome in measured.outcomes):
        echo("the time limit ended before the target was reached; the same command continues")
    echo(f"written to {measured.table} and {measured.figures}")
