"""Verify the bill: every line against the cost of its item and the prices of the fleet file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.planner.plan import RUNNING_KINDS
from fleetplan.planner.plan.inputs import QUANTITY_UNITS, CostLine, PriceInput
from fleetplan.planner.verify.placement_figures import expected_placements
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.records import compared, row_key, stated_twice
from fleetplan.planner.verify.supply_rules import FleetPool, is_bought
from fleetplan.planner.verify.violations import Violation

FLEET_FILE: Final = "the fleet file"

HOST_KINDS: Final = ("network", "software", "staff")
"""Kinds of cost with a price for the whole fleet, per host and quarter."""

PURCHASE_KINDS: Final = ("depreciation", "maintenance", "property_tax", "interest", "tax_deferral")
"""Kinds of cost proportional to the purchase price."""

LINE_KEY: Final = ("period", "pool", "service", "item", "kind", "at_once")


@dataclass(frozen=True, slots=True)
class _Item:
    """A cost item: pool, service, description, kind, period, amount and price."""

    pool: str
    service: str
    item: str
    kind: str
    period: str
    usd: float
    price: PriceInput | None
    at_once: bool = False


def check_bill(check: PlanCheck) -> Iterator[Violation]:
    """Check that each line is a price of the fleet file times its quantity, and that no line is missing."""
    inputs = check.plan.inputs
    if inputs is None:
        return
    prices: dict[str, PriceInput] = {}
    lines = []
    for item in [*_capacity(check), *_running(check)]:
        line = CostLine(
            period=item.period,
            pool=item.pool,
            service=item.service,
            item=item.item,
            kind=item.kind,
            price="",
            quantity=item.usd,
            unit="USD",
            usd=item.usd,
            at_once=item.at_once,
        )
        if item.price is not None and item.price.value:
            prices.setdefault(item.price.name, item.price)
            priced = {
                "price": item.price.name,
                "quantity": item.usd / item.price.value,
                "unit": QUANTITY_UNITS[item.kind],
            }
            line = line.model_copy(update=priced)
        lines.append(line)
    floor_usd = check.floor_usd
    stated, crumbs = _split(inputs.cost_lines, floor_usd)
    expected, small = _split(lines, floor_usd)
    yield from compared("bill", stated, expected, LINE_KEY, floor_usd)
    yield from _crumbs_compared(crumbs, small)
    # A rounding residue may have its own line and price.
    charged = {line.price for line in expected}
    by_crumbs = {line.price for line in crumbs} - charged
    named = [price for price in inputs.prices if price.name not in by_crumbs or price.name in prices]
    due = [price for name, price in prices.items() if name in charged or name in by_crumbs]
    yield from compared("bill", named, due, ("name",))


def _split(lines: Sequence[CostLine], floor_usd: float) -> tuple[list[CostLine], list[CostLine]]:
    """Return the lines with an actual cost, and those within rounding."""
    parts: tuple[list[CostLine], list[CostLine]] = ([], [])
    for line in lines:
        parts[abs(line.usd) <= floor_usd].append(line)
    return parts


def _crumbs_compared(stated: Sequence[CostLine], expected: Sequence[CostLine]) -> Iterator[Violation]:
    """Check lines within rounding: each may be present once or missing, with correct text fields."""
    known = {row_key(line, LINE_KEY): line for line in expected}
    yield from stated_twice("bill", stated, LINE_KEY)
    for line in stated:
        if (right := known.get(row_key(line, LINE_KEY))) is not None:
            figures = {"quantity": right.quantity, "usd": right.usd}
            yield from compared("bill", [line.model_copy(update=figures)], [right], LINE_KEY)


def _capacity(check: PlanCheck) -> Iterator[_Item]:
    """Yield the costs of installed, added and retired capacity."""
    for cost in check.capacity_costs:
        when = (cost.priced, cost.period)
        if cost.offer is None:
            price = _price_of_pool(check, cost.pool, cost.kind, when)
        else:
            price = _price_of_offer(check, cost.pool, cost.offer, cost.kind, when)
        period = check.problem.periods[cost.period]
        yield _Item(cost.pool.name, "", cost.item, cost.kind, period, cost.usd, price, cost.at_once)


def _running(check: PlanCheck) -> Iterator[_Item]:
    """Yield the costs of energy, starts and data by period, pool and service."""
    usd: dict[tuple[str, str, str, str], float] = defaultdict(float)
    for row in expected_placements(check):
        for kind in RUNNING_KINDS:
            usd[row.pool, row.service, row.period, kind] += getattr(row, f"{kind}_usd")
    for (pool, service, period, kind), spent in usd.items():
        price = _price_of_running(check, check.pool(pool), kind, period)
        yield _Item(pool, service, RUNNING_KINDS[kind], kind, period, spent, price)


def _price_of_running(check: PlanCheck, pool: FleetPool, kind: str, period: str) -> PriceInput | None:
    if kind == "energy":
        return _tariff(check, pool, check.period_index[period])
    if kind == "transition":
        value = check.problem.fleet.policy.transition_usd_per_accelerator
        return _price("transition", "every accelerator that starts", value, "USD")
    return None


def _tariff(check: PlanCheck, pool: FleetPool, charged: int) -> PriceInput | None:
    """Return the energy price of a period."""
    region = pool.region
    if region.energy_usd_per_kwh is None:
        return None
    name = f"energy {region.name} {check.problem.periods[charged]}"
    return _price(name, region.name, region.energy_usd_per_kwh[charged], "USD/kWh")


def _shared_price(check: PlanCheck, pool: FleetPool, kind: str, charged: int) -> PriceInput | None:
    """Return the price of a kind of cost that the region or the whole fleet states."""
    finance, region = check.problem.fleet.finance, pool.region
    if kind == "idle_energy":
        return _tariff(check, pool, charged)
    if kind == "hosting":
        value = region.hosting_usd_per_kw_month
        return _price(f"hosting {region.name}", region.name, value, "USD/kW/month")
    if kind in HOST_KINDS:
        value = float(getattr(finance, f"{kind}_usd_per_host_quarter"))
        return _price(f"{kind} a host", "every host", value, "USD a host and quarter")
    return None


def _price_of_pool(check: PlanCheck, pool: FleetPool, kind: str, when: tuple[int, int]) -> PriceInput | None:
    """Return the price of a pool's installed hosts, by the periods of the price and of the charge."""
    q, charged = when
    shared, existing = _shared_price(check, pool, kind, charged), pool.existing
    if shared is not None or existing is None:
        return shared
    rented, owned = existing.rented, existing.owned
    if rented is not None and kind == "rent":
        name, value = _by_period(check, f"{pool.name} rent", rented.usd_per_accelerator_hour, q)
        return _price(
            name, pool.name, value, "USD an accelerator-hour", rented.price_source, rented.price_as_of
        )
    if owned is not None and kind == "resale" and owned.resale_usd_per_host is not None:
        name, value = _by_period(check, f"{pool.name} resale", owned.resale_usd_per_host, q)
        return _price(name, pool.name, value, "USD a host")
    if owned is not None and kind in PURCHASE_KINDS:
        value, as_of = owned.capex_usd_per_host, owned.price_as_of
        return _price(f"{pool.name} purchase", pool.name, value, "USD a host", FLEET_FILE, as_of)
    return None


