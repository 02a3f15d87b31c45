"""Cost of data of requests that another region serves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import by_case
from tests.planner.formulation.two_regions import RENT, plan_of, question, timed
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Finance, Fleet
from fleetplan.planner.verify import verify


def priced(usd_per_gb: float, mb: float = 1000.0) -> Fleet:
    asked = question(mb_per_request=mb, headroom=0.5)
    east = replace(asked.regions[0], network_usd_per_gb={"west": usd_per_gb})
    return replace(asked, regions=(east, asked.regions[1]), finance=Finance(discount_rate_per_year=0.08))


def test_the_way_of_the_data_is_paid_for() -> None:
    runs = (timed(1.5, 240.0, "x"),)
    solved = solve(priced(1e-5), runs)
    # One request/s of the east in the west, its headroom no traffic: a quarter of 1 GB each, paid at its end.
    usd = 1e-5 * 1.0 * 2190 * 3600 / 1.08**0.25
    assert plan_of(solved).cost_breakdown["data"] == pytest.approx(usd)
    assert sum(row.data_usd for row in solved.rows()) == pytest.approx(usd)
    period = next(row for row in plan_of(solved).costs if row.scope == "period")
    assert period.usd_by_kind["data"] == pytest.approx(usd)


@pytest.mark.parametrize("rate", [1.5, 7.9, 8_600.0, 3e6, 1e12])
def test_a_replica_far_faster_than_its_demand_pays_for_what_it_serves(rate: float) -> None:
    # A load unit of 8,600 requests/s is a third of this demand: four of them would be charged for three.
    asked = question(mb_per_request=1.0, allowed_regions=("west",))
    demand = by_case({("east", "now", "all"): 0.4961, ("west", "now", "all"): 0.5})
    east = replace(asked.regions[0], network_usd_per_gb={"west": 0.05})
    chat = replace(asked.services[0], demand=demand)
    asked = replace(asked, regions=(east, asked.regions[1]), services=(chat,))
    solved = solve(asked, (timed(rate, 240.0, "x"),))
    usd = 0.05 * 0.4961 * 1e-3 * 2190 * 3600
    assert plan_of(solved).cost_breakdown["data"] == pytest.approx(usd, rel=1e-6)
    assert solved.result.objective_usd == pytest.approx(RENT + usd, abs=2e-4 * usd)
    assert solved.result.bound_usd == pytest.approx(RENT + usd, abs=2e-4 * usd)


def test_a_dear_way_is_not_taken() -> None:
    runs = (timed(1.5, 240.0, "x"),)
    # Two accelerator-quarters are saved for a request/s: 4,380 $ for 7.9 million GB.
    assert solve(priced(5e-4), runs).rows(region="west")[0].requests_per_s_by_origin
    assert not solve(priced(6e-4), runs).rows(region="west")[0].requests_per_s_by_origin
    assert solve(priced(6e-4, mb=0.0), runs).rows(region="west")[0].requests_per_s_by_origin


def test_data_cost_counts_in_the_budget_and_is_verified() -> None:
    runs = (timed(1.5, 240.0, "x"),)
    solved = solve(priced(1e-5), runs)
    rows = tuple(row.model_copy(update={"data_usd": 0.0}) for row in plan_of(solved).placements)
    kinds = {kind: usd for kind, usd in plan_of(solved).cost_breakdown.items() if kind != "data"}
    free = plan_of(solved).model_copy(update={"placements": rows, "cost_breakdown": kinds})
    assert "cost" in {violation.family for violation in verify(solved.problem, free)}
    assert solved.usd is not None
    tight = replace(priced(1e-5), budget=replace(priced(1e-5).budget, opex_usd=solved.usd - 1.0))
    assert solve(tight, runs).usd is None


def test_regions_do_not_swap_their_requests() -> None:
    # Both regions are as cheap, and either may serve the other: every plan costs the same.
    asked = question(serve_from={"east": ("west",), "west": ("east",)})
    even = tuple(
        replace(offer, rent_usd_per_accelerator_hour=(1.0,), max_units=(2,)) for offer in asked.offers
    )
    for seed in range(3):
        solved = solve(replace(asked, offers=even), (timed(1.0, 200.0, "x"),), seed=seed)
        assert [row.requests_per_s_by_origin for row in solved.rows()] == [{}, {}]
    # One that has room for three serves one of the other's, and no more than that.
    odd = (replace(even[0], max_units=(1,)), replace(even[1], max_units=(3,)))
    solved = solve(replace(asked, offers=odd), (timed(1.0, 200.0, "x"),))
    elsewhere = {row.region: row.requests_per_s_by_origin for row in solved.rows()}
    assert elsewhere == {"east": {}, "west": {"east": {"all": pytest.approx(1.0)}}}
