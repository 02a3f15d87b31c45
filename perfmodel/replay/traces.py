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

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.fleet.document.headers import check_header, divider_issue
from fleetplan.fleet.document.records import JSON_LINES, Table, Watcher, open_table
from fleetplan.fleet.errors import InputError, Issue, brief
from fleetplan.fleet.units import HOURS_PER_DAY, MS_PER_S, SECONDS_PER_HOUR
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.replay.prefix_blocks import Prefixes, prefixes_of
from fleetplan.perfmodel.serving import Requests
from fleetplan.perfmodel.serving.requests import NO_SESSION

SECONDS_PER_YEAR: Final = 365 * HOURS_PER_DAY * SECONDS_PER_HOUR

MOST_REASONS: Final = 5
"""Rows whose rejection is told one by one; more of them are counted."""

LONGEST_SPAN_S: Final = 10 * SECONDS_PER_YEAR
"""Between the first and the last request of a trace: language models are served for few years. [s]"""

MOST_TOKENS: Final = 10**9
"""Of a request: a thousand times the longest context of any model of 2026; beyond, sums lose whole tokens."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded trace.

    Attributes
    ----------
    path : Path
        Its file.
    form : str
        Name of the format.
    requests : Requests
        In the order of their arrival, the first at time 0.
    prefixes : Prefixes or None
        What prompts share, where the trace tells.
    rejected : tuple[str, ...]
        Why rows were not taken: the first few, then a count.
    """

    path: Path
    form: str
    requests: Requests
    prefixes: Prefixes | None
    rejected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _TraceRow:
    arrival_s: float
    input_tokens: int
    output_tokens: int
    session: str = ""
    prefix_tokens: int = 0
    blocks: tuple[int, ...] = ()


_Reader = Callable[[Mapping[str, object]], _TraceRow]


@dataclass(slots=True)
class _Columns:
    """Requests as they are read, 24 bytes each: `MOST_TOKENS` and the number of sessions fit 32 bits."""

    arrival_s: array[float] = field(default_factory=lambda: array("d"))
    input_tokens: array[int] = field(default_factory=lambda: array("i"))
    output_tokens: array[int] = field(default_factory=lambda: array("i"))
    prefix_tokens: array[int] = field(default_factory=lambda: array("i"))
    session: array[int] = field(default_factory=lambda: array("i"))
    session_names: dict[str, int] = field(default_factory=dict)
    blocks: list[tuple[int, ...]] = field(default_factory=list)
    """Of each request once one has any; empty before."""

    def add(self, row: _TraceRow) -> None:
        if row.blocks and not self.blocks:
            self.blocks = [()] * len(self.arrival_s)
        if row.blocks or self.blocks:
            self.blocks.append(row.blocks)
        self.arrival_s.append(row.arrival_s)
        self.input_tokens.append(row.input_tokens)
        self.output_tokens.append(row.output_tokens)
        self.prefix_tokens.append(row.prefix_tokens)
        names = self.session_names
        self.session.append(names.setdefault(row.session, len(names)) if row.session else NO_SESSION)


def read_trace(path: Path, watch: Watcher | None = None) -> Trace:
    """Read a trace of any format that is known, also as .gz, .zst or Parquet.

    Parameters
    ----------
    path : Path
        Its file. Memory is taken for the requests, not for the file.
    watch : Watcher or None
        Is told how much of the file has been read.

    Raises
    ------
    InputError
        The file cannot be read, is of no known format, or no row of it can be used.
    """
    columns, rejected_rows = _Columns(), 0
    rejected: list[str] = []
    with open_table(path, watch) as table:
        form, read = _format(path, table)
        for number, record in table.records:
            try:
                columns.add(_checked(read(record)))
            except (KeyError, ValueError, TypeError, OverflowError) as error:
                rejected_rows += 1
                if len(rejected) < MOST_REASONS:
                    rejected.append(f"{path}:{number}: {_reason(error)}")
    if not columns.arrival_s:
        first = f"; the first: {rejected[0]}" if rejected else ""
        raise InputError([Issue(str(path), 0, 0, "", f"none of its rows can be used{first}")])
    if rejected_rows > MOST_REASONS:
        rejected.append(f"{rejected_rows - MOST_REASONS} more rows")
    arrival_s = np.frombuffer(columns.arrival_s)
    if (span_s := float(np.ptp(arrival_s))) > LONGEST_SPAN_S:
        message = f"its first and last request are {span_s / SECONDS_PER_YEAR:.3g} years apart"
        hint = "one of the times is wrong, or in another unit"
        raise InputError([Issue(str(path), 0, 0, "", message, hint)])
    order = np.argsort(arrival_s, kind="stable")
    blocks = [columns.blocks[place] for place in order.tolist()] if columns.blocks else []
    prefixes = prefixes_of(blocks) if blocks else None
    return Trace(path, form, _requests(columns, order, prefixes), prefixes, tuple(rejected))


