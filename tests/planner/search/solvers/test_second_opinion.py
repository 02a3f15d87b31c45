"""Infeasibility counts as proven when a second proof confirms it: CP-SAT's presolve can be wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.solving import solve

from fleetplan.planner.search.result import SolveStatus
from fleetplan.planner.search.solvers import race
from fleetplan.planner.search.solvers.best import BestFound
from fleetplan.planner.search.solvers.highs_program import HighsAnswer
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS
from fleetplan.planner.search.solvers.race import solve_model
from fleetplan.planner.search.solvers.request import ModelOutcome, ModelStatus, Patience, SolverLimits

SMALL = fleet(services=[service("chat", 6.0)], hardware=[hardware("G", 1)], offers=[rent_offer("G", 2.0)])


def claims_infeasible(monkeypatch: pytest.MonkeyPatch, first_only: bool) -> None:
    """CP-SAT calls every model infeasible with presolve, and without it says nothing or the truth."""
    first: Callable[..., float] = race._run

    def lies(
        model: cp_model.CpModel,
        limits: SolverLimits,
        seconds: float,
        best: BestFound,
        presolve: bool,
        *more: Any,
    ) -> float:
        if presolve:
            best.offer_infeasible(CPSAT)
        elif first_only:
            return first(model, limits, seconds, best, presolve, *more)
        return 0.0

    monkeypatch.setattr(race, "_run", lies)


def two_of(requests_per_s: float) -> cp_model.CpModel:
    """Replicas that serve three requests/s each, two of them at the most."""
    model = cp_model.CpModel()
    replicas = model.new_int_var(0, 2, "replicas")
    model.add(3 * replicas >= math.ceil(requests_per_s))
    model.minimize(replicas)
    return model


def outcome_of(
    requests_per_s: float, time_limit_s: float, impossible_by: tuple[str, ...] = ()
) -> ModelOutcome:
    model = two_of(requests_per_s)
    limits = SolverLimits(time_limit_s, 1, 1, Stop(), Patience(seconds=time_limit_s))
    return solve_model(model, frozenset(), limits, lambda *_: False, lambda _: None, impossible_by)


def test_a_false_proof_of_infeasibility_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    claims_infeasible(monkeypatch, first_only=True)
    solved = solve(SMALL, [candidate("chat", "G", 3.0)])
    assert solved.result.status is SolveStatus.OPTIMAL
    assert solved.result.objective_usd == pytest.approx(2 * 2.0 * 2190)


def test_an_infeasibility_that_nobody_confirms_in_time_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    claims_infeasible(monkeypatch, first_only=False)
    assert outcome_of(9.0, time_limit_s=0.2).status is ModelStatus.UNKNOWN


def test_highs_confirms_an_infeasibility(monkeypatch: pytest.MonkeyPatch) -> None:
    claims_infeasible(monkeypatch, first_only=False)
    assert outcome_of(9.0, time_limit_s=20.0).status is ModelStatus.INFEASIBLE


def test_highs_does_not_confirm_a_false_one(monkeypatch: pytest.MonkeyPatch) -> None:
    claims_infeasible(monkeypatch, first_only=False)
    outcome = outcome_of(6.0, time_limit_s=20.0)
    assert outcome.objective == 2
    assert outcome.bound == pytest.approx(2, rel=1e-5)


def test_an_infeasibility_that_is_known_takes_one_proof_more() -> None:
    assert outcome_of(9.0, 20.0, (HIGHS,)).status is ModelStatus.INFEASIBLE
    assert outcome_of(6.0, 20.0, (HIGHS,)).status is ModelStatus.SOLVED


def test_a_row_without_variables_is_a_row_for_highs_too() -> None:
    model = two_of(6.0)
    model.add_linear_constraint(cp_model.LinearExpr.sum([]), 5, 9)
    heard: list[HighsAnswer] = []
    with HighsRace(model, frozenset(), 20.0, 0.0, heard.append) as running:
        assert running.ended.wait(20.0)
    assert heard[-1].infeasible
    assert heard[-1].values is None
