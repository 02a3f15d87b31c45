"""The scenarios that ask about regions, power, pods and many small services."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.measured import needs_tables
from tests.scenarios.test_scenarios import plan_of, scenario_file

from fleetplan.planner.plan import Plan
from fleetplan.scenarios.head_and_tail import TAIL, fleet_text
from fleetplan.scenarios.load import load_fleet


def power_kw(plan: Plan) -> float:
    """Return the power of the hall at full load. [kW]"""
    watts = {"H100-SXM": 1370, "H200-SXM": 1370, "B200-SXM": 1710}
    return sum(1.2 * row.accelerators * watts[row.hardware] / 1000 for row in plan.placements)


@pytest.mark.more
@needs_tables
def test_less_power_buys_what_does_more_with_it() -> None:
    plenty, capped, smaller = (
        plan_of("power-capped", *which, gap_ratio=0.01) for which in (("uncapped",), (), ("smaller",))
    )
    assert power_kw(plenty) > 65 >= power_kw(capped)
    assert power_kw(smaller) <= 42
    efficient = [
        sum(row.accelerators for row in plan.placements if row.hardware == "B200-SXM")
        for plan in (plenty, capped)
    ]
    assert efficient[0] < efficient[1]
    assert plenty.objective_usd < capped.objective_usd
    assert plenty.unmet == capped.unmet == ()
    assert smaller.goal is not None
    assert smaller.goal.value < smaller.goal.bound * 1.01
    assert sum(row.requests_per_s for row in smaller.unmet) > 10


@pytest.mark.more
def test_least_energy_costs_more_and_draws_less() -> None:
    cheap, frugal = plan_of("power-capped", gap_ratio=0.01), plan_of("power-capped", "least-energy")
    assert frugal.goal is not None
    assert frugal.goal.unit == "kWh"
    assert frugal.goal.gap <= 1e-3
    assert frugal.objective_usd > cheap.objective_usd
    assert power_kw(frugal) < power_kw(cheap)


def test_pods_decode_what_hosts_prefill_and_are_needed_for_quick_answers() -> None:
    relaxed, quick, equal = (
        plan_of("scale-up-or-out/fleet", *which, gap_ratio=0.01) for which in ((), ("quick",), ("equal",))
    )
    pods = [
        sum(row.accelerators for row in plan.placements if row.hardware == "NextGen-Pod")
        for plan in (relaxed, quick)
    ]
    assert pods[0] < pods[1]
    # The quick decode of a dense model of this size is not to be had in hosts.
    assert {row.hardware for row in quick.placements if row.phase == "decode"} == {"NextGen-Pod"}
    assert equal.objective_usd < relaxed.objective_usd < quick.objective_usd


@pytest.mark.slow
def test_outliving_a_region_costs_what_is_bought_for_it() -> None:
    protected, unprotected, far = (
        plan_of("region-loss", *which, gap_ratio=0.02, time_limit_s=60.0)
        for which in ((), ("unprotected",), ("far",))
    )
    assert protected.objective_usd > 1.2 * unprotected.objective_usd
    assert {row.lost_region for row in protected.region_losses} == {"us-east", "us-west", "eu-west"}
    assert unprotected.region_losses == ()
    assert unprotected.objective_usd < far.objective_usd
    assert not [row for row in far.placements if row.service == "chat" and row.requests_per_s_by_origin]


def test_the_head_and_its_tail_are_what_the_script_writes() -> None:
    file = scenario_file("head-and-tail")
    assert file.read_text(encoding="utf-8") == fleet_text()
    services = load_fleet(file).services
    rates = [sum(service.demand.peak.values()) for service in services]
    assert len(rates) == TAIL + 1
    assert all(one >= other for one, other in pairwise(rates))


@pytest.mark.slow
def test_the_head_and_its_tail_are_planned_within_five_percent() -> None:
    plan = plan_of("head-and-tail", gap_ratio=0.05, time_limit_s=60.0)
    assert plan.gap <= 0.05
    tail = sum(row.accelerators for row in plan.placements if row.service != "head")
    assert tail >= TAIL
