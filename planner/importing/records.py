"""Reading what others wrote: a value with its unit, and a reason for every row that is not taken."""

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
"""Milliseconds of a unit of time, as the tools name it."""


_YAML_KEY: Final = re.compile(r"\s*(?:---\s*)?(?:- )?\w+:(?:\s|$)")
_YAML_HINT: Final = "it looks like YAML; tools write JSON when asked, such as `kubectl -o json`"


class RejectedRowError(Exception):
    """Why a row is not taken."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that are not taken for one reason, by the place of the first in the file."""

    place: str
    reason: str
    rows: int = 1


Record = Mapping[str, object]


def read_json(path: Path) -> object:
    """Return what a JSON file holds, plain or in gzip; a file of several documents, one a line, as a list.

    Tools in Python write infinity as no JSON has it: SGLang a rate without a limit. It is read as such.

    Raises
    ------
    InputError
        It cannot be read, or is not JSON.
    """
    text = text_of_file(path)
    if not text.strip():
        raise InputError([Issue(str(path), 1, 1, "", "is empty")])
    try:
        return parse_json(text, infinite=True)
    except json.JSONDecodeError as error:
        return _documents(path, text, error)


def _documents(path: Path, text: str, whole: json.JSONDecodeError) -> list[object]:
    """The documents of a text that is no single one, each in a line of its own.

    Where the first line is a document, the place of a mistake is that in its line; else that in the whole.
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
    """Return the fields `name : value` of a file, plain or in gzip, as LoadGen of MLPerf writes a summary.

    Raises
    ------
    InputError
        It cannot be read, or has no such field.
    """
    lines = [line.split(":", 1) for line in text_of_file(path).splitlines() if ":" in line]
    found = {name.strip(): value.strip() for name, value in reversed(lines)}
    if "Scenario" not in found:
        hint = "mlperf_log_summary.txt of LoadGen"
        raise InputError([Issue(str(path), 1, 1, "", "has no line with the scenario", hint)])
    return found


def text_of_file(path: Path) -> str:
    """Return the text of a file, plain or in gzip.

    Raises
    ------
    InputError
        It cannot be read.
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
    """Return a value some levels down; None where any level is missing."""
    found: object = record
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def number(value: object, what: str) -> float:
    """Return a finite number that is not negative; numbers written as text count."""
    try:
        found = float(str(value)) if not isinstance(value, bool) else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise RejectedRowError(
            f"{what} is missing" if value is None else f"{what} is {value!r}, no number from 0"
        )
    return found


def optional_number(value: object, what: str) -> float | None:
    """Return the number of a field; None where the field is missing."""
    return None if value is None else number(value, what)


def text_or_none(value: object) -> str | None:
    """Return a value as text; None where it is missing."""
    return None if value is None else str(value)


def count(value: object, what: str) -> int:
    """Return a whole number of at least 1."""
    found = number(value, what)
    if found < 1 or found != round(found):
        raise RejectedRowError(f"{what} is {value!r}, no whole number from 1")
    return int(found)


def milliseconds(value: object, unit: object, what: str) -> float:
    """Return a time in milliseconds, from its unit as the tool names it."""
    if str(unit) not in MS_PER_UNIT:
        raise RejectedRowError(f"{what} is in {unit!r}, not in one of {', '.join(MS_PER_UNIT)}")
    return number(value, what) * MS_PER_UNIT[str(unit)]


def known_hardware(name: str) -> str:
    """Return the catalogue's name of hardware, whichever name a tool gives it."""
    try:
        return catalogue_hardware(name)
    except UnknownHardwareError as error:
        raise RejectedRowError(str(error)) from error


def rows_of(document: object, keys: Sequence[str] = ()) -> list[object]:
    """Return the rows of a document: a list, the list under one of the keys, or the document alone."""
    if isinstance(document, list):
        return document
    for key in keys:
        inner = document.get(key) if isinstance(document, Mapping) else None
        if isinstance(inner, list):
            return inner
    return [document]
