"""Landscape rows as CSV or Parquet, written block by block; the file appears only when complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from fleetplan.fleet.files import written_whole
from fleetplan.fleet.input_files import is_folder
from fleetplan.planner.cells import csv_text
from fleetplan.planner.landscape.question import bad_option


class RowWriter:
    """Writes tables with the same columns one after the other.

    Attributes
    ----------
    rows : int
        Rows written so far.
    """

    def __init__(self, path: Path, columnar: bool) -> None:
        self.rows = 0
        self._path = path
        self._columnar = columnar
        self._started = False
        self._parquet: Any = None
        self._rowless: pd.DataFrame | None = None

    def write(self, table: pd.DataFrame) -> None:
        """Append a table."""
        if self._columnar and table.empty:
            # Without rows, columns have no types, and the file takes those of its first rows.
            self._rowless = table
        elif self._columnar:
            self._write_parquet(table)
        else:
            with self._path.open("a", encoding="utf-8", newline="") as file:
                file.write(csv_text(table, header=not self._started))
        self.rows += len(table)
        self._started = True

    def close(self) -> None:
        """Finish the file."""
        if self._rowless is not None and self._parquet is None:
            self._write_parquet(self._rowless)
        if self._parquet is not None:
            self._parquet.close()

    def _write_parquet(self, table: pd.DataFrame) -> None:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        rows = pa.Table.from_pandas(table, preserve_index=False)
        if self._parquet is None:
            self._parquet = parquet.ParquetWriter(self._path, rows.schema)
        self._parquet.write_table(rows.cast(self._parquet.schema))


@contextmanager
def row_writer(path: Path, columnar: bool) -> Iterator[RowWriter]:
    """Open a file of rows, which appears under its name once complete.

    Raises
    ------
    InputError
        If the folder does not exist, or Parquet is requested without pyarrow.
    """
    option = "--parquet" if columnar else "--csv"
    if not is_folder(path.absolute().parent):
        raise bad_option(option, f"there is no folder {path.parent}")
    if columnar:
        try:
            import pyarrow  # noqa: F401, PLC0415
        except ImportError as error:
            raise bad_option(option, "Parquet needs pyarrow", "pip install pyarrow, or --csv") from error
    with written_whole(path) as part:
        writer = RowWriter(part, columnar)
        try:
            yield writer
        finally:
            writer.close()
