"""Laws between the optima of two fleets that differ in one respect."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.planner.random_fleets import PlanningCase, tiny_case
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Budget, Fleet, Offer, Owned, Policy, Pool, Region, Rented, Service
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate

REL = 1e-6
"""Energy is rounded to whole objective units, and load to whole load units."""

cases = st.integers(0, 3_000).map(tiny_case)
law = examples(60, 3, 6, derandomize=True)


def usd(fleet: Fleet, candidates: tuple[Candidate, ...]) -> float:
    """TCO of the optimum; infinite where there is none."""
    found = solve(fleet, candidates).usd
    return float("inf") if found is None else found


def no_cheaper(one: float, other: float) -> bool:
    """Return whether `one` costs at least as much as `other`."""
    return one >= other * (1 - REL)


def same(one: float, other: float) -> bool:
    return one == other or one == pytest.approx(other, rel=REL)


def _with_demand(service: Service, factor: float) -> Service:
    demand = service.demand.changed(lambda rates: {key: rate * factor for key, rate in rates.items()})
    return replace(service, demand=demand)


@given(case=cases, factor=st.sampled_from((1.01, 1.3, 2.0)))
@law
def test_more_demand_is_never_cheaper(case: PlanningCase, factor: float) -> None:
    more = replace(case.fleet, services=tuple(_with_demand(s, factor) for s in case.fleet.services))
    assert no_cheaper(usd(more, case.candidates), usd(case.fleet, case.candidates))


@given(case=cases, data=st.data())
@law
def test_a_tighter_limit_is_never_cheaper(case: PlanningCase, data: st.DataObject) -> None:
    fleet = case.fleet
    policy, budget = fleet.policy, fleet.budget
    tighter = [
        replace(fleet, policy=_larger_reserve(policy)),
        replace(fleet, policy=replace(policy, max_configs_per_service_region=2)),
        replace(fleet, budget=replace(budget, tco_usd=min(budget.tco_usd or 9e9, 100_000.0))),
        replace(fleet, budget=replace(budget, capex_usd=min(budget.capex_usd or 9e9, 200_000.0))),
        replace(fleet, regions=tuple(_less_power(region) for region in fleet.regions)),
        replace(fleet, offers=fleet.offers[1:]),
        replace(fleet, offers=tuple(_fewer(offer) for offer in fleet.offers)),
        replace(fleet, services=tuple(replace(s, headroom=s.headroom + 0.2) for s in fleet.services)),
    ]
    if policy.max_configs_per_service_region == 1:
        del tighter[1]
    changed = data.draw(st.sampled_from(tighter))
    assert no_cheaper(usd(changed, case.candidates), usd(fleet, case.candidates))


@given(case=cases, more_w=st.sampled_from((1.0, 60.0, 300.0)))
@law
def test_more_idle_power_is_never_cheaper(case: PlanningCase, more_w: float) -> None:
    drawing = {
        name: replace(each, idle_w_per_accelerator=each.idle_w_per_accelerator + more_w)
        for name, each in case.fleet.hardware.items()
    }
    more = replace(case.fleet, hardware=drawing)
    assert no_cheaper(usd(more, case.candidates), usd(case.fleet, case.candidates))


def _larger_reserve(policy: Policy) -> Policy:
    """More of the one reserve that a policy may have: hosts or per cent."""
    if policy.reserve_percent_per_pool:
        return replace(policy, reserve_percent_per_pool=policy.reserve_percent_per_pool + 50.0)
    return replace(policy, reserve_hosts_per_pool=policy.reserve_hosts_per_pool + 1)


def _less_power(region: Region) -> Region:
    limit = (30.0,) if region.power_kw is None else tuple(kw * 0.8 for kw in region.power_kw)
    return replace(region, power_kw=limit)


def _fewer(offer: Offer) -> Offer:
    return replace(offer, max_units=tuple(3 if n is None else max(n - 1, 0) for n in offer.max_units))


@given(case=cases, factor=st.sampled_from((0.5, 3.0, 7.0)))
@law
def test_all_prices_times_a_factor_cost_the_factor(case: PlanningCase, factor: float) -> None:
    fleet = case.fleet
    scaled = replace(
        fleet,
        pools=tuple(_priced_pool(pool, factor) for pool in fleet.pools),
        offers=tuple(_priced_offer(offer, factor) for offer in fleet.offers),
        regions=tuple(_priced_region(region, factor) for region in fleet.regions),
        budget=replace(
            fleet.budget,
            capex_usd_by_period=tuple(_times(v, factor) for v in fleet.budget.capex_usd_by_period),
            capex_usd=_times(fleet.budget.capex_usd, factor),
            opex_usd=_times(fleet.budget.opex_usd, factor),
            tco_usd=_times(fleet.budget.tco_usd, factor),
        ),
    )
    assert same(usd(scaled, case.candidates), usd(fleet, case.candidates) * factor)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _priced_pool(pool: Pool, factor: float) -> Pool:
    if pool.rented is not None:
        prices = tuple(price * factor for price in pool.rented.usd_per_accelerator_hour)
        return replace(pool, rented=Rented(prices, pool.rented.energy_included, "test"))
    assert pool.owned is not None
    owned: Owned = replace(pool.owned, capex_usd_per_host=pool.owned.capex_usd_per_host * factor)
    return replace(pool, owned=owned)


def _priced_offer(offer: Offer, factor: float) -> Offer:
    rent = offer.rent_usd_per_accelerator_hour
    return replace(
        offer,
        capex_usd_per_host=_times(offer.capex_usd_per_host, factor),
        rent_usd_per_accelerator_hour=None if rent is None else tuple(price * factor for price in rent),
    )


def _priced_region(region: Region, factor: float) -> Region:
    energy = region.energy_usd_per_kwh
    return replace(
        region,
        energy_usd_per_kwh=None if energy is None else tuple(price * factor for price in energy),
        hosting_usd_per_kw_month=region.hosting_usd_per_kw_month * factor,
    )


@given(case=cases, seed=st.integers(0, 1000))
@law
def test_order_and_names_change_no_cost(case: PlanningCase, seed: int) -> None:
    rng = random.Random(seed)
    fleet = case.fleet
    shuffled = {
        name: tuple(rng.sample(getattr(fleet, name), len(getattr(fleet, name))))
        for name in ("services", "pools", "offers", "regions")
    }
    renamed = tuple(replace(s, name=f"z-{s.name}") for s in shuffled["services"])
    candidates = [replace(c, service=f"z-{c.service}", config=f"q{c.config}") for c in case.candidates]
    rng.shuffle(candidates)
    relabelled = replace(fleet, **{**shuffled, "services": renamed})
    assert same(usd(relabelled, tuple(candidates)), usd(fleet, case.candidates))


@given(case=cases, factor=st.sampled_from((1.0, 0.7)), multiple=st.sampled_from((1, 2, 3)), data=st.data())
@law
def test_a_dominated_candidate_changes_nothing(
    case: PlanningCase, factor: float, multiple: int, data: st.DataObject
) -> None:
    if not case.candidates:
        return
    better = data.draw(st.sampled_from(case.candidates))
    worse = replace(
        better,
        config="worse",
        accelerators=better.accelerators * multiple,
        requests_per_s=tuple(rate * factor * multiple for rate in better.requests_per_s),
        power_kw=None if better.power_kw is None else better.power_kw * multiple,
    )
    kept = prune_dominated([better, worse], case.fleet.hardware, RejectionLog())
    both = usd(case.fleet, (*case.candidates, worse))
    alone = usd(case.fleet, case.candidates)
    assert no_cheaper(alone, both)
    if worse not in kept:
        assert same(both, alone)


@given(case=cases, data=st.data())
@law
def test_pruning_keeps_the_optimum(case: PlanningCase, data: st.DataObject) -> None:
    more = list(case.candidates)
    for candidate in case.candidates:
        multiple = data.draw(st.sampled_from((1, 2, 3, 4)))
        factor = data.draw(st.sampled_from((0.8, 1.0, 1.02)))
        more.append(
            replace(
                candidate,
                config=f"{candidate.config}-times-{multiple}",
                accelerators=candidate.accelerators * multiple,
                requests_per_s=tuple(round(rate * factor * multiple, 3) for rate in candidate.requests_per_s),
                power_kw=None if candidate.power_kw is None else candidate.power_kw * multiple,
            )
        )
    by_service = [[c for c in more if c.service == s.name] for s in case.fleet.services]
    pruned = [
        kept for own in by_service for kept in prune_dominated(own, case.fleet.hardware, RejectionLog())
    ]
    assert same(usd(case.fleet, tuple(pruned)), usd(case.fleet, tuple(more)))


@given(case=cases)
@law
def test_an_offer_in_two_halves_changes_nothing(case: PlanningCase) -> None:
    offers: list[Offer] = []
    for offer in case.fleet.offers:
        limits = offer.max_units
        half = tuple(None if n is None else n // 2 for n in limits)
        rest = tuple(None if n is None else n - n // 2 for n in limits)
        offers.append(replace(offer, max_units=half))
        offers.append(replace(offer, name=f"{offer.name}-2", max_units=rest))
    split = replace(case.fleet, offers=tuple(offers))
    assert same(usd(split, case.candidates), usd(case.fleet, case.candidates))


@given(case=cases, factor=st.sampled_from((1.0, 0.3, 0.1, 9.0)), scarce=st.booleans())
@law
def test_regions_that_share_nothing_are_planned_as_if_alone(
    case: PlanningCase, factor: float, scarce: bool
) -> None:
    """Unmet demand of a small region counts in its own units: ten requests/s are not a hundred."""
    free = replace(
        case.fleet,
        offers=() if scarce else case.fleet.offers,
        policy=replace(case.fleet.policy, unmet="penalise"),
        budget=Budget((None,), None, None, None),
    )
    one, other = (_in_regions_of_its_own(free, label, ratio) for label, ratio in (("x", 1.0), ("y", factor)))
    both = replace(
        one,
        regions=one.regions + other.regions,
        pools=one.pools + other.pools,
        offers=one.offers + other.offers,
        services=tuple(map(_together, one.services, other.services)),
    )
    together, *alone = (_planned(fleet, case.candidates) for fleet in (both, one, other))
    unmet = sum(map(_unmet_requests_per_s, alone))
    assert _unmet_requests_per_s(together) == pytest.approx(unmet, rel=1e-5, abs=1e-5)
    assert together.objective_usd == pytest.approx(sum(plan.objective_usd for plan in alone), rel=1e-5)


def _in_regions_of_its_own(fleet: Fleet, label: str, factor: float) -> Fleet:
    """A fleet in regions, pools and offers of other names, its demand times a factor."""
    return replace(
        fleet,
        regions=tuple(replace(each, name=each.name + label) for each in fleet.regions),
        pools=tuple(
            replace(each, name=each.name + label, region=each.region + label) for each in fleet.pools
        ),
        offers=tuple(
            replace(each, name=each.name + label, regions=tuple(name + label for name in each.regions))
            for each in fleet.offers
        ),
        services=tuple(
            replace(
                each,
                demand=each.demand.changed(
                    lambda rates: {(r + label, q, k): rate * factor for (r, q, k), rate in rates.items()}
                ),
            )
            for each in fleet.services
        ),
    )


def _together(one: Service, other: Service) -> Service:
    """A service with the demand of two, in regions that differ."""
    more = other.demand.of((None, None))
    return replace(one, demand=one.demand.changed(lambda rates: {**rates, **more}))


def _planned(fleet: Fleet, candidates: tuple[Candidate, ...]) -> Plan:
    plan = solve(fleet, candidates).plan
    assert plan is not None
    return plan


def _unmet_requests_per_s(plan: Plan) -> float:
    return sum(row.requests_per_s for row in plan.unmet)
