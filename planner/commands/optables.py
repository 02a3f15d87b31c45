"""`plan optables`: import or measure operator tables, list them, and report their prediction error."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fleetplan.fleet.figures import counted
from fleetplan.planner.commands.microbench import compare_tables, measure
from fleetplan.planner.commands.terminal import console, echo

if TYPE_CHECKING:
    from rich.table import Table

    from fleetplan.perfmodel.optables import OwnTable
    from fleetplan.perfmodel.optables.interpolation.leave_one_out import ErrorQuantiles
    from fleetplan.perfmodel.optables.report import TableError

optables_app = typer.Typer(
    name="optables",
    help="Import, measure, list and compare operator tables.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

REJECTIONS_SHOWN: Final = 20
"""Rejected rows that are listed individually; beyond them, the counts by reason suffice."""

_NAME_COLUMNS: Final = ("hardware", "framework", "operator", "dtype")

_OWN_PARTS: Final = "the block `hardware` of a fleet file names the table of your own hardware (`optables`)"

Hardware = Annotated[
    list[str] | None, typer.Option("--hardware", help="name of hardware; may be repeated", metavar="NAME")
]
Framework = Annotated[
    list[str] | None,
    typer.Option("--framework", help="trtllm, sglang or vllm; may be repeated", metavar="NAME"),
]


@optables_app.command("import")
def import_table(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet of measurements", metavar="FILE")],
    hardware: Annotated[str, typer.Option(help="hardware that was measured", metavar="NAME")],
    framework: Annotated[
        str, typer.Option(help="framework of rows without one (default: any)", metavar="NAME")
    ] = "",
) -> None:
    """Store your own measurements for later plans.

    Every row is accepted, or rejected with a reason.

    FILE holds one measurement per row (docs/optables.md lists the columns), or is an mlp.csv, attention.csv
    or all_reduce.csv of Vidur. Example: plan optables import gemm.csv --hardware H200-SXM --framework vllm
    """
    from fleetplan.fleet.errors import InputError, Issue, names_hint
    from fleetplan.perfmodel.optables import FRAMEWORKS, read_own_table, store_own_table
    from fleetplan.planner.commands.shared import hardware_option

    hardware = hardware_option(hardware, _OWN_PARTS)
    if framework and framework not in FRAMEWORKS:
        hint = names_hint(framework, FRAMEWORKS)
        raise InputError([Issue("--framework", 0, 0, "", f"{framework!r} is not known", hint)])
    table = read_own_table(file, hardware, framework)
    _print_import(table)
    if not table.n_accepted:
        raise InputError([Issue(str(file), 0, 0, "", "no row could be used, so nothing was stored")])
    copy = store_own_table(table, hardware, framework)
    echo(f"kept for {hardware} as {copy}, SHA-256 {table.sha256}")


@optables_app.command()
def use(
    folder: Annotated[Path, typer.Argument(help="folder of systems, or an unpacked package", metavar="DIR")],
) -> None:
    """Use newer tables from a folder, with precedence over all others.

    The folder has the layout of aiconfigurator-core.

    The newest version of a framework is used unless a service or a fleet names one (`framework_version`).
    Example: plan optables use tables/systems/data
    """
    from fleetplan.fleet.errors import InputError, Issue
    from fleetplan.fleet.input_files import is_folder
    from fleetplan.perfmodel.optables.measured.folders import systems_beneath, use_folder
    from fleetplan.perfmodel.optables.measured.tables import check_folder

    systems = systems_beneath(folder)
    if systems is None:
        message = "no such folder" if not is_folder(folder) else "has no measured tables"
        hint = "tables are in SYSTEM/FAMILY/FRAMEWORK/VERSION/FAMILY_perf.parquet"
        raise InputError([Issue(str(folder), 0, 0, "", message, hint)])
    found = check_folder(systems)
    use_folder(systems)
    for (system, framework), versions in found.items():
        echo(f"{system} {framework} {', '.join(sorted(versions))}")
    echo(f"in use: {systems} (`plan optables forget` removes it)")


@optables_app.command()
def forget(
    folder: Annotated[Path, typer.Argument(help="a folder in use", metavar="DIR")],
) -> None:
    """Stop using a folder added with `plan optables use`.

    Example: plan optables forget tables/systems/data
    """
    from fleetplan.perfmodel.optables.measured.folders import forget_folder

    forget_folder(folder)
    echo(f"no longer used: {folder}")


@optables_app.command("list")
def list_tables(hardware: Hardware = None, framework: Framework = None) -> None:
    """List the measured operators.

    One line per hardware, framework, operator and data type.

    Example: plan optables list --hardware H200-SXM
    """
    from fleetplan.perfmodel.optables.report import coverage, unmeasured_hardware

    lines = new_table(
        ("hardware", "framework", "operator", "dtype"), ("rows", "sites", "borrowed"), ("measured under",)
    )
    for each in coverage(hardware or (), framework or ()):
        borrowed = f"{each.borrowed_ratio:.0%}" if each.borrowed_ratio else ""
        lines.add_row(
            each.hardware,
            each.framework,
            each.operator,
            each.dtype,
            str(each.n_rows),
            str(each.n_sites),
            borrowed,
            ", ".join(each.sources),
        )
    print_table(lines)
    if not hardware:
        echo(f"no measurements, roofline only: {', '.join(unmeasured_hardware())}")


@optables_app.command()
def report(
    hardware: Hardware = None,
    framework: Framework = None,
    each_table: Annotated[
        bool, typer.Option("--all", help="one line per table, not per operator and data type")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown")] = False,
) -> None:
    """Report the cross-validation error of each table.

    States the median and the 90th percentile.

    A node is one measurement within a sweep, a site a whole sweep. The accepted error limits the node median.
    Without --hardware, a table shared by several parts counts once, for the part it was measured on. Example:
    plan optables report --hardware H200-SXM --framework vllm
    """
    from fleetplan.perfmodel.optables.report import carried_over_hardware, errors, is_above

    progress = console(stderr=True)
    found = list(
        errors(
            hardware or (), framework or (), lambda text: progress.print(text, style="dim", highlight=False)
        )
    )
    over = [each for each in found if is_above(each)]
    header, rows = _table_lines(found) if each_table else _summary_lines(found)
    if markdown:
        echo(_markdown(header, rows))
    else:
        names = tuple(name for name in header if name in _NAME_COLUMNS)
        lines = new_table(names, header[len(names) :], ())
        for row in rows:
            lines.add_row(*row)
        print_table(lines)
    echo(f"{counted(len(found), 'table')}; the node median of {len(over)} is above the accepted error")
    for each in sorted(over, key=lambda one: -one.nodes.median_ratio if one.nodes else 0.0):
        echo(f"  {each.hardware} {each.framework} {each.operator} {each.dtype}: {_quantiles(each.nodes)[0]}")
    if not hardware:
        echo(f"not counted again, tables carried over from others: {', '.join(carried_over_hardware())}")


def _table_lines(found: list[TableError]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and one line per table."""
    numbers = ("node median", "node p90", "nodes", "site median", "site p90", "sites", "accepted")
    rows: list[tuple[str, ...]] = []
    for each in found:
        table = (each.hardware, each.framework, each.operator, each.dtype)
        rows.append((*table, *_quantiles(each.nodes), *_quantiles(each.sites), _percent(each.accepted_ratio)))
    return (*_NAME_COLUMNS, *numbers), rows


