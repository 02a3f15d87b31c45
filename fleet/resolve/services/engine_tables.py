"""Read engine tables: measured rates of a service from a CSV file, every mistake with its line and column."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetplan.fleet.catalog.hardware_names import hardware_hint
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.document.headers import header_issues
from fleetplan.fleet.document.number_hints import number_hint
from fleetplan.fleet.errors import Issue, names_hint
from fleetplan.fleet.input_files import CsvError, NotTextError, csv_rows, read_bytes, text_of
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.values import LEAST_REQUESTS_PER_S, MOST_REQUESTS_PER_S
from fleetplan.fleet.tables import PHASES, SINGLE_CLASS, TABLES, TableColumn, check

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_DTYPES: Final = {"text": "object", "count": "int64", "number": "float64"}

_COLUMNS: Final = {column.name: column for column in TABLES["engines"]}


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the file: number, fields, and the start of each field."""

    line: int
    fields: Sequence[str]
    starts: Sequence[int]


def read_engines(context: Context, key_path: KeyPath, reference: str) -> pd.DataFrame | None:
    """Return the engine table of a service, or None if it has mistakes, which go to the context.

    Parameters
    ----------
    context : Context
        Has hardware names; receives issues and file hashes.
    key_path : KeyPath
        The key `engines` of the service.
    reference : str
        Path of the CSV file, relative to the YAML file that names it.

    Returns
    -------
    pandas.DataFrame or None
        The table `engines` of `fleetplan.fleet.tables` with all its columns.
    """
    path = Path(context.document.place(key_path).file).parent / reference
    known = context.engine_tables.get(str(path))
    if known is not None:
        return known
    text = _text(context, key_path, path)
    if text is None:
        return None
    table = _Reader(context, str(path)).table(text)
    if table is not None:
        context.engine_tables[str(path)] = table
    return table


def _text(context: Context, key_path: KeyPath, path: Path) -> str | None:
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        context.error(key_path, f"there is no file {path}", "the path is relative to this file")
        return None
    except OSError as error:
        context.error(key_path, f"{path} cannot be read: {error.strerror}")
        return None
    context.hashes[str(path)] = hashlib.sha256(data).hexdigest()
    try:
        text = text_of(data)
    except NotTextError as error:
        context.error(key_path, f"{path} cannot be read: {error}")
        return None
    if "\0" in text:
        context.error(key_path, f"{path} is not UTF-8 text", "save the table as CSV in UTF-8")
        return None
    return text


