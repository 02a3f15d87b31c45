"""Family 9: a service runs few enough configurations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import is_infeasible, solve


@pytest.mark.parametrize(("limit", "usd_per_hour"), [(None, 5.9), (2, 5.9), (1, 8.0)])
def test_fewer_configurations_cost_more(limit: int | None, usd_per_hour: float) -> None:
    example = EXAMPLES["configurations"]()
    policy = replace(example.fleet.policy, max_configs_per_service_region=limit)
    solved = solve(replace(example.fleet, policy=policy), example.candidates)
    assert solved.usd == pytest.approx(usd_per_hour * 2190)


def test_prefill_and_decode_count_as_two() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        policy={"max_configs_per_service_region": 2},
    )
    runs = [candidate("chat", "A", 1.0, phase="prefill"), candidate("chat", "A", 1.0, phase="decode")]
    assert solve(question, runs).plan is not None
    one = replace(question, policy=replace(question.policy, max_configs_per_service_region=1))
    assert is_infeasible(one, runs)


def test_one_configuration_in_two_pools_counts_once() -> None:
    question = fleet(
        services=[service("chat", 2.0)],
        hardware=[hardware("A", 1)],
        pools=[
            rented_pool("one", 1, 1.0, hardware="A", per_host=1),
            rented_pool("two", 1, 1.0, hardware="A", per_host=1),
        ],
        policy={"max_configs_per_service_region": 1},
    )
    assert solve(question, [candidate("chat", "A", 1.0)]).plan is not None
