"""Models of one period that are solved whole at first: the same optimum, true bounds, blocks after them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from tests.planner.random_fleets import large_case, several_periods_case
from tests.planner.search.blocks.small_fleets import in_parts
from tests.planner.solving import solve

from fleetplan.planner.formulation import build_model
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks import whole_first
from fleetplan.planner.search.blocks.solve import solve_in_blocks
from fleetplan.planner.search.result import SolveStatus
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import HIGHS
from fleetplan.planner.search.solvers.request import ModelOutcome, ModelStatus, SolverLimits, Step

pytestmark = pytest.mark.usefixtures("blocks_for_all")
GAP = 0.2
"""Wide, so that a core that others use too does not decide what is found in time."""


def near(objective: float, bound: float) -> bool:
    return objective - bound <= GAP * objective


def whole_of(reproducible: bool, steps: list[Step]) -> ModelOutcome:
    """Return the result of solving a model whole first; it reports its steps."""
    planning, parts = in_parts(large=False)
    limits = SolverLimits(120.0, 1, 1, Stop())
    return whole_first.solve_whole_first(planning, parts, limits, near, steps.append, reproducible)


def figures(outcome: ModelOutcome) -> tuple[float, float]:
    """Objective and bound of what has a plan."""
    assert outcome.objective is not None
    assert outcome.bound is not None
    return outcome.objective, outcome.bound


@pytest.mark.parametrize("reproducible", [False, True], ids=("clock", "work"))
def test_the_whole_has_the_optimum_of_its_blocks(reproducible: bool) -> None:
    steps: list[Step] = []
    whole = whole_of(reproducible, steps)
    planning, parts = in_parts(large=False)
    short = SolverLimits(0.3, 1, 1, Stop())
    blocks = solve_in_blocks(planning, parts, short, near, lambda _: None, reproducible)
    assert whole.status is ModelStatus.SOLVED
    assert near(*figures(whole))
    assert not {"warm start", "root relaxation", "pricing"} & {step.source for step in steps}
    assert figures(whole)[1] <= figures(blocks)[0] * (1 + 1e-6)
    assert figures(blocks)[1] <= figures(whole)[0] * (1 + 1e-6)


@pytest.mark.parametrize("reproducible", [False, True], ids=("clock", "work"))
def test_blocks_go_on_from_the_plan_and_the_bound_of_the_whole(
    reproducible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole is said to have ended at its limit, with a bound that is enough for blocks to end too."""
    first: list[ModelOutcome] = []
    name = "solve_reproducibly" if reproducible else "solve_model"
    real = getattr(whole_first, name)

    def at_its_limit(*arguments: object) -> ModelOutcome:
        first.append(replace(real(*arguments), status=ModelStatus.FOUND))
        return first[-1]

    monkeypatch.setattr(whole_first, name, at_its_limit)
    steps: list[Step] = []
    found = whole_of(reproducible, steps)
    assert "warm start" in {step.source for step in steps}
    assert found.status is ModelStatus.SOLVED
    (before,) = first
    assert figures(found)[0] <= figures(before)[0]
    assert figures(found)[1] >= figures(before)[1]


@pytest.mark.parametrize("stopped", [False, True], ids=("the gap stays", "the user stops"))
def test_the_whole_ends_where_its_gap_no_longer_shrinks(
    stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search over blocks takes over where the gap of the whole model stalls."""
    monkeypatch.setattr(whole_first, "STALLED_S", 30.0 if stopped else 0.3)
    real, stop = whole_first.solve_model, Stop()
    ended: list[float] = []

    def without_progress(*given: Any) -> ModelOutcome:
        model, continuous, limits, enough, on_step = given
        found = replace(real(model, continuous, limits, enough, on_step), status=ModelStatus.FOUND)
        began = time.monotonic()
        while not limits.stop.requested and time.monotonic() - began < 10.0:
            # Ever smaller steps of the bound are no progress.
            on_step(Step(HIGHS, "raised the bound", 2.0, 1.0 - 0.01 / (1 + time.monotonic() - began)))
            if stopped:
                stop.request()
            time.sleep(0.02)
        ended.append(time.monotonic() - began)
        return found

    monkeypatch.setattr(whole_first, "solve_model", without_progress)
    planning, parts = in_parts(large=False)
    steps: list[Step] = []
    found = whole_first.solve_whole_first(
        planning, parts, SolverLimits(120.0, 1, 1, stop), near, steps.append
    )
    assert found.values is not None
    assert ended[0] < 10.0
    assert ("warm start" in {step.source for step in steps}) is not stopped


def test_a_plan_of_the_whole_is_kept_where_blocks_find_none(monkeypatch: pytest.MonkeyPatch) -> None:
    real = whole_first.solve_model
    monkeypatch.setattr(
        whole_first, "solve_model", lambda *each: replace(real(*each), status=ModelStatus.FOUND)
    )
    nothing = ModelOutcome(ModelStatus.UNKNOWN, None, None, None, "", 0.0)
    monkeypatch.setattr(whole_first, "solve_in_blocks", lambda *_: nothing)
    found = whole_of(False, [])
    assert near(*figures(found))


def test_models_of_one_period_and_some_size_are_solved_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    one, several = in_parts(large=False)[0], several_periods_case(2)
    longer = build_model(build_problem(several.fleet, several.candidates), allow_unmet=False)
    assert not whole_first.worth_solving_whole(one)
    monkeypatch.setattr(whole_first, "FEWEST_VARIABLES", 0)
    assert whole_first.worth_solving_whole(one)
    assert not whole_first.worth_solving_whole(longer)
    monkeypatch.setattr(whole_first, "MOST_VARIABLES", len(one.model.proto.variables))
    assert not whole_first.worth_solving_whole(one)


def test_a_search_tries_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    case = large_case(1, 2, 2, 1)
    blocks = solve(case.fleet, case.candidates, gap=GAP, time_limit_s=0.3, reproducible=True)
    monkeypatch.setattr(whole_first, "FEWEST_VARIABLES", 0)
    monkeypatch.setattr(whole_first, "solve_in_blocks", None)
    whole = solve(case.fleet, case.candidates, gap=GAP, time_limit_s=120.0)
    assert whole.result.status in (SolveStatus.OPTIMAL, SolveStatus.WITHIN_GAP)
    assert (whole.result.bound_usd or 0.0) <= (blocks.result.objective_usd or 0.0) * (1 + 1e-6)
    assert (blocks.result.bound_usd or 0.0) <= (whole.result.objective_usd or 0.0) * (1 + 1e-6)