class _Reader:
    """Converts the text of one file into a table, collecting issues."""

    def __init__(self, context: Context, name: str) -> None:
        self._context = context
        self._name = name
        self._before = len(context.issues)
        self._header: list[str] = []

    def table(self, text: str) -> pd.DataFrame | None:
        try:
            rows = _rows(text)
        except CsvError as error:
            self._note(error.line, 1, "", error.reason)
            return None
        if len(rows) < 2:
            what = "the file is empty" if not rows else "the file has a header but no rows"
            self._note(1, 1, "", what, f"columns: {', '.join(_COLUMNS)}")
            return None
        if not self._read_header(rows[0]):
            return None
        records = [record for row in rows[1:] if (record := self._record(row)) is not None]
        lines = [row.line for row in rows[1:]]
        if len(self._context.issues) == self._before:
            self._check_together(records, lines)
        return None if len(self._context.issues) > self._before else self._frame(records)

    def _read_header(self, row: _Row) -> bool:
        self._header = [name.strip() for name in row.fields]
        needed = [column.name for column in _COLUMNS.values() if column.required]
        issues = header_issues(
            self._name, self._header, needed, tuple(_COLUMNS), closed=True, starts=row.starts
        )
        self._context.issues += issues
        return not issues

    def _record(self, row: _Row) -> dict[str, str | int | float | None] | None:
        if len(row.fields) != len(self._header):
            message = f"the row has {len(row.fields)} fields, the header {len(self._header)}"
            self._note(row.line, 1, "", message)
            return None
        record: dict[str, str | int | float | None] = {}
        for name, field, start in zip(self._header, row.fields, row.starts, strict=True):
            record[name] = self._value(_COLUMNS[name], field.strip(), row.line, start)
        return record

    def _value(self, column: TableColumn, text: str, line: int, start: int) -> str | int | float | None:
        name = column.name
        if not text:
            if not column.may_be_missing:
                self._note(line, start, name, "is missing")
            return None
        if column.kind == "text":
            if name == "hardware":
                found = self._context.hardware_name(text)
                if found not in self._context.hardware_names:
                    hint = hardware_hint(text, self._context.hardware_names)
                    self._note(line, start, name, f"there is no {name} {text!r}", hint)
                return found
            if name == "phase" and text not in PHASES:
                self._note(line, start, name, f"there is no {name} {text!r}", names_hint(text, PHASES))
            return text
        number = _number(text)
        if number is None or not math.isfinite(number):
            self._note(line, start, name, f"must be a finite number, not {text!r}", number_hint(text))
        elif column.kind == "count" and (number != int(number) or number < 1):
            self._note(line, start, name, f"must be a whole number of at least 1, not {text}")
        elif name == "requests_per_s" and not _is_rate(number):
            allowed = f"0, or from {LEAST_REQUESTS_PER_S:g} to {MOST_REQUESTS_PER_S:g} requests/s"
            self._note(line, start, name, f"must be {allowed}, not {text}", "0 says that it cannot")
        elif name in ("ttft_ms", "tpot_ms", "power_kw") and number < 0:
            self._note(line, start, name, f"must be at least 0, not {text}")
        else:
            return int(number) if column.kind == "count" else number
        return None

    def _check_together(
        self, records: Sequence[dict[str, str | int | float | None]], lines: Sequence[int]
    ) -> None:
        seen: dict[tuple[object, ...], int] = {}
        sizes: dict[tuple[object, ...], tuple[object, int]] = {}
        for record, line in zip(records, lines, strict=True):
            config = (record["phase"], record["hardware"], record["config"])
            row = (*config, record.get("class"))
            if row in seen:
                message = "the same phase, hardware, config and class as in an earlier row"
                self._note(line, 1, "", message, f"first given in line {seen[row]}")
            seen.setdefault(row, line)
            size, first = sizes.setdefault(config, (record["accelerators_per_replica"], line))
            if size != record["accelerators_per_replica"]:
                message = f"differs from the {size} of the same config in line {first}"
                self._note(line, 1, "accelerators_per_replica", message)
        phases = {record["phase"] for record in records}
        if ("prefill" in phases) != ("decode" in phases) and "aggregated" not in phases:
            there, lacking = ("prefill", "decode") if "prefill" in phases else ("decode", "prefill")
            self._note(
                1,
                1,
                "phase",
                f"there are {there} rows but no {lacking} rows",
                "serving needs both",
            )

    def _frame(self, records: Sequence[dict[str, str | int | float | None]]) -> pd.DataFrame:
        import numpy as np  # noqa: PLC0415 - half a second that only files with engine tables pay
        import pandas as pd  # noqa: PLC0415

        columns: dict[str, NDArray[Any]] = {}
        for column in TABLES["engines"]:
            default = SINGLE_CLASS if column.name == "class" else math.nan
            values = [record.get(column.name, default) for record in records]
            if column.kind == "number":
                values = [math.nan if value is None else value for value in values]
            columns[column.name] = np.array(values, dtype=_DTYPES[column.kind])
        frame = pd.DataFrame(columns)
        check(frame, "engines")
        return frame

    def _note(self, line: int, column: int, key: str, message: str, hint: str = "") -> None:
        self._context.issues.append(Issue(self._name, line, column, key, message, hint))


def _is_rate(requests_per_s: float) -> bool:
    return requests_per_s == 0 or LEAST_REQUESTS_PER_S <= requests_per_s <= MOST_REQUESTS_PER_S


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rows(text: str) -> list[_Row]:
    """Return the non-blank rows, with the position of every field."""
    lines = io.StringIO(text, newline="").read().splitlines()
    rows = []
    for line, fields in csv_rows(lines):
        if not any(field.strip() for field in fields):
            continue
        starts = _starts(lines[line - 1])
        starts += [1] * (len(fields) - len(starts))
        rows.append(_Row(line, fields, starts))
    return rows


def _starts(line: str) -> list[int]:
    starts, quoted = [1], False
    for position, character in enumerate(line, start=1):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            starts.append(position + 1)
    return starts
