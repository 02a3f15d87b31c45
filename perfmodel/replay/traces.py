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

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.fleet.errors import InputError, Issue, brief
from fleetplan.fleet.input_files import CsvError, csv_rows, parse_json, read_text
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.replay.prefix_blocks import Prefixes, prefixes_of
from fleetplan.perfmodel.serving import Requests
from fleetplan.perfmodel.serving.requests import NO_SESSION

MOST_REASONS: Final = 5
"""Rows whose rejection is told one by one; more of them are counted."""

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


def read_trace(path: Path) -> Trace:
    """Read a trace of any format that is known.

    Raises
    ------
    InputError
        The file cannot be read, is of no known format, or no row of it can be used.
    """
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file in UTF-8"
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {reason}")]) from error
    rows: list[_TraceRow] = []
    rejected: list[str] = []
    try:
        form, read, records = _format(path, lines)
        for number, record in records:
            try:
                rows.append(_checked(read(record)))
            except (KeyError, ValueError, TypeError) as error:
                rejected.append(f"{path}:{number}: {_reason(error)}")
    except CsvError as error:
        raise InputError([Issue(str(path), error.line, 1, "", error.reason)]) from error
    if not rows:
        first = f"; the first: {rejected[0]}" if rejected else ""
        raise InputError([Issue(str(path), 0, 0, "", f"none of its rows can be used{first}")])
    if len(rejected) > MOST_REASONS:
        rejected[MOST_REASONS:] = [f"{len(rejected) - MOST_REASONS} more rows"]
    rows.sort(key=lambda row: row.arrival_s)
    return Trace(path, form, _requests(rows), _prefixes(rows), tuple(rejected))


def _format(
    path: Path, lines: Sequence[str]
) -> tuple[str, _Reader, Iterator[tuple[int, Mapping[str, object]]]]:
    """Format of a file, what reads one of its records, and the records with their line numbers."""
    if lines and lines[0].lstrip().startswith("{"):
        return "mooncake", _mooncake, _json_records(path, lines)
    header = [name.strip() for _, fields in csv_rows(lines[:1]) for name in fields]
    for form, (columns, read) in _CSV_FORMATS.items():
        if set(columns) <= set(header):
            return form, read, _csv_records(header, lines)
    known = "; ".join(f"{form}: {', '.join(columns)}" for form, (columns, _) in _CSV_FORMATS.items())
    hint = f"known are JSON lines of Mooncake and CSV files with the columns of {known}"
    raise InputError([Issue(str(path), 1, 1, "", "is a trace of no known format", hint)])


def _json_records(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, Mapping[str, object]]]:
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


def _csv_records(header: Sequence[str], lines: Sequence[str]) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, fields in csv_rows(lines):
        if number > 1 and fields:
            yield number, dict(zip(header, fields, strict=False))


def _azure(record: Mapping[str, object]) -> _TraceRow:
    # Seven digits of a second are more than Python reads, and some releases name a time zone.
    text = str(record["TIMESTAMP"]).strip().replace(" ", "T", 1)
    whole, _, rest = text.partition(".")
    digits = "".join(_leading_digits(rest))
    zone = rest[len(digits) :]
    moment = datetime.fromisoformat(f"{whole}.{digits[:6]:0<6}{zone}" if digits else text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _TraceRow(moment.timestamp(), _tokens(record["ContextTokens"]), _tokens(record["GeneratedTokens"]))


def _leading_digits(text: str) -> Iterator[str]:
    """Yield the digits that a text starts with."""
    for character in text:
        if not character.isdigit():
            return
        yield character


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


_CSV_FORMATS: Final[Mapping[str, tuple[tuple[str, ...], _Reader]]] = {
    "azure": (("TIMESTAMP", "ContextTokens", "GeneratedTokens"), _azure),
    "burstgpt": (("Timestamp", "Request tokens", "Response tokens"), _burstgpt),
    "own": (("arrival_s", "input_tokens", "output_tokens"), _own),
}


def _tokens(value: object) -> int:
    number = float(str(value))
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


def _requests(rows: Sequence[_TraceRow]) -> Requests:
    def column(name: str) -> IntArray:
        return np.array([getattr(row, name) for row in rows], dtype=np.int64)

    arrival: FloatArray = np.array([row.arrival_s for row in rows])
    return Requests(
        (arrival - arrival[0]) * MS_PER_S,
        column("input_tokens"),
        column("prefix_tokens"),
        column("output_tokens"),
        session=_sessions(rows),
    )


def _sessions(rows: Sequence[_TraceRow]) -> IntArray:
    """Session of each request by number; empty where the trace names none."""
    if any(row.blocks for row in rows):
        return prefixes_of([row.blocks for row in rows]).session
    names: dict[str, int] = {}
    found = [names.setdefault(row.session, len(names)) if row.session else NO_SESSION for row in rows]
    return np.array(found if names else [], dtype=np.int64)


def _prefixes(rows: Sequence[_TraceRow]) -> Prefixes | None:
    return prefixes_of([row.blocks for row in rows]) if any(row.blocks for row in rows) else None
