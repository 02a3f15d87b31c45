"""Of the plans that a search passes, the one that serves most is kept, whatever is cheaper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.planner.builders import candidate, fleet, hardware, rented_pool, service
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.priorities import unmet_share, with_priorities
from tests.planner.solving import solve

from fleetplan.planner.formulation import build_model
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search import stages
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.solve import _accepted, _values
from fleetplan.planner.search.most_served import MostServed, value_of
from fleetplan.planner.search.solvers.request import ModelOutcome, Step
from fleetplan.planner.search.unmet_prices import hint_nothing


def test_a_higher_priority_comes_first_and_equal_plans_make_room_for_the_next() -> None:
    question = fleet(
        services=[service("batch", 8.0, priority=2), service("chat", 3.0, priority=1)],
        hardware=[hardware("A", 1)],
        pools=[rented_pool("A", 5, 1.0, per_host=1)],
        policy={"unmet": "penalise"},
    )
    problem = build_problem(question, (candidate("batch", "A", 2.0), candidate("chat", "A", 1.0)))
    planning = build_model(problem, allow_unmet=True)
    hint_nothing(planning.model, planning.variables)
    nothing = list(planning.model.proto.solution_hint.values)
    served = MostServed(planning, (1, 2), nothing)
    unmet = {problem.cells[cell].service: each for (cell, _), each in planning.variables.unmet.items()}

    def plan(batch: float, chat: float) -> list[int]:
        values = list(nothing)
        for name, share in (("batch", batch), ("chat", chat)):
            values[unmet[name].index] = round(nothing[unmet[name].index] * share)
        return values

    noted = [plan(0.5, 0.5), plan(0.0, 0.6), plan(1.0, 0.4), plan(0.9, 0.4), plan(0.9, 0.4), plan(1.0, 1.0)]
    kept = []
    for values in noted:
        served.note(values)
        kept.append(next(i for i, each in enumerate(noted) if served.best is each or served.best == each))
    assert kept == [0, 0, 2, 3, 3, 3]
    assert served.last == noted[-1]
    assert value_of(served.unmet[1], nothing) > 0


def test_demand_that_a_plan_on_the_way_serves_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighing unmet demand against cost keeps the demand that an earlier plan serves."""
    for name, value in (("LEAST_VARIABLES", 0), ("LEAST_BLOCKS", 1), ("LARGEST_BLOCK_SHARE", 1.0)):
        monkeypatch.setattr(block_solve, name, value)
    original = stages.solve_in_blocks

    def falling_back(planning: Any, parts: Any, limits: Any, enough: Any, listen: Any, *rest: Any) -> Any:
        hinted = planning.model.proto.solution_hint
        nothing = all(
            hinted.values[each.index] == each.proto.domain[1] > 0
            for each in planning.variables.unmet.values()
            if len(hinted.values)
        )
        found: ModelOutcome = original(planning, parts, limits, enough, listen, *rest)
        if not nothing or not len(hinted.values) or found.values is None:
            return found
        values = _values(found.values)
        listen(Step("neighbourhood", "serves what can be served", found.objective, found.bound, values))
        worst = _values(_accepted(planning.model, values * 0 + list(hinted.values)))
        return replace(found, values=_accepted(planning.model, worst))

    monkeypatch.setattr(stages, "solve_in_blocks", falling_back)
    case = with_priorities(large_case(1, 4, 2, 2), 24)
    found = solve(case.fleet, case.candidates, time_limit_s=0.4, reproducible=True)
    assert unmet_share(found, 1) < 0.1
    assert unmet_share(found, 2) < 1.0
