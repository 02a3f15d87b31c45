"""The bill of a plan: every cost as price times quantity, so that a spreadsheet can change the price.

Each kind of cost is proportional to one price if all other inputs stay the same: depreciation, residual
value, maintenance, property tax and interest to the purchase price, rent to the hourly rate, energy to the
tariff. The quantity is the cost divided by the price. Costs without a single price are lines without a price.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleetplan.fleet.inventory import Finance, Offer, Pool
from fleetplan.planner.formulation import Solution
from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.plan import RUNNING_KINDS, Placement
from fleetplan.planner.plan.inputs import QUANTITY_UNITS, CostLine, PriceInput
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.capacity_costs import IDLE_ENERGY
from fleetplan.planner.problem.supply import SupplyPool

FLEET_FILE: Final = "the fleet file"

CENT_USD: Final = 0.005
"""Amounts below this are rounding. [USD]"""

_PURCHASE_KINDS: Final = ("depreciation", "maintenance", "property_tax", "interest", "tax_deferral")
"""Kinds of cost proportional to the purchase price."""

_HOST: Final = "USD a host"
_HOUR: Final = "USD an accelerator-hour"


@dataclass(slots=True)
class _Bill:
    """Lines of the bill and the prices they refer to, in order of first use."""

    problem: Problem
    prices: dict[str, PriceInput] = field(default_factory=dict)
    lines: list[CostLine] = field(default_factory=list)

    def add(self, line: CostLine, price: PriceInput | None) -> None:
        if line.usd == 0:
            return
        if price is not None and price.value != 0:
            self.prices.setdefault(price.name, price)
            priced = {
                "price": price.name,
                "quantity": line.usd / price.value,
                "unit": QUANTITY_UNITS[line.kind],
            }
            line = line.model_copy(update=priced)
        self.lines.append(line)


def cost_lines(
    problem: Problem,
    solution: Solution,
    placements: tuple[Placement, ...],
    costs: Mapping[str, float],
) -> tuple[tuple[CostLine, ...], tuple[PriceInput, ...]]:
    """Return the lines of the bill and their prices.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Purchases, rentals and retirements.
    placements : tuple[Placement, ...]
        Placements with their energy.
    costs : Mapping[str, float]
        TCO by kind; the unexplained part of a kind becomes a line without a price. [USD]

    Returns
    -------
    tuple[tuple[CostLine, ...], tuple[PriceInput, ...]]
        Lines that add up to `costs` in each kind, and their prices.
    """
    bill = _Bill(problem)
    for p, pool in enumerate(problem.pools):
        _existing(bill, pool)
        _decided(bill, p, solution)
    _running(bill, placements)
    billed: dict[str, float] = defaultdict(float)
    for line in bill.lines:
        billed[line.kind] += line.usd
    for kind in sorted({*costs, *billed}):
        left = costs.get(kind, 0.0) - billed[kind]
        if abs(left) > CENT_USD:
            bill.add(_line("", "", kind, kind, left), None)
    return tuple(bill.lines), tuple(bill.prices.values())


def _line(period: str, pool: str, item: str, kind: str, usd: float, service: str = "") -> CostLine:
    """Return a line without a price, with its cost as the quantity."""
    return CostLine(
        period=period,
        pool=pool,
        service=service,
        item=item,
        kind=kind,
        price="",
        quantity=usd,
        unit="USD",
        usd=usd,
    )


def _existing(bill: _Bill, pool: SupplyPool) -> None:
    for kind, by_period in pool.fixed_cost_kinds.items():
        for q, usd in enumerate(by_period):
            price = _price_of(bill, pool, None, kind, (q, q))
            bill.add(_line(bill.problem.periods[q], pool.name, "standing hosts", kind, usd), price)


def _price_of(
    bill: _Bill, pool: SupplyPool, offer: Offer | None, kind: str, when: tuple[int, int]
) -> PriceInput | None:
    """Return the price of a kind of cost: a shared one, that of the offer, or that of the pool.

    `when` is the period of the decision and that of the charge.
    """
    periods, (q, charged) = bill.problem.periods, when
    shared = _shared_price(bill.problem, pool, kind, charged)
    if shared is not None:
        return shared
    if offer is not None:
        return _offer_price(offer, kind, q, periods)
    stated = next((each for each in bill.problem.fleet.pools if each.name == pool.name), None)
    return None if stated is None else _pool_price(stated, kind, q, periods)


def _decided(bill: _Bill, p: int, solution: Solution) -> None:
    """Add the lines for supply decisions of a pool; their keys end with the period of the decision."""
    problem, periods = bill.problem, bill.problem.periods
    pool, zero = problem.pools[p], (0.0,) * len(periods)
    for name, charges in supply_charges().items():
        for key, count in sorted(getattr(solution, name).items()):
            if key[0] != p:
                continue
            when = key[-1]
            offer = pool.acquisitions[key[1]].offer if name == "acquired" else None
            item = f"{name if offer is None else offer.name} {periods[when]}"
            leaving = pool.retirement.leaving_cost_kinds if name == "retired" and pool.retirement else {}
            for kind, by_period in charges(problem, key).items():
                at_once = count * leaving.get(kind, zero)[when]
                for q, usd in enumerate(by_period):
                    # A sale has the price of its own period, regardless of when it is charged.
                    price = _price_of(bill, pool, offer, kind, (when, q))
                    later = count * usd - (at_once if q == when else 0.0)
                    bill.add(_line(periods[q], pool.name, item, kind, later), price)
                line = _line(periods[when], pool.name, item, kind, at_once)
                price = _price_of(bill, pool, offer, kind, (when, when))
                bill.add(line.model_copy(update={"at_once": True}), price)


def _running(bill: _Bill, placements: tuple[Placement, ...]) -> None:
    """Add the lines for energy, starts and data, by period, pool and service."""
    for kind, item in RUNNING_KINDS.items():
        usd: dict[tuple[str, str, str, str], float] = defaultdict(float)
        for row in placements:
            usd[row.period, row.pool, row.service, row.region] += getattr(row, f"{kind}_usd")
        for (period, pool, service, region), spent_usd in usd.items():
            price = _running_price(bill.problem, kind, region, period)
            bill.add(_line(period, pool, item, kind, spent_usd, service), price)


def _running_price(problem: Problem, kind: str, region: str, period: str) -> PriceInput | None:
    """Return the single price of a kind of running cost; None for data and daily starts."""
    if kind == "energy":
        return _energy_price(problem, region, problem.periods.index(period))
    if kind == "transition":
        value = problem.fleet.policy.transition_usd_per_accelerator
        return _price("transition", "every accelerator that starts", value, "USD", FLEET_FILE, None)
    return None


def _energy_price(problem: Problem, region: str, q: int) -> PriceInput | None:
    tariff = problem.regions[region].energy_usd_per_kwh
    if tariff is None:
        return None
    name = f"energy {region} {problem.periods[q]}"
    return _price(name, region, tariff[q], "USD/kWh", FLEET_FILE, None)


def _shared_price(problem: Problem, pool: SupplyPool, kind: str, q: int) -> PriceInput | None:
    """Return the price of a kind that the region or the fleet states; None for kinds of the pool."""
    finance: Finance = problem.fleet.finance
    if kind == IDLE_ENERGY:
        return _energy_price(problem, pool.region, q)
    if kind == "hosting":
        value = problem.regions[pool.region].hosting_usd_per_kw_month
        return _price(f"hosting {pool.region}", pool.region, value, "USD/kW/month", FLEET_FILE, None)
    per_host = {
        "network": finance.network_usd_per_host_quarter,
        "software": finance.software_usd_per_host_quarter,
        "staff": finance.staff_usd_per_host_quarter,
    }
    if kind in per_host:
        return _price(
            f"{kind} a host", "every host", per_host[kind], "USD a host and quarter", FLEET_FILE, None
        )
    return None


def _pool_price(pool: Pool, kind: str, q: int, periods: tuple[str, ...]) -> PriceInput | None:
    if pool.rented is not None:
        if kind != "rent":
            return None
        name, value = _of_period(f"{pool.name} rent", pool.rented.usd_per_accelerator_hour, q, periods)
        return _price(name, pool.name, value, _HOUR, pool.rented.price_source, pool.rented.price_as_of)
    if pool.owned is None:
        return None
    if kind == "resale" and pool.owned.resale_usd_per_host is not None:
        name, value = _of_period(f"{pool.name} resale", pool.owned.resale_usd_per_host, q, periods)
        return _price(name, pool.name, value, _HOST, FLEET_FILE, None)
    if kind in _PURCHASE_KINDS:
        value = pool.owned.capex_usd_per_host
        return _price(f"{pool.name} purchase", pool.name, value, _HOST, FLEET_FILE, pool.owned.price_as_of)
    return None


def _offer_price(offer: Offer, kind: str, ordered: int, periods: tuple[str, ...]) -> PriceInput | None:
    if kind == "rent" and offer.rent_usd_per_accelerator_hour is not None:
        name, value = _of_period(f"{offer.name} rent", offer.rent_usd_per_accelerator_hour, ordered, periods)
        return _price(name, offer.name, value, _HOUR, offer.price_source, offer.price_as_of)
    if kind in _PURCHASE_KINDS and offer.capex_usd_per_host is not None:
        value = offer.capex_usd_per_host
        return _price(
            f"{offer.name} purchase", offer.name, value, _HOST, offer.price_source, offer.price_as_of
        )
    return None


def _of_period(name: str, values: tuple[float, ...], q: int, periods: tuple[str, ...]) -> tuple[str, float]:
    """Return a price, with its period in the name if prices differ between periods."""
    return (name if len(set(values)) == 1 else f"{name} {periods[q]}"), values[q]


def _price(name: str, subject: str, value: float, unit: str, source: str, as_of: str | None) -> PriceInput:
    return PriceInput(name=name, subject=subject, value=value, unit=unit, source=source, as_of=as_of)
