"""Reading a CSV of cases: text in, a table of text out, and every broken line named."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue


def read_cases(path: Path) -> pd.DataFrame:
    """Return the table of cases in a CSV file, every cell as its text.

    Raises
    ------
    InputError
        The file cannot be read, is no UTF-8 text, is empty, or a line has too many cells.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read as CSV: {what}")]) from error
    if not rows or not any(rows[0]):
        raise InputError([Issue(str(path), 0, 0, "", "is empty; a header line with column names is needed")])
    header = [name.strip() for name in rows[0]]
    issues = [
        Issue(str(path), line, 1, "", f"{len(row)} cells where the header has {len(header)}")
        for line, row in enumerate(rows[1:], start=2)
        if len(row) > len(header)
    ]
    if issues:
        raise InputError(issues)
    padded = [row + [""] * (len(header) - len(row)) for row in rows[1:] if any(row)]
    frame = pd.DataFrame(padded, columns=range(len(header)), dtype=object)
    frame.columns = pd.Index(header)
    return frame
