"""Conditions that end the solve of one model: patience, known plans, stages of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.search.solvers.hard_programs import LIMIT_S, market_split
from tests.planner.solving import solve

from fleetplan.planner.search import stages
from fleetplan.planner.search.solvers import race, reproducible
from fleetplan.planner.search.solvers.best import BestFound
from fleetplan.planner.search.solvers.highs_program import (
    HighsAnswer,
)
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import HIGHS, Proofs
from fleetplan.planner.search.solvers.race import solve_model
from fleetplan.planner.search.solvers.reproducible import solve_reproducibly
from fleetplan.planner.search.solvers.request import ModelOutcome, ModelStatus, Patience, SolverLimits
from fleetplan.planner.search.unmet import FULL_SERVICE_SHARE_OF_TIME

PATIENCE_S = 0.3


def test_a_solve_without_a_plan_gives_up_when_its_patience_ends() -> None:
    limits = SolverLimits(LIMIT_S, 1, 1, Stop(), Patience(seconds=PATIENCE_S))
    started = time.monotonic()
    outcome = solve_model(
        market_split(forgiving=False), frozenset(), limits, lambda *_: False, lambda _: None
    )
    assert outcome.status is ModelStatus.UNKNOWN
    assert PATIENCE_S <= time.monotonic() - started < LIMIT_S / 3


def test_a_claim_that_there_is_no_plan_ends_patience_sooner() -> None:
    """A claim of infeasibility shortens the wait for a second proof."""
    best = BestFound(lambda *_: False, lambda _: None, Proofs(least=0.0))
    claimed_s = 0.2
    with race._impatience(best, Patience(seconds=LIMIT_S), time.monotonic() - claimed_s) as given_up:
        assert not given_up.wait(3 * race.TURN_S)
        best.offer_infeasible(HIGHS)
        assert given_up.wait(LIMIT_S / 3)


def test_a_solve_with_a_plan_goes_on() -> None:
    limits = SolverLimits(3 * PATIENCE_S, 1, 1, Stop(), Patience(seconds=PATIENCE_S))
    started = time.monotonic()
    outcome = solve_model(market_split(forgiving=True), frozenset(), limits, lambda *_: False, lambda _: None)
    assert outcome.status is ModelStatus.FOUND
    assert time.monotonic() - started >= 2 * PATIENCE_S


@pytest.mark.parametrize("by_clock", [True, False])
def test_a_plan_that_a_search_begins_with_is_known_whatever_the_search_finds(
    by_clock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search returns at least the plan that it starts from."""
    model = market_split(forgiving=True)
    for index, name in enumerate(each.name for each in model.proto.variables):
        # What is missed is left to be completed.
        if name.startswith("x"):
            model.add_hint(model.get_int_var_from_proto_index(index), index % 2)
    fixed = model.clone()
    for index, value in zip(model.proto.solution_hint.vars, model.proto.solution_hint.values, strict=True):
        fixed.add(fixed.get_int_var_from_proto_index(index) == value)
    least = cp_model.CpSolver()
    least.solve(fixed)
    limits = SolverLimits(0.9, 1, 1, Stop(), Patience())
    if by_clock:
        monkeypatch.setattr(race, "_run", lambda *_: 0.0)
        outcome = solve_model(model, frozenset(), limits, lambda *_: False, lambda _: None)
    else:
        monkeypatch.setattr(reproducible, "_search", lambda *_: limits.time_limit_s)
        outcome = solve_reproducibly(model, frozenset(), limits, lambda *_: False)
    assert outcome.status is ModelStatus.FOUND
    assert outcome.objective == least.objective_value
    assert len(model.proto.solution_hint.vars) == len(model.proto.variables)


def test_hints_that_are_part_of_no_plan_stay_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    model = market_split(forgiving=False)
    model.add_hint(model.get_int_var_from_proto_index(0), 1)
    monkeypatch.setattr(race, "_run", lambda *_: 0.0)
    limits = SolverLimits(0.9, 1, 1, Stop(), Patience())
    outcome = solve_model(model, frozenset(), limits, lambda *_: False, lambda _: None)
    assert outcome.status is ModelStatus.UNKNOWN
    assert len(model.proto.solution_hint.vars) == 1


def test_what_was_said_while_one_listened_is_passed_on_as_one_answer() -> None:
    model = cp_model.CpModel()
    model.minimize(model.new_bool_var("x"))
    heard: list[HighsAnswer] = []
    running = HighsRace(model, frozenset(), 1.0, 0.0, heard.append)
    for answer in (HighsAnswer(1.0, [5.0]), HighsAnswer(2.0, None), HighsAnswer(None, [4.0]), None):
        running._heard.put(answer)
    running._pass_on()
    assert heard == [HighsAnswer(2.0, [4.0])]


def noted_stages(
    monkeypatch: pytest.MonkeyPatch, requests_per_s: float
) -> list[tuple[SolverLimits, bool, bool]]:
    """Limits of every stage of a small fleet's search, and whether gaps of 5e-6 and 2e-5 end it."""
    seen: list[tuple[SolverLimits, bool, bool]] = []
    first: Callable[..., ModelOutcome] = stages.solve_model

    def noted(model: Any, variables: Any, limits: SolverLimits, enough: Any, on_step: Any) -> ModelOutcome:
        seen.append((limits, enough(1e6, 1e6 - 5), enough(1e6, 1e6 - 20)))
        return first(model, frozenset(), limits, enough, on_step)

    monkeypatch.setattr(stages, "solve_model", noted)
    small = fleet(
        services=[service("chat", requests_per_s)],
        hardware=[hardware("G", 1)],
        offers=[rent_offer("G", 2.0, maximum=3)],
        policy={"unmet": "penalise"},
    )
    solve(small, [candidate("chat", "G", 3.0)], time_limit_s=LIMIT_S)
    return seen


def test_a_plan_that_serves_everything_is_looked_for_once_and_for_as_long_as_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ((limits, _, _),) = noted_stages(monkeypatch, 6.0)
    assert limits.time_limit_s == pytest.approx(LIMIT_S, abs=1.0)
    assert limits.patience.seconds == pytest.approx(FULL_SERVICE_SHARE_OF_TIME * LIMIT_S, abs=1.0)


def test_the_least_unmet_demand_is_proven_as_finely_as_highs_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strict, unmet, cost = noted_stages(monkeypatch, 60.0)
    assert unmet[1:] == (True, False)
    assert not strict[1]
    assert not cost[1]
