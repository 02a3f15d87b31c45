"""Cuts for whole replicas: no plan breaks one, and the linear relaxation keeps less of its fractions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts import first_parts
from tests.planner.random_fleets import several_periods_case
from tests.planner.search.blocks.test_bound import EXACT, built, parts_of

from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.construction import Structure, root_of
from fleetplan.planner.search.blocks.cover_cuts import CoverRows
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.roles import indicator_variables, roles
from fleetplan.planner.search.blocks.strengthening import Strengthening
from fleetplan.planner.search.solvers.highs_jobs import Job
from fleetplan.planner.search.solvers.matrix import UNBOUNDED, Program
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

FLEETS = first_parts((4, 30), 1)


def program(rows: list[list[int]], least: list[int], upper: list[int]) -> Program:
    """Rows `@ x >= least` over variables from 0 to `upper`."""
    matrix = sp.csr_array(np.array(rows, dtype=np.int64))
    n_rows, n_variables = matrix.shape
    return Program(
        rows=matrix,
        row_lower=np.array(least, dtype=np.int64),
        row_upper=np.full(n_rows, UNBOUNDED, dtype=np.int64),
        lower=np.zeros(n_variables, dtype=np.int64),
        upper=np.array(upper, dtype=np.int64),
        cost=np.ones(n_variables, dtype=np.int64),
    )


def test_a_small_demand_takes_a_whole_replica() -> None:
    one = program([[8, 8]], [3], [1, 1])
    cuts = CoverRows(one, relax(one, [])).violated_by(np.array([0.375, 0.0]))
    assert cuts.rows.toarray() == pytest.approx(np.array([[1.0, 1.0]]))
    assert cuts.least == pytest.approx([1.0])


def test_what_keeps_all_rounded_rows_gives_no_cut() -> None:
    one = program([[8, 4]], [12], [2, 3])
    assert CoverRows(one, relax(one, [])).violated_by(np.array([1.0, 1.0])).count == 0


def test_demand_that_other_rows_fix_counts() -> None:
    # Work of 5 is done here (second row), at a rate of its own variable (first row).
    two = program([[8, 8, -1], [0, 0, 1]], [0, 5], [1, 1, 5])
    cuts = CoverRows(two, relax(two, [2])).violated_by(np.array([0.625, 0.0, 1.0]))
    assert cuts.rows.toarray() == pytest.approx(np.array([[1.0, 1.0, 0.0]]))
    assert cuts.least == pytest.approx([1.0])


def test_a_wide_range_beside_a_narrow_one_raises_no_demand() -> None:
    # Of the work of 5 the last variable may do 3, so 2 are left: one replica of 3.
    two = program([[3, 3, -1, 0], [0, 0, 1, 1]], [0, 5], [2, 2, 2**58, 3])
    cuts = CoverRows(two, relax(two, [2, 3])).violated_by(np.array([0.5, 0.0, 0.0, 1.0]))
    assert cuts.least == pytest.approx([1.0])


@pytest.mark.parametrize("unmet", [False, True])
def test_no_whole_solution_breaks_a_cut(unmet: bool) -> None:
    rng = np.random.default_rng(7)
    found = 0
    replicas = np.array(list(product(range(5), repeat=3)))
    for _ in range(300):
        sizes = rng.integers(1, 12, 3).tolist()
        demand = int(rng.integers(1, 30))
        one = program([[*sizes, *([1] if unmet else [])]], [demand], [4, 4, 4, *([demand] if unmet else [])])
        relaxed = relax(one, [3] if unmet else [])
        point = rng.uniform(0, 3, len(one.cost)) * demand / sum(sizes) / 3
        cuts = CoverRows(one, relaxed).violated_by(point)
        if not cuts.count:
            continue
        found += 1
        # The least unmet demand that serves the rest, in units of the relaxation.
        rest = np.maximum(0, demand - replicas @ sizes)
        if unmet:
            values = np.column_stack([replicas, rest / relaxed.variable_scale[3]])
        else:
            values = replicas[rest == 0].astype(float)
        assert (cuts.rows @ values.T >= cuts.least[:, None] - 1e-9).all()
    assert found >= 100


@pytest.mark.parametrize("fleets", FLEETS)
def test_the_strengthened_relaxation_is_one_of_the_same_plans(fleets: int) -> None:
    checked = higher = supply_higher = 0
    with Workers(ProcessSeats(1)) as workers:
        for seed in range(fleets):
            planning = built(several_periods_case(seed))
            parts = parts_of(planning)
            relaxed = relax(parts.program, continuous_indices(planning.variables))
            known = roles(planning.problem, planning.variables, len(parts.program.cost))
            indicators = indicator_variables(planning.variables)
            cost = parts.program.cost * relaxed.variable_scale
            structure = Structure(known, relaxed, cost, parts.linking_rows, parts.following_variables)
            best = workers.solve_one(Job(structure.program, cost, EXACT))
            linear = workers.solve_one(whole_job(relaxed, cost))
            if best.values is None or linear.values is None:
                continue
            look = Strengthening(structure, CoverRows(parts.program, relaxed), indicators, seed)
            found = look.found(linear.values, workers, Clock(10.0, deterministic=True))
            own = found.relaxation
            assert (own.rows @ best.values >= own.row_lower - 1e-6).all()
            stronger = workers.solve_one(whole_job(own, cost))
            tolerance = 1e-6 * abs(best.objective) + 1
            assert linear.objective - tolerance <= stronger.objective <= best.objective + tolerance
            higher += stronger.objective > linear.objective + 1e-3 * abs(best.objective)
            bounds = [supply_bound(each, indicators, workers) for each in (structure, found)]
            assert bounds[1] <= best.objective + tolerance
            supply_higher += bounds[1] > bounds[0] + 1e-3 * abs(best.objective)
            checked += 1
    assert checked >= fleets // 2
    assert higher >= checked // 2
    assert supply_higher >= checked // 4


def supply_bound(structure: Structure, indicators: frozenset[int], workers: Workers) -> float:
    """The bound of whole supply with replicas in fractions."""
    root = root_of(structure, workers.solve_one(whole_job(structure.relaxation, structure.cost)))
    assert root is not None
    program = Periods(structure, indicators, root).supply_program()
    return workers.solve_one(Job(program.rows, program.cost, EXACT)).bound
