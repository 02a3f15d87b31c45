"""Read operator tables of users: a CSV or Parquet file in long format, every row accepted or rejected.

One row is one measurement: `operator` and `dtype` identify the operator, its dimensions the shape,
`latency_us` the time. Repeats of one measurement are merged into their median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.document.headers import check_header
from fleetplan.fleet.errors import Issue, names_hint
from fleetplan.fleet.tables import TABLES, numbers_of
from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import (
    AXES,
    BYTES_PER_ELEMENT,
    COLLECTIVE_KINDS,
    COMPRESSED_KINDS,
    CURVES,
    OperatorKind,
)
from fleetplan.perfmodel.optables.measured.tables import FRAMEWORKS
from fleetplan.perfmodel.optables.own.long_files import LINE_COLUMN, read_long_file
from fleetplan.perfmodel.optables.own.vidur import is_vidur, long_format
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows, table_dimensions

if TYPE_CHECKING:
    import pandas as pd

ANY_FRAMEWORK: Final = ""
"""Framework of rows that apply to all frameworks."""

KNOWN_COLUMNS: Final = tuple(column.name for column in TABLES["operator_table"])
REQUIRED_COLUMNS: Final = tuple(column.name for column in TABLES["operator_table"] if column.required)

LARGEST_DIMENSION: Final = 2**40
"""Largest dimension that is taken at its word: a message of 1 TiB."""

SLOWEST_US: Final = 1e9
"""Longest time that is taken at its word: no operator of a step runs for a quarter of an hour. [us]"""

_MAY_BE_ZERO: Final = frozenset({"window", "low_latency"})
"""A window of 0 is unlimited, and steps with prompts are none of low latency."""

_MAY_BE_ZERO_COMPRESSED: Final = frozenset({"ratio", "top_k", "index_heads", "index_head_dim"})
"""Layers of compressed attention without compressed entries, or without an index that chooses among them."""

_OTHER_DTYPES: Final = {
    # FP16 has the width and the matrix peak of BF16.
    "fp16": "bf16",
    "float16": "bf16",
    "half": "bf16",
    "bfloat16": "bf16",
    "nvfp4": "fp4",
}

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Accepted rows of one operator, data type, framework and version.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm; `ANY_FRAMEWORK` for all.
    version : str
        Version of the framework; may be empty.
    rows : MeasuredRows
        The measurements, repeats joined.
    """

    framework: str
    version: str
    rows: MeasuredRows


@dataclass(frozen=True, slots=True)
class OwnTable:
    """Contents of a user's operator table.

    Attributes
    ----------
    path : str
        The file, as it was named.
    sha256 : str
        Hash of its contents.
    parts : tuple[OwnRows, ...]
        Accepted rows.
    n_rows, n_accepted : int
        Rows of the long format, and how many of them were accepted.
    rejected : tuple[Issue, ...]
        A reason for every other row.
    ignored_columns : tuple[str, ...]
        Unknown columns.
    """

    path: str
    sha256: str
    parts: tuple[OwnRows, ...]
    n_rows: int
    n_accepted: int
    rejected: tuple[Issue, ...]
    ignored_columns: tuple[str, ...]


def read_own_table(path: Path, hardware: str, framework: str = ANY_FRAMEWORK) -> OwnTable:
    """Read a table of a user.

    Parameters
    ----------
    path : Path
        CSV or Parquet in the long format, or a profiling CSV of Vidur.
    hardware : str
        The part that it is for; rows that name another one are refused.
    framework : str
        The framework of rows that name none.

    Raises
    ------
    InputError
        The file cannot be read, or lacks a column that every table needs.
    """
    file = read_long_file(path)
    early: tuple[Issue, ...] = ()
    ignored: tuple[str, ...] = ()
    if is_vidur(file.frame):
        frame, early = long_format(file)
    else:
        check_header(str(path), file.columns, REQUIRED_COLUMNS, KNOWN_COLUMNS)
        frame = file.frame
        ignored = tuple(name for name in file.columns if name not in KNOWN_COLUMNS)
    checks = _Checks(str(path), frame)
    parts = _parts(frame, checks, hardware, framework)
    rejected = (*early, *checks.issues)
    return OwnTable(
        str(path),
        file.sha256,
        parts,
        len(frame) + len(early),
        int((~checks.refused).sum()),
        tuple(sorted(rejected, key=lambda issue: issue.line)),
        ignored,
    )


class _Checks:
    """The first thing that is wrong with each row."""

    def __init__(self, path: str, frame: pd.DataFrame) -> None:
        self._path = path
        self._lines = frame[LINE_COLUMN].to_numpy()
        self.refused: BoolArray = np.zeros(len(frame), dtype=np.bool_)
        self.issues: list[Issue] = []

    def refuse(self, rows: BoolArray, column: str, message: str, hint: str = "") -> None:
        """Refuse rows that are not refused yet."""
        new = rows & ~self.refused
        for line in self._lines[new].tolist():
            self.issues.append(Issue(self._path, int(line), 1, column, message, hint))
        self.refused |= new


