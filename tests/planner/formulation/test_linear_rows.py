"""Rows without variables: limits on what a fleet cannot have stay linear, true or false as they were."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service

from fleetplan.fleet.inventory import Budget, Fleet
from fleetplan.planner.formulation.build import PlanningModel, build_model, state_linearly
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.solvers.matrix import read_program


def without_supply(**budget: float) -> Fleet:
    """A region with a power limit and without a pool, beside one that serves; nothing is bought."""
    return replace(
        fleet(
            services=[service("chat", {("here", "now", "all"): 1.0})],
            hardware=[hardware("A", 1)],
            offers=[rent_offer("A", 1.0)],
            regions=[region(), region("there", power_kw=(5.0,))],
        ),
        budget=Budget((None,), budget.get("capex_usd"), budget.get("opex_usd"), budget.get("tco_usd")),
    )


def built(question: Fleet) -> PlanningModel:
    return build_model(build_problem(question, [candidate("chat", "A", 1.0)]), allow_unmet=False)


def test_a_limit_on_nothing_holds_and_is_linear() -> None:
    planning = built(without_supply(capex_usd=0.0))
    named = {constraint.name: constraint for constraint in planning.model.proto.constraints}
    assert {"power[there,now]", "capex[horizon]"} <= named.keys()
    assert all(constraint.has_linear() for constraint in named.values())
    read_program(planning.model)
    assert cp_model.CpSolver().solve(planning.model) == cp_model.OPTIMAL


def test_reading_the_rows_leaves_the_model_as_it_is() -> None:
    planning = built(without_supply(capex_usd=0.0))
    before = str(planning.model.proto)
    assert [len(constraint.linear.domain) for constraint in planning.model.proto.constraints]
    assert str(planning.model.proto) == before


def test_a_limit_that_nothing_keeps_is_linear_and_infeasible() -> None:
    planning = built(without_supply())
    planning.model.add(sum([]) >= 1)  # what a family without terms would state
    with pytest.raises(ValueError, match="not a plain linear row"):
        read_program(planning.model)
    # As build_model leaves such a row:
    state_linearly(planning.model)
    read_program(planning.model)
    assert cp_model.CpSolver().solve(planning.model) == cp_model.INFEASIBLE
