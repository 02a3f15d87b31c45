"""Areas: a fleet falls into regions that only joint limits connect; each is relaxed and planned apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.parts import first_of
from tests.planner.random_fleets import PlanningCase, large_case
from tests.planner.search.blocks.test_construction import TOLERANCE, built, passed, structured

from fleetplan.planner.formulation.build import PlanningModel
from fleetplan.planner.search.blocks import area_master_lp, state
from fleetplan.planner.search.blocks import areas as areas_module
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.area_scopes import AreaScopes
from fleetplan.planner.search.blocks.areas import (
    Area,
    areas_of,
    programs_of,
    relaxation_from,
    relaxations_apart,
)
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import (
    Structure,
    construction_job,
    penalty_of,
    root_of,
    sifting_job,
)
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Answer
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import ModelOutcome, SolverLimits, Step
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

N_REGIONS = 5


def case_of(seed: int) -> PlanningCase:
    """Regions that share the lots of offers."""
    return large_case(seed, 3, N_REGIONS, 2)


def relaxed_apart(workers: Workers, structure: Structure, areas: tuple[Area, ...]) -> Answer:
    job = sifting_job(structure)
    joined = relaxation_from(job, areas, workers.solve(relaxations_apart(job, areas)))
    assert joined is not None
    return workers.solve_one(joined)


def test_every_variable_and_row_is_of_one_area_or_joint() -> None:
    structure, _ = structured(case_of(1))
    areas = areas_of(structure)
    assert len(areas) == N_REGIONS
    region = structure.roles.region
    assert all(len(np.unique(region[each.variables])) == 1 for each in areas)
    assert sorted(np.concatenate([each.variables for each in areas])) == list(range(len(region)))
    own = np.concatenate([each.rows for each in areas])
    joint = np.unique(np.concatenate([each.joint for each in areas]))
    assert len(np.unique(own)) == len(own)
    assert not np.intersect1d(own, joint).size
    rows = structure.relaxation.rows
    assert len(own) + len(joint) == int((np.diff(rows.indptr) > 0).sum())
    for row in joint.tolist():
        assert len(np.unique(region[rows[[row]].indices])) > 1


def test_regions_that_serve_each_other_are_one_area() -> None:
    case = case_of(1)
    travels = replace(case.fleet.services[0], serve_from={"r0": ("r1",)})
    regions = tuple(
        replace(each, round_trip_ms={"r1": 5.0}) if each.name == "r0" else each for each in case.fleet.regions
    )
    services = (travels, *case.fleet.services[1:])
    fleet = replace(case.fleet, services=services, regions=regions)
    together, _ = structured(replace(case, fleet=fleet))
    areas = areas_of(together)
    assert len(areas) == N_REGIONS - 1
    region = together.roles.region
    assert {len(np.unique(region[each.variables])) for each in areas} == {1, 2}


def test_few_areas_are_none() -> None:
    structure, _ = structured(large_case(1, 3, areas_module.LEAST_AREAS - 1, 2))
    assert areas_of(structure) == ()


@pytest.mark.parametrize("seed", first_of((1, 2, 3), 1))
def test_the_relaxation_from_areas_is_that_of_the_whole(seed: int) -> None:
    structure, _ = structured(case_of(seed))
    areas = areas_of(structure)
    with Workers(ProcessSeats(1)) as workers:
        whole = workers.solve_one(whole_job(structure.relaxation, structure.cost))
        found = relaxed_apart(workers, structure, areas)
    assert found.values is not None
    assert found.row_duals is not None
    assert passed(structure, found.values) <= TOLERANCE
    assert found.objective == pytest.approx(whole.objective, rel=1e-6)
    bound = structure.relaxation.bound(structure.cost, found.row_duals)
    assert bound == pytest.approx(whole.objective, rel=1e-6)


def scarce(structure: Structure, values: np.ndarray, areas: tuple[Area, ...]) -> Structure:
    """The same with joint limits at what some values take, so that each area has to stay within its part."""
    joint = np.unique(np.concatenate([each.joint for each in areas]))
    relaxed = structure.relaxation
    upper = relaxed.row_upper.copy()
    takes = relaxed.rows[joint] @ values
    upper[joint] = np.where(np.isfinite(upper[joint]), np.maximum(takes, 0.0), upper[joint])
    return replace(structure, relaxation=replace(relaxed, row_upper=upper))


@pytest.mark.parametrize("seed", first_of((1, 2), 1))
def test_plans_of_areas_are_a_plan_together(seed: int) -> None:
    structure, _ = structured(case_of(seed))
    areas, clock = areas_of(structure), Clock(60.0, deterministic=False)
    with Workers(ProcessSeats(1)) as workers:
        first = relaxed_apart(workers, structure, areas)
        assert first.values is not None
        limited = scarce(structure, first.values, areas)
        root = root_of(limited, relaxed_apart(workers, limited, areas))
        assert root is not None
        programs = programs_of(limited, areas, root)
        assert len(programs) == len(areas)
        values = np.full(len(structure.cost), math.nan)
        for each in programs:
            job = construction_job(each.structure, each.root, clock, 1, wide=False, parts=len(programs))
            answer = workers.solve_one(job)
            assert answer.values is not None
            assert passed(each.structure, answer.values) <= TOLERANCE
            values[each.area.variables] = answer.values
    assert passed(limited, values) <= TOLERANCE
    assert limited.cost @ values >= limited.cost @ root.values * (1 - 1e-6)


def test_parts_of_a_joint_limit_add_up_to_it() -> None:
    structure, _ = structured(case_of(1))
    areas = areas_of(structure)
    with Workers(ProcessSeats(1)) as workers:
        root = root_of(structure, relaxed_apart(workers, structure, areas))
    assert root is not None
    total = np.zeros(len(structure.relaxation.row_upper))
    for each in programs_of(structure, areas, root):
        rows = np.concatenate([each.area.rows, each.area.joint])
        total[rows] += each.structure.relaxation.row_upper
        used = each.structure.relaxation.rows @ each.root.values
        assert (used <= each.structure.relaxation.row_upper + TOLERANCE).all()
        assert (penalty_of(each.structure, each.root) > 0).all()
    held = np.diff(structure.relaxation.rows.indptr) > 0
    assert total[held] == pytest.approx(structure.relaxation.row_upper[held])


def selected(pool: ColumnPool, master: Master, parts: Split, values: np.ndarray) -> Selection:
    columns = [pool.known(number, values[each.variables]) for number, each in enumerate(parts.blocks)]
    return master.selection(columns, values[parts.master_variables])


def test_what_areas_choose_holds_together_where_all_want_what_is_left_of_a_limit() -> None:
    structure, parts = structured(case_of(1))
    areas, relaxed = areas_of(structure), structure.relaxation
    with Workers(ProcessSeats(1)) as workers:
        answer = relaxed_apart(workers, structure, areas)
    assert answer.values is not None
    master = Master(parts, relaxed, structure.cost)
    selection = selected(ColumnPool(parts, relaxed, structure.cost), master, parts, answer.values)
    scopes = AreaScopes(parts, master, areas)
    assert sorted(np.concatenate(scopes.blocks)) == list(range(len(parts.blocks)))
    joint = np.flatnonzero(np.isin(parts.linking_rows, np.concatenate([each.joint for each in areas])))
    # All want more, and the last two three times as much.
    wanted = selection.master + 1.0
    wanted[structure.roles.region[parts.master_variables] >= N_REGIONS - 2] += 2.0
    within = scopes.within(selection, wanted)
    assert sorted(np.concatenate([each.variables for each in within])) == list(range(len(master.cost)))
    least, most = np.zeros((2, len(master.row_lower)))
    for scope in within:
        own = np.zeros(len(master.cost))
        own[scope.variables] = selection.master[scope.variables]
        used = master.rows @ own
        for column in selection.columns:
            if column.block in scope.blocks:
                used[column.entries[0]] += column.entries[1]
        # Its part of the plan holds, and what all take at their limits is the limit.
        assert (used[scope.rows] <= scope.row_upper + TOLERANCE).all()
        assert (used[scope.rows] >= scope.row_lower - TOLERANCE).all()
        least[scope.rows] += scope.row_lower
        most[scope.rows] += scope.row_upper
    assert most[joint] == pytest.approx(master.row_upper[joint])
    assert least[joint] == pytest.approx(master.row_lower[joint])
    limited = joint[np.isfinite(master.row_upper[joint])]
    left = master.row_upper[limited] - master.rows[limited] @ selection.master
    mine, theirs = (
        np.array([scope.row_upper[np.flatnonzero(scope.rows == row)[0]] for row in limited.tolist()])
        - master.rows[limited][:, scope.variables] @ selection.master[scope.variables]
        for scope in (within[-1], within[0])
    )
    assert mine[left > TOLERANCE] == pytest.approx(3 * theirs[left > TOLERANCE])


def searched(
    planning: PlanningModel, steps: list[Step], gap: float = 0.05, until: Callable[[], bool] = lambda: True
) -> ModelOutcome:
    """Search until the gap is reached and something else has happened: seconds where a core is free."""
    parts = block_solve.decomposed(planning)
    assert parts is not None
    limits = SolverLimits(30.0, 1, 1, Stop())
    enough = lambda objective, bound: until() and objective - bound <= gap * abs(objective)  # noqa: E731
    return block_solve.solve_in_blocks(planning, parts, limits, enough, steps.append)


@pytest.mark.usefixtures("blocks_for_all")
def test_a_search_in_areas_finds_what_a_search_without_them_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    planning = built(case_of(1))
    steps: list[Step] = []
    monkeypatch.setattr(area_master_lp, "LEAST_COLUMNS", 0)
    solved: list[bool] = []
    solve = area_master_lp.AreaMasterLP.solve

    def noted(apart: area_master_lp.AreaMasterLP, *what: Any) -> Answer | None:
        answer = solve(apart, *what)
        solved.append(answer is not None)
        return answer

    monkeypatch.setattr(area_master_lp.AreaMasterLP, "solve", noted)
    found = searched(planning, steps, until=lambda: any(solved))
    assert any(solved)
    of_areas = [step for step in steps if f" {N_REGIONS} areas" in step.detail]
    assert "construction" in [step.source for step in of_areas if step.objective is not None]
    monkeypatch.setattr(areas_module, "LEAST_AREAS", N_REGIONS + 1)
    whole = searched(planning, [])
    for one, other in ((found, whole), (whole, found)):
        assert one.bound is not None
        assert other.objective is not None
        assert one.bound <= other.objective * (1 + 1e-6)


@pytest.mark.usefixtures("blocks_for_all")
def test_a_plan_of_areas_that_is_good_enough_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "FAR_RATIO", 0.0)
    steps: list[Step] = []
    found = searched(built(case_of(1)), steps, gap=math.inf)
    assert found.objective is not None
    assert "master" not in {step.source for step in steps}
