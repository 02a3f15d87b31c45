"""Supply options of each pool (buy, rent, keep, retire): cost per accelerator-hour and break-even."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fleetplan.fleet import tco
from fleetplan.planner.assemble.purchases import kind_of_offer
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import SupplyOption
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import acquisition_usd
from fleetplan.planner.problem.supply import Acquisition, SupplyPool

TIE_RATIO: Final = 1e-9
"""Relative difference of figures that counts as floating-point noise."""

FINANCING_KINDS: Final = ("depreciation", "interest", "tax_deferral")
"""Kinds of cost that the purchase price replaces in a cash comparison."""


def supply_options(problem: Problem, solution: Solution) -> tuple[SupplyOption, ...]:
    """Return the options of every pool in the order of the problem, installed hosts first."""
    rows = []
    for p, pool in enumerate(problem.pools):
        if pool.existing_units:
            rows += _standing(problem, solution, p)
        for a, acquisition in enumerate(pool.acquisitions):
            row = _acquired(problem, pool, acquisition)
            if row is not None:
                held = _units(problem, solution, (p, a))
                rows.append(row.model_copy(update={"units": held}))
    return tuple(rows)


def _standing(problem: Problem, solution: Solution, p: int) -> list[SupplyOption]:
    """Return the cost of keeping a pool's hosts and, if allowed, the saving of retiring one."""
    pool, count = problem.pools[p], len(problem.periods)
    decided = problem.fleet.n_stated
    left = {q: units for (place, q), units in solution.retired.items() if place == p and q < decided}
    end = count if pool.retirement is None else pool.retirement.end_period
    stays = count if end is None else end
    rows = []
    if stays:
        hours = pool.existing_units * pool.accelerators_per_unit * stays * problem.fleet.calendar.hours
        early = sum(units for q, units in left.items() if q < stays)
        rows.append(
            _row(problem, pool, "keep", 0).model_copy(
                update={
                    "units": pool.existing_units - early,
                    "usd_per_accelerator_hour": sum(pool.fixed_usd[:stays]) / hours,
                }
            )
        )
    if pool.retirement is None or not pool.retirement.by_choice:
        return rows
    possible = [q for q in range(min(stays, decided)) if pool.retirement.possible_in(q)]
    if not possible:
        return rows
    change = pool.retirement.unit_usd
    # A kept host still leaves at the end of its life within the horizon.
    anyway_usd = change[stays] if stays < count else 0.0
    best = possible[_first_least([change[q] for q in possible])]
    spared_hours = pool.accelerators_per_unit * (stays - best) * problem.fleet.calendar.hours
    sale = -sum(pool.retirement.unit_cost_by_period["resale"][best])
    finance = problem.fleet.finance
    worth = tco.present_value_ratio(finance.discount_rate_per_year, best, finance.calendar)
    usd = anyway_usd - change[best]
    update = {
        "units": sum(left.values()),
        "usd_per_accelerator_hour": usd / spared_hours,
        "break_even_resale_usd": (sale - usd) / worth,
    }
    return [*rows, _row(problem, pool, "retire", best).model_copy(update=update)]


def _acquired(problem: Problem, pool: SupplyPool, acquisition: Acquisition) -> SupplyOption | None:
    """Return an offer at its cheapest period; None if it cannot arrive within the horizon."""
    count, offer = len(problem.periods), acquisition.offer
    possible = [q for q in range(problem.fleet.n_stated) if acquisition.useful_in(q, count)]
    if not possible:
        return None
    costs = [acquisition.unit_usd[q] / _accelerator_hours(problem, acquisition, q) for q in possible]
    place = _first_least(costs)
    row = _row(problem, pool, kind_of_offer(offer), possible[place]).model_copy(
        update={"offer": offer.name, "usd_per_accelerator_hour": costs[place]}
    )
    if offer.capex_usd_per_host is None:
        return row
    arrival = possible[place] + offer.lead_time_periods
    return row.model_copy(update=_break_even(problem, pool, acquisition, (possible[place], arrival)))


def _break_even(
    problem: Problem, pool: SupplyPool, bought: Acquisition, when: tuple[int, int]
) -> dict[str, object]:
    """Return the rent that competes with a purchase on its arrival, and the break-even."""
    _, arrival = when
    count = len(problem.periods)
    rents = [
        (each.offer.name, _nominal_usd(problem, other, each, (arrival, arrival)))
        for other in problem.pools
        if (other.region, other.hardware) == (pool.region, pool.hardware)
        for each in other.acquisitions
        if each.offer.capex_usd_per_host is None
        and each.offer.spot_max_share is None
        and each.useful_in(arrival, count)
    ]
    if not rents:
        return {}
    name, rent = rents[_first_least([usd for _, usd in rents])]
    running = _nominal_usd(problem, pool, bought, when)
    saved = (rent - running) * bought.offer.accelerators_per_unit
    if saved <= 0:
        return {"against": name}
    finance, price = problem.fleet.finance, bought.capex_usd_per_unit
    paid, loan = price, finance.loan
    if loan is not None:
        payment = tco.loan_payment_usd(price, loan, finance.calendar)
        paid = price * loan.down_payment_ratio + loan.periods * payment
    quarters = paid / saved * finance.calendar.quarters
    return {"against": name, "break_even_quarters": math.ceil(quarters * (1 - TIE_RATIO))}


def _nominal_usd(problem: Problem, pool: SupplyPool, taken: Acquisition, when: tuple[int, int]) -> float:
    """Return the undiscounted cost of an accelerator in a period, without the purchase price. [USD]

    `when` is the period of the order and that of the charge.
    """
    fleet, (ordered, charged) = problem.fleet, when
    finance = replace(fleet.finance, discount_rate_per_year=0.0, method="straight-line")
    region, hardware = problem.regions[pool.region], fleet.hardware[pool.hardware]
    table = acquisition_usd(taken.offer, hardware, region, fleet.periods, finance)
    usd = sum(rows[ordered][charged] for kind, rows in table.items() if kind not in FINANCING_KINDS)
    return usd / taken.offer.accelerators_per_unit


def _accelerator_hours(problem: Problem, acquisition: Acquisition, q: int) -> float:
    """Return the accelerator-hours within the horizon of one ordered unit."""
    served = sum(acquisition.serves(q, period) for period in range(len(problem.periods)))
    return served * acquisition.offer.accelerators_per_unit * problem.fleet.calendar.hours


def _units(problem: Problem, solution: Solution, place: tuple[int, int]) -> int:
    """Return the units of an offer bought in total, or rented at the same time at most."""
    acquisition = problem.pools[place[0]].acquisitions[place[1]]
    decided = problem.fleet.n_stated
    taken = {q: units for (p, a, q), units in solution.acquired.items() if (p, a) == place and q < decided}
    if acquisition.offer.capex_usd_per_host is not None:
        return sum(taken.values())
    return max(
        sum(units for q, units in taken.items() if acquisition.serves(q, period))
        for period in range(len(problem.periods))
    )


def _row(problem: Problem, pool: SupplyPool, option: str, q: int) -> SupplyOption:
    return SupplyOption(
        pool=pool.name,
        region=pool.region,
        hardware=pool.hardware,
        option=option,
        offer="",
        period=problem.periods[q],
        units=0,
        usd_per_accelerator_hour=0.0,
    )


def _first_least(values: Sequence[float]) -> int:
    """Return the position of the first minimum."""
    least = min(values)
    return next(n for n, value in enumerate(values) if value <= least + TIE_RATIO * abs(least))
