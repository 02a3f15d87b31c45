"""Jobs that relax programs or price blocks: their values and prices, their work, and that they repeat."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from ortools.sat.python import cp_model
from tests.planner.search.solvers.small_jobs import jobs

from fleetplan.planner.search.blocks.effort import FEWEST_NODES, FINEST_GAP, MOST_NODES, ROUGHEST_GAP, Clock
from fleetplan.planner.search.blocks.linear import linear_optimum, linear_outcomes
from fleetplan.planner.search.solvers.highs_jobs import Effort, Job, Rows
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers


def test_the_linear_optimum_has_values_and_prices_in_the_units_of_the_model() -> None:
    model = cp_model.CpModel()
    few, many = model.new_int_var(0, 10, "few"), model.new_int_var(0, 1000, "many")
    model.add(100 * few + many >= 450)
    model.add(few <= 4)
    model.minimize(300 * few + 5 * many)
    found = linear_optimum(model, {many.index}, Stop())
    assert found is not None
    assert found.values == pytest.approx([4.0, 50.0])
    # One unit more of the first limit costs 5; of the second, 100 of the dear ones are saved, at 300.
    assert found.row_duals == pytest.approx([5.0, -200.0])
    assert found.worth == pytest.approx([300.0, 5.0])
    other = model.clone()
    other.add(few + many <= 3)
    assert linear_optimum(other, {many.index}, Stop()) is None
    possible, impossible = linear_outcomes([model, other], {many.index}, Stop()) or []
    assert possible.optimum is not None
    assert possible.optimum.values == pytest.approx([4.0, 50.0])
    assert (possible.infeasible, impossible.optimum, impossible.infeasible) == (False, None, True)


def test_a_relaxation_may_do_without_the_limits_on_some_variables() -> None:
    model = cp_model.CpModel()
    one, other, runs = model.new_int_var(0, 9, "a"), model.new_int_var(0, 9, "b"), model.new_bool_var("runs")
    model.add(one + other >= 6)
    model.add(one <= 4 * runs)
    model.minimize(one + 3 * other)
    limited = linear_optimum(model, (), Stop())
    relaxed = linear_optimum(model, (), Stop(), indicators=[runs.index])
    assert limited is not None
    assert relaxed is not None
    assert limited.values[:2] == pytest.approx([4.0, 2.0])
    assert relaxed.values[:2] == pytest.approx([6.0, 0.0])
    assert relaxed.row_duals == pytest.approx([1.0, 0.0])


def test_relaxations_repeat_bit_for_bit_and_other_programs_follow() -> None:
    rng = np.random.default_rng(1)
    rows = Rows(
        sp.csr_array(rng.uniform(0.0, 1.0, (60, 80)) * (rng.uniform(0.0, 1.0, (60, 80)) < 0.2)),
        np.ones(60),
        np.full(60, np.inf),
        np.zeros(80),
        np.full(80, 99.0),
        np.zeros(80, dtype=bool),
    )
    relaxation = Job(rows, rng.uniform(1.0, 2.0, 80), None)
    with Workers(ProcessSeats(1)) as workers:
        answers = workers.solve([relaxation, relaxation])
        assert [answer.objective for answer in workers.solve(jobs(1.0))] == [1.0]
    # On another process too, beside another program.
    with Workers(ProcessSeats(2)) as workers:
        answers += workers.solve([relaxation, *jobs(1.0)])[:1]
    for attribute, size in (("values", 80), ("row_duals", 60)):
        one, again, elsewhere = (np.array(getattr(answer, attribute)) for answer in answers)
        assert one.shape == (size,)
        np.testing.assert_array_equal(again, one)
        np.testing.assert_array_equal(elsewhere, one)


def test_blocks_are_priced_as_finely_as_the_distance_of_the_bound_asks_for() -> None:
    clock = Clock(100.0, deterministic=True)
    rough, middle, fine = clock.pricing(math.inf), clock.pricing(0.01), clock.pricing(0.0)
    assert rough.gap_ratio == ROUGHEST_GAP
    assert middle.gap_ratio == pytest.approx(0.0002)
    assert fine.gap_ratio == FINEST_GAP
    assert [each.cuts for each in (rough, middle, fine)] == [False, True, True]
    assert rough.node_limit == FEWEST_NODES < middle.node_limit < fine.node_limit == MOST_NODES
    timed = Clock(100.0, deterministic=False)
    limits = [timed.pricing(spread).time_limit_s or 0.0 for spread in (math.inf, 0.01, 0.0)]
    assert limits == sorted(limits)
    assert limits[0] < limits[1] < limits[2]


def test_counted_work_is_the_iterations_of_all_programs_whatever_the_processes() -> None:
    """Counted work is the simplex iterations of all programs, with any number of processes."""
    rng = np.random.default_rng(1)
    rows = sp.csr_array(rng.integers(1, 9, (30, 40)).astype(float))
    cost, none = rng.uniform(1, 2, 40), np.full(30, np.inf)
    program = Rows(rows, np.full(30, 95.5), none, np.zeros(40), np.full(40, 9.0), np.ones(40, dtype=bool))
    few, more = (Job(program, cost, Effort(None, nodes, 0.0)) for nodes in (1, 200))
    worked = []
    for count in (1, 2):
        clock = Clock(100.0, deterministic=True)
        with Workers(ProcessSeats(count), clock.count) as workers:
            short, long, linear = workers.solve([few, more, Job(program, cost, None)])
        assert 0 < linear.work_s < short.work_s < long.work_s
        assert clock.spent_s() > (short.work_s + long.work_s + linear.work_s) / clock.sharing(count)
        worked.append((clock.spent_s(), clock.sharing(count)))
    assert worked[0] == worked[1]
    assert Clock(100.0, deterministic=False).sharing(8) == 8
