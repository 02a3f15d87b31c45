"""The master LP of areas at prices of their joint limits, against the master LP of everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.parts import first_of
from tests.planner.search.blocks.test_area_decomposition import binding
from tests.planner.search.blocks.test_areas import selected
from tests.planner.search.blocks.test_construction import TOLERANCE

from fleetplan.planner.search.blocks import area_decomposition, area_master_lp
from fleetplan.planner.search.blocks.area_decomposition import SETTLED_RATIO
from fleetplan.planner.search.blocks.area_master_lp import AreaMasterLP
from fleetplan.planner.search.blocks.area_scopes import AreaScopes
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import Structure
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.master import Master, PriceRange
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job, Rows
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers


@pytest.fixture(autouse=True)
def _areas_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns are solved by areas as well, in as many rounds as that takes."""
    monkeypatch.setattr(area_master_lp, "LEAST_COLUMNS", 0)
    monkeypatch.setattr(area_decomposition, "MOST_ROUNDS", 60)


N_PLANS = 6
"""Of so many optima, at costs drawn around the true ones, the columns are parts."""

PENALTY_RATIO = 3.0
"""Most that a limit is worth here, over the largest price in the relaxation."""


@dataclass
class AreaCase:
    """A master whose joint limits bind, with columns, and prices of the relaxation."""

    master: Master
    pool: ColumnPool
    scopes: AreaScopes
    prices: FloatArray

    @property
    def anywhere(self) -> PriceRange:
        return PriceRange.of_penalty(PENALTY_RATIO * np.abs(self.prices).max(), len(self.prices))

    def job(self, within: PriceRange) -> Job:
        return self.master.linear_job(self.master.everything(), self.pool.columns, within)


def case_of(workers: Workers, seed: int) -> AreaCase:
    structure, areas, parts = binding(workers, seed)
    master = Master(parts, structure.relaxation, structure.cost)
    pool = ColumnPool(parts, structure.relaxation, structure.cost)
    draw = np.random.default_rng(seed)
    for _ in range(N_PLANS):
        answer = relaxed_at(workers, structure, structure.cost * draw.uniform(0.5, 1.5, len(structure.cost)))
        assert answer.values is not None
        selected(pool, master, parts, answer.values)
    whole = relaxed_at(workers, structure, structure.cost)
    assert whole.row_duals is not None
    return AreaCase(master, pool, AreaScopes(parts, master, areas), whole.row_duals[parts.linking_rows])


def relaxed_at(workers: Workers, structure: Structure, cost: FloatArray) -> Answer:
    return workers.solve_one(whole_job(structure.relaxation, cost))


def proven(job: Job, duals: FloatArray) -> float:
    """The bound that prices of rows prove: every row and every variable at the limit that is the cheapest."""
    assert isinstance(job.rows, Rows)
    rows = job.rows
    limits = np.where(duals > 0, rows.row_lower, rows.row_upper)
    reduced = job.cost - rows.rows.T @ duals
    reduced[np.abs(reduced) < 1e-9 * np.abs(job.cost).max()] = 0.0
    bounds = np.where(reduced > 0, rows.lower, rows.upper)
    used, kept = reduced != 0, duals != 0
    return float(duals[kept] @ limits[kept]) + float(reduced[used] @ bounds[used])


def kept(job: Job, values: FloatArray) -> bool:
    """Return whether values keep all rows and bounds, with slack variables for excess."""
    assert isinstance(job.rows, Rows)
    used = job.rows.rows @ values
    over = np.maximum(job.rows.row_lower - used, used - job.rows.row_upper)
    return bool((values >= job.rows.lower - TOLERANCE).all() and (over <= TOLERANCE).all())


@pytest.mark.parametrize("seed", first_of((1, 2, 3), 1))
def test_areas_agree_upon_the_optimum_of_the_whole_master_lp(seed: int) -> None:
    with Workers(ProcessSeats(1)) as workers:
        case = case_of(workers, seed)
        apart = AreaMasterLP(case.scopes)
        size = 0.1 * np.abs(case.prices).max()
        near = PriceRange(case.prices - size, case.prices + size)
        for within in (case.anywhere, near, near & case.anywhere):
            job = case.job(within)
            whole = workers.solve_one(job)
            found = apart.solve(workers, job, case.pool.columns, within, case.prices)
            assert found is not None
            assert found.row_duals is not None
            scale = SETTLED_RATIO * abs(whole.objective)
            assert found.objective == pytest.approx(whole.objective, abs=scale)
            assert found.bound == pytest.approx(whole.objective, abs=scale)
            assert found.values is not None
            assert kept(job, found.values)
            assert float(job.cost @ found.values) == pytest.approx(found.objective)
            assert proven(job, found.row_duals) == pytest.approx(whole.objective, abs=scale)


def test_more_columns_begin_where_fewer_ended() -> None:
    with Workers(ProcessSeats(1)) as workers:
        case = case_of(workers, 1)
        master, columns, within = case.master, list(case.pool.columns), case.anywhere
        first = [columns[i] for i in sorted({c.block: i for i, c in enumerate(columns)}.values())]
        apart = AreaMasterLP(case.scopes)
        for chosen in (first, [*first, *(each for each in columns if each not in first)], columns[::-1]):
            job = master.linear_job(master.everything(), chosen, within)
            found, whole = apart.solve(workers, job, chosen, within, case.prices), workers.solve_one(job)
            assert found is not None
            assert found.objective == pytest.approx(whole.objective, rel=SETTLED_RATIO)


def test_areas_whose_prices_do_not_settle_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Workers(ProcessSeats(1)) as workers:
        case = case_of(workers, 1)
        apart, job = AreaMasterLP(case.scopes), case.job(case.anywhere)
        monkeypatch.setattr(area_decomposition, "MOST_ROUNDS", 0)
        assert apart.solve(workers, job, case.pool.columns, case.anywhere, case.prices) is None
        monkeypatch.setattr(area_decomposition, "MOST_ROUNDS", 60)
        assert apart.solve(workers, job, case.pool.columns, case.anywhere, case.prices) is None


def test_few_columns_are_solved_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with Workers(ProcessSeats(1)) as workers:
        case = case_of(workers, 1)
        monkeypatch.setattr(area_master_lp, "LEAST_COLUMNS", len(case.pool.columns) + 1)
        job = case.job(case.anywhere)
        assert (
            AreaMasterLP(case.scopes).solve(workers, job, case.pool.columns, case.anywhere, case.prices)
            is None
        )
