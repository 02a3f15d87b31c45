"""Family 2: classes share replicas, and no more load than these carry."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.families import check_deletion
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import solve

from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem


def test_without_the_family_the_verifier_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Replicas cost nothing by themselves: two of each are kept, or the plan would have none to overload.
    def add(model: cp_model.CpModel, _: Problem, variables: Variables) -> None:
        for replicas in variables.replicas.values():
            model.add(replicas == 2)

    overloaded = replace(EXAMPLES["replica_load"](), unlimited=EXAMPLES["replica_load"]().infeasible)
    monkeypatch.setitem(EXAMPLES, "replica_load", lambda: overloaded)
    check_deletion("replica_load", monkeypatch, (SimpleNamespace(add=add),))


@pytest.mark.parametrize(("long_rate", "replicas"), [(1.0, 1), (1.01, 2)])
def test_classes_share_a_replica_up_to_its_load(long_rate: float, replicas: int) -> None:
    demand = {"short": 2.0, "long": long_rate}
    question = fleet(
        services=[service("chat", demand, classes={"short": 0.6, "long": 0.4})],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    # 2 of 4 and 1 of 2 requests/s: half a replica each.
    solved = solve(question, [candidate("chat", "A", (4.0, 2.0))])
    assert [row.replicas for row in solved.rows()] == [replicas]


def test_thirds_of_a_replica_are_exact() -> None:
    demand = {"a": 1.0, "b": 2.0, "c": 3.0}
    question = fleet(
        services=[service("chat", demand, classes={"a": 0.2, "b": 0.3, "c": 0.5})],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    solved = solve(question, [candidate("chat", "A", (3.0, 6.0, 9.0))])
    assert [(row.replicas, row.utilisation) for row in solved.rows()] == [(1, pytest.approx(1.0))]
