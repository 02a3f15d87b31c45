"""Unmet demand above its bound is minimised again from the cheaper plan."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from tests.planner.search.test_unmet_gaps import scarce

from fleetplan.planner.formulation import PlanningModel, build_model, unmet_demand
from fleetplan.planner.problem.independent_parts import components
from fleetplan.planner.search.result import SearchLimits
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import ModelOutcome
from fleetplan.planner.search.unmet import UnmetStages


def stages_of_scarce() -> UnmetStages:
    (part,) = components(scarce().problem)
    return UnmetStages(part, SearchLimits(time_limit_s=60.0, workers=1), time.monotonic(), Stop())


def lenient(stages: UnmetStages) -> PlanningModel:
    return build_model(stages.problem, allow_unmet=True)


def noted_solves(monkeypatch: pytest.MonkeyPatch, stages: UnmetStages, halves: int) -> list[str]:
    """Note the stage of every solve; the first bounds on unmet demand of priority 2 are halved."""
    solve, seen = stages.solve, []

    def noted(planning: PlanningModel, *arguments: Any, **more: Any) -> ModelOutcome:
        found = solve(planning, *arguments, **more)
        variables, vars_of = planning.model.proto.variables, planning.model.proto.objective.vars
        of_unmet = len(vars_of) > 0 and all("unmet" in variables[j].name for j in vars_of)
        seen.append("unmet" if of_unmet else "cost")
        if of_unmet and found.bound and seen.count("unmet") <= halves:
            return replace(found, bound=found.bound / 2)
        return found

    monkeypatch.setattr(stages, "solve", noted)
    return seen


def test_a_proven_unmet_demand_is_minimised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = stages_of_scarce()
    seen = noted_solves(monkeypatch, stages, halves=0)
    _, outcome = stages.minimise_unmet_and_cost(lenient(stages))
    assert outcome.values is not None
    assert seen == ["unmet", "unmet", "cost"]


def test_what_is_proven_is_not_minimised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Priority 1 lacks nothing, which is proven; the bound of priority 2 is doubted at first."""
    stages = stages_of_scarce()
    seen = noted_solves(monkeypatch, stages, halves=2)
    planning, outcome = stages.minimise_unmet_and_cost(lenient(stages))
    # The second time proves priority 2 without any gain; the least cost is proven by then.
    assert seen == ["unmet", "unmet", "cost", "unmet"]
    assert outcome.values is not None
    left = unmet_demand(stages.problem, planning.variables, 2)
    assert outcome.values.value(left) == pytest.approx(stages.unmet_bounds[2], rel=1e-6)


def test_a_plan_that_serves_more_is_found_from_a_cheaper_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cheaper plan starts another search for less unmet demand, until nothing improves."""
    stages = stages_of_scarce()
    lefts = iter([9, 4, 4])
    searched = []

    def minimise_unmet(_: PlanningModel) -> None:
        stages._unmet_left, stages.unmet_bounds = {2: next(lefts)}, {2: 0.0}
        searched.append("unmet")

    first = stages.minimise

    def minimise(planning: PlanningModel, *arguments: Any) -> ModelOutcome:
        searched.append("cost")
        return first(planning, *arguments)

    monkeypatch.setattr(stages, "minimise_unmet", minimise_unmet)
    monkeypatch.setattr(stages, "minimise", minimise)
    _, outcome = stages.minimise_unmet_and_cost(lenient(stages))
    assert searched == ["unmet", "cost", "unmet", "cost", "unmet"]
    assert outcome.values is not None
