"""A linear program that grows has the optima of one that is solved anew each time, and prices of all rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts import first_of

from fleetplan.planner.search.solvers.growing_linear import GrowingLinear
from fleetplan.planner.search.solvers.highs_answers import solve
from fleetplan.planner.search.solvers.highs_jobs import Array, Indices, Job, Rows, no_programs


def covering(draw: np.random.Generator) -> tuple[Rows, Array]:
    """Random demands and limits of twelve variables; most rows hold few of them."""
    matrix = draw.choice([0.0, 0.0, 0.0, 1.0, 2.0], size=(10, 12))
    demands = np.arange(10) < 4
    # Two variables serve every demand, so that these alone allow a solution.
    matrix[demands, 0], matrix[demands, 1] = 1.0, 2.0
    matrix[~demands, :2] = 0.0
    lower = np.where(demands, draw.integers(1, 5, size=10), -np.inf)
    upper = np.where(demands, np.inf, draw.integers(1, 4, size=10))
    cost = draw.integers(1, 9, size=12) + np.array([20.0, 30.0] + [0.0] * 10)
    most = np.concatenate([[9.0, 9.0], draw.choice([0.5, 1.0, 9.0], size=10)])
    rows = Rows(sp.csr_array(matrix), lower, upper, np.zeros(12), most, np.zeros(12, dtype=bool))
    return rows, cost


def among(rows: Rows, cost: Array, there: Indices) -> float:
    """The optimum with the variables that are there, solved anew."""
    upper = np.where(np.isin(np.arange(len(cost)), there), rows.upper, 0.0)
    return solve(Job(rows.within(rows.lower, upper), cost, None), no_programs()).objective


@pytest.mark.parametrize("seed", first_of(range(30), 10))
def test_every_step_has_the_optimum_among_its_variables_and_prices_that_prove_it(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows, cost = covering(draw)
    work: list[float] = []
    there = np.array([0, 1])
    growing = GrowingLinear(rows, cost, there, work.append)
    for added in np.split(2 + draw.permutation(10), [1, 4, 5, 9]):
        growing.add(added)
        there = np.concatenate([there, added])
        answer = growing.solve()
        assert answer.objective == pytest.approx(among(rows, cost, there))
        assert answer.values is not None
        assert answer.row_duals is not None
        used = rows.rows @ answer.values
        assert (used >= rows.row_lower - 1e-6).all()
        assert (used <= rows.row_upper + 1e-6).all()
        assert not np.delete(answer.values, there).any()
        # By duality: what rows are worth, and what bounds of the variables that are there are.
        reduced = (cost - rows.rows.T @ answer.row_duals)[there]
        limits = np.where(answer.row_duals > 0, rows.row_lower, rows.row_upper)
        worth = np.where(answer.row_duals == 0, 0.0, limits) @ answer.row_duals
        assert worth + np.minimum(reduced, 0.0) @ rows.upper[there] == pytest.approx(answer.objective)
    assert len(work) == 5


def test_a_demand_that_no_variable_serves_so_far_has_no_solution() -> None:
    rows = Rows(
        sp.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]])),
        np.array([1.0, 2.0]),
        np.full(2, np.inf),
        np.zeros(2),
        np.full(2, 9.0),
        np.zeros(2, dtype=bool),
    )
    growing = GrowingLinear(rows, np.array([1.0, 3.0]), np.array([0]), lambda _: None)
    assert growing.solve().infeasible
    growing.add(np.array([1]))
    assert growing.solve().objective == pytest.approx(7.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_basis_of_an_optimum_leads_to_it_in_no_step(seed: int) -> None:
    rows, cost = covering(np.random.default_rng(seed))
    some = np.arange(7)
    first = GrowingLinear(rows, cost, some, lambda _: None).solve()
    assert first.basis is not None
    work: list[float] = []
    again = GrowingLinear(rows, cost, some, work.append, first.basis)
    answer = again.solve()
    assert work == [0.0]
    assert answer.objective == pytest.approx(first.objective)
    # What was not there is at its lower bound, so that the basis is one of a larger program as well.
    again.add(np.arange(7, 12))
    assert again.solve().objective == pytest.approx(among(rows, cost, np.arange(12)))
