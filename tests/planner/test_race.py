"""What ends a solve of one model, and what is heard of HiGHS beside it."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from ortools.sat.python import cp_model
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.solving import solve

from fleetplan.planner import search
from fleetplan.planner.solvers import reproducible
from fleetplan.planner.solvers.highs_race import HighsAnswer, HighsRace
from fleetplan.planner.solvers.interrupt import Stop
from fleetplan.planner.solvers.race import (
    ModelOutcome,
    ModelStatus,
    Patience,
    SolverLimits,
    solve_model,
)
from fleetplan.planner.variables import Variables

PATIENCE_S = 0.5
LIMIT_S = 60.0


def market_split(forgiving: bool) -> cp_model.CpModel:
    """A program of a kind that branch and bound takes for ever to close.

    Without a solution where every row must be met; forgiving, it counts by how much they are missed.
    """
    drawn = random.Random(1)
    model = cp_model.CpModel()
    share = [model.new_bool_var(f"x{j}") for j in range(40)]
    missed = []
    for row in range(5):
        weights = [drawn.randrange(100) for _ in share]
        more, less = (model.new_int_var(0, sum(weights) if forgiving else 0, f"{row}") for _ in range(2))
        model.add(cp_model.LinearExpr.weighted_sum(share, weights) + more - less == sum(weights) // 2)
        missed += [more, less]
    model.minimize(sum(missed))
    return model


def test_a_solve_without_a_plan_gives_up_when_its_patience_ends() -> None:
    limits = SolverLimits(LIMIT_S, 1, 1, Stop(), Patience(seconds=PATIENCE_S))
    started = time.monotonic()
    outcome = solve_model(
        market_split(forgiving=False), Variables(), limits, lambda *_: False, lambda _: None
    )
    assert outcome.status is ModelStatus.UNKNOWN
    assert PATIENCE_S <= time.monotonic() - started < LIMIT_S / 3


def test_a_solve_with_a_plan_goes_on() -> None:
    limits = SolverLimits(3 * PATIENCE_S, 1, 1, Stop(), Patience(seconds=PATIENCE_S))
    started = time.monotonic()
    outcome = solve_model(market_split(forgiving=True), Variables(), limits, lambda *_: False, lambda _: None)
    assert outcome.status is ModelStatus.FOUND
    assert time.monotonic() - started >= 2 * PATIENCE_S


def test_what_was_said_while_one_listened_is_passed_on_as_one_answer() -> None:
    model = cp_model.CpModel()
    model.minimize(model.new_bool_var("x"))
    heard: list[HighsAnswer] = []
    race = HighsRace(model, Variables(), 1.0, 0.0, heard.append)
    for answer in (HighsAnswer(1.0, [5.0]), HighsAnswer(2.0, None), HighsAnswer(None, [4.0]), None):
        race._heard.put(answer)
    race._pass_on()
    assert heard == [HighsAnswer(2.0, [4.0])]


def stages(monkeypatch: pytest.MonkeyPatch, requests_per_s: float) -> list[tuple[SolverLimits, bool, bool]]:
    """Limits of every stage of a small fleet's search, and whether gaps of 5e-6 and 2e-5 end it."""
    seen: list[tuple[SolverLimits, bool, bool]] = []
    first: Callable[..., ModelOutcome] = search.solve_model

    def noted(model: Any, variables: Any, limits: SolverLimits, enough: Any, listen: Any) -> ModelOutcome:
        seen.append((limits, enough(1e6, 1e6 - 5), enough(1e6, 1e6 - 20)))
        return first(model, variables, limits, enough, listen)

    monkeypatch.setattr(search, "solve_model", noted)
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
    ((limits, _, _),) = stages(monkeypatch, 6.0)
    assert limits.time_limit_s == pytest.approx(LIMIT_S, abs=1.0)
    assert limits.patience.seconds == pytest.approx(search.FULL_SERVICE_SHARE_OF_TIME * LIMIT_S, abs=1.0)


def test_the_least_unmet_demand_is_proven_as_finely_as_highs_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strict, unmet, cost = stages(monkeypatch, 60.0)
    assert unmet[1:] == (True, False)
    assert not strict[1]
    assert not cost[1]


SLOW_READER = "import sys, time; time.sleep(1.0); print(len(sys.stdin.buffer.read()))"


def test_a_process_that_is_slow_to_start_is_sent_its_whole_program() -> None:
    archive = b"x" * 2**20
    command = [sys.executable, "-c", SLOW_READER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        # Whoever waits for a program that is never sent waits for ever.
        watchdog = threading.Timer(20.0, child.kill)
        watchdog.start()
        lines = reproducible._lines_of(child, archive, Stop())
        watchdog.cancel()
    assert lines == [b"1048576"]
