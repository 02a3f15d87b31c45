"""Figures that candidates of either kind are made of."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetplan.fleet.inventory import Fleet, Hardware

if TYPE_CHECKING:
    import pandas as pd

    from fleetplan.perfmodel.operators import IntArray


def supplied_hardware(fleet: Fleet) -> list[str]:
    """Hardware that some pool or offer brings, in the order of the fleet file."""
    names = [pool.hardware for pool in fleet.pools] + [offer.hardware for offer in fleet.offers]
    return list(dict.fromkeys(names))


Row: TypeAlias = Mapping[Hashable, Any]
"""A row of a table by column."""


def table_rows(
    table: pd.DataFrame, columns: Sequence[str], positions: IntArray | None = None
) -> Iterator[Row]:
    """Rows of a table, all or those at some positions, some columns of them.

    `DataFrame.to_dict` takes three times as long, and a table of the rows alone as long again.
    """
    for values in zip(*(_values(table[name], positions) for name in columns), strict=True):
        yield dict(zip(columns, values, strict=True))


def _values(column: pd.Series[Any], positions: IntArray | None) -> list[Any]:
    """Python's own numbers and texts of a column, all or those at some positions."""
    if positions is None:
        return column.tolist()
    if column.dtype.kind in "bifu":
        numbers: list[Any] = column.to_numpy()[positions].tolist()
        return numbers
    return list(column.array.take(positions))


def optional_figure(row: Row | None, column: str) -> float | None:
    """The number in a column of a row, or None where the row, the column or the number is missing."""
    value = None if row is None else row.get(column)
    return None if value is None or math.isnan(value) else float(value)


def replica_power_kw(hardware: Hardware, accelerators: int) -> float | None:
    """IT power of a replica at full load, or None where the hardware states none. [kW]"""
    if hardware.power_w_per_accelerator is None:
        return None
    return hardware.power_w_per_accelerator * accelerators / 1000.0


def replica_uncapped_kw(hardware: Hardware, accelerators: int) -> float | None:
    """The same without the power cap of the hardware; None where it has none. [kW]"""
    if hardware.uncapped_w_per_accelerator is None:
        return None
    return hardware.uncapped_w_per_accelerator * accelerators / 1000.0
