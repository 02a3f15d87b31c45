"""Family 2 where latencies are limited under load: a pool carries less than its replicas do."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service
from tests.planner.solving import is_infeasible, solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.queueing import CapacityLine, SojournLimit, capacity_lines
from fleetplan.perfmodel.queueing.capacity import utilisation_within
from fleetplan.perfmodel.queueing.pool import Variability
from fleetplan.planner.candidates.dominance import replaces
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.search.required_capacity import accelerators_needed
from fleetplan.planner.verify import verify

HOUR = 2190.0
LINES = (CapacityLine(0.5, 0.0), CapacityLine(0.9, 0.6, least=2))


def pooled(rates: float | tuple[float, ...] = 1.0, lines: tuple[CapacityLine, ...] = LINES) -> Candidate:
    return replace(candidate("chat", "A", rates), pooling=lines)


def one_offer(demand: float, maximum: int | None = None, **changes: object) -> Fleet:
    return fleet(
        services=[service("chat", demand, **changes)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, maximum=maximum)],
    )


# n replicas carry max(n / 2, 0.9 n - 0.6 from 2 on): 0.5, 1.2, 2.1, 3.0, 3.9.
@pytest.mark.parametrize(
    ("demand", "replicas"),
    [(0.5, 1), (0.51, 2), (1.2, 2), (1.21, 3), (2.1, 3), (3.0, 4), (3.01, 5), (3.9, 5)],
)
def test_the_fewest_replicas_are_those_of_the_best_line(demand: float, replicas: int) -> None:
    solved = solve(one_offer(demand), [pooled()])
    assert solved.usd == pytest.approx(replicas * HOUR)
    (row,) = solved.plan.placements
    assert row.replicas == replicas
    assert row.utilisation_limit == pytest.approx(pooled().carried(replicas) / replicas)
    assert row.utilisation <= row.utilisation_limit + 1e-6


def test_too_few_replicas_are_infeasible() -> None:
    assert is_infeasible(one_offer(2.2, maximum=3), [pooled()])
    assert not is_infeasible(one_offer(2.1, maximum=3), [pooled()])


def test_headroom_comes_on_top() -> None:
    # 2.0 requests/s with 10 % more are 2.2: four replicas.
    assert solve(one_offer(2.0, headroom=0.1), [pooled()]).usd == pytest.approx(4 * HOUR)


def test_classes_share_what_a_pool_carries() -> None:
    classes = {"short": 0.5, "long": 0.5}
    # 2 requests/s at 2/s and 2 at 1/s are a load of 3: four replicas.
    question = one_offer(4.0, classes=classes)
    assert solve(question, [pooled((2.0, 1.0))]).usd == pytest.approx(4 * HOUR)


def test_two_small_pools_carry_less_than_one_large() -> None:
    question = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("A", 1)],
        pools=[
            rented_pool("one", 3, 1.0, hardware="A", per_host=1),
            rented_pool("two", 3, 1.0, hardware="A", per_host=1),
        ],
    )
    # Four in one pool would do; with three at most in each it takes three and two: 2.1 + 1.2.
    solved = solve(question, [pooled()])
    assert sorted(row.replicas for row in solved.plan.placements) in ([2, 3], [3, 3])
    assert is_infeasible(replace(question, services=(service("chat", 4.3),)), [pooled()])


def test_the_verifier_knows_what_a_pool_carries() -> None:
    solved = solve(one_offer(2.1), [pooled()])
    (row,) = solved.plan.placements
    fewer = solved.plan.model_copy(
        update={"placements": (row.model_copy(update={"replicas": 2, "accelerators": 2}),)}
    )
    families = {violation.family for violation in verify(solved.problem, fewer)}
    assert "replica_load" in families


def test_a_shortage_counts_what_waiting_takes() -> None:
    problem = build_problem(one_offer(3.0), [pooled()])
    assert accelerators_needed(problem, problem.cells[0], 0, 3.0) == {"A": 4}


def test_real_lines_give_the_smallest_pool_of_their_knot() -> None:
    sizes = np.arange(1, 65)
    limit = SojournLimit(3.0, 0.95, 1.5)
    loads = sizes * utilisation_within(sizes.astype(float), Variability(2.0, 0.3), limit)
    for needed in (2.0, 7.0, 20.0):
        smallest = int(sizes[np.searchsorted(loads, needed)])
        lines = capacity_lines(sizes, loads, [smallest])
        found = solve(one_offer(needed), [pooled(1.0, lines)]).plan.placements[0].replicas
        assert smallest <= found <= math.ceil(smallest * 1.02) + 1
        assert loads[found - 1] >= needed - 1e-6


# Dominance --------------------------------------------------------------------------------------------------


def test_a_better_line_replaces_a_worse_one() -> None:
    good = pooled(1.0, (CapacityLine(0.9, 0.5),))
    assert replaces(good, pooled(1.0, (CapacityLine(0.8, 0.6),)), 8)
    assert not replaces(good, pooled(1.0, (CapacityLine(0.95, 0.6),)), 8)
    assert not replaces(good, pooled(1.0, (CapacityLine(0.5, 0.0),)), 8)
    only_large = pooled(1.0, (CapacityLine(0.9, 0.5, least=3),))
    assert not replaces(only_large, pooled(1.0, (CapacityLine(0.8, 0.6),)), 8)


def test_without_limits_under_load_a_pool_carries_its_replicas() -> None:
    plain = candidate("chat", "A", 1.0)
    assert replaces(plain, pooled(), 8)
    assert not replaces(pooled(), plain, 8)
    assert plain.carried(7) == 7.0
