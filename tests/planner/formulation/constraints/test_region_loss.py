"""Family 10: whatever region is lost, the rest serves the protected services."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.parts import first_parts
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, rented_pool, service
from tests.planner.families import solved_example
from tests.planner.family_examples import EXAMPLES
from tests.planner.random_fleets import tiny_case
from tests.planner.solving import Solved, is_infeasible, solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.plan import Plan
from fleetplan.planner.search.shortage import find_shortages
from fleetplan.planner.verify import verify

THREE = ("east", "north", "west")


def chat_everywhere(protected: tuple[str, ...], batch: float = 0.0) -> Fleet:
    """2 requests/s of chat in each of three regions, and as many as wanted of batch."""
    services = [service("chat", 2.0, regions=THREE)]
    if batch:
        services.append(service("batch", batch, regions=THREE))
    return fleet(
        services=services,
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, regions=THREE)],
        regions=[region(place) for place in THREE],
        policy={"survive_region_loss": protected},
    )


RUNS = [candidate("chat", "A", 1.0), candidate("batch", "A", 1.0)]


def plan_of(solved: Solved) -> Plan:
    assert solved.plan is not None
    return solved.plan


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("region_loss")
    assert {(row.lost_region, row.region, row.replicas) for row in plan_of(solved).region_losses} == {
        ("east", "west", 6),
        ("west", "east", 6),
    }


def test_three_regions_share_the_loss_of_one() -> None:
    # Any two of three must hold six: three in each.
    assert solve(chat_everywhere(("chat",)), RUNS).usd == pytest.approx(9 * 2190.0)
    assert solve(chat_everywhere(()), RUNS).usd == pytest.approx(6 * 2190.0)


def test_services_that_are_not_protected_make_room() -> None:
    # Chat takes the accelerators of batch: nothing is bought for the loss.
    solved = solve(chat_everywhere(("chat",), batch=1.0), RUNS)
    assert solved.usd == pytest.approx(9 * 2190.0)
    assert {row.service for row in plan_of(solved).region_losses} == {"chat"}
    # With both protected any two must hold nine.
    both = solve(chat_everywhere(("chat", "batch"), batch=1.0), RUNS)
    assert both.usd == pytest.approx(14 * 2190.0)


def test_phases_of_a_request_stay_in_one_region() -> None:
    question = replace(
        chat_everywhere(("chat",)),
        offers=(rent_offer("A", 1.0, regions=THREE), rent_offer("B", 1.0, regions=THREE[:2])),
    )
    question = replace(question, hardware={name: hardware(name, 1) for name in ("A", "B")})
    demand = {(place, "now", "all"): 2.0 if place == "east" else 0.0 for place in THREE}
    question = replace(question, services=(service("chat", demand, regions=THREE),))
    runs = [candidate("chat", "A", 1.0, phase="prefill"), candidate("chat", "B", 1.0, phase="decode")]
    # West has no B, so north alone can stand in for east.
    solved = solve(question, runs)
    assert solved.usd == pytest.approx(2 * 4 * 2190.0)
    east = [row for row in plan_of(solved).region_losses if row.lost_region == "east"]
    assert {row.region for row in east} == {"north"}


def test_what_is_under_maintenance_or_beyond_the_power_serves_nothing() -> None:
    places = ("east", "west")
    pools = tuple(rented_pool(place, 2, 1.0, hardware="A", per_host=1, region=place) for place in places)
    demand = {("east", "now", "all"): 2.0}
    question = fleet(
        services=[service("chat", demand, regions=places)],
        hardware=[hardware("A", 1)],
        pools=pools,
        regions=[region(place) for place in places],
        policy={"survive_region_loss": ("chat",)},
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0)]
    assert solve(question, runs).usd == pytest.approx(4 * 2190.0)
    repaired = replace(question, pools=(pools[0], replace(pools[1], maintenance_hosts=(1,))))
    assert is_infeasible(repaired, runs)
    dark = replace(question, regions=(region("east"), region("west", power_kw=(1.9,))))
    assert is_infeasible(dark, runs)


def test_a_reserve_may_serve_in_an_emergency() -> None:
    places = ("east", "west")
    question = fleet(
        services=[service("chat", 1.0, regions=places)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool(place, 2, 1.0, hardware="A", per_host=1, region=place) for place in places],
        regions=[region(place) for place in places],
        policy={"survive_region_loss": ("chat",), "reserve_hosts_per_pool": 1},
    )
    assert solve(question, RUNS).usd == pytest.approx(4 * 2190.0)


def test_a_service_goes_only_where_it_may() -> None:
    question = chat_everywhere(("chat",))
    demand = {("east", "now", "all"): 2.0, ("north", "now", "all"): 2.0}
    (chat,) = (service("chat", demand, regions=THREE),)
    anywhere = replace(question, services=(chat,))
    # Any two of three hold four: two in each.
    assert solve(anywhere, RUNS).usd == pytest.approx(6 * 2190.0)
    two = replace(anywhere, services=(replace(chat, allowed_regions=("east", "north")),))
    solved = solve(two, RUNS[:1])
    assert solved.usd == pytest.approx(8 * 2190.0)
    assert solved.usd == pytest.approx(highs_usd(solved.problem))
    free = plan_of(solve(anywhere, RUNS[:1]))
    assert "region_loss" in {each.family for each in verify(solved.problem, free)}
    kept_out = replace(chat, allowed_regions=("west",))
    elsewhere = replace(solved.problem, services={"chat": kept_out})
    assert "placement" in {each.family for each in verify(elsewhere, free)}


def test_unmet_demand_need_not_survive() -> None:
    example = EXAMPLES["region_loss"]()
    policy = replace(example.infeasible.policy, unmet="penalise")
    solved = solve(replace(example.infeasible, policy=policy), example.candidates)
    # Eleven accelerators: five in one region serve five of six requests/s.
    assert sum(row.requests_per_s for row in plan_of(solved).unmet) == pytest.approx(1.0)


def test_a_shortage_names_the_loss() -> None:
    places = ("east", "west")
    question = fleet(
        services=[service("chat", 2.0, regions=places)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool(place, 3, 1.0, hardware="A", per_host=1, region=place) for place in places],
        regions=[region(place) for place in places],
        policy={"survive_region_loss": ("chat",)},
    )
    solved = solve(question, RUNS)
    assert solved.plan is None
    assert all("survive_region_loss" in row.reason for row in find_shortages(solved.problem, (), 1, 1).rows)


@pytest.mark.parametrize("change", ["dropped", "moved", "fewer replicas", "unknown", "too many"])
def test_a_tampered_plan_is_rejected(change: str) -> None:
    solved = solve(chat_everywhere(("chat",)), RUNS)
    plan = plan_of(solved)
    first, *rest = plan.region_losses
    other = next(place for place in THREE if place not in (first.region, first.lost_region))
    changes: dict[str, dict[str, object]] = {
        "moved": {"pool": f"{first.lost_region}/A", "region": first.lost_region},
        "fewer replicas": {"replicas": first.replicas - 1},
        "unknown": {"config": "x64"},
        "too many": {"replicas": 9, "pool": f"{other}/A", "region": other},
    }
    kept = () if change == "dropped" else (first.model_copy(update=changes[change]),)
    found = verify(solved.problem, plan.model_copy(update={"region_losses": (*kept, *rest)}))
    assert {violation.family for violation in found} == {"region_loss"}


IN_TWO_REGIONS = [seed for seed in range(60) if len(tiny_case(seed).fleet.regions) == 2][:14]


@pytest.mark.parametrize("seed", first_parts(IN_TWO_REGIONS, 3, more=3))
def test_random_fleets_have_one_optimum(seed: int) -> None:
    case = tiny_case(seed)
    names = tuple(each.name for each in case.fleet.services[:2])
    policy = replace(case.fleet.policy, survive_region_loss=names)
    question = replace(case.fleet, policy=policy, budget=fleet(services=[], hardware=[]).budget)
    solved = solve(question, case.candidates)
    expected = highs_usd(solved.problem)
    assert solved.usd == (None if expected is None else pytest.approx(expected, rel=1e-6))
    if solved.usd is not None:
        unprotected = solve(replace(question, policy=case.fleet.policy), case.candidates).usd
        assert unprotected is not None
        assert unprotected <= solved.usd * (1 + 1e-9)


def test_a_loss_is_survived_in_every_quarter() -> None:
    """West rents for the loss of east from the quarter in which east grows."""
    periods, places = ("2026Q1", "2026Q2"), ("east", "west")
    demand = {("east", "2026Q1", "all"): 1.0, ("east", "2026Q2", "all"): 3.0}
    question = fleet(
        services=[service("chat", demand, regions=places, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, regions=places, periods=periods)],
        regions=[region(place) for place in places],
        periods=periods,
        policy={"survive_region_loss": ("chat",), "transition_usd_per_accelerator": 100.0},
    )
    solved = solve(question, RUNS[:1])
    # Two replicas start in east; those that west would start in an emergency are not charged.
    assert solved.usd == pytest.approx((2 * 1 + 2 * 3) * 2190.0 + 2 * 100.0)
    assert solved.usd == pytest.approx(highs_usd(solved.problem))


# n replicas carry max(n / 2, 0.9 n - 0.6 from 2 on): 0.5, 1.2, 2.1, 3.0, 3.9.
UNDER_LOAD = (CapacityLine(0.5, 0.0), CapacityLine(0.9, 0.6, least=2))


@pytest.mark.parametrize(("demand", "each"), [(0.5, 2), (0.6, 2), (1.0, 3), (1.05, 3), (1.5, 4), (1.51, 5)])
def test_what_survives_carries_what_its_size_allows_under_load(demand: float, each: int) -> None:
    """The whole demand waits in the one region that is left, so each holds the pool that it needs then."""
    two = THREE[:2]
    question = fleet(
        services=[service("chat", demand, regions=two)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, regions=two)],
        regions=[region(place) for place in two],
        policy={"survive_region_loss": ("chat",)},
    )
    runs = [replace(candidate("chat", "A", 1.0), pooling=UNDER_LOAD)]
    solved = solve(question, runs)
    assert solved.usd == pytest.approx(2 * each * 2190.0)
    plan = plan_of(solved)
    assert {(row.region, row.replicas) for row in plan.region_losses} == {(place, each) for place in two}
    assert not list(verify(solved.problem, plan))
    # One replica fewer would carry all of the load at full rate, but not within the limits.
    fewer = tuple(row.model_copy(update={"replicas": each - 1}) for row in plan.region_losses)
    found = verify(solved.problem, plan.model_copy(update={"region_losses": fewer}))
    assert {violation.family for violation in found} == {"region_loss"}
