"""Distinct rows of several integer columns, found by hashing one packed key a row.

A search evaluates many configurations with few operator shapes: the tables are queried once per distinct
shape, and the results are gathered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray

_KEY_LIMIT: Final = 2**62
_SHORT_RUN: Final = 4
"""Shortest mean run of equal rows that is worth detecting."""

_FEW_ROWS: Final = 4096
"""So many rows are hashed in less time than it takes to look for runs."""

_DENSE_RATIO: Final = 2
"""Factor on the number of keys up to which their range is indexed by a table instead of hashed."""


@dataclass(frozen=True, slots=True)
class UniqueRows:
    """The distinct rows, and where each row went.

    Attributes
    ----------
    dims : dict[str, IntArray]
        One array of shape (n_unique,) per column, in the order of first appearance.
    codes : IntArray
        The distinct row that each input row is, shape (n,).
    """

    dims: dict[str, IntArray]
    codes: IntArray


def unique_rows(dims: dict[str, IntArray]) -> UniqueRows:
    """Find the distinct rows of `dims`.

    Parameters
    ----------
    dims : dict[str, IntArray]
        Columns of one length, shape (n,) each.

    Returns
    -------
    UniqueRows
        ``dims[name][codes]`` gives each column back.
    """
    n_rows = next(iter(dims.values())).size
    if n_rows == 0:
        return UniqueRows(dict(dims), np.zeros(0, dtype=np.int64))
    key, key_range = _packed(dims)
    if key_range == 1:
        return UniqueRows({name: column[:1] for name, column in dims.items()}, np.zeros(n_rows, np.int64))
    if key_range <= _DENSE_RATIO * n_rows:
        codes, first = _numbered(key, key_range)
    else:
        codes, uniques = _numbered_values(key)
        if uniques.size == n_rows:
            return UniqueRows(dict(dims), codes)
        first = _first_rows(codes, uniques.size)
    return UniqueRows({name: column.take(first) for name, column in dims.items()}, codes)


def all_distinct(dims: dict[str, IntArray]) -> bool:
    """Return whether no two rows are equal, in a quarter of the time of numbering them."""
    if next(iter(dims.values())).size == 0:
        return True
    key, _ = _packed(dims)
    key.sort()
    return not (key[1:] == key[:-1]).any()


def rising_codes(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct values, rising, and which of them each value is: few of many, found by hashing.

    Parameters
    ----------
    values : IntArray
        Shape (n,).
    """
    codes, uniques = _numbered_values(values)
    order = np.argsort(uniques)
    places = np.empty(order.size, dtype=np.int64)
    places[order] = np.arange(order.size)
    return uniques.take(order), places.take(codes)


def _packed(dims: dict[str, IntArray]) -> tuple[IntArray, int]:
    """Return one number per row that identifies it, and an upper bound of all."""
    columns = list(dims.values())
    n_rows = columns[0].size
    key = np.zeros(n_rows, dtype=np.int64)
    key_range = 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        span = high - low + 1
        if span == 1:
            continue
        if key_range * span >= _KEY_LIMIT:
            # The packed key would overflow: number what was seen so far, which needs few bits.
            key, seen = _factorize(key)
            key_range = seen.size
        if key_range * span >= _KEY_LIMIT:
            column, levels = _factorize(column)  # noqa: PLW2901
            low, span = 0, levels.size
        key = column - low if key_range == 1 else key * span + (column - low)
        key_range *= span
    return key, key_range


def _first_rows(codes: IntArray, count: int) -> IntArray:
    """Return the first position of each of `count` codes."""
    first = np.empty(count, dtype=np.int64)
    # Assigned backwards, so that the first row of each kind is the one that stays.
    first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
    return first


def _numbered(key: IntArray, key_range: int) -> tuple[IntArray, IntArray]:
    """Return codes of keys below `key_range` in order of appearance, and their first positions."""
    first = np.flatnonzero(_first_rows(key, key_range).take(key) == np.arange(key.size))
    codes = np.empty(key_range, dtype=np.int64)
    codes[key.take(first)] = np.arange(first.size)
    return codes.take(key), first


def _numbered_values(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the codes of values in the order of their first appearance, and the distinct ones."""
    return _factorize(values) if values.size <= _FEW_ROWS else _factorize_runs(values)


def _factorize_runs(values: IntArray) -> tuple[IntArray, IntArray]:
    """Number the values; in long runs, as in cross products, one value per run."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    if starts.size * _SHORT_RUN > values.size:
        return _factorize(values)
    codes, uniques = _factorize(values[starts])
    return np.repeat(codes, np.diff(starts, append=values.size)), uniques


def _factorize(values: IntArray) -> tuple[IntArray, IntArray]:
    import pandas as pd  # noqa: PLC0415  (most of a second, which a process that times collectives does not need)

    codes, uniques = pd.factorize(values)
    return codes.astype(np.int64, copy=False), np.asarray(uniques, dtype=np.int64)
