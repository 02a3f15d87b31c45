"""Reading a CSV of cases: text in, a table of text out, and every broken line named."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.input_files import CsvError, NotTextError, csv_rows, read_text

ROW_PROBLEM: Final = "row problem"
"""Column of the mistake of a whole line; present only if a line is broken."""


def read_cases(path: Path, *, keep_broken: bool = False) -> pd.DataFrame:
    """Return the table of cases in a CSV file, every cell as its text.

    Parameters
    ----------
    path : Path
        The file.
    keep_broken : bool
        Whether a line with too many cells is a row with an entry in `ROW_PROBLEM`, and no error.

    Raises
    ------
    InputError
        The file cannot be read, is not UTF-8 text, is empty, or a line has too many cells.
    """
    try:
        text = read_text(path)
        rows = list(csv_rows(io.StringIO(text, newline="")))
    except (OSError, NotTextError, CsvError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read as CSV: {what}")]) from error
    if not rows or not any(rows[0][1]):
        raise InputError([Issue(str(path), 0, 0, "", "is empty; a header line with column names is needed")])
    header = [name.strip() for name in rows[0][1]]
    problems = {
        line: f"{counted(len(row), 'cell')} where the header has {len(header)}"
        for line, row in rows[1:]
        if len(row) > len(header)
    }
    if problems and not keep_broken:
        raise InputError(Issue(str(path), line, 1, "", problem) for line, problem in problems.items())
    kept = [(line, row) for line, row in rows[1:] if any(row)]
    padded = [(row + [""] * (len(header) - len(row)))[: len(header)] for _, row in kept]
    frame = pd.DataFrame(padded, columns=range(len(header)), dtype=object)
    frame.columns = pd.Index(header)
    if problems:
        said = {line: f"line {line}: {problem}" for line, problem in problems.items()}
        frame[ROW_PROBLEM] = [said.get(line, "") for line, _ in kept]
    return frame
