"""Fleets with slices, demand scenarios and periods: three ways to one optimum, and laws between optima."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.oracles.brute_force import TooLargeError
from tests.oracles.brute_force_days import brute_force_days_usd
from tests.oracles.highs import highs_usd
from tests.parts import first_parts
from tests.planner.day_fleets import day_case
from tests.planner.random_fleets import PlanningCase
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Demand, DemandScenario, Fleet, Service, Slice, Tidal
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.search.scenarios import single_scenario

REL = 1e-6
INFINITE = float("inf")
BLOCKS = 5
FLEETS_A_BLOCK = 10

cases = st.integers(0, 3_000).map(day_case)
law = examples(15, 2, 4, derandomize=True)


def usd(fleet: Fleet, candidates: tuple[Candidate, ...]) -> float:
    """Expected TCO of the optimum; infinite where there is none."""
    found = solve(fleet, candidates).usd
    return INFINITE if found is None else found


def no_cheaper(one: float, other: float) -> bool:
    return one >= other * (1 - REL)


def same(one: float, other: float) -> bool:
    return one == other or one == pytest.approx(other, rel=REL)


@pytest.mark.parametrize("block", first_parts(range(BLOCKS), 1))
def test_random_fleets_have_one_optimum(block: int) -> None:
    tried = feasible = 0
    for seed in range(block * 100, block * 100 + 99):
        case = day_case(seed)
        problem = build_problem(case.fleet, case.candidates)
        try:
            least = brute_force_days_usd(problem) if problem.cells else None
        except TooLargeError:
            continue
        if problem.cells:
            planned, other = usd(case.fleet, case.candidates), highs_usd(problem)
            assert same(planned, INFINITE if least is None else least), f"seed {seed}"
            assert same(planned, INFINITE if other is None else other), f"seed {seed}"
            tried, feasible = tried + 1, feasible + (least is not None)
        if tried == FLEETS_A_BLOCK:
            break
    assert tried == FLEETS_A_BLOCK
    assert feasible >= FLEETS_A_BLOCK // 3


@given(case=cases, factor=st.sampled_from((1.01, 1.3, 2.0)))
@law
def test_more_demand_is_never_cheaper(case: PlanningCase, factor: float) -> None:
    def larger(service: Service) -> Service:
        demand = service.demand.changed(lambda rates: {key: rate * factor for key, rate in rates.items()})
        return replace(service, demand=demand)

    more = replace(case.fleet, services=tuple(map(larger, case.fleet.services)))
    assert no_cheaper(usd(more, case.candidates), usd(case.fleet, case.candidates))


@given(case=cases, data=st.data())
@law
def test_a_slice_in_two_halves_changes_nothing_online(case: PlanningCase, data: st.DataObject) -> None:
    """Of offline work more slices can only leave fewer ways: it waits for the whole of a slice."""
    online = tuple(service for service in case.fleet.services if service.offline is None)
    runs = tuple(one for one in case.candidates if one.service in {service.name for service in online})
    if not online or not case.fleet.slices:
        return
    question = replace(case.fleet, services=online)
    cut = data.draw(st.sampled_from(case.fleet.slices))
    slices: list[Slice] = []
    for part in case.fleet.slices:
        halves = (Slice(part.name, part.hours / 2), Slice("rest", part.hours / 2))
        slices += halves if part == cut else (part,)

    def halved(service: Service) -> Service:
        rest = {
            ("rest", scenario): rates
            for (part, scenario), rates in service.demand.by_case.items()
            if part == cut.name
        }
        return replace(service, demand=Demand({**service.demand.by_case, **rest}))

    finer = replace(question, slices=tuple(slices), services=tuple(map(halved, online)))
    assert same(usd(finer, runs), usd(question, runs))


@given(case=cases)
@law
def test_a_scenario_in_two_halves_changes_nothing(case: PlanningCase) -> None:
    if not case.fleet.demand_scenarios:
        return
    first, *rest = case.fleet.demand_scenarios
    twins = (
        DemandScenario(first.name, first.probability / 2),
        DemandScenario("twin", first.probability / 2),
    )

    def doubled(service: Service) -> Service:
        twin = {
            (part, "twin"): rates
            for (part, scenario), rates in service.demand.by_case.items()
            if scenario == first.name
        }
        return replace(service, demand=Demand({**service.demand.by_case, **twin}))

    services = tuple(map(doubled, case.fleet.services))
    split = replace(case.fleet, demand_scenarios=(*twins, *rest), services=services)
    assert same(usd(split, case.candidates), usd(case.fleet, case.candidates))


@given(case=cases)
@law
def test_to_know_the_demand_is_never_dearer(case: PlanningCase) -> None:
    """The expected cost is no less than that of the best plan for each scenario, each by its probability."""
    problem = build_problem(case.fleet, case.candidates)
    together = usd(case.fleet, case.candidates)
    if not case.fleet.demand_scenarios or together == INFINITE or not problem.cells:
        return
    known = 0.0
    for scenario in case.fleet.demand_scenarios:
        one = single_scenario(problem, scenario.name)
        least = highs_usd(one)
        assert least is not None
        known += scenario.probability * least
    assert no_cheaper(together, known)


@given(case=cases, share=st.sampled_from((0.0, 0.4, 0.7)), usd_each=st.sampled_from((0.0, 0.5, 5.0)))
@law
def test_tides_that_cost_or_are_limited_are_never_cheaper(
    case: PlanningCase, share: float, usd_each: float
) -> None:
    tight = replace(case.fleet, policy=replace(case.fleet.policy, tidal=Tidal(usd_each, share)))
    tighter = usd(tight, case.candidates)
    assert no_cheaper(tighter, usd(case.fleet, case.candidates))
    other = highs_usd(build_problem(tight, case.candidates))
    assert same(tighter, INFINITE if other is None else other)


@given(case=cases, hours=st.sampled_from((1.0, 8.0, 13.0, 24.0)))
@law
def test_a_longer_deadline_is_never_dearer(case: PlanningCase, hours: float) -> None:
    def patient(service: Service) -> Service:
        if service.offline is None:
            return service
        longer = replace(service.offline, deadline_hours=service.offline.deadline_hours + hours)
        return replace(service, offline=longer)

    longer = replace(case.fleet, services=tuple(map(patient, case.fleet.services)))
    assert no_cheaper(usd(case.fleet, case.candidates), usd(longer, case.candidates))


@pytest.mark.parametrize("seed", first_parts(range(12), 2))
def test_changes_from_period_to_period_are_charged_by_the_hour(seed: int) -> None:
    """Slice by slice and scenario by scenario, against another solver; also beside changes within the day."""
    case = day_case(seed)
    tidal = Tidal(0.0 if seed % 2 else 0.2)
    policy = replace(case.fleet.policy, transition_usd_per_accelerator=700.0, tidal=tidal)
    question = replace(case.fleet, policy=policy)
    problem = build_problem(question, case.candidates)
    if problem.cells:
        other = highs_usd(problem)
        assert same(usd(question, case.candidates), INFINITE if other is None else other)


@pytest.mark.parametrize("seed", first_parts(range(8), 2))
def test_the_loss_of_a_region_holds_in_every_moment(seed: int) -> None:
    case = day_case(seed)
    places = ("here", "there")
    services = []
    for service in case.fleet.services:
        both = service.demand.changed(
            lambda rates: {(place, q, k): rate for (_, q, k), rate in rates.items() for place in places}
        )
        services.append(replace(service, demand=both))
    question = replace(
        case.fleet,
        regions=tuple(replace(case.fleet.regions[0], name=place) for place in places),
        offers=tuple(
            replace(offer, regions=places, max_units=tuple(12 for _ in offer.max_units))
            for offer in case.fleet.offers
        ),
        services=tuple(services),
        policy=replace(case.fleet.policy, survive_region_loss=(services[-1].name,)),
    )
    problem = build_problem(question, case.candidates)
    if problem.cells:
        other = highs_usd(problem)
        assert same(usd(question, case.candidates), INFINITE if other is None else other)