def _price_of_offer(
    check: PlanCheck, pool: FleetPool, name: str, kind: str, when: tuple[int, int]
) -> PriceInput | None:
    """Return the price of an offer's unit, by the periods of its order and of the charge."""
    q, charged = when
    shared, offer = _shared_price(check, pool, kind, charged), pool.offers[name]
    if shared is not None:
        return shared
    source, as_of = offer.price_source, offer.price_as_of
    if is_bought(offer) and kind in PURCHASE_KINDS:
        price = offer.capex_usd_per_host or 0.0
        return _price(f"{name} purchase", name, price, "USD a host", source, as_of)
    if offer.rent_usd_per_accelerator_hour is not None and kind == "rent":
        label, value = _by_period(check, f"{name} rent", offer.rent_usd_per_accelerator_hour, q)
        return _price(label, name, value, "USD an accelerator-hour", source, as_of)
    return None


def _by_period(check: PlanCheck, name: str, values: Sequence[float], q: int) -> tuple[str, float]:
    """Return a price, with its period in the name if prices differ between periods."""
    return (name if min(values) == max(values) else f"{name} {check.problem.periods[q]}"), values[q]


def _price(
    name: str, subject: str, value: float, unit: str, source: str = FLEET_FILE, as_of: str | None = None
) -> PriceInput:
    return PriceInput(name=name, subject=subject, value=value, unit=unit, source=source, as_of=as_of)
