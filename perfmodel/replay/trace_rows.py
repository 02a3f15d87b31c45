"""Recorded requests: Azure's and BurstGPT's CSV files, Mooncake's JSON lines, and a CSV format of our own.

Formats, as their publishers document them:

- Azure LLM inference traces (Azure/AzurePublicDataset): TIMESTAMP, ContextTokens, GeneratedTokens.
- BurstGPT (HPMLL/BurstGPT): Timestamp in seconds, Request tokens, Response tokens, and since release 2.0 a
  Session ID; failed requests have no response tokens.
- Mooncake (kvcache-ai/Mooncake, FAST'25): one object a line with timestamp in ms, input_length, output_length
  and hash_ids, one for each block of 512 prompt tokens; equal leading ids are an equal prefix.
- Our own: arrival_s, input_tokens, output_tokens, and where known session and prefix_tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from fleetplan.fleet.document.headers import check_header, divider_issue
from fleetplan.fleet.document.records import JSON_LINES, Table, Watcher, open_table
from fleetplan.fleet.errors import InputError, Issue, brief
from fleetplan.fleet.units import HOURS_PER_DAY, MS_PER_S, SECONDS_PER_HOUR

SECONDS_PER_YEAR: Final = 365 * HOURS_PER_DAY * SECONDS_PER_HOUR

MOST_REASONS: Final = 5
"""Largest number of rejected rows that are reported individually; others are counted."""

LONGEST_SPAN_S: Final = 10 * SECONDS_PER_YEAR
"""Between the first and the last request of a trace: language models are served for few years. [s]"""

MOST_TOKENS: Final = 10**9
"""Largest number of tokens of a request: a thousand times the longest context of any model of 2026; beyond
it, sums lose whole tokens."""

MOONCAKE: Final = "mooncake"
"""The format whose prompts have hashes of their blocks."""

BATCH_ROWS: Final = 1 << 14
"""Rows that are taken together: some megabytes also where each names its blocks."""


class TraceRow(NamedTuple):
    """A recorded request.

    Attributes
    ----------
    arrival_s : float
        Arrival. [s]
    input_tokens, output_tokens : int
        Lengths. [tokens]
    session : str
        Its session; empty if the trace names none.
    prefix_tokens : int
        Tokens before the prompt that are cached always. [tokens]
    blocks : tuple[int, ...]
        Hashes of the blocks of its prompt; empty if the trace has none.
    """

    arrival_s: float
    input_tokens: int
    output_tokens: int
    session: str = ""
    prefix_tokens: int = 0
    blocks: tuple[int, ...] = ()


_Reader = Callable[[Mapping[str, object]], TraceRow]


class TraceRows:
    """Rows of a trace that is open.

    Parameters
    ----------
    path : Path
        Its file.
    table : Table
        Content.

    Attributes
    ----------
    form : str
        Name of the format.

    Raises
    ------
    InputError
        It is of no known format.
    """

    def __init__(self, path: Path, table: Table) -> None:
        self.form, self._read = _format(path, table)
        self._path = path
        self._records = table.records
        self._reasons: list[str] = []
        self._rejected_rows = 0

    @property
    def rejected(self) -> tuple[str, ...]:
        """Why rows were not taken so far: the first few, then a count."""
        more = self._rejected_rows - len(self._reasons)
        return (*self._reasons, f"{more} more rows") if more else tuple(self._reasons)

    def batches(self) -> Iterator[list[TraceRow]]:
        """Yield the rows that can be used in the order of the file, `BATCH_ROWS` at a time.

        Raises
        ------
        InputError
            The file cannot be read, no row of it can be used, or their times are years apart.
        """
        rows = self._rows()
        earliest_s, latest_s = math.inf, -math.inf
        while batch := list(islice(rows, BATCH_ROWS)):
            times = [row.arrival_s for row in batch]
            earliest_s, latest_s = min(earliest_s, *times), max(latest_s, *times)
            if (span_s := latest_s - earliest_s) > LONGEST_SPAN_S:
                message = f"its first and last request are {span_s / SECONDS_PER_YEAR:.3g} years apart"
                self._refuse(message, "one of the times is wrong, or in another unit")
            yield batch
        if latest_s < earliest_s:
            first = f"; the first: {self._reasons[0]}" if self._reasons else ""
            self._refuse(f"none of its rows can be used{first}")

    def _rows(self) -> Iterator[TraceRow]:
        for number, record in self._records:
            try:
                row = _checked(self._read(record))
            except (KeyError, ValueError, TypeError, OverflowError) as error:
                self._rejected_rows += 1
                if len(self._reasons) < MOST_REASONS:
                    self._reasons.append(f"{self._path}:{number}: {_reason(error)}")
            else:
                yield row

    def _refuse(self, message: str, hint: str = "") -> NoReturn:
        raise InputError([Issue(str(self._path), 0, 0, "", message, hint)])


@contextmanager
def open_trace(path: Path, watch: Watcher | None = None) -> Iterator[TraceRows]:
    """Open a trace of any format that is known, also as .gz, .zst or Parquet.

    Parameters
    ----------
    path : Path
        Its file.
    watch : Watcher or None
        Callback for the progress of reading.

    Raises
    ------
    InputError
        The file cannot be read or is of no known format; also while rows are taken.
    """
    with open_table(path, watch) as table:
        yield TraceRows(path, table)


def _format(path: Path, table: Table) -> tuple[str, _Reader]:
    """Format of a file, and what reads one of its records."""
    if table.form == JSON_LINES or set(_MOONCAKE_COLUMNS) <= set(table.columns):
        return MOONCAKE, _mooncake
    for form, (columns, read) in _CSV_FORMATS.items():
        if set(columns) <= set(table.columns):
            check_header(str(path), table.columns, columns)
            return form, read
    if (divided := divider_issue(str(path), table.columns)) is not None:
        raise InputError([divided])
    known = "; ".join(f"{form}: {', '.join(columns)}" for form, (columns, _) in _CSV_FORMATS.items())
    hint = f"known are JSON lines of Mooncake and CSV files with the columns of {known}"
    raise InputError([Issue(str(path), 1, 1, "", "is not a trace of a known format", hint)])


def _azure(record: Mapping[str, object]) -> TraceRow:
    # The times of Parquet are read; those of CSV have seven digits of a second, or name a time zone.
    moment = record["TIMESTAMP"]
    if not isinstance(moment, datetime):
        # BigQuery exports `2023-11-16 18:00:00 UTC`.
        try:
            moment = datetime.fromisoformat(str(moment).strip().removesuffix(" UTC"))
        except ValueError:
            message = f"TIMESTAMP: {moment!r} is not a time such as 2023-11-16T18:00:00Z"
            raise ValueError(brief(message)) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return TraceRow(moment.timestamp(), _tokens(record, "ContextTokens"), _tokens(record, "GeneratedTokens"))


def _burstgpt(record: Mapping[str, object]) -> TraceRow:
    return TraceRow(
        _number(record, "Timestamp"),
        _tokens(record, "Request tokens"),
        _tokens(record, "Response tokens"),
        str(record.get("Session ID") or "").strip(),
    )


def _own(record: Mapping[str, object]) -> TraceRow:
    return TraceRow(
        _number(record, "arrival_s"),
        _tokens(record, "input_tokens"),
        _tokens(record, "output_tokens"),
        str(record.get("session") or "").strip(),
        _tokens(record, "prefix_tokens") if record.get("prefix_tokens") else 0,
    )


def _mooncake(record: Mapping[str, object]) -> TraceRow:
    blocks = record.get("hash_ids") or []
    if not isinstance(blocks, list):
        raise ValueError("hash_ids is not a list")
    return TraceRow(
        _number(record, "timestamp") / MS_PER_S,
        _tokens(record, "input_length"),
        _tokens(record, "output_length"),
        blocks=tuple(int(block) for block in blocks),
    )


_MOONCAKE_COLUMNS: Final = ("timestamp", "input_length", "output_length")

_CSV_FORMATS: Final[Mapping[str, tuple[tuple[str, ...], _Reader]]] = {
    "azure": (("TIMESTAMP", "ContextTokens", "GeneratedTokens"), _azure),
    "burstgpt": (("Timestamp", "Request tokens", "Response tokens"), _burstgpt),
    "own": (("arrival_s", "input_tokens", "output_tokens"), _own),
}


def _number(record: Mapping[str, object], column: str) -> float:
    """Return a number of a record.

    Raises
    ------
    ValueError
        It is none, which the message says with its column.
    """
    value = record[column]
    try:
        return float(value) if type(value) is int else float(str(value))
    except ValueError:
        raise ValueError(brief(f"{column}: {value!r} is not a number")) from None


def _tokens(record: Mapping[str, object], column: str) -> int:
    number = _number(record, column)
    if not abs(number) <= MOST_TOKENS or number != int(number):
        message = f"{column}: {record[column]!r} is not a whole number of tokens up to {MOST_TOKENS:,}"
        raise ValueError(brief(message))
    return int(number)


def _checked(row: TraceRow) -> TraceRow:
    if row.input_tokens < 1 or row.output_tokens < 1:
        raise ValueError("a request needs at least one prompt token and one generated token")
    if row.prefix_tokens < 0 or not math.isfinite(row.arrival_s):
        raise ValueError("an arrival must be a time, and cached tokens at least 0")
    return row


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else brief(str(error))
