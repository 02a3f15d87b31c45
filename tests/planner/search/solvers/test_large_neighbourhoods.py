"""Large neighbourhood search: plans get better, stay plans, and the same ones in every run."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from ortools.sat.python import cp_model
from tests.parts import first_of
from tests.planner.search.solvers.test_highs_beside_cpsat import cover as integer_cover
from tests.warm import HIGHS, ran

from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, Answer, Array, Effort, Job, Rows, SearchJob
from fleetplan.planner.search.solvers.highs_program import HighsProgram, complete
from fleetplan.planner.search.solvers.large_neighbourhoods import GAP, PATIENCE, NeighbourhoodsJob, _Graph
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

N_ROWS, N_VARIABLES = 30, 45


def cover(seed: int) -> tuple[Rows, Array]:
    """Rows of few variables each, a fifth of which need not be whole, and one row of all."""
    draw = np.random.default_rng(seed)
    entries = draw.integers(1, 9, (N_ROWS, N_VARIABLES)) * (draw.random((N_ROWS, N_VARIABLES)) < 0.1)
    rows = np.vstack([entries, np.ones(N_VARIABLES)]).astype(float)
    lower = np.concatenate([np.minimum(draw.uniform(5, 30, N_ROWS), 9 * entries.sum(axis=1)), [0.0]])
    whole = draw.random(N_VARIABLES) < 0.8
    program = Rows(
        rows=sp.csr_array(rows),
        row_lower=lower,
        row_upper=np.concatenate([np.full(N_ROWS, np.inf), [9.0 * N_VARIABLES]]),
        lower=np.zeros(N_VARIABLES),
        upper=np.full(N_VARIABLES, 9.0),
        whole=whole,
    )
    return program, draw.uniform(1, 3, N_VARIABLES)


def holds(program: Rows, values: Array) -> bool:
    used = program.rows @ values
    kept = (used >= program.row_lower - 1e-6).all() and (used <= program.row_upper + 1e-6).all()
    within = (values >= program.lower - 1e-9).all() and (values <= program.upper + 1e-9).all()
    whole = values[program.whole]
    return bool(kept and within and np.abs(whole - np.round(whole)).max() <= 1e-6)


def improved(
    workers: Workers, program: Rows, cost: Array, target: float = -np.inf, work_limit_s: float = 10.0
) -> Answer:
    start = program.upper
    return workers.solve_one(
        NeighbourhoodsJob(
            program=program, cost=cost, start=start, target=target, work_limit_s=work_limit_s, seed=1
        )
    )


@pytest.mark.parametrize("seed", first_of(range(4), 2))
def test_a_poor_plan_becomes_nearly_the_best(seed: int) -> None:
    program, cost = cover(seed)
    with Workers(ProcessSeats(1)) as workers:
        best = workers.solve_one(Job(program, cost, Effort(None, ANY_NODES, 0.0)))
        found, again = (improved(workers, program, cost) for _ in range(2))
    assert found.values is not None
    assert again.values is not None
    assert holds(program, found.values)
    assert found.objective == pytest.approx(float(cost @ found.values))
    assert best.objective <= found.objective * (1 + 1e-9) <= best.objective * 1.03
    # Of the start three quarters were to gain.
    assert found.objective <= 0.5 * float(cost @ program.upper)
    assert found.bound == -np.inf
    assert again.values.tolist() == found.values.tolist()
    assert found.work_s > 0


def test_a_plan_that_is_good_enough_and_one_without_time_stay() -> None:
    program, cost = cover(1)
    whole = float(cost @ program.upper)
    with Workers(ProcessSeats(1)) as workers:
        for target, work_limit_s in ((whole, 10.0), (-np.inf, 0.0)):
            found = improved(workers, program, cost, target, work_limit_s)
            assert found.values is not None
            assert found.values.tolist() == program.upper.tolist()
            assert found.work_s == 0
        some = improved(workers, program, cost, target=0.5 * whole)
        full = improved(workers, program, cost)
    assert full.objective <= some.objective <= 0.5 * whole
    assert some.work_s < full.work_s


def test_the_best_plan_is_left_after_some_neighbourhoods() -> None:
    program, cost = cover(2)
    asked: list[Job] = []

    class Solver:
        """Finds nothing better, with little work."""

        def __call__(self, job: Job) -> Answer:
            asked.append(job)
            assert job.start is not None
            return Answer(job.start, float(job.cost @ job.start) * (1 - GAP / 2), -np.inf)

    job = NeighbourhoodsJob(
        program=program, cost=cost, start=program.upper, target=-np.inf, work_limit_s=10.0, seed=1
    )
    found = job.run(Solver())  # type: ignore[arg-type]
    assert found.objective == float(cost @ program.upper)
    free = [np.asarray(each.rows.lower < each.rows.upper) for each in asked]  # type: ignore[union-attr]
    sizes = [int((each & program.whole).sum()) for each in free]
    assert len(sizes) == PATIENCE
    # What is not whole is never held, and neighbourhoods of little work grow.
    assert all(each[~program.whole].all() for each in free)
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


@pytest.mark.parametrize("count", [1, 5, 30])
def test_a_neighbourhood_has_as_many_whole_variables_as_are_asked_for(count: int) -> None:
    program, _ = cover(3)
    whole = np.flatnonzero(program.whole)
    plain = program.without_scipy()
    around = [_Graph(each).around(whole, count, np.random.default_rng(7)) for each in (program, plain)]
    assert (around[0] == around[1]).all()
    assert int((around[0] & program.whole).sum()) == count


def test_a_wide_row_connects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.planner.search.solvers.large_neighbourhoods.WIDEST_ROW", 3)
    pairs = np.kron(np.eye(10), np.ones((1, 2)))
    rows = sp.csr_array(np.vstack([pairs, np.ones(20)]))
    none, one = np.zeros(11), np.ones(20)
    program = Rows(rows, none, none + 20, 0 * one, one, np.ones(20, dtype=bool))
    graph = _Graph(program)
    for seed in range(10):
        first, second = np.flatnonzero(graph.around(np.arange(20), 2, np.random.default_rng(seed)))
        assert (first // 2, first + 1) == (second // 2, second)


NEAR = """
import io, json, os, pickle, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # HiGHS prints its name to standard output.
from fleetplan.planner.search.solvers import highs_child
import numpy
job, heard = pickle.load(sys.stdin.buffer), []
searches = highs_child.Searches(job, heard.append)
poor = numpy.array(json.loads(sys.argv[1]))
searches._keep(0, float(job.cost @ poor) / searches._unit, poor)
searches._search = lambda seed: None
searches._improve_and_search(1)
print(json.dumps([answer.values.tolist() for answer in heard]), file=answers, flush=True)
"""


def test_another_search_begins_with_neighbourhoods_of_the_plan_that_is_known() -> None:
    model = integer_cover(1)
    program = HighsProgram(model, frozenset())
    message = pickle.dumps(SearchJob(program.rows, program.cost, Effort(30.0, ANY_NODES, 0.0)))
    answer = ran(["-c", NEAR, json.dumps(program.rows.upper.tolist())], HIGHS, message)
    answer.check_returncode()
    told = [np.array(each) for each in json.loads(answer.stdout)]
    costs = [float(program.cost @ each) for each in told]
    best = cp_model.CpSolver()
    assert best.solve(model) == cp_model.OPTIMAL
    assert len(told) > 1
    assert costs == sorted(costs, reverse=True)
    assert best.objective_value - 1e-6 <= costs[-1] <= 1.1 * best.objective_value
    last = program.answer(Answer(told[-1], costs[-1], -math.inf))
    assert last.values is not None
    exact, _ = complete(model, frozenset(), last.values, 5.0)
    assert exact is not None
    assert exact.objective_value == pytest.approx(costs[-1])
