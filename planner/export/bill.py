"""Order the bill for a workbook, so that the cells of each sum are contiguous."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from fleetplan.fleet.inventory import Currency
from fleetplan.planner.export.sheets import Formula
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.plan.inputs import CostLine, PlanInputs, PriceInput

_Key = TypeVar("_Key")

FIRST_ROW: Final = 2
"""Number of the row below the header."""


@dataclass(frozen=True, slots=True)
class SumCell:
    """A sum of cells with its value. [USD]"""

    formula: str
    usd: float

    @property
    def as_formula(self) -> Formula:
        """The sum as a formula cell."""
        return Formula(self.formula, self.usd)


@dataclass(frozen=True, slots=True)
class Bill:
    """Lines and placements in the order of their sheets, with the formulas of their sums.

    Attributes
    ----------
    lines : tuple[CostLine, ...]
        Lines by period and pool; capacity precedes costs that one service pays alone.
    placements : tuple[Placement, ...]
        Placements by period, then by service.
    stated_prices : tuple[PriceInput, ...]
        Prices as stated in the plan, in the order of their sheet. [USD]
    price_values : Mapping[str, float]
        Price by name, in the currency of the workbook.
    price_cells : Mapping[str, str]
        Cell of each price, divided by that of the exchange rate.
    currency : Currency or None
        Currency of amounts; None for USD. Its rate is the last row of the prices.
    capacity : Mapping[tuple[str, str], SumCell]
        Capacity cost by pool and period, without costs that one service pays alone.
    by_service : Mapping[tuple[str, str], SumCell]
        Cost of placements by service and period.
    by_period : Mapping[str, SumCell]
        Sum of all lines of a period; lines without a period are under the empty name.
    leaving : Mapping[tuple[str, str], SumCell]
        One-off cost of departing hosts less their sale, by pool and period.
    idle : Mapping[str, SumCell]
        Cost of idle capacity by period.
    retirements : Mapping[str, SumCell]
        One-off cost of departing hosts by period.
    tariffs : Mapping[tuple[str, str, str], str]
        Name of the energy price by period, pool and service.
    """

    lines: tuple[CostLine, ...]
    placements: tuple[Placement, ...]
    stated_prices: tuple[PriceInput, ...]
    price_values: Mapping[str, float]
    price_cells: Mapping[str, str]
    currency: Currency | None
    capacity: Mapping[tuple[str, str], SumCell]
    by_service: Mapping[tuple[str, str], SumCell]
    by_period: Mapping[str, SumCell]
    leaving: Mapping[tuple[str, str], SumCell]
    idle: Mapping[str, SumCell]
    retirements: Mapping[str, SumCell]
    tariffs: Mapping[tuple[str, str, str], str]

    @property
    def one_usd(self) -> Formula | float:
        """Price of one USD, for lines that are plain amounts."""
        if self.currency is None:
            return 1.0
        return Formula(f"1/{_cell(len(self.stated_prices))}", 1 / self.currency.usd_per_unit)


NOTHING: Final = SumCell("0", 0.0)
"""The empty sum."""


def _cell(position: int) -> str:
    """Return the cell of the value in a row of the price sheet."""
    return f"Prices!$C${position + FIRST_ROW}"


def bill_of(plan: Plan, inputs: PlanInputs, currency: Currency | None = None) -> Bill:
    """Return the bill of a plan in the order of a workbook.

    Parameters
    ----------
    plan, inputs : Plan, PlanInputs
        Plan with amounts in the currency of the workbook; prices stay in USD.
    currency : Currency, optional
        Currency of the workbook; USD by default.
    """
    rate = 1.0 if currency is None else currency.usd_per_unit
    periods = {period: position for position, period in enumerate((*plan.periods, ""))}
    lines = tuple(
        sorted(
            inputs.cost_lines,
            key=lambda line: (periods[line.period], line.pool, line.service, line.at_once),
        )
    )
    count = len(inputs.prices)
    placements = tuple(sorted(plan.placements, key=lambda row: (periods[row.period], row.service)))
    shared = [None if line.service else ((line.pool, line.period), line.usd) for line in lines]
    standing = [None if line.at_once else each for line, each in zip(lines, shared, strict=True)]
    leaving = [each if line.at_once else None for line, each in zip(lines, shared, strict=True)]
    return Bill(
        lines=lines,
        placements=placements,
        stated_prices=inputs.prices,
        price_values={price.name: price.value / rate for price in inputs.prices},
        price_cells={
            price.name: _cell(position) if currency is None else f"({_cell(position)}/{_cell(count)})"
            for position, price in enumerate(inputs.prices)
        },
        currency=currency,
        capacity=_sums("Bill!H", standing),
        leaving=_sums("Bill!H", leaving),
        by_service=_sums("Placements!R", [((row.service, row.period), row.usd) for row in placements]),
        by_period=_sums("Bill!H", [(line.period, line.usd) for line in lines]),
        idle=_sums("Pools!J", [(use.period, use.idle_usd) for use in plan.pools]),
        retirements=_sums("Pools!K", [(use.period, use.retirement_usd) for use in plan.pools])
        if plan.retirements
        else {},
        tariffs={
            (line.period, line.pool, line.service): line.price for line in lines if line.kind == "energy"
        },
    )


def _sums(column: str, rows: Sequence[tuple[_Key, float] | None]) -> dict[_Key, SumCell]:
    """Return the sums of a column by the key of its rows; rows without a key are None.

    Raises
    ------
    ValueError
        The rows of a sum are not contiguous.
    """
    positions: dict[_Key, list[int]] = defaultdict(list)
    usd: dict[_Key, float] = defaultdict(float)
    for position, row in enumerate(rows):
        if row is not None:
            positions[row[0]].append(position + FIRST_ROW)
            usd[row[0]] += row[1]
    for key, own in positions.items():
        if own[-1] - own[0] + 1 != len(own):
            raise ValueError(f"rows {own} of {column} for {key} are not next to each other")
    return {
        key: SumCell(f"SUM({column}{own[0]}:{column[-1]}{own[-1]})", usd[key])
        for key, own in positions.items()
    }
