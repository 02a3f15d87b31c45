"""HiGHS beside CP-SAT: cores, known plans, and processes."""

from __future__ import annotations

import json
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from ortools.sat.python import cp_model
from tests.parts import first_of
from tests.planner.search.solvers.hard_programs import LIMIT_S, market_split
from tests.warm import HIGHS, ran

from fleetplan.planner.search.solvers import race, reproducible
from fleetplan.planner.search.solvers.cpsat import hint
from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, ONE_MORE, Effort, Job, SearchJob
from fleetplan.planner.search.solvers.highs_program import (
    HighsAnswer,
    HighsProgram,
    complete,
)
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.race import solve_model
from fleetplan.planner.search.solvers.reproducible import solve_reproducibly
from fleetplan.planner.search.solvers.request import ModelStatus, Patience, SolverLimits


class Led:
    """Stand-in for a race that HiGHS leads: it reports at once and ends on request."""

    answers: ClassVar[list[HighsAnswer]] = []
    ends: ClassVar[bool] = True
    begun: ClassVar[list[int]] = []
    known: ClassVar[list[list[int]]] = []

    def __init__(self, *arguments: Any) -> None:
        self.ended = threading.Event()
        self.on_answer = arguments[4]
        Led.begun.append(arguments[5])

    def __enter__(self) -> Led:
        for answer in Led.answers:
            self.on_answer(answer)
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()

    def know(self, solution: Sequence[int]) -> None:
        Led.known.append(list(solution))

    def search_more(self) -> None:
        Led.begun.append(1)
        if Led.ends:
            self.ended.set()


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> type[Led]:
    """Two cores, and a race that HiGHS leads as soon as there is a plan."""
    monkeypatch.setattr(race, "HighsRace", Led)
    monkeypatch.setattr(race.BestFound, "led_by_highs", lambda best: best.values is not None)
    monkeypatch.setattr(race, "usable_cores", lambda: 2)
    monkeypatch.setattr(Led, "answers", [])
    monkeypatch.setattr(Led, "ends", True)
    monkeypatch.setattr(Led, "begun", [])
    monkeypatch.setattr(Led, "known", [])
    return Led


def cpsat_runs(monkeypatch: pytest.MonkeyPatch, last: int, last_s: float = 0.2) -> list[tuple[float, int]]:
    """Record seconds and workers of every CP-SAT search; stop the search number `last`."""
    seen: list[tuple[float, int]] = []
    first: Callable[..., Any] = race._run

    def noted(model: Any, limits: SolverLimits, *arguments: Any) -> Any:
        started = time.monotonic()
        if len(seen) + 1 == last:
            threading.Timer(last_s, limits.stop.request).start()
        answer = first(model, limits, *arguments)
        seen.append((time.monotonic() - started, limits.workers))
        return answer

    monkeypatch.setattr(race, "_run", noted)
    return seen