def _format(path: Path, table: Table) -> tuple[str, _Reader]:
    """Format of a file, and what reads one of its records."""
    if table.form == JSON_LINES or set(_MOONCAKE_COLUMNS) <= set(table.columns):
        return "mooncake", _mooncake
    for form, (columns, read) in _CSV_FORMATS.items():
        if set(columns) <= set(table.columns):
            check_header(str(path), table.columns, columns)
            return form, read
    if (divided := divider_issue(str(path), table.columns)) is not None:
        raise InputError([divided])
    known = "; ".join(f"{form}: {', '.join(columns)}" for form, (columns, _) in _CSV_FORMATS.items())
    hint = f"known are JSON lines of Mooncake and CSV files with the columns of {known}"
    raise InputError([Issue(str(path), 1, 1, "", "is a trace of no known format", hint)])


def _azure(record: Mapping[str, object]) -> _TraceRow:
    # The times of Parquet are read; those of CSV have seven digits of a second, or name a time zone.
    moment = record["TIMESTAMP"]
    if not isinstance(moment, datetime):
        moment = datetime.fromisoformat(str(moment).strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _TraceRow(moment.timestamp(), _tokens(record["ContextTokens"]), _tokens(record["GeneratedTokens"]))


def _burstgpt(record: Mapping[str, object]) -> _TraceRow:
    return _TraceRow(
        float(str(record["Timestamp"])),
        _tokens(record["Request tokens"]),
        _tokens(record["Response tokens"]),
        str(record.get("Session ID") or "").strip(),
    )


def _own(record: Mapping[str, object]) -> _TraceRow:
    return _TraceRow(
        float(str(record["arrival_s"])),
        _tokens(record["input_tokens"]),
        _tokens(record["output_tokens"]),
        str(record.get("session") or "").strip(),
        _tokens(record.get("prefix_tokens") or 0),
    )


def _mooncake(record: Mapping[str, object]) -> _TraceRow:
    blocks = record.get("hash_ids") or []
    if not isinstance(blocks, list):
        raise ValueError("hash_ids is not a list")
    return _TraceRow(
        float(str(record["timestamp"])) / MS_PER_S,
        _tokens(record["input_length"]),
        _tokens(record["output_length"]),
        blocks=tuple(int(block) for block in blocks),
    )


_MOONCAKE_COLUMNS: Final = ("timestamp", "input_length", "output_length")

_CSV_FORMATS: Final[Mapping[str, tuple[tuple[str, ...], _Reader]]] = {
    "azure": (("TIMESTAMP", "ContextTokens", "GeneratedTokens"), _azure),
    "burstgpt": (("Timestamp", "Request tokens", "Response tokens"), _burstgpt),
    "own": (("arrival_s", "input_tokens", "output_tokens"), _own),
}


def _tokens(value: object) -> int:
    number = float(value) if type(value) is int else float(str(value))
    if not abs(number) <= MOST_TOKENS or number != int(number):
        raise ValueError(brief(f"{value!r} is not a whole number of tokens up to {MOST_TOKENS:,}"))
    return int(number)


def _checked(row: _TraceRow) -> _TraceRow:
    if row.input_tokens < 1 or row.output_tokens < 1:
        raise ValueError("a request needs at least one prompt token and one generated token")
    if row.prefix_tokens < 0 or not np.isfinite(row.arrival_s):
        raise ValueError("an arrival must be a time, and cached tokens at least none")
    return row


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else brief(str(error))


def _requests(columns: _Columns, order: IntArray, prefixes: Prefixes | None) -> Requests:
    def sorted_column(values: array[int]) -> IntArray:
        return np.frombuffer(values, dtype=np.int32)[order].astype(np.int64)

    arrival: FloatArray = np.frombuffer(columns.arrival_s)[order]
    # Requests that share more than a common beginning are one session; else the trace names them, or nobody.
    sessions = sorted_column(columns.session) if columns.session_names else np.array([], dtype=np.int64)
    return Requests(
        (arrival - arrival[0]) * MS_PER_S,
        sorted_column(columns.input_tokens),
        sorted_column(columns.prefix_tokens),
        sorted_column(columns.output_tokens),
        session=sessions if prefixes is None else prefixes.session,
    )
