"""Conflicts about power, reserves and spot shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from tests.planner.builders import (
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.questions.conflicts import core, explained, infeasible, one_kind, two_rooms, ways
from tests.planner.questions.tiny import EXACT, engine_table

from fleetplan.planner.plan import Infeasible
from fleetplan.planner.problem import build_problem
from fleetplan.planner.questions.conflict.requirements import requirements_of
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.solve_outcome import stated_outcome
from fleetplan.planner.search import PowerLimit, SearchLimits, extra_power, feasible, least_power
from fleetplan.planner.search.feasible import Verdict
from fleetplan.planner.search.solvers.request import ModelOutcome, ModelStatus


def test_kilowatts_that_are_short_are_counted() -> None:
    # 10 replicas of 2 kW behind a PUE of 1.2.
    found = explained(
        one_kind(
            pools=[owned_pool("own", 3, 160_000.0, hardware="A")],
            regions=[region("here", power_kw=(20.0,), pue=1.2)],
        )
    )
    assert core(found) == ["power of here is 20 kW", "chat in here is served, 100 requests/s"]
    assert ways(found)[0] == "4 kW more in here"


def test_power_that_does_not_even_do_for_what_stands_idle_is_a_way_out() -> None:
    """Power below the idle draw is a conflict by itself: 24 idle cards of 100 W beside 10 kW of load."""
    question = one_kind(
        hardware=[hardware("A", 8, 1000.0, 100.0)],
        pools=[rented_pool("own", 3, 1.0, hardware="A")],
        regions=[region("here", power_kw=(2.0,), pue=1.0)],
    )
    stated = stated_outcome(question, EXACT, None, lambda _: None, infeasible(question))
    assert isinstance(stated, Infeasible)
    assert stated.shortages == ()
    assert stated.conflict is not None
    (give,) = stated.conflict.ways_out[0].gives
    assert give.change.endswith("kW more in here")
    assert give.least


def test_a_limit_below_a_watt_is_raised_by_watts() -> None:
    limits = [region("here", power_kw=(1e-9,), pue=1.1)]
    found = explained(one_kind(regions=limits, pools=[owned_pool("own", 3, 160_000.0, hardware="A")]))
    # 10 replicas of 2 kW behind a PUE of 1.1.
    assert ways(found)[0] == "22 kW more in here"


def test_a_limit_of_a_gigawatt_is_raised_within_64_bits() -> None:
    """Steps of ten megawatts in fractions of a watt: a PUE of many digits asks for the finest ones."""
    rates = engine_table([("aggregated", "A", 1, 10.0)], power_kw=4.0)
    question = one_kind(
        services=[service("chat", 6e6, engines=rates)],
        regions=[region("here", pue=1.000000001)],
        pools=[],
        offers=[rent_offer("A", 1.0)],
    )
    problem = Resolver(EXACT).problem(question)[1]
    found = least_power(problem, [PowerLimit("here", (1e6,), 1e4)], EXACT)
    # 600,000 replicas of 4 kW, and a little for the PUE.
    assert found is not None
    assert found.steps == {"here": 141}


def test_kilowatts_that_are_enough_are_said_where_the_fewest_are_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solved = []
    original = extra_power.solve_planning

    def first_plan_alone(*arguments: Any) -> ModelOutcome:
        solved.append(original(*arguments))
        late = ModelOutcome(ModelStatus.UNKNOWN, None, None, None, "", 0.0)
        return solved[-1] if len(solved) % 2 else late

    monkeypatch.setattr(extra_power, "solve_planning", first_plan_alone)
    problem = Resolver(EXACT).problem(two_rooms())[1]
    free = {name: replace(each, power_kw=None) for name, each in problem.regions.items()}
    asked = [PowerLimit(name, (16.0,), 1.0) for name in free]
    found = least_power(replace(problem, regions=free), asked, EXACT)
    assert found is not None
    assert not found.least
    # The first plan need not be the one that draws least.
    assert found.steps["west"] >= 16
    monkeypatch.undo()
    most = tuple(
        replace(each, power_kw=(16.0 + found.steps.get(each.name, 0),)) for each in two_rooms().regions
    )
    assert Resolver(EXACT).feasible(two_rooms(regions=most)) is Verdict.YES


def test_power_that_is_short_in_two_places_is_a_way_out_of_both() -> None:
    question = two_rooms()
    stated = stated_outcome(question, EXACT, None, lambda _: None, infeasible(question))
    assert isinstance(stated, Infeasible)
    assert stated.conflict is not None
    # No single requirement is enough, and the time for others would be spent before this is found.
    (way,) = [each for each in stated.conflict.ways_out if all("kW" in give.change for give in each.gives)]
    assert [give.change for give in way.gives] == ["4 kW more in east", "16 kW more in west"]
    assert all(give.least for give in way.gives)
    assert way.objective_usd == pytest.approx(26 * 2 * 2190.0)


def test_shares_of_spot_offers_may_give_way() -> None:
    # Two offers of 40 % each: a fifth of the demand has no place.
    table = pd.concat([engine_table([("aggregated", name, 1, 10.0)]) for name in ("A", "B")])
    spot = [replace(rent_offer(name, 1.0, hardware=name), spot_max_share=0.4) for name in ("A", "B")]
    question = fleet(
        services=[service("chat", {("here", "now", "all"): 100.0}, engines=table)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=spot,
    )
    found = explained(question)
    assert core(found) == [
        "spot offer A serves at most 40% of a service from a region",
        "spot offer B serves at most 40% of a service from a region",
        "chat in here is served, 100 requests/s",
    ]
    changes = {give.text for way, _ in found.ways for give in way.gives if way.serves_everything}
    assert changes == {f"spot offer {name} serves up to 60% of a service from a region" for name in "AB"}
    assert all(way.least for way, _ in found.ways)


def test_power_is_taken_where_the_fewest_kilowatts_are_enough() -> None:
    # What east asks for may run in the west, on cards that draw half.
    table = pd.concat(
        [engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0),
         engine_table([("aggregated", "B", 2, 10.0)], power_kw=1.0)]
    )  # fmt: skip
    demand = {("east", "now", "all"): 100.0, ("west", "now", "all"): 0.0}
    chat = service("chat", demand, regions=("east", "west"), engines=table, serve_from={"east": ("west",)})
    question = two_rooms(
        services=[chat],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("a", 1.0, hardware="A", regions=("east",)),
                rent_offer("b", 9.0, hardware="B", regions=("west",))],
        regions=[region("east", power_kw=(1.0,), round_trip_ms={"west": 1.0}),
                 region("west", power_kw=(1.0,))],
    )  # fmt: skip
    problem = Resolver(EXACT).problem(question)[1]
    free = {name: replace(each, power_kw=None) for name, each in problem.regions.items()}
    asked = [PowerLimit(name, (1.0,), 0.1) for name in free]
    found = least_power(replace(problem, regions=free), asked, EXACT)
    assert found is not None
    assert found.least
    assert found.steps == {"west": 90}


@pytest.mark.parametrize("percent", [33.3, 100.0 / 3])
def test_steps_of_a_reserve_in_per_cent_have_no_more_decimals_than_a_file(percent: float) -> None:
    """A relaxed reserve is a short decimal, whose exact ratio fits into a row of integers."""
    per_pool = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 8)],
        pools=[replace(owned_pool("own", 2, 0.0, hardware="A"), reserve_percent=percent)],
    )
    per_policy = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 8)],
        offers=[rent_offer("A", 1.0, unit="host", per_unit=8)],
        policy={"reserve_percent_per_pool": percent},
    )
    runs = [candidate("chat", "A", 1.0, accelerators=8)]
    for asked in (per_pool, per_policy):
        [requirement] = [each for each in requirements_of(asked) if "of the hosts in use" in each.name]
        assert requirement.steps is not None
        for n in (1, 2, 7):
            eased = requirement.steps.relax(asked, n)
            [pool] = build_problem(eased, runs).pools
            assert pool.reserve_percent == pytest.approx(percent - n, abs=1e-6)
            assert pool.reserve_ratio.denominator <= 10**8
            assert feasible.feasibility(build_problem(eased, runs), SearchLimits(5.0)) is Verdict.YES


def test_a_reserve_gives_way() -> None:
    found = explained(one_kind(80.0, policy={"reserve_hosts_per_pool": 1}))
    assert "1 reserve host fewer in each pool" in ways(found)
