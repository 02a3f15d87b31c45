"""A first plan is constructed moment by moment, among the slots that single moments want, and repaired."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.parts import first_parts
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, rented_pool, service
from tests.planner.random_fleets import PlanningCase, large_case, several_periods_case
from tests.planner.solving import solve

from fleetplan.planner.formulation.build import PlanningModel, build_model
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks.construction import (
    Structure,
    construction_job,
    root_of,
    sifting_job,
    travelling,
)
from fleetplan.planner.search.blocks.direct_neighbourhoods import DirectNeighbourhoods
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.roles import roles
from fleetplan.planner.search.blocks.rolling_supply import horizon_cost
from fleetplan.planner.search.blocks.split import Split, split
from fleetplan.planner.search.solvers.matrix import read_program
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

TOLERANCE = 1e-5


def built(case: PlanningCase) -> PlanningModel:
    planning = build_model(build_problem(case.fleet, case.candidates), allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    return planning


def structured(case: PlanningCase) -> tuple[Structure, Split]:
    planning = built(case)
    program = read_program(planning.model)
    known = roles(planning.problem, planning.variables, len(program.cost))
    parts = split(program, known.block_keys)
    relaxed = relax(program, continuous_indices(planning.variables))
    cost = program.cost * relaxed.variable_scale
    return Structure(known, relaxed, cost, parts.linking_rows, parts.following_variables), parts


def passed(structure: Structure, values: np.ndarray) -> float:
    """Return the largest violation of a limit. [scaled units]"""
    relaxed = structure.relaxation
    used = relaxed.rows @ values
    return float(np.maximum(used - relaxed.row_upper, relaxed.row_lower - used).max(initial=0.0))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", first_parts((1, 4, 5, 6), 2))
def test_what_is_constructed_is_a_plan(seed: int, wide: bool) -> None:
    structure, _ = structured(several_periods_case(seed))
    clock = Clock(60.0, deterministic=False)
    with Workers(ProcessSeats(1)) as workers:
        linear = workers.solve_one(whole_job(structure.relaxation, structure.cost))
        if linear.infeasible:
            pytest.skip("the fleet is infeasible")
        root = root_of(structure, workers.solve_one(sifting_job(structure)))
        assert root is not None
        found = workers.solve_one(construction_job(structure, root, clock, 1, wide))
        assert found.values is not None
        whole = found.values[structure.relaxation.whole]
        assert np.abs(whole - np.round(whole)).max() <= TOLERANCE
        values = found.values
        if passed(structure, values) > TOLERANCE:
            values = repaired(workers, clock, structure, values)
    assert passed(structure, values) <= TOLERANCE
    assert structure.cost @ values >= linear.objective * (1 - 1e-6)


def test_slots_beside_the_optimum_come_in_turns_one_of_each_service_and_region() -> None:
    structure, _ = structured(large_case(1, 4, 2, 2))
    known = structure.roles
    with Workers(ProcessSeats(1)) as workers:
        root = root_of(structure, workers.solve_one(sifting_job(structure)))
    assert root is not None
    kind = {
        int(slot): (int(service), int(region))
        for slot, service, region in zip(known.slot, known.service, known.region, strict=True)
    }
    turns: Counter[tuple[int, int]] = Counter()
    numbers = []
    for slot in np.argsort(root.rank, kind="stable").tolist():
        if root.rank[slot] > 0:
            numbers.append(turns[kind[slot]])
            turns[kind[slot]] += 1
    assert len(turns) > 1
    assert max(numbers) > 1
    assert numbers == sorted(numbers)


def repaired(workers: Workers, clock: Clock, structure: Structure, values: np.ndarray) -> np.ndarray:
    """Values after at most ten repairs."""
    root = root_of(structure, workers.solve_one(sifting_job(structure)))
    assert root is not None
    direct = DirectNeighbourhoods(structure, root, seed=1)
    for _ in range(10):
        before = direct.objective(values)
        for change in direct.improve(workers, clock, values):
            tried = values.copy()
            tried[change.variables] = change.values
            if direct.objective(tried) < direct.objective(values):
                values = tried
        assert direct.objective(values) <= before
        if direct.holds(values):
            break
    return values


def small_rented() -> PlanningCase:
    """Two services share a pool that holds both, and may rent more."""
    return PlanningCase(
        fleet(
            services=[service("chat", 12.0), service("code", 6.0)],
            hardware=[hardware("H", 8)],
            pools=[rented_pool("pool", 1, 2.0, hardware="H")],
            offers=[rent_offer("more", 3.0, hardware="H")],
        ),
        (candidate("chat", "H", 3.0), candidate("code", "H", 2.0)),
    )


def test_a_plan_that_passes_limits_is_repaired() -> None:
    structure, _ = structured(small_rented())
    clock = Clock(60.0, deterministic=False)
    known = structure.roles
    with Workers(ProcessSeats(1)) as workers:
        root = root_of(structure, workers.solve_one(sifting_job(structure)))
        assert root is not None
        found = workers.solve_one(construction_job(structure, root, clock, 1, False))
        assert found.values is not None
        draft = found.values.copy()
        whole = structure.relaxation.whole & (known.slot >= 0)
        # Far more replicas than the pool holds.
        draft[whole] = structure.relaxation.upper[whole]
        assert passed(structure, draft) > TOLERANCE
        mended = repaired(workers, clock, structure, draft)
    assert passed(structure, mended) <= TOLERANCE


@pytest.mark.usefixtures("blocks_for_all")
def test_a_part_of_a_fleet_that_nothing_can_serve_has_no_slots() -> None:
    asked = fleet(
        services=[service("chat", 3.0, regions=("here", "there"))],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, regions=("here",))],
        regions=[region("here"), region("there")],
        policy={"unmet": "penalise"},
    )
    solved = solve(asked, [candidate("chat", "A", 1.0)], time_limit_s=2.0)
    assert solved.plan is not None
    assert [(row.region, row.requests_per_s) for row in solved.plan.unmet] == [("there", pytest.approx(3.0))]


def two_regions_that_may_serve_each_other() -> PlanningCase:
    """Return two regions with 0.4 replicas of demand each, and a network cost below a replica's."""
    regions = ("east", "west")
    other = {"east": "west", "west": "east"}
    travelling = service(
        "chat",
        2.0,
        regions=regions,
        serve_from={place: (other[place],) for place in regions},
        mb_per_request=1.0,
    )
    return PlanningCase(
        fleet(
            services=[travelling, service("local", 1.0, regions=regions)],
            hardware=[hardware("H", 1)],
            offers=[rent_offer("more", 1.0, hardware="H", regions=regions)],
            regions=[
                region(place, round_trip_ms={other[place]: 10.0}, network_usd_per_gb={other[place]: 0.001})
                for place in regions
            ],
        ),
        (candidate("chat", "H", 5.0), candidate("local", "H", 2.0)),
    )


