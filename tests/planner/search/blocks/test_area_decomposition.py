"""The relaxation of areas at prices of their joint limits, against the relaxation of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from tests.parts import first_of
from tests.planner.search.blocks.test_areas import case_of, relaxed_apart, scarce, searched
from tests.planner.search.blocks.test_construction import TOLERANCE, built, passed, structured

from fleetplan.planner.search.blocks import area_decomposition
from fleetplan.planner.search.blocks.area_decomposition import SETTLED_RATIO, AreaDecomposition
from fleetplan.planner.search.blocks.areas import Area, areas_of, relaxations_apart
from fleetplan.planner.search.blocks.construction import Structure, sifting_job
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.request import Step
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

LEFT_SHARE = 0.9
"""Of what all areas would take of a joint limit that binds here."""


def binding(workers: Workers, seed: int) -> tuple[Structure, tuple[Area, ...], Split]:
    """A program of areas in which joint limits leave less than the areas would take."""
    structure, parts = structured(case_of(seed))
    areas = areas_of(structure)
    first = relaxed_apart(workers, structure, areas)
    assert first.values is not None
    return scarce(structure, LEFT_SHARE * first.values, areas), areas, parts


@pytest.mark.parametrize("seed", first_of((1, 2, 3), 1))
def test_areas_agree_upon_prices_that_prove_what_the_whole_does(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(area_decomposition, "MOST_ROUNDS", 60)
    with Workers(ProcessSeats(1)) as workers:
        structure, areas, _ = binding(workers, seed)
        whole = workers.solve_one(whole_job(structure.relaxation, structure.cost))
        job = sifting_job(structure)
        apart = AreaDecomposition(job.program, job.cost, areas, relaxations_apart(job, areas))
        found = apart.solve(workers)
    assert found is not None
    assert found.values is not None
    assert found.row_duals is not None
    assert apart.rounds > 0
    assert passed(structure, found.values) <= TOLERANCE
    assert found.objective == pytest.approx(float(structure.cost @ found.values))
    bound = structure.relaxation.bound(structure.cost, found.row_duals)
    assert bound == pytest.approx(found.bound)
    assert bound <= whole.objective * (1 + 1e-9) <= found.objective * (1 + 2e-9)
    assert found.objective - bound <= 1.01 * SETTLED_RATIO * abs(found.objective)


def test_areas_that_leave_joint_limits_slack_need_no_prices() -> None:
    structure, _ = structured(case_of(1))
    areas = areas_of(structure)
    joint = np.unique(np.concatenate([each.joint for each in areas]))
    structure.relaxation.row_upper[joint] *= 100
    with Workers(ProcessSeats(1)) as workers:
        whole = workers.solve_one(whole_job(structure.relaxation, structure.cost))
        job = sifting_job(structure)
        apart = AreaDecomposition(job.program, job.cost, areas, relaxations_apart(job, areas))
        found = apart.solve(workers)
    assert found is not None
    assert apart.rounds == 0
    assert found.bound == pytest.approx(whole.objective)


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.usefixtures("blocks_for_all")
def test_prices_that_do_not_settle_leave_the_relaxation_to_the_whole(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(area_decomposition, "MOST_ROUNDS", rounds)
    steps: list[Step] = []
    found = searched(built(case_of(1)), steps, gap=0.5)
    assert found.objective is not None
    assert any(step.detail.endswith("areas without joint limits") for step in steps)
