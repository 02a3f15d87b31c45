"""Write the tables of docs/optables.md: python docs/generate_optables.py (three minutes of a processor).

The page is written by hand but for what stands between its comments `begin NAME` and `end NAME`: columns,
operators and dimensions of a table of one's own, and the errors that `plan optables report` finds.
"""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fleetplan.fleet.tables import TABLES, TableColumn
from fleetplan.perfmodel.operators import AXES, CURVES
from fleetplan.perfmodel.optables.rows import table_dimensions
from fleetplan.planner.cli import main

TARGET: Final = Path(__file__).with_name("optables.md")

PACKAGE: Final = "aiconfigurator-core"

WIDTH: Final = 128


def page(written: str, report: str | None = None) -> str:
    """Return the page with its tables as the program has them.

    Parameters
    ----------
    written : str
        The page as it is.
    report : str or None
        What `report_text` returns; None leaves the errors as they are.
    """
    dimensions = {name for kind in (*AXES, *CURVES) for name in table_dimensions(kind)}
    columns = TABLES["operator_table"]
    parts = {
        "columns": _columns("column", [each for each in columns if each.name not in dimensions]),
        "operators": _operators(),
        "dimensions": _columns("dimension", [each for each in columns if each.name in dimensions]),
    }
    if report is not None:
        parts["errors"] = _errors(report)
    for name, text in parts.items():
        between = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        written, found = between.subn(lambda marks, text=text: f"{marks[1]}{text}\n{marks[2]}", written)
        if found != 1:
            raise ValueError(f"{TARGET.name} has {found} places for {name}")
    return written


def report_text() -> str:
    """Return what `plan optables report --markdown` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main(["optables", "report", "--markdown"])
    return printed.getvalue()


def _columns(head: str, columns: list[TableColumn]) -> str:
    lines = [f"| `{each.name}` | {each.unit} | {each.meaning} |" for each in columns]
    return "\n".join([f"| {head} | unit | meaning |", "| --- | --- | --- |", *lines])


def _operators() -> str:
    lines = []
    for kind in (*AXES, *CURVES):
        needed = set(table_dimensions(kind))
        names = (f"`{each.name}`" for each in TABLES["operator_table"] if each.name in needed)
        lines.append(f"| `{kind.value}` | {', '.join(names)} |")
    return "\n".join(["| operator | dimensions |", "| --- | --- |", *lines])


def _errors(report: str) -> str:
    """The table, the number of tables above the accepted error, and which these are."""
    lines = report.splitlines()
    table = [line for line in lines if line.startswith("|")]
    count = re.search(r"^([\d,]+) tables; the node median of ([\d,]+) is above", report, re.MULTILINE)
    carried = re.search(r"^not counted again, tables carried over from others: (.*)$", report, re.MULTILINE)
    assert count is not None
    assert carried is not None
    above = [f"* {line.strip()}" for line in lines if line.startswith("  ")]
    return "\n".join(
        [
            f"Measured tables of {PACKAGE} {version(PACKAGE)}:",
            "",
            *table,
            "",
            textwrap.fill(f"Not counted again, tables carried over from others: {carried[1]}.", WIDTH),
            "",
            f"The node median of {count[2]} of the {count[1]} tables is above the accepted error:",
            "",
            *above,
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8"), report_text()), encoding="utf-8")
