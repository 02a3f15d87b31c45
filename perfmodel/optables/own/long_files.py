"""CSV and Parquet files of operator measurements as one table, each row with its place in the file."""

from __future__ import annotations

import codecs
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import NotTextError, is_divider_line, read_bytes

if TYPE_CHECKING:
    import pandas as pd

LINE_COLUMN: Final = "#line"
"""The column that is added: the line of a CSV file, the row of a Parquet file, both counted from 1."""

_FIRST_CSV_ROW: Final = 2
_PARQUET: Final = ".parquet"
_MOST_OF_HEAD: Final = 64
"""Bytes to search for Excel's `sep=` line. [bytes]"""


@dataclass(frozen=True, slots=True)
class LongFile:
    """A file of measurements.

    Attributes
    ----------
    path : Path
        The file.
    sha256 : str
        Hash of its contents.
    frame : pandas.DataFrame
        Its rows, with `LINE_COLUMN`.
    """

    path: Path
    sha256: str
    frame: pd.DataFrame

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the file itself."""
        return tuple(str(name) for name in self.frame.columns if name != LINE_COLUMN)


def read_long_file(path: Path) -> LongFile:
    """Read a CSV or Parquet file.

    Raises
    ------
    InputError
        It cannot be read as what its name says, or holds no rows.
    """
    import pandas as pd  # noqa: PLC0415  (a third of a second that `plan --help` does not need)

    try:
        content = read_bytes(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    parquet = path.suffix.lower() == _PARQUET
    head = content[:_MOST_OF_HEAD].removeprefix(codecs.BOM_UTF8).split(b"\n", 1)[0]
    lines_above = 0 if parquet else int(is_divider_line(head.decode("utf-8", "replace")))
    try:
        if parquet:
            frame = pd.read_parquet(io.BytesIO(content))
        else:
            frame = pd.read_csv(
                io.BytesIO(content),
                skip_blank_lines=False,
                low_memory=False,
                encoding="utf-8-sig",
                skiprows=lines_above,
            )
            # pandas names rows by their first cells where all have one more than the header.
            if not isinstance(frame.index, pd.RangeIndex):
                raise _unreadable(path, "rows have more cells than the header")
            # Blank lines count as lines but have no rows.
            frame = frame.rename(columns=lambda name: str(name).strip())
    except ImportError as error:
        raise _unreadable(path, "Parquet needs the package pyarrow") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, str(NotTextError(*error.args))) from error
    except (ValueError, OSError) as error:
        # Both parsers' own errors are ValueErrors.
        raise _unreadable(path, str(error).splitlines()[0]) from error
    frame[LINE_COLUMN] = (
        range(1, len(frame) + 1)
        if parquet
        else range(_FIRST_CSV_ROW + lines_above, len(frame) + _FIRST_CSV_ROW + lines_above)
    )
    blank = frame.drop(columns=LINE_COLUMN).isna().all(axis=1)
    frame = frame[~blank].reset_index(drop=True)
    if frame.empty:
        raise _unreadable(path, "no rows")
    return LongFile(path, hashlib.sha256(content).hexdigest(), frame)


def _unreadable(path: Path, why: str) -> InputError:
    return InputError([Issue(str(path), 0, 0, "", f"cannot be read as a table: {why}")])
