"""Helpers for building candidates from either source."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetplan.fleet.inventory import Fleet, Hardware

if TYPE_CHECKING:
    import pandas as pd

    from fleetplan.perfmodel.operators import IntArray


def supplied_hardware(fleet: Fleet) -> list[str]:
    """Return the hardware of all pools and offers, in the order of the fleet file."""
    names = [pool.hardware for pool in fleet.pools] + [offer.hardware for offer in fleet.offers]
    return list(dict.fromkeys(names))


Row: TypeAlias = Mapping[Hashable, Any]
"""Row of a table by column."""


def table_rows(
    table: pd.DataFrame, columns: Sequence[str], positions: IntArray | None = None
) -> Iterator[Row]:
    """Yield rows of a table, all or at some positions, with the given columns.

    `DataFrame.to_dict` takes three times as long, and building a table of these rows as long again.
    """
    for values in zip(*(_values(table[name], positions) for name in columns), strict=True):
        yield dict(zip(columns, values, strict=True))


def _values(column: pd.Series[Any], positions: IntArray | None) -> list[Any]:
    """Return the Python numbers and texts of a column, all or at some positions."""
    if positions is None:
        return column.tolist()
    if column.dtype.kind in "bifu":
        numbers: list[Any] = column.to_numpy()[positions].tolist()
        return numbers
    return list(column.array.take(positions))


def optional_figure(row: Row | None, column: str) -> float | None:
    """Return the number in a column of a row; None if the row, the column or the number is missing."""
    value = None if row is None else row.get(column)
    return None if value is None or math.isnan(value) else float(value)


def replica_power_kw(hardware: Hardware, accelerators: int) -> float | None:
    """Return the IT power of a replica at full load; None if the hardware states none. [kW]"""
    if hardware.power_w_per_accelerator is None:
        return None
    return hardware.power_w_per_accelerator * accelerators / 1000.0


def replica_uncapped_kw(hardware: Hardware, accelerators: int) -> float | None:
    """Return that power without the hardware's power cap; None without a cap. [kW]"""
    if hardware.uncapped_w_per_accelerator is None:
        return None
    return hardware.uncapped_w_per_accelerator * accelerators / 1000.0
