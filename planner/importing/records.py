"""Read values of other tools with their units, and give a reason for every rejected row."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog.hardware_names import UnknownHardwareError, catalogue_hardware
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import (
    NotTextError,
    parse_json,
    read_bytes,
    text_of,
    unpacked,
)
from fleetplan.fleet.units import MS_PER_NS, MS_PER_S, MS_PER_US

MS_PER_UNIT: Final[Mapping[str, float]] = {
    "ms": 1.0,
    "s": MS_PER_S,
    "sec": MS_PER_S,
    "us": MS_PER_US,
    "ns": MS_PER_NS,
}
"""Milliseconds per unit of time, by the names that tools use."""


_YAML_KEY: Final = re.compile(r"\s*(?:---\s*)?(?:- )?\w+:(?:\s|$)")
_YAML_HINT: Final = "it looks like YAML; tools write JSON when asked, such as `kubectl -o json`"


class RejectedRowError(Exception):
    """Reason for rejecting a row."""


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Rows rejected for the same reason, with the place of the first one."""

    place: str
    reason: str
    rows: int = 1


Record = Mapping[str, object]


def stripped(record: Record) -> Record:
    """Return a record without blanks around its texts."""
    return {name: value.strip() if isinstance(value, str) else value for name, value in record.items()}


def read_json(path: Path) -> object:
    """Return the content of a JSON file, plain or gzip; a file with one document per line as a list.

    Python tools write infinity, which is not JSON: SGLang writes an unlimited rate so. It is accepted.

    Raises
    ------
    InputError
        The file is unreadable, or is not JSON.
    """
    text = text_of_file(path)
    if not text.strip():
        raise InputError([Issue(str(path), 1, 1, "", "is empty")])
    try:
        return parse_json(text, infinite=True)
    except json.JSONDecodeError as error:
        return _documents(path, text, error)


def _documents(path: Path, text: str, whole: json.JSONDecodeError) -> list[object]:
    """Return the documents of a text with one document per line.

    If the first line is a document, errors refer to their line; otherwise to the whole text.
    """
    found: list[object] = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if not line.strip():
            continue
        try:
            found.append(parse_json(line, infinite=True))
        except json.JSONDecodeError as error:
            row, wrong = (number, error) if found else (whole.lineno, whole)
            hint = _YAML_HINT if _YAML_KEY.match(text) else ""
            raise InputError(
                [Issue(str(path), row, wrong.colno, "", f"is not JSON: {wrong.msg}", hint)]
            ) from error
    return found


def read_summary(path: Path) -> Record:
    """Return the fields `name : value` of a file, plain or gzip, such as a LoadGen summary of MLPerf.

    Raises
    ------
    InputError
        The file is unreadable, or lacks these fields.
    """
    lines = [line.split(":", 1) for line in text_of_file(path).splitlines() if ":" in line]
    found = {name.strip(): value.strip() for name, value in reversed(lines)}
    if "Scenario" not in found:
        hint = "mlperf_log_summary.txt of LoadGen"
        raise InputError([Issue(str(path), 1, 1, "", "has no line with the scenario", hint)])
    return found


def text_of_file(path: Path) -> str:
    """Return the text of a file, plain or gzip.

    Raises
    ------
    InputError
        The file is unreadable.
    """
    try:
        return text_of(unpacked(read_bytes(path), path))
    except (OSError, NotTextError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError([Issue(str(path), 1, 1, "", f"cannot be read: {why}")]) from error


def mapping(value: object, what: str) -> Record:
    """Return a value that must be a JSON object."""
    if not isinstance(value, Mapping):
        raise RejectedRowError(f"{what} is missing")
    return value


def at(record: Record, *keys: str) -> object:
    """Return a nested value; None if any level is missing."""
    found: object = record
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def number(value: object, what: str) -> float:
    """Return a finite, nonnegative number; numbers written as text are accepted."""
    try:
        found = float(str(value)) if not isinstance(value, bool) else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise RejectedRowError(
            f"{what} is missing" if value is None else f"{what} is {value!r}, not a number of at least 0"
        )
    return found


def optional_number(value: object, what: str) -> float | None:
    """Return the number in a field; None if the field is missing."""
    return None if value is None else number(value, what)


def text_or_none(value: object) -> str | None:
    """Return a value as text; None if it is missing."""
    return None if value is None else str(value)


def count(value: object, what: str) -> int:
    """Return an integer of at least 1."""
    found = number(value, what)
    if found < 1 or found != round(found):
        raise RejectedRowError(f"{what} is {value!r}, not a whole number of at least 1")
    return int(found)


def milliseconds(value: object, unit: object, what: str) -> float:
    """Return a time in milliseconds, from the tool's name of its unit."""
    if str(unit) not in MS_PER_UNIT:
        raise RejectedRowError(f"{what} is in {unit!r}, not in one of {', '.join(MS_PER_UNIT)}")
    return number(value, what) * MS_PER_UNIT[str(unit)]


def known_hardware(name: str) -> str:
    """Return the catalogue's name of hardware from any name used by a tool."""
    try:
        return catalogue_hardware(name)
    except UnknownHardwareError as error:
        raise RejectedRowError(str(error)) from error


def rows_of(document: object, keys: Sequence[str] = ()) -> list[object]:
    """Return the rows of a document: a list, the list under one of the keys, or the document itself."""
    if isinstance(document, list):
        return document
    for key in keys:
        inner = document.get(key) if isinstance(document, Mapping) else None
        if isinstance(inner, list):
            return inner
    return [document]
