"""Read large tables record by record: CSV and JSON lines, also as .gz or .zst, and Parquet.

Memory is bounded by the longest line or one batch of rows, whatever the size of the file. The first bytes of
a file determine its format, not its name.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import BinaryIO, Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import (
    CUT_SHORT,
    GZIP_MARK,
    ZSTD_MARK,
    CsvError,
    NotTextError,
    csv_rows,
    is_cut_short,
    opened,
    parse_json,
)

MAX_TABLE_BYTES: Final = 64 * 1024**3
"""Largest table file. [B]"""
MAX_LINE_LETTERS: Final = 16 * 1024**2
"""Longest line of text in a table."""

CSV, JSON_LINES, PARQUET = "csv", "json lines", "parquet"

_PARQUET: Final = b"PAR1"
_BATCH_ROWS: Final = 1 << 13
_ROWS_PER_NOTICE: Final = 1 << 16

Watcher = Callable[[float], None]
"""Callback that receives the share of the file that has been read, from 0 to 1."""

NumberedRecord = tuple[int, Mapping[str, object]]
"""A record with its line, or for Parquet its row."""


@dataclass(frozen=True, slots=True)
class Table:
    """An open table.

    Attributes
    ----------
    form : str
        csv, json lines or parquet.
    columns : tuple[str, ...]
        Its columns; empty for JSON lines.
    records : Iterator
        Of `NumberedRecord`, each once.
    above : Mapping[str, str]
        First and second field of each line above the header.
    """

    form: str
    columns: tuple[str, ...]
    records: Iterator[NumberedRecord]
    above: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def open_table(
    path: Path,
    watch: Watcher | None = None,
    most_bytes: int = MAX_TABLE_BYTES,
    first_column: str | None = None,
) -> Iterator[Table]:
    """Open a table of any form.

    Parameters
    ----------
    path : Path
        Its file.
    watch : Watcher or None
        Callback for the progress, every ten thousand rows or so.
    most_bytes : int
        Largest file that is opened. [B]
    first_column : str or None
        Name of the first column of a CSV whose header follows lines with other fields.

    Raises
    ------
    InputError
        The file cannot be read, or a line is not valid CSV or JSON; also raised during iteration.
    """
    try:
        with opened(path, most_bytes) as file:
            yield _table(path, file, watch, first_column)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or f"it is cut short or damaged ({error})"
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {reason}")]) from error
    except UnicodeDecodeError as error:
        reason = NotTextError(*error.args)
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {reason}")]) from error
    except CsvError as error:
        raise InputError([Issue(str(path), error.line, 1, "", error.reason)]) from error


def _table(path: Path, file: BinaryIO, watch: Watcher | None, first_column: str | None) -> Table:
    start = file.peek(4)[:4] if isinstance(file, io.BufferedReader) else b""
    if start == _PARQUET:
        columns, rows = _parquet(path, file)
        return Table(PARQUET, columns, _watched(rows, file, watch))
    lines = _lines(path, _decompressed(file, start))
    blank, first = 0, next(lines, "")
    while first and not first.strip():
        blank, first = blank + 1, next(lines, "")
    rest = chain(repeat("\n", blank), [first], lines)
    if first.lstrip().startswith("{"):
        return Table(JSON_LINES, (), _watched(_json_records(path, rest), file, watch))
    latest = [""]
    filled = (each for each in csv_rows(_kept(rest, latest)) if any(map(str.strip, each[1])))
    columns, above = _columns(filled, first_column)
    return Table(CSV, columns, _watched(_csv_records(columns, filled, latest), file, watch), above)


def _columns(
    rows: Iterator[tuple[int, list[str]]], first_column: str | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the header of a CSV, and the lines above it.

    The first line is the header if no line begins with the expected column.
    """
    top = tuple(name.strip() for name in next(rows, (1, []))[1])
    header, above = top, dict[str, str]()
    while first_column is not None and header[:1] != (first_column,):
        if len(header) > 1:
            above.setdefault(header[0], header[1])
        following = next(rows, None)
        if following is None:
            return top, {}
        header = tuple(name.strip() for name in following[1])
    return header, above


def _decompressed(file: BinaryIO, start: bytes) -> BinaryIO:
    if start.startswith(GZIP_MARK):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if start.startswith(ZSTD_MARK):
        import pyarrow as pa  # noqa: PLC0415 - some tenths of a second

        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"))
    return file


def _lines(path: Path, file: BinaryIO) -> Iterator[str]:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    number = 0
    while line := text.readline(MAX_LINE_LETTERS):
        number += 1
        if len(line) == MAX_LINE_LETTERS:
            raise InputError(
                [Issue(str(path), number, 1, "", f"is longer than {MAX_LINE_LETTERS:,} letters")]
            )
        yield line
    # The file is closed by who opened it.
    text.detach()


def _kept(lines: Iterable[str], latest: list[str]) -> Iterator[str]:
    """Iterate over lines and keep the last one."""
    for line in lines:
        latest[0] = line
        yield line


def _csv_records(
    columns: Sequence[str], rows: Iterable[tuple[int, list[str]]], latest: Sequence[str]
) -> Iterator[NumberedRecord]:
    """Yield the records of rows; reject a row of another width, whose cells may be in the wrong columns."""
    for line, cells in rows:
        if len(cells) > len(columns):
            raise CsvError(line, f"has {len(cells)} cells, the header {len(columns)}")
        if is_cut_short(latest[0], cells, columns):
            raise CsvError(line, CUT_SHORT)
        yield line, dict(zip(columns, cells, strict=False))


def _json_records(path: Path, lines: Iterator[str]) -> Iterator[NumberedRecord]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except json.JSONDecodeError as error:
            raise InputError(
                [Issue(str(path), number, error.colno, "", f"is not JSON: {error.msg}")]
            ) from error
        yield number, record if isinstance(record, dict) else {}


def _parquet(path: Path, file: BinaryIO) -> tuple[tuple[str, ...], Iterator[NumberedRecord]]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.ParquetFile(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError([Issue(str(path), 0, 0, "", f"is not a Parquet file: {error}")]) from error

    def records() -> Iterator[NumberedRecord]:
        number = 0
        try:
            # A reader of all row groups keeps some of each: memory would grow with the rows.
            for group in range(table.num_row_groups):
                for batch in table.iter_batches(_BATCH_ROWS, row_groups=[group]):
                    for record in batch.to_pylist():
                        number += 1
                        yield number, record
        except (pa.ArrowException, ValueError) as error:
            raise InputError(
                [Issue(str(path), 0, 0, "", f"row {number + 1} cannot be read: {error}")]
            ) from error

    return tuple(table.schema_arrow.names), records()


def _watched(
    records: Iterator[NumberedRecord], file: BinaryIO, watch: Watcher | None
) -> Iterator[NumberedRecord]:
    if watch is None:
        yield from records
        return
    size = max(1, os.fstat(file.fileno()).st_size)
    for count, record in enumerate(records):
        if count % _ROWS_PER_NOTICE == 0:
            watch(min(1.0, file.tell() / size))
        yield record
    watch(1.0)