def test_cpsat_gives_its_core_up_where_highs_leads_and_has_it_back_when_highs_ends(
    led: type[Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = cpsat_runs(monkeypatch, 3, 0.5)
    limits = SolverLimits(LIMIT_S, 1, 8, Stop())
    outcome = solve_model(market_split(forgiving=True), frozenset(), limits, lambda *_: False, lambda _: None)
    assert outcome.status is ModelStatus.FOUND
    assert led.begun == [1, 1]
    (_, alone), (beside_s, beside), (again_s, again) = runs
    assert (alone, beside, again) == (8, 1, 1)
    assert beside_s < 1.0
    assert again_s > 0.4


def test_cpsat_keeps_the_cores_that_highs_does_not_need(
    led: type[Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "usable_cores", lambda: 6)
    runs = cpsat_runs(monkeypatch, 2)
    limits = SolverLimits(LIMIT_S, 1, 8, Stop())
    solve_model(market_split(forgiving=True), frozenset(), limits, lambda *_: False, lambda _: None)
    assert led.begun == [race.SEARCHES_OF_HIGHS]
    assert [workers for _, workers in runs] == [8, 4]


def test_whoever_waits_for_highs_alone_hears_a_stop_and_keeps_the_best_plan(
    led: type[Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(led, "ends", False)
    stop = Stop()
    threading.Timer(0.5, stop.request).start()
    limits = SolverLimits(LIMIT_S, 1, 8, stop)
    started = time.monotonic()
    outcome = solve_model(market_split(forgiving=True), frozenset(), limits, lambda *_: False, lambda _: None)
    assert time.monotonic() - started < LIMIT_S / 6
    assert outcome.status is ModelStatus.FOUND
    assert outcome.objective is not None


def cover(seed: int) -> cp_model.CpModel:
    """The least cover of six rows by thirty columns: a few seconds' work at most."""
    drawn = random.Random(seed)
    model = cp_model.CpModel()
    chosen = [model.new_int_var(0, 3, f"x{j}") for j in range(30)]
    for _ in range(6):
        weights = [drawn.randrange(5, 40) for _ in chosen]
        model.add(cp_model.LinearExpr.weighted_sum(chosen, weights) >= 300)
    model.minimize(cp_model.LinearExpr.weighted_sum(chosen, [drawn.randrange(20, 60) for _ in chosen]))
    return model


@pytest.mark.parametrize("seed", first_of(range(3), 1))
def test_two_searches_of_highs_prove_what_one_proves(seed: int) -> None:
    model = cover(seed)
    bounds = []
    for searches, more in ((1, 0), (2, 0), (1, 1)):
        heard: list[HighsAnswer] = []
        with HighsRace(model, frozenset(), 30.0, 0.0, heard.append, searches) as running:
            for _ in range(more):
                running.search_more()
            assert running.ended.wait(40.0)
        bounds.append(max(answer.bound for answer in heard if answer.bound is not None))
        values = [answer.values for answer in heard if answer.values is not None][-1]
        assert running._child.returncode is not None
        assert complete(model, frozenset(), values, 5.0)[0] is not None
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    assert bounds == pytest.approx([solver.objective_value] * 3, rel=1e-5)


def test_of_a_known_plan_only_what_is_better_is_looked_for() -> None:
    """HiGHS receives the known objective and searches for better plans only."""
    model = cover(1)
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    least = solver.objective_value
    for known, gap, proven, finds in ((least, 0.01, 0.99 * least, False), (1.2 * least, 0.0, least, True)):
        heard: list[HighsAnswer] = []
        with HighsRace(model, frozenset(), 30.0, gap, heard.append, known=known) as running:
            assert running.ended.wait(40.0)
        assert not any(answer.infeasible for answer in heard)
        assert max(each.bound for each in heard if each.bound is not None) == pytest.approx(proven, rel=1e-5)
        if finds:
            values = [answer.values for answer in heard if answer.values is not None]
            exact, _ = complete(model, frozenset(), values[-1], 5.0)
            assert exact is not None
            assert exact.objective_value == least


def test_work_of_highs_is_for_what_is_better_than_the_plan_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HiGHS starts from the plan that CP-SAT knows."""
    model, starts = cover(1), []
    plain = reproducible.Job

    def job(*given: Any) -> Job:
        starts.append(given[3])
        return plain(*given)

    found = cp_model.CpSolver()
    assert found.solve(model) == cp_model.OPTIMAL
    hint(model, found)
    monkeypatch.setattr(reproducible, "Job", job)
    monkeypatch.setattr(reproducible, "_search", lambda *_: 0.0)
    limits = SolverLimits(LIMIT_S, 1, 1, Stop(), Patience())
    outcome = solve_reproducibly(model, frozenset(), limits, lambda plan, bound: plan - bound < 0.02 * plan)
    assert (outcome.status, outcome.objective) == (ModelStatus.SOLVED, found.objective_value)
    assert [None if start is None else start.tolist() for start in starts] == [
        list(found.response_proto.solution)
    ]


CHILD = """
import io, json, os, pickle, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # HiGHS prints its name to standard output.
from fleetplan.planner.search.solvers import highs_child
import numpy
begun, plain = [], highs_child.integer_model

def counted(*given, **named):
    begun.append(1)
    solver, reduced = plain(*given, **named)
    for name, value in json.loads(sys.argv[2]).items():
        solver.setOptionValue(name, value)
    return solver, reduced

highs_child.integer_model, highs_child.limit = counted, lambda *_: None
source, heard = sys.stdin.buffer, []
searches = highs_child.Searches(pickle.load(source), heard.append)
known = json.loads(sys.argv[1])
if known:
    searches.know(numpy.array(known))
searches.run(source)
values = [answer.values.tolist() for answer in heard if answer.values is not None]
print(json.dumps([len(begun), values[-1]]), file=answers, flush=True)
"""


def child_runs(
    model: cp_model.CpModel, requests: int, known: list[int], options: dict[str, float]
) -> tuple[int, list[float]]:
    """How many searches a process begins and the last plan it tells; it may know of a plan."""
    program = HighsProgram(model, frozenset())
    job = SearchJob(program.rows, program.cost, Effort(30.0, ANY_NODES, 0.0))
    message = b"".join(pickle.dumps(each) for each in (job, *[ONE_MORE] * requests))
    answer = ran(["-c", CHILD, json.dumps(known), json.dumps(options)], HIGHS, message)
    answer.check_returncode()
    begun, values = json.loads(answer.stdout)
    return begun, values


def test_a_search_begins_for_each_request() -> None:
    model = cover(1)
    assert child_runs(model, 0, [], {})[0] == 1
    assert child_runs(model, 2, [], {})[0] == 3


def test_highs_is_told_the_plans_of_cpsat(led: type[Led], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race.BestFound, "led_by_highs", lambda best: False)
    model, objectives = market_split(forgiving=True), []
    limits = SolverLimits(LIMIT_S, 1, 1, Stop())
    outcome = solve_model(
        model,
        frozenset(),
        limits,
        lambda *_: len(led.known) > 1,
        lambda step: objectives.append(step.objective),
    )
    terms = list(zip(model.proto.objective.vars, model.proto.objective.coeffs, strict=True))
    told = [sum(cost * plan[j] for j, cost in terms) for plan in led.known]
    assert len(told) > 1
    assert set(told) <= set(objectives)
    assert told[-1] == outcome.objective


def test_a_plan_from_elsewhere_starts_no_search() -> None:
    running = HighsRace(cover(1), frozenset(), 30.0, 0.0, lambda _: None)
    running.know([1] * 30)
    job, plan = running._said.get(), running._said.get()
    assert isinstance(job, SearchJob)
    assert isinstance(plan, np.ndarray)
    message = b"".join(pickle.dumps(each) for each in (job, plan, ONE_MORE, plan))
    answer = ran(["-c", CHILD, "[]", "{}"], HIGHS, message)
    answer.check_returncode()
    assert json.loads(answer.stdout)[0] == 2


def test_a_search_takes_the_better_plan_of_another_one() -> None:
    model = market_split(forgiving=True)
    good = cp_model.CpSolver()
    good.parameters.num_workers, good.parameters.max_deterministic_time = 1, 0.1
    assert good.solve(model) == cp_model.FEASIBLE
    count = len(model.proto.variables)
    plan = [good.value(model.get_int_var_from_proto_index(j)) for j in range(count)]
    cost = dict(zip(model.proto.objective.vars, model.proto.objective.coeffs, strict=True))

    def missed(values: Sequence[float]) -> float:
        return sum(each * values[j] for j, each in cost.items())

    root: dict[str, float] = {"mip_max_nodes": 1, "mip_heuristic_effort": 0.0, "mip_allow_restart": False}
    assert missed(child_runs(model, 0, [], root)[1]) > 2 * missed(plan)
    assert missed(child_runs(model, 0, plan, root)[1]) == pytest.approx(missed(plan))


def test_a_child_ends_with_its_parent_in_the_middle_of_a_job() -> None:
    script = (
        "import os, sys, pickle\n"
        "from fleetplan.planner.search.solvers.highs_process import started_child\n"
        "child = started_child()\n"
        "child.stdin.write(sys.stdin.buffer.read())\n"
        "child.stdin.flush()\n"
        "print(child.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    program = HighsProgram(market_split(forgiving=True), frozenset())
    job = Job(program.rows, program.cost, Effort(None, ANY_NODES, 0.0))
    message = pickle.dumps(()) + pickle.dumps(job)
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = ran(["-c", script], HIGHS, given=message, env=path)
    parent.check_returncode()
    child, deadline = int(parent.stdout), time.monotonic() + 30.0
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(process: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