def _parts(frame: pd.DataFrame, checks: _Checks, hardware: str, framework: str) -> tuple[OwnRows, ...]:
    own = _texts(frame, "hardware")
    wrong = (own != "") & (own != hardware)
    for name in sorted(set(own[wrong].tolist())):
        checks.refuse(own == name, "hardware", f"is for {name!r}, not for {hardware!r}")
    frameworks = _texts(frame, "framework")
    frameworks = np.where(frameworks == "", framework, frameworks)
    _refuse_unknown(checks, "framework", frameworks, (*FRAMEWORKS, ANY_FRAMEWORK))
    operators = _texts(frame, "operator")
    _refuse_unknown(checks, "operator", operators, tuple(kind.value for kind in (*AXES, *CURVES)))
    dtypes = _texts(frame, "dtype")
    dtypes = np.array([_OTHER_DTYPES.get(name, name) for name in dtypes], dtype=object)
    _refuse_unknown(checks, "dtype", dtypes, tuple(BYTES_PER_ELEMENT))
    latency_us = _numbers(frame, "latency_us")
    checks.refuse(~np.isfinite(latency_us), "latency_us", "is not a finite number")
    checks.refuse(latency_us <= 0, "latency_us", "must be above 0")
    checks.refuse(latency_us > SLOWEST_US, "latency_us", f"is over {SLOWEST_US:g} us: is it another unit?")
    versions = _texts(frame, "version")
    parts = []
    for operator in sorted(set(operators[~checks.refused].tolist())):
        kind = OperatorKind(operator)
        chosen = operators == operator
        if kind in COLLECTIVE_KINDS or kind in CURVES:
            checks.refuse(chosen & (dtypes != "bf16"), "dtype", f"{kind} moves bf16 activations")
        dims = _dimensions(frame, checks, kind, chosen)
        keys = {
            (str(dtypes[row]), str(frameworks[row]), str(versions[row]))
            for row in np.flatnonzero(chosen & ~checks.refused)
        }
        for dtype, name, version in sorted(keys):
            rows = chosen & ~checks.refused & (dtypes == dtype) & (frameworks == name) & (versions == version)
            taken = {column: values[rows].astype(np.int64) for column, values in dims.items()}
            parts.append(OwnRows(name, version, _joined_repeats(kind, dtype, taken, latency_us[rows])))
    return tuple(parts)


def _dimensions(
    frame: pd.DataFrame, checks: _Checks, kind: OperatorKind, chosen: BoolArray
) -> dict[str, NDArray[np.float64]]:
    dims = {}
    may_be_zero = _MAY_BE_ZERO | (_MAY_BE_ZERO_COMPRESSED if kind in COMPRESSED_KINDS else frozenset())
    for name in table_dimensions(kind):
        values = _numbers(frame, name)
        least = 0 if name in may_be_zero else 1
        checks.refuse(chosen & (_texts(frame, name) == ""), name, f"is missing; {kind} needs it")
        whole = (values == np.round(values)) & (values >= least) & (values <= LARGEST_DIMENSION)
        checks.refuse(chosen & ~whole, name, f"must be a whole number from {least} to {LARGEST_DIMENSION}")
        dims[name] = values
    return dims


def _joined_repeats(
    kind: OperatorKind, dtype: str, dims: dict[str, NDArray[np.int64]], latency_us: NDArray[np.float64]
) -> MeasuredRows:
    import pandas as pd  # noqa: PLC0415

    frame = pd.DataFrame({**dims, "latency_us": latency_us})
    median = frame.groupby(list(dims), sort=False)["latency_us"].median().reset_index()
    joined = {name: median[name].to_numpy(dtype=np.int64) for name in dims}
    return measured_rows(kind, dtype, joined, median["latency_us"].to_numpy(dtype=np.float64) / US_PER_MS)


def _refuse_unknown(checks: _Checks, column: str, names: NDArray[np.object_], known: Sequence[str]) -> None:
    allowed = tuple(name for name in known if name)
    for name in sorted(set(names.tolist()) - set(known)):
        what = f"{name!r} is not known" if name else "is missing"
        checks.refuse(names == name, column, what, names_hint(name, allowed))


def _texts(frame: pd.DataFrame, column: str) -> NDArray[np.object_]:
    if column not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    values = frame[column].astype(object).where(frame[column].notna(), "")
    return np.array([str(value).strip() for value in values], dtype=object).reshape(len(frame))


def _numbers(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    if column not in frame.columns:
        return np.full(len(frame), np.nan)
    return numbers_of(frame[column]).to_numpy(dtype=np.float64)
