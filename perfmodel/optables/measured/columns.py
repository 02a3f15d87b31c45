"""Columns of the packaged tables in our names and data types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import AXES, FloatArray, IntArray, OperatorKind
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows, site_dimensions

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BoolArray = NDArray[np.bool_]
"""Flags of rows, shape (n_rows,)."""

_DTYPES: Final = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "int8_wo": "int8",
    "int4_wo": "int4",
    "nvfp4": "fp4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
}
"""Our data type of each of theirs. Other formats of theirs (SmoothQuant, INT4 with FP8 activations) have no
counterpart here and are left out."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts, numbered: a file has few different ones.

    Attributes
    ----------
    codes : NDArray
        Position in `names`, -1 without a text, shape (n_rows,).
    names : tuple[str, ...]
        The different ones.
    """

    codes: NDArray[Any]
    names: tuple[str, ...]

    def where(self, holds: Callable[[str], bool]) -> BoolArray:
        """Return in which rows a text meets a condition; missing texts do not."""
        found = [code for code, name in enumerate(self.names) if holds(name)]
        if not found:
            return np.zeros(self.codes.shape, dtype=np.bool_)
        # To compare a few times takes a fraction of the time of looking codes up.
        return reduce(np.logical_or, [self.codes == code for code in found])

    def equal(self, name: str) -> BoolArray:
        """Return in which rows the text equals a value."""
        return self.where(lambda each: each == name)


class StoredColumns(Mapping[str, "NDArray[Any] | Texts"]):
    """Columns of a file as arrays: a frame of a few rows takes longer to make than all else of their import.

    Parameters
    ----------
    columns : Mapping
        Numbers, or texts, by the name of the column.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any] | Texts]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of_arrow(cls, table: pa.Table) -> StoredColumns:
        """Return the columns of an Arrow table, whose texts are dictionaries."""
        return cls({name: _of_arrow(table.column(name)) for name in table.column_names})

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> StoredColumns:
        """Return the columns of a frame."""
        return cls({str(name): _of_series(frame[name]) for name in frame.columns})

    def __getitem__(self, name: str) -> NDArray[Any] | Texts:
        return self._columns[name]

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def texts(self, name: str) -> Texts:
        """Return a column of texts."""
        found = self[name]
        if not isinstance(found, Texts):
            raise ValueError(f"{name} holds numbers, not texts")
        return found

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a column of numbers."""
        found = self[name]
        if isinstance(found, Texts):
            raise ValueError(f"{name} holds texts, not numbers")
        return found

    def whole(self, name: str) -> IntArray:
        """Return a column of whole numbers."""
        found = self.numbers(name)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} contains a value that is not a whole number")
        return found.astype(np.int64, copy=False)

    def latency_ms(self) -> FloatArray:
        """Return the column `latency`."""
        return self.numbers("latency").astype(np.float64, copy=False)

    def with_columns(self, **columns: NDArray[Any]) -> StoredColumns:
        """Return these columns with others in their places or beside them."""
        return StoredColumns({**self._columns, **columns})


def _of_arrow(column: pa.ChunkedArray) -> NDArray[Any] | Texts:
    import pyarrow as pa  # noqa: PLC0415  (half a second that a cached import does not need)

    whole = column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(whole.type):
        found: NDArray[Any] = whole.to_numpy(zero_copy_only=False)
        return found
    codes = whole.indices if whole.null_count == 0 else whole.indices.fill_null(-1)
    return Texts(codes.to_numpy(), tuple(str(name) for name in whole.dictionary.to_pylist()))


def _of_series(values: pd.Series) -> NDArray[Any] | Texts:
    import pandas as pd  # noqa: PLC0415

    if isinstance(values.dtype, pd.CategoricalDtype):
        if values.cat.categories.dtype.kind in "biuf":
            return values.to_numpy()
        return Texts(values.cat.codes.to_numpy(), tuple(map(str, values.cat.categories)))
    if values.dtype.kind in "biuf":
        return values.to_numpy()
    codes, names = pd.factorize(values)
    return Texts(codes, tuple(map(str, names)))


def _is_ours(dtype: str, name: str) -> bool:
    return _DTYPES.get(name) == dtype


def split_by_dtype(
    stored: StoredColumns,
    kind: OperatorKind,
    dtype_column: str,
    columns: dict[str, str],
    is_counted: BoolArray | None = None,
    dtypes: tuple[str, ...] | None = None,
) -> list[MeasuredRows]:
    """Return one table a data type of ours, with our column names.

    Parameters
    ----------
    stored : StoredColumns
        Columns of a file.
    kind : OperatorKind
        Operators of its rows.
    dtype_column : str
        The column of their data types.
    columns : dict[str, str]
        Theirs by the name of ours.
    is_counted : BoolArray, optional
        Rows that count; all of them by default.
    dtypes : tuple[str, ...], optional
        Names of our columns; default: all.
    """
    theirs = stored.texts(dtype_column)
    dims = {name: stored.whole(columns[name]) for name in (*site_dimensions(kind), *AXES[kind])}
    latency_ms = stored.latency_ms()
    tables = []
    known = {ours for name in theirs.names if (ours := _DTYPES.get(name)) is not None}
    for dtype in sorted(known if dtypes is None else known.intersection(dtypes)):
        is_part = theirs.where(partial(_is_ours, dtype))
        if is_counted is not None:
            is_part &= is_counted
        rows = np.flatnonzero(is_part)
        if rows.size == latency_ms.size:
            tables.append(measured_rows(kind, dtype, dims, latency_ms))
        elif rows.size:
            part = {name: column.take(rows) for name, column in dims.items()}
            tables.append(measured_rows(kind, dtype, part, latency_ms.take(rows)))
    return tables
