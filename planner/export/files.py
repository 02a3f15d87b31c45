"""plan.json and its tables as CSV, each written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pydantic import BaseModel

from fleetplan.planner.plan import Infeasible, Plan

SPREADSHEET_TRIGGERS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet read a cell as a formula (OWASP, CSV injection)."""


def write_plan(outcome: Plan | Infeasible, folder: Path) -> list[Path]:
    """Write plan.json, and for a plan its tables.

    Parameters
    ----------
    outcome : Plan or Infeasible
        What was found.
    folder : Path
        Created if it does not exist.

    Returns
    -------
    list[Path]
        The files written. Each is written to a temporary file and renamed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [write_text(folder / "plan.json", outcome.model_dump_json(indent=2) + "\n")]
    if isinstance(outcome, Plan):
        tables: dict[str, Sequence[BaseModel]] = {
            "placements": outcome.placements,
            "purchases": outcome.purchases,
            "pools": outcome.pools,
            "costs": outcome.costs,
            "retirements": outcome.retirements,
            "unmet": outcome.unmet,
            "transitions": outcome.transitions,
            "region_losses": outcome.region_losses,
        }
    else:
        tables = {"shortages": outcome.shortages}
    for name, rows in tables.items():
        written.append(write_text(folder / f"{name}.csv", table(rows).to_csv(index=False)))
    return written


def table(rows: Sequence[BaseModel]) -> pd.DataFrame:
    """Records as a table, nested mappings as columns `name.key`."""
    flat = []
    for row in rows:
        cells: dict[str, object] = {}
        for name, value in row.model_dump().items():
            if isinstance(value, dict):
                cells.update({f"{name}.{key}": _cell(inner) for key, inner in value.items()})
            else:
                cells[name] = _cell(value)
        flat.append(cells)
    return pd.DataFrame(flat)


def _cell(value: object) -> object:
    """Text that a spreadsheet keeps as text: a name such as "=HYPERLINK(...)" gets an apostrophe."""
    if isinstance(value, str) and value.startswith(SPREADSHEET_TRIGGERS):
        return f"'{value}"
    return value


def write_text(path: Path, text: str) -> Path:
    """Write a file whole: to a temporary file in the same folder, then renamed over the old one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
