"""Largest load of one replica under latency limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service

from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.formulation.pool_lines import most_a_replica
from fleetplan.planner.formulation.scaling import line_units
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.search.solvers.highs_answers import solve
from fleetplan.planner.search.solvers.highs_jobs import Job, no_programs
from fleetplan.planner.search.solvers.matrix import read_program
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.units import USD_RESOLUTION

HOUR = 2190.0
# n replicas carry max(n / 2, 0.9 n - 0.6 from 2 on): 0.5, 1.2, 2.1, 3.0, 3.9.
LINES = (CapacityLine(0.5, 0.0), CapacityLine(0.9, 0.6, least=2))

capacity_lines = st.lists(
    st.builds(
        CapacityLine,
        # Of the least of these a replica carries less than a load unit.
        st.floats(0.05, 1.0) | st.just(1e-6),
        st.floats(0.0, 3.0),
        st.integers(1, 6),
    ),
    min_size=1,
    max_size=3,
)


@given(capacity_lines, st.integers(1, 400_000), st.integers(1, 12), st.sampled_from([1, 4]))
def test_no_pool_carries_more_a_replica_and_one_carries_as_much(
    lines: list[CapacityLine], asked: int, most: int, parts: int
) -> None:
    def carried(size: int) -> int:
        units = [line_units(line, parts) for line in lines if size >= line.least]
        return min(asked, max((slope * size - loss for slope, loss in units), default=0))

    each = max(-(-max(carried(size), 0) // size) for size in range(1, most + 1))
    assert most_a_replica(lines, asked, most, parts) == each


def problem_of(question: Fleet) -> Problem:
    return build_problem(question, [replace(candidate("chat", "A", 1.0), pooling=LINES)])


def linear_usd(problem: Problem) -> float:
    """Return the optimum of the linear relaxation. [USD]"""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    program = read_program(planning.model)
    relaxed = relax(program, planning.continuous)
    answer = solve(Job(relaxed.program, program.cost * relaxed.variable_scale, None), no_programs())
    return answer.objective / USD_RESOLUTION


# Two replicas carry 1.2, which is 0.6 each; of 1.3, three carry no more than 1.3 and two 1.2.
@pytest.mark.parametrize(("demand", "replicas"), [(0.5, 1.0), (1.2, 2.0), (1.3, 1.3 / 0.6), (2.1, 3.0)])
def test_a_linear_relaxation_takes_no_part_of_a_pool_that_is_too_large(
    demand: float, replicas: float
) -> None:
    question = fleet(
        services=[service("chat", demand)], hardware=[hardware("A", 1)], offers=[rent_offer("A", 1.0)]
    )
    assert linear_usd(problem_of(question)) == pytest.approx(replicas * HOUR, rel=1e-4)


def test_nor_after_the_loss_of_a_region() -> None:
    two = ("east", "west")
    question = fleet(
        services=[service("chat", 0.6, regions=two)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, regions=two)],
        regions=[region(place) for place in two],
        policy={"survive_region_loss": ("chat",)},
    )
    # 1.2 wait in the region that is left: two replicas of 0.6 in each.
    assert linear_usd(problem_of(question)) == pytest.approx(4 * HOUR, rel=1e-4)
