"""Shortages of fleets without a plan, worked out by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.planner.builders import (
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import NO_PROVENANCE, is_infeasible

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Infeasible, Shortage, Solve
from fleetplan.planner.problem import build_problem
from fleetplan.planner.report.infeasible_console import print_infeasible
from fleetplan.planner.search import shortage
from fleetplan.planner.search.shortage import find_shortages
from fleetplan.planner.search.solvers.request import ModelStatus


@pytest.mark.parametrize("status", [ModelStatus.SOLVED, ModelStatus.FOUND])
def test_a_shortage_is_the_least_only_where_that_is_proven(
    status: ModelStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 4)],
        pools=[rented_pool("A", 1, 1.0, per_host=4)],
    )
    problem = build_problem(question, [candidate("chat", "A", 1.5)])
    whole = shortage.solve_planning
    monkeypatch.setattr(
        shortage, "solve_planning", lambda *asked, **more: replace(whole(*asked, **more), status=status)
    )
    assert find_shortages(problem, (), seed=1, workers=1).least is (status is ModelStatus.SOLVED)


def test_an_infeasible_fleet_says_what_is_short() -> None:
    question = fleet(
        services=[service("chat", 10.0, headroom=0.2)],
        hardware=[hardware("A", 4), hardware("B", 4)],
        pools=[rented_pool("A", 1, 1.0, per_host=4)],
    )
    runs = [
        candidate("chat", "A", 1.5),
        candidate("chat", "B", 1.0, accelerators=2),
        candidate("chat", "B", 2.0, phase="prefill"),
    ]
    assert is_infeasible(question, runs)
    problem = build_problem(question, runs)
    (row,) = find_shortages(problem, (), seed=1, workers=1).rows
    # Four replicas carry 6 of 12 requests/s with headroom, so 5 of 10 without.
    assert (row.service, row.region, row.request_class) == ("chat", "here", "all")
    assert row.unmet_requests_per_s == pytest.approx(5.0)
    assert row.demand_requests_per_s == 10.0
    # 6 requests/s are four replicas of A; six of two B would do, and nothing brings a B here.
    assert row.accelerators_short == {"A": 4}
    offered = replace(question, offers=(rent_offer("B", 1.0, maximum=1),))
    (row,) = find_shortages(build_problem(offered, runs), (), seed=1, workers=1).rows
    assert row.accelerators_short == {"A": 4, "B": 12}
    assert row.power_short_kw is None
    assert row.would_take == "4 A or 12 B accelerators"
    few = row.model_copy(update={"accelerators_short": {"A": 1}})
    assert few.would_take == "1 A accelerator"


def test_hardware_that_stands_idle_is_not_said_to_be_used() -> None:
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[rented_pool("B", 4, 1.0)],
        offers=[rent_offer("A", 1.0, maximum=1)],
    )
    problem = build_problem(question, [candidate("chat", "A", 1.0)])
    (row,) = find_shortages(problem, (), seed=1, workers=1).rows
    assert row.reason == "hardware (all that can serve it is in use, or arrives later)"


def test_load_units_of_a_fast_replica_are_no_shortage() -> None:
    """A replica of 2 requests/s serves 2 requests/s, but for a load unit of 3.6e-5."""
    question = fleet(
        services=[
            service("chat", {"a": 0.600015, "b": 1.399985}, classes={"a": 0.3, "b": 0.7}),
            service("long", 10.0),
        ],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[rented_pool("A", 1, 1.0, per_host=1), rented_pool("B", 1, 1.0, per_host=1)],
    )
    runs = [candidate("chat", "A", (2.0, 2.0)), candidate("long", "B", 4.0)]
    rows = find_shortages(build_problem(question, runs), (), seed=1, workers=1).rows
    assert [(row.service, row.unmet_requests_per_s) for row in rows] == [("long", pytest.approx(6.0))]
    # Where nothing else is short, that is what has to be said.
    alone = replace(question, services=question.services[:1])
    (row,) = find_shortages(build_problem(alone, runs[:1]), (), seed=1, workers=1).rows
    assert row.unmet_requests_per_s < 4e-5


@pytest.mark.parametrize(
    ("by_policy", "by_offer", "keys"),
    [
        (0.5, None, "max_share_per_pool"),
        (None, 0.5, "max_share of spot offers"),
        (0.9, 0.5, "max_share_per_pool, max_share of spot offers"),
    ],
)
def test_shares_are_told_by_the_keys_that_state_them(
    by_policy: float | None, by_offer: float | None, keys: str
) -> None:
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 1)],
        offers=[replace(rent_offer("A", 1.0), spot_max_share=by_offer)],
        policy={"max_share_per_pool": by_policy},
    )
    problem = build_problem(question, [candidate("chat", "A", 1.0)])
    (row,) = find_shortages(problem, (), seed=1, workers=1).rows
    assert (row.unmet_requests_per_s, row.reason) == (pytest.approx(5.0), f"share of a pool ({keys})")


def test_demand_that_nothing_serves_does_not_hide_what_others_lack() -> None:
    """A service without a configuration leaves the reasons of other services as they are."""
    question = fleet(
        services=[service("chat", 10.0), service("fast", 1.0), service("far", 1.0, regions=("there",))],
        hardware=[hardware("A", 4)],
        pools=[rented_pool("A", 4, 1.0, per_host=4)],
        regions=[region("here", power_kw=(6.0,)), region("there")],
    )
    runs = [candidate("chat", "A", 1.5, power_kw=1.0), candidate("far", "A", 1.0, power_kw=1.0)]
    rows = find_shortages(build_problem(question, runs), (), seed=1, workers=1).rows
    reasons = {row.service: row.reason for row in rows}
    assert reasons["chat"] == "power"
    assert reasons["far"] == "a pool or an offer in there"
    assert reasons["fast"].startswith("a configuration that meets the SLO")


def test_regions_without_hardware_are_named() -> None:
    question = fleet(
        services=[service("chat", 2.0, regions=("here", "there"))],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        regions=[region("here"), region("there")],
    )
    problem = build_problem(question, [candidate("chat", "A", 1.0)])
    (row,) = find_shortages(problem, (), seed=1, workers=1).rows
    assert (row.region, row.unmet_requests_per_s) == ("there", pytest.approx(2.0))
    assert row.reason == "a pool or an offer in there"


@pytest.mark.parametrize(("idle_w", "limit_kw", "short_kw"), [(0.0, 6.0, 6.0), (250.0, 10.5, 4.5)])
def test_want_of_power_is_said_in_kilowatts(idle_w: float, limit_kw: float, short_kw: float) -> None:
    """Existing hardware draws idle power already, so the shortage is 32.1 kW, not 38.6 kW."""
    question = fleet(
        services=[service("chat", 10.0, headroom=0.2)],
        hardware=[hardware("A", 4, idle_w=idle_w)],
        pools=[rented_pool("A", 4, 1.0, per_host=4)],
        regions=[region("here", power_kw=(limit_kw,), pue=1.5)],
    )
    runs = [candidate("chat", "A", 1.5, power_kw=1.0), candidate("chat", "B", 100.0, power_kw=0.1)]
    (row,) = find_shortages(build_problem(question, runs), (), seed=1, workers=1).rows
    # Four replicas carry 6 of 12 requests/s; four more draw 4 kW behind a PUE of 1.5. There is no B.
    assert row.reason == "power"
    assert row.power_short_kw == pytest.approx(short_kw)
    assert row.would_take == f"{short_kw:g} kW"
    screen = Console(width=200, record=True, file=io.StringIO())
    print_infeasible(infeasible(question, (row,)), False, screen)
    assert f"missing: power\n    additional capacity needed: {short_kw:g} kW" in screen.export_text()


def test_no_demand_is_short_where_nothing_is_asked_for() -> None:
    """A budget below the existing cost, without any demand, ends with a message."""
    question = fleet(
        services=[service("chat", 0.0)],
        hardware=[hardware("A", 4)],
        pools=[rented_pool("A", 4, 1.0, per_host=4)],
        budget={"capex_usd_by_period": (None,), "capex_usd": None, "opex_usd": None, "tco_usd": 1.0},
    )
    runs = [candidate("chat", "A", 1.5)]
    assert is_infeasible(question, runs)
    assert find_shortages(build_problem(question, runs), (), seed=1, workers=1).rows == ()


def infeasible(question: Fleet, shortages: tuple[Shortage, ...]) -> Infeasible:
    solve = Solve(wall_s=0.1, deterministic_time=0.1, status="infeasible", bound_source="")
    return Infeasible(
        fleet=question.name, shortages=shortages, rejections=(), provenance=NO_PROVENANCE, solve=solve
    )
