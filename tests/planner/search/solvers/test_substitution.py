"""Variables written as what they exceed a sum by: the same optimum, and the same values back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts import first_of

from fleetplan.planner.search.solvers.highs_jobs import Effort, Job, Rows
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.substitution import substitute
from fleetplan.planner.search.solvers.workers import Workers

EXACT = Effort(None, 100_000, 1e-9)


def program(seed: int) -> tuple[Rows, np.ndarray]:
    """Replicas that carry load for two services, within units that are bought whole."""
    rng = np.random.default_rng(seed)
    n = 6
    load, replicas, units = np.arange(2 * n), 2 * n + np.arange(n), 3 * n
    size = 3 * n + 1
    rows = np.zeros((n + 4, size))
    for each in range(n):
        rows[each, [load[2 * each], load[2 * each + 1]]] = rng.uniform(0.2, 2.0, 2)
        rows[each, replicas[each]] = -rng.uniform(0.5, 2.0)
    rows[n, load[::2]] = rows[n + 1, load[1::2]] = 1.0
    rows[n + 2, replicas], rows[n + 2, units] = rng.uniform(0.2, 1.0, n), -1.0
    # Replicas for their own sake, as cuts for whole ones ask for them.
    rows[n + 3, replicas] = rng.uniform(0.5, 1.5, n)
    lower = np.concatenate([np.full(n, -np.inf), rng.uniform(1, 3, 2), [-np.inf], [rng.uniform(0, 6)]])
    upper = np.concatenate([np.zeros(n), np.full(2, np.inf), [0.0], [np.inf]])
    whole = np.zeros(size, dtype=bool)
    whole[units] = True
    whole[replicas[rng.random(n) < 0.3]] = True
    cost = np.concatenate([rng.uniform(0, 0.2, 2 * n), rng.uniform(0, 0.3, n), [2.0]])
    limits = (lower, upper, np.zeros(size), np.full(size, 50.0))
    return Rows(sp.csr_array(rows), *limits, whole), cost


@pytest.mark.parametrize("seed", first_of(range(12), 5))
def test_the_optimum_is_the_same_and_its_values_hold_in_the_program_as_it_was(seed: int) -> None:
    rows, cost = program(seed)
    short = substitute(rows, cost)
    continuous = int((~rows.whole[12:18]).sum())
    assert len(short.rows.row_lower) == len(rows.row_lower) - continuous
    with Workers(ProcessSeats(1)) as workers:
        before, after = workers.solve([Job(rows, cost, EXACT), Job(short.rows, short.cost, EXACT)])
    assert after.objective == pytest.approx(before.objective, rel=1e-6)
    values = short.values(after.values)
    assert cost @ values == pytest.approx(before.objective, rel=1e-6)
    used = rows.rows @ values
    assert (used <= rows.row_upper + 1e-6).all()
    assert (used >= rows.row_lower - 1e-6).all()
    # A plan of the program as it was is one of this.
    found = before.values - short.sums @ before.values
    assert short.values(found) == pytest.approx(before.values)
    assert (short.rows.rows @ found <= short.rows.row_upper + 1e-6).all()
    assert (found >= -1e-6).all()


def test_a_variable_in_the_sum_of_another_stays_as_it_is() -> None:
    """The second row's variable is above the first one's: only one of them may be replaced."""
    rows = sp.csr_array(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]))
    limits = (np.array([-np.inf, -np.inf, 2.0]), np.array([0.0, 0.0, np.inf]), np.zeros(3), np.full(3, 9.0))
    short = substitute(Rows(rows, *limits, np.zeros(3, dtype=bool)), np.array([0.0, 1.0, 1.0]))
    assert len(short.rows.row_lower) == 2
    with Workers(ProcessSeats(1)) as workers:
        assert workers.solve_one(Job(short.rows, short.cost, None)).objective == pytest.approx(4.0)


def test_a_variable_that_may_be_negative_is_in_no_sum() -> None:
    rows = sp.csr_array(np.array([[1.0, -1.0]]))
    limits = (np.array([-np.inf]), np.zeros(1), np.array([-1.0, 0.0]), np.full(2, 9.0))
    program = Rows(rows, *limits, np.zeros(2, dtype=bool))
    assert len(substitute(program, np.ones(2)).rows.row_lower) == 1
