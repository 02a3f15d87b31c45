"""Escaping of text that a spreadsheet would read as a formula."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fleetplan.fleet.printable import printable

SPREADSHEET_TRIGGERS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet read a cell as a formula (OWASP, CSV injection)."""


def as_text(value: object) -> object:
    """Escape text for a spreadsheet: a name such as "=HYPERLINK(...)" gets an apostrophe.

    Terminal control characters are written out.
    """
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if value.startswith(SPREADSHEET_TRIGGERS) else shown


def csv_text(table: pd.DataFrame, *, header: bool = True) -> str:
    """Return a table as CSV with its texts escaped for a spreadsheet; numbers stay numbers."""
    guarded = table.rename(columns=_not_a_formula)
    for position in range(guarded.shape[1]):
        if not pd.api.types.is_numeric_dtype(guarded.dtypes.iloc[position]):
            texts = np.array([_not_a_formula(each) for each in guarded.iloc[:, position]], dtype=object)
            guarded.isetitem(position, texts)
    return str(guarded.to_csv(index=False, header=header))


def _not_a_formula(value: object) -> object:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return as_text(value)
    return value


def from_text(value: str) -> str:
    """Reverse `as_text`."""
    return value[1:] if value.startswith("'") and value[1:].startswith(SPREADSHEET_TRIGGERS) else value