def _summary_lines(found: list[TableError]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and one line per operator and data type."""
    from fleetplan.perfmodel.optables.report import summary

    numbers = (
        "tables",
        "node median",
        "node p90",
        "worst median",
        "site median",
        "site p90",
        "accepted",
        "above",
    )
    rows: list[tuple[str, ...]] = []
    for each in summary(found):
        ratios = (
            each.node_median_ratio,
            each.node_p90_ratio,
            each.worst_median_ratio,
            each.site_median_ratio,
            each.site_p90_ratio,
            each.accepted_ratio,
        )
        over = "" if each.accepted_ratio is None else str(each.n_above)
        rows.append((each.operator, each.dtype, str(each.n_tables), *map(_percent, ratios), over))
    return ("operator", "dtype", *numbers), rows


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1%}"


def _markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _print_import(table: OwnTable) -> None:
    for part in table.parts:
        framework = f"{part.framework or 'any framework'} {part.version}".strip()
        echo(
            f"{part.rows.kind.value} {part.rows.dtype}, {framework}: "
            f"{counted(part.rows.n_rows, 'measurement')}"
        )
    if table.ignored_columns:
        echo(f"ignored columns: {', '.join(table.ignored_columns)}", err=True)
    for issue in table.rejected[:REJECTIONS_SHOWN]:
        echo(str(issue), err=True)
    if len(table.rejected) > REJECTIONS_SHOWN:
        reasons = Counter(f"{issue.key_path}: {issue.message}" for issue in table.rejected)
        for reason, count in reasons.most_common():
            echo(f"{counted(count, 'row')} refused, {reason}", err=True)
    echo(f"{table.n_accepted} of {counted(table.n_rows, 'row')} accepted, {len(table.rejected)} refused")


def _quantiles(found: ErrorQuantiles | None) -> tuple[str, str, str]:
    if found is None:
        return "", "", ""
    return f"{found.median_ratio:.1%}", f"{found.p90_ratio:.1%}", str(found.n_predictions)


def new_table(names: tuple[str, ...], numbers: tuple[str, ...], rest: tuple[str, ...]) -> Table:
    """Return a table for a terminal: names, right-aligned numbers, and columns that may wrap."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for name in rest:
        table.add_column(name, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table, in full width without a terminal."""
    console(unwatched_width=180).print(table)


optables_app.command("measure")(measure)
optables_app.command("compare")(compare_tables)
