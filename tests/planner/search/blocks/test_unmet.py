"""The search over blocks where demand may stay unmet: who goes without, and what is proven of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.parts import first_parts
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.priorities import unmet_share, with_priorities
from tests.planner.solving import solve

from fleetplan.planner.problem import build_problem
from fleetplan.planner.search import unmet
from fleetplan.planner.search.blocks import restricted_masters
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import Progress, SearchLimits
from fleetplan.planner.search.solvers.interrupt import Stop


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "limit_s", "counted"),
    first_parts((((1, 2, 2, 1), 0.3, True), ((1, 4, 2, 2), 15.0, False), ((1, 8, 3, 4), 36.0, False)), 1),
    ids=("counted", "small", "large"),
)
def test_who_may_leave_demand_unmet_and_need_not_has_all_of_the_time(
    size: tuple[int, int, int, int], limit_s: float, counted: bool
) -> None:
    case = large_case(*size)
    policy = replace(case.fleet.policy, unmet="penalise")
    problem = build_problem(replace(case.fleet, policy=policy), case.candidates)
    seen: list[Progress] = []
    # On a busy machine the first plan takes some seconds: a third of the limit is far more. The search goes
    # on for longer than that, and is stopped then; counted work ends at its limit.
    stop = Stop()
    patience_s = limit_s * unmet.FULL_SERVICE_SHARE_OF_TIME
    if not counted:
        threading.Timer(patience_s + 1.0, stop.request).start()
    limits = SearchLimits(limit_s, 0.0, 1, 2, reproducible=counted)
    result = search(problem, limits, seen.append, stop)
    assert stop.requested or result.deterministic_time > 2 * patience_s
    assert result.solution is not None
    assert not result.solution.unmet
    assert {each.stage for each in seen} == {"cost"}
    bounds = [each.bound_usd for each in seen if each.bound_usd is not None]
    assert bounds == sorted(bounds)
    plans = [each.objective_usd for each in seen if each.objective_usd is not None]
    assert plans[-1] <= plans[0]


def stages_of(seen: Sequence[Progress]) -> list[str]:
    """Return the minimised stages, each once, without the part of the fleet."""
    return list(dict.fromkeys(each.stage.partition(" of part")[0] for each in seen))


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "units", "limit_s", "least"),
    first_parts(
        (((1, 2, 2, 2), 4, 0.3, 0.44), ((1, 4, 2, 2), 24, 0.4, 0.7), ((1, 6, 2, 3), 12, 2.0, 0.7)), 1, more=1
    ),
    ids=("two services", "small", "large"),
)
def test_where_supply_is_scarce_the_lower_priority_goes_without(
    size: tuple[int, int, int, int], units: int, limit_s: float, least: float
) -> None:
    case = with_priorities(large_case(*size), units)
    seen: list[Progress] = []
    found = solve(case.fleet, case.candidates, time_limit_s=limit_s, watch=seen.append, reproducible=True)
    # CP-SAT, one priority after the other: everything, and 45, 74 or 78 % of the second left.
    assert unmet_share(found, 1) < 0.01
    assert least < unmet_share(found, 2) < 1.0
    assert stages_of(seen) == ["unmet demand and cost", "cost of served demand"]
    told = [each for each in seen if each.objective_usd is not None and each.bound_usd is not None]
    # Cost and bound are told in dollars before unmet demand is settled.
    assert stages_of(told)[0] == "unmet demand and cost"
    assert all(each.bound_usd <= each.objective_usd * (1 + 1e-9) for each in told)


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(
    ("size", "limit_s"), first_parts((((1, 2, 2, 1), 0.5), ((1, 6, 2, 3), 2.0)), 1), ids=("small", "large")
)
def test_who_gives_up_on_serving_everything_can_still_find_that_it_is_possible(
    size: tuple[int, int, int, int], limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unmet, "PATIENCE_ROUNDS", 1)
    monkeypatch.setattr(restricted_masters, "FIRST_MASTERS", 0)
    # A construction would have a plan before the first round.
    monkeypatch.setattr(PlanSearch, "_constructions", lambda _: [])
    case = with_priorities(large_case(*size), None)
    seen: list[Progress] = []
    found = solve(case.fleet, case.candidates, time_limit_s=limit_s, watch=seen.append, reproducible=True)
    assert stages_of(seen) == ["cost", "unmet demand and cost", "cost of served demand"]
    attempts = [each for each in seen if each.stage.partition(" of part")[0] == "cost"]
    assert all(each.objective_usd is None for each in attempts)
    assert unmet_share(found, 1) <= 1e-3
    assert unmet_share(found, 2) <= 1e-3


MUST_BE_UNMET = (79.9, 88.87)
"""Least unmet demand of the first priority: what CP-SAT proves in ten seconds, and what a plan has. [1/s]"""


@pytest.mark.parametrize("limit_s", first_parts((1.0, 3.0, 6.0), 1, more=1))
def test_what_blocks_leave_unmet_is_bounded_by_what_must_be(
    limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = with_priorities(large_case(1, 6, 2, 3), 5)
    monkeypatch.setattr(block_solve, "LEAST_VARIABLES", 0)
    monkeypatch.setattr(block_solve, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(block_solve, "LARGEST_BLOCK_SHARE", 1.0)
    found = solve(case.fleet, case.candidates, gap=0.01, time_limit_s=limit_s).result.unmet
    # Bounds of lower priorities are of plans that leave no more of the higher ones unmet.
    assert 0 <= found[1].bound <= MUST_BE_UNMET[1] * (1 + 1e-6)
    assert found[1].value >= MUST_BE_UNMET[0] * (1 - 1e-6)


@pytest.mark.slow
def test_what_must_be_unmet_is_what_one_solver_proves() -> None:
    case = with_priorities(large_case(1, 6, 2, 3), 5)
    least = solve(case.fleet, case.candidates, gap=0.05, time_limit_s=10.0).result.unmet
    assert 0 < least[1].bound <= MUST_BE_UNMET[1]
    assert least[1].value >= MUST_BE_UNMET[0]
