"""The objective that serves most demand: by weights, beyond the headroom, within a budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.planner.builders import (
    by_case,
    candidate,
    fleet,
    hardware,
    rent_offer,
    service,
)
from tests.planner.formulation.goals import QUARTER_H, RUNS, question, reached, runs
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate
from fleetplan.planner.search.result import SearchLimits, SolveStatus
from fleetplan.scenarios.load import load_fleet


def test_nothing_is_served_at_no_gap() -> None:
    """Weights of what is unserved are rounded; where all of it is, that is no gap."""
    headroom = replace(service("chat", 9.04), headroom=0.13, served_weight=2.5)
    solved = solve(question("served", services=(headroom,), offers=()), RUNS)
    assert (reached(solved).value, reached(solved).gap) == (0.0, 0.0)
    assert solved.result.status is SolveStatus.OPTIMAL


NOTHING_ARRIVES = """\
version: 1
horizon:
  periods: [2027Q1]
  day_kinds: {x: 200, holiday: 1}
  slices: [{name: day, hours: 14}, {name: night, hours: 10}]
regions: {here: {energy_usd_per_kwh: 0.1, pue: 1.0}}
hardware: {gpu: {accelerators_per_host: 2, all_in_w: 800}}
offers: [{name: off, hardware: gpu, regions: [here], rent_usd_per_accelerator_hour: 5, lead_time_quarters: 2}]
services: [{name: chat, engines: rates.csv, demand: 13.482, headroom: 0.08424, priority: 3}]
policy: {unmet: penalise}
objective: served
"""


def test_what_floats_leave_of_nothing_served_is_no_gap(tmp_path: Path) -> None:
    """2e-16 of 1e-15 requests/s served is rounding, not a gap."""
    rates = (
        "phase,hardware,accelerators_per_replica,config,requests_per_s,power_kw\naggregated,gpu,2,c,3,1.5\n"
    )
    (tmp_path / "rates.csv").write_text(rates)
    (tmp_path / "fleet.yaml").write_text(NOTHING_ARRIVES)
    planned = plan_fleet(load_fleet(tmp_path / "fleet.yaml"), SearchLimits(5.0, 0.05, workers=1))
    assert isinstance(planned.outcome, Plan)
    assert planned.outcome.status == "optimal"
    goal = planned.outcome.goal
    assert goal is not None
    assert (goal.value, goal.bound, goal.gap) == (0.0, 0.0, 0.0)


def scarce(objective: str, **priorities: int) -> tuple[Fleet, tuple[Candidate, ...]]:
    """Three accelerators: a request/s of `large` needs one, of `small` a quarter of one."""
    services = [
        service("large", 3.0, priority=1, served_weight=1.0),
        service("small", 4.0, priority=3, served_weight=1 / 3),
    ]
    asked = fleet(
        services=services,
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        budget={"tco_usd": 3 * 1.0 * QUARTER_H},
        policy={"unmet": "penalise"},
    )
    return replace(asked, objective=objective), (candidate("large", "A", 1.0), candidate("small", "A", 4.0))


def test_most_demand_within_a_budget_is_weighted() -> None:
    solved = solve(*scarce("served"))
    # An accelerator serves 4/3 of the small one and 1 of the large one, each by its weight.
    assert {row.service: row.replicas for row in solved.rows()} == {"large": 2, "small": 1}
    goal = reached(solved)
    assert (goal.value, goal.unit) == (pytest.approx(2.0 + 4 / 3), "weighted requests/s")
    assert goal.bound == pytest.approx(goal.value)
    assert solved.plan is not None
    assert [(row.service, row.requests_per_s) for row in solved.plan.unmet] == [("large", pytest.approx(1.0))]


def test_priorities_come_one_after_the_other_without_it() -> None:
    solved = solve(*scarce("tco"))
    assert {row.service: row.replicas for row in solved.rows()} == {"large": 3}


def test_what_is_served_needs_no_leave_of_the_policy() -> None:
    asked, candidates = scarce("served")
    solved = solve(replace(asked, policy=replace(asked.policy, unmet="forbid")), candidates)
    assert reached(solved).value == pytest.approx(2.0 + 4 / 3)


def test_everything_is_served_where_it_can_be_and_then_cost_counts() -> None:
    solved = solve(question("served"), RUNS)
    assert runs(solved) == {"hot": 2}
    assert reached(solved).value == pytest.approx(3.0)


def test_headroom_is_no_traffic() -> None:
    asked, candidates = scarce("served")
    wide = tuple(replace(one, headroom=0.5) for one in asked.services)
    solved = solve(replace(asked, services=wide), candidates)
    # One accelerator serves 2/3 of a large request/s, or 8/3 small ones that count 8/9.
    assert reached(solved).value == pytest.approx(2 * 2 / 3 + 8 / 9)


def test_weights_keep_their_digits() -> None:
    asked, candidates = scarce("served")
    # A share of a request that a few objective units cannot hold, beside one a hundred times as large.
    odd = tuple(
        replace(one, headroom=0.14, served_weight=weight)
        for one, weight in zip(asked.services, (0.0125, 1.237), strict=True)
    )
    goal = reached(solve(replace(asked, services=odd), candidates))
    assert goal.model_value == pytest.approx(goal.value, rel=1e-6)


def test_headroom_is_not_what_counts() -> None:
    asked, candidates = scarce("served")
    large, small = asked.services
    # Two accelerators for demands of two: a request of the first service counts 1.0, of the second 0.9, and
    # the headroom of the first takes half as much again.
    roomy = replace(large, headroom=0.5, demand=by_case({("here", "now", "all"): 2.0}))
    plain = replace(small, served_weight=0.9, demand=by_case({("here", "now", "all"): 2.0}))
    two = replace(asked, services=(roomy, plain), budget=replace(asked.budget, tco_usd=2.0 * QUARTER_H))
    runs = (candidates[0], replace(candidates[1], requests_per_s=(0.7,)))
    solved = solve(two, runs)
    # One accelerator serves 2/3 of the first, or 0.63 weighted of the second.
    assert {row.service: row.replicas for row in solved.rows()} == {"large": 2}
    assert reached(solved).value == pytest.approx(4 / 3)
    assert reached(solved).bound == pytest.approx(4 / 3)
