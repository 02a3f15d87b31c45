"""Random fleets cost the same by the planner, by enumeration, and by an independent HiGHS model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oracles.brute_force import TooLargeError, brute_force_usd
from tests.oracles.highs import highs_usd
from tests.parts import first_parts
from tests.planner.builders import buy_offer, candidate, fleet, hardware, rent_offer, service
from tests.planner.random_fleets import PlanningCase, several_periods_case, tiny_case
from tests.planner.solving import solve

from fleetplan.fleet import tco
from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.planner.problem import Problem, build_problem

FLEETS = 200
BLOCKS = 10
"""Parts that the fleets are tried in; `make slow` tries those after the first."""

FEWEST_FEASIBLE = 100
RELATIVE_TOLERANCE = 1e-6

WRONGLY_INFEASIBLE_WITH_SYMMETRY = 1093
"""Seed of a fleet that CP-SAT 9.15 calls infeasible while its presolve looks for symmetries."""


def small_enough(seeds: Iterator[int]) -> Iterator[tuple[int, PlanningCase, Problem, float | None]]:
    """Fleets that brute force can try in full, with their optimum."""
    for seed in seeds:
        case = tiny_case(seed)
        problem = build_problem(case.fleet, case.candidates)
        try:
            usd = brute_force_usd(problem)
        except TooLargeError:
            continue
        yield seed, case, problem, usd


def agree(one: float | None, other: float | None) -> bool:
    """Both infeasible, or the same cost."""
    if one is None or other is None:
        return one is other
    return one == pytest.approx(other, rel=RELATIVE_TOLERANCE)


@pytest.mark.parametrize("block", first_parts(range(BLOCKS), 1))
def test_random_fleets_have_one_optimum(block: int) -> None:
    tried = feasible = 0
    for seed, case, problem, tried_usd in small_enough(iter(range(block * 1000, block * 1000 + 999))):
        planned = solve(case.fleet, case.candidates).usd
        other = highs_usd(problem)
        assert agree(planned, tried_usd), f"seed {seed}: plan {planned}, brute force {tried_usd}"
        assert agree(planned, other), f"seed {seed}: plan {planned}, HiGHS {other}"
        tried += 1
        feasible += tried_usd is not None
        if tried == FLEETS // BLOCKS:
            break
    assert tried == FLEETS // BLOCKS
    assert FEWEST_FEASIBLE // BLOCKS // 2 <= feasible < tried


@pytest.mark.parametrize("seed", first_parts(range(8), 2))
def test_fleets_over_several_periods_have_one_optimum(seed: int) -> None:
    case = several_periods_case(seed)
    solved = solve(case.fleet, case.candidates)
    assert agree(solved.usd, highs_usd(solved.problem))


def test_a_feasible_fleet_is_not_called_infeasible() -> None:
    case = tiny_case(WRONGLY_INFEASIBLE_WITH_SYMMETRY)
    solved = solve(case.fleet, case.candidates)
    assert solved.usd is not None
    assert agree(solved.usd, highs_usd(solved.problem))


def test_three_quarters_by_hand() -> None:
    periods = ("2026Q1", "2026Q2", "2026Q3")
    demand = {("here", q, "all"): rate for q, rate in zip(periods, (8.0, 16.0, 24.0), strict=True)}
    question = fleet(
        services=[service("chat", demand, periods=periods)],
        hardware=[hardware("H")],
        offers=[
            buy_offer("buy", 160_000, hardware="H", lead=1, periods=periods),
            rent_offer("rent", 1.0, hardware="H", unit="host", per_unit=8, periods=periods),
        ],
        periods=periods,
    )
    solved = solve(question, [candidate("chat", "H", 1.0)])
    # A host costs 10,000 $ a quarter bought and 17,520 $ rented. Q1 must rent one; two ordered then serve
    # Q2 and Q3, a third ordered in Q2 serves Q3.
    bought = 2 * 2 * 160_000 / 16 + 160_000 / 16
    assert solved.usd == pytest.approx(tco.rent_usd(1.0, 8, QUARTERS) + bought)
    assert agree(solved.usd, highs_usd(solved.problem))
