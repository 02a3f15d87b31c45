"""The lines of the bill add up to the cost, and each follows its price as in the planner."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from tests.planner.solving import provenance_of
from tests.planner.whole_fleet import whole_candidates, whole_fleet, whole_plan

from fleetplan.fleet.inventory import Finance, Fleet
from fleetplan.planner.assemble import build_plan
from fleetplan.planner.assemble.bill import cost_lines
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import PlanInputs
from fleetplan.planner.problem import build_problem


def inputs() -> PlanInputs:
    plan = whole_plan().plan
    assert plan is not None
    assert plan.inputs is not None
    return plan.inputs


def with_prices(fleet: Fleet) -> Plan:
    """The same decisions at the prices of another fleet."""
    solved = whole_plan()
    assert solved.plan is not None
    problem = build_problem(fleet, whole_candidates())
    found = CandidateSet(tuple(whole_candidates()), (), (), ())
    return build_plan(problem, found, solved.result, provenance_of(problem.fleet), solved.plan.solve)


def test_the_lines_are_the_whole_cost_kind_by_kind() -> None:
    plan = whole_plan().plan
    assert plan is not None
    billed: dict[str, float] = defaultdict(float)
    for line in inputs().cost_lines:
        billed[line.kind] += line.usd
    assert billed == pytest.approx(plan.cost_breakdown)
    assert sum(billed.values()) == pytest.approx(plan.objective_usd)


def test_the_fleet_pays_every_kind_of_price() -> None:
    kinds = {line.kind for line in inputs().cost_lines}
    running = {"hosting", "maintenance", "network", "software", "staff", "energy", "idle_energy"}
    capital = {"depreciation", "interest", "property_tax", "resale", "tax_deferral"}
    assert kinds == {"rent", "transition", *capital, *running}
    assert all(line.price for line in inputs().cost_lines)


def test_each_line_is_its_price_times_its_quantity() -> None:
    value = {price.name: price.value for price in inputs().prices}
    assert len(value) == len(inputs().prices)
    for line in inputs().cost_lines:
        assert line.usd == pytest.approx(value.get(line.price, 1.0) * line.quantity)


def test_rent_and_energy_are_hours_and_kilowatt_hours() -> None:
    undiscounted = replace(whole_fleet(), finance=Finance())
    plan = with_prices(undiscounted)
    assert plan.inputs is not None
    hired = [line for line in plan.inputs.cost_lines if line.pool == "hired" and line.kind == "rent"]
    assert [line.quantity for line in hired] == pytest.approx([8 * 2190.0] * 3)
    energy, idle = (
        next(
            line
            for line in plan.inputs.cost_lines
            if line.kind == kind and line.pool == "hired" and line.period == "2027Q2"
        )
        for kind in ("energy", "idle_energy")
    )
    # Eight cards draw 0.12 kW each whether they serve or not, and up to 0.8 kW with their load.
    drawn_kw = sum(
        row.replicas * row.utilisation * (0.8 - 0.12)
        for row in plan.placements
        if row.pool == "hired" and row.period == "2027Q2"
    )
    assert energy.quantity == pytest.approx(drawn_kw * 1.1 * 2190)
    assert idle.quantity == pytest.approx(8 * 0.12 * 1.1 * 2190)
    assert (energy.price, idle.price) == ("energy there 2027Q2",) * 2


def dearer_fleets(fleet: Fleet) -> dict[str, Fleet]:
    """For each price of the plan, the fleet in which it alone is a tenth dearer."""
    by_name: dict[str, Fleet] = {}
    old, aged, hired = fleet.pools
    assert old.owned is not None
    assert old.owned.resale_usd_per_host is not None
    assert hired.rented is not None
    new, more = fleet.offers
    here, there = fleet.regions
    assert more.rent_usd_per_accelerator_hour is not None
    assert new.capex_usd_per_host is not None
    dearer_old = replace(old, owned=replace(old.owned, capex_usd_per_host=220_000.0))
    by_name["old purchase"] = replace(fleet, pools=(dearer_old, aged, hired))
    rent = replace(hired.rented, usd_per_accelerator_hour=(1.65,) * 3)
    by_name["hired rent"] = replace(fleet, pools=(old, aged, replace(hired, rented=rent)))
    by_name["new purchase"] = replace(fleet, offers=(replace(new, capex_usd_per_host=286_000.0), more))
    by_name["hosting here"] = replace(fleet, regions=(replace(here, hosting_usd_per_kw_month=132.0), there))
    policy = replace(fleet.policy, transition_usd_per_accelerator=60.5)
    by_name["transition"] = replace(fleet, policy=policy)
    assert aged.owned is not None
    assert aged.owned.resale_usd_per_host is not None
    dearer_aged = replace(aged, owned=replace(aged.owned, capex_usd_per_host=165_000.0))
    by_name["aged purchase"] = replace(fleet, pools=(old, dearer_aged, hired))
    sold = replace(
        aged, owned=replace(aged.owned, resale_usd_per_host=_raised(aged.owned.resale_usd_per_host, 1))
    )
    by_name["aged resale 2027Q2"] = replace(fleet, pools=(old, sold, hired))
    for kind in ("network", "software", "staff"):
        value = getattr(fleet.finance, f"{kind}_usd_per_host_quarter") * 1.1
        finance = replace(fleet.finance, **{f"{kind}_usd_per_host_quarter": value})
        by_name[f"{kind} a host"] = replace(fleet, finance=finance)
    for q, period in enumerate(fleet.periods):
        resale = _raised(old.owned.resale_usd_per_host, q)
        owned = replace(old.owned, resale_usd_per_host=resale)
        by_name[f"old resale {period}"] = replace(fleet, pools=(replace(old, owned=owned), aged, hired))
        rents = _raised(more.rent_usd_per_accelerator_hour, q)
        by_name[f"more rent {period}"] = replace(
            fleet, offers=(new, replace(more, rent_usd_per_accelerator_hour=rents))
        )
        for place in (here, there):
            assert place.energy_usd_per_kwh is not None
            changed = replace(place, energy_usd_per_kwh=_raised(place.energy_usd_per_kwh, q))
            both = tuple(changed if each is place else each for each in (here, there))
            by_name[f"energy {place.name} {period}"] = replace(fleet, regions=both)
    return by_name


def _raised(values: tuple[float, ...], position: int) -> tuple[float, ...]:
    return tuple(value * (1.1 if q == position else 1.0) for q, value in enumerate(values))


def test_a_dearer_price_costs_what_the_planner_says() -> None:
    dearer = dearer_fleets(whole_fleet())
    seen = 0
    for price in inputs().prices:
        lines = [line for line in inputs().cost_lines if line.price == price.name]
        extra = sum(line.usd for line in lines) * 0.1
        plan = with_prices(dearer[price.name])
        was = whole_plan().plan
        assert was is not None
        assert plan.objective_usd == pytest.approx(was.objective_usd + extra, rel=1e-9), price.name
        seen += 1
    assert seen >= 12


def test_what_starts_every_day_and_data_are_lines_of_their_period() -> None:
    solved = whole_plan()
    assert solved.plan is not None
    assert solved.result.solution is not None
    rows = tuple(
        row.model_copy(update={"tidal_usd": 10.0, "data_usd": 1.0}) for row in solved.plan.placements
    )
    costs = {**solved.plan.cost_breakdown, "tidal": 10.0 * len(rows), "data": 1.0 * len(rows)}
    lines, _ = cost_lines(solved.problem, solved.result.solution, rows, costs)
    for kind in ("tidal", "data"):
        own = [line for line in lines if line.kind == kind]
        assert sum(line.usd for line in own) == pytest.approx(costs[kind])
        assert {line.period for line in own} == set(solved.plan.periods)
        assert all(line.service and line.pool for line in own)


def test_what_follows_no_price_is_a_line_without_one() -> None:
    solved = whole_plan()
    assert solved.plan is not None
    assert solved.result.solution is not None
    costs = {**solved.plan.cost_breakdown, "duty": 12.5}
    lines, _ = cost_lines(solved.problem, solved.result.solution, solved.plan.placements, costs)
    (duty,) = [line for line in lines if not line.price]
    assert (duty.kind, duty.usd, duty.quantity, duty.unit) == ("duty", 12.5, 12.5, "USD")