def constructed(structure: Structure, wide: bool) -> np.ndarray:
    with Workers(ProcessSeats(1)) as workers:
        root = root_of(structure, workers.solve_one(sifting_job(structure)))
        assert root is not None
        job = construction_job(structure, root, Clock(60.0, deterministic=False), 1, wide)
        values = workers.solve_one(job).values
    assert values is not None
    assert passed(structure, values) <= TOLERANCE
    return values


def test_what_several_regions_can_serve_is_not_rounded_up_in_each() -> None:
    structure, _ = structured(two_regions_that_may_serve_each_other())
    known = structure.roles
    (chat,) = np.unique(known.service[travelling(structure)])
    replicas = structure.relaxation.whole & (known.service == chat) & (known.slot >= 0)
    scale = structure.relaxation.variable_scale
    running = {wide: (constructed(structure, wide) * scale)[replicas].sum() for wide in (True, False)}
    assert running == {True: pytest.approx(1.0), False: pytest.approx(2.0)}


def test_what_no_other_region_can_serve_does_not_travel() -> None:
    structure, _ = structured(several_periods_case(1))
    assert not travelling(structure).any()


def test_a_stage_is_told_what_supply_costs_until_the_end() -> None:
    periods = ("2027Q1", "2027Q2", "2027Q3")
    asked = fleet(
        services=[service("chat", 4.0, periods=periods)],
        hardware=[hardware("H", 1)],
        offers=[rent_offer("short", 1.0, hardware="H", periods=periods)],
        periods=periods,
    )
    structure, _ = structured(PlanningCase(asked, (candidate("chat", "H", 3.0),)))
    with Workers(ProcessSeats(1)) as workers:
        root = root_of(structure, workers.solve_one(sifting_job(structure)))
    assert root is not None
    job = construction_job(structure, root, Clock(60.0, deterministic=False), 1, wide=False)
    supply = np.flatnonzero(job.growth > 0)
    for left in ([0, 1, 2], [1, 2], [2]):
        told = horizon_cost(job, left)
        for variable, row in zip(
            supply, job.helps[np.flatnonzero(job.growth[job.growth != 0] > 0)], strict=True
        ):
            (period,) = row.indices.tolist()
            factor = len(left) if period in left else 1.0
            assert told[variable] == pytest.approx(factor * job.cost[variable])
        others = np.delete(np.arange(len(job.cost)), supply)
        assert np.array_equal(told[others], job.cost[others])
