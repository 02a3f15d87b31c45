"""Rounds that do not wait for the last block: its answer comes later, and the bound with it."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts import first_parts
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.test_bound import EXACT, built, parts_of

from fleetplan.planner.formulation import PlanningModel
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.block_pricing import BlockPricing, PricingRound
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian, total_bound
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.composite_jobs import FewSlotsJob
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.few_slots import MORE_SLOTS, price_few
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.roles import roles
from fleetplan.planner.search.solvers.highs_jobs import Answer, Basis, GrowingProgram, Job, Rows
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

HELD = 3
"""The block whose first answer is held back."""

MOST_WAITS = 200
"""Relaxations that are solved at most until the answer that was held back has come."""


class SlowSeats(ProcessSeats):
    """Processes, of which one keeps the first answer of a block until it is let go."""

    def __init__(self, programs: Programs) -> None:
        super().__init__(2, programs)
        self.let_go = threading.Event()
        self._met = False

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        answers = super().ask(seat, jobs)
        if not self._met and any(pickle.loads(job).rows == HELD for job in jobs):
            self._met = True
            assert self.let_go.wait(60.0)
        return answers


class NeverEnough:
    """The state of a search that goes on."""

    @staticmethod
    def expired() -> bool:
        return False

    @staticmethod
    def content() -> bool:
        return False


def slots_of(planning: PlanningModel) -> IntArray:
    return roles(planning.problem, planning.variables, len(planning.model.proto.variables)).slot


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("size", first_parts(([1, 2, 2, 1], [1, 4, 2, 2]), 1), ids=("small", "large"))
def test_a_round_goes_on_without_its_last_block_and_tells_its_bound_once_that_has_come(
    deterministic: bool, size: list[int]
) -> None:
    planning = built(large_case(*size))
    parts = parts_of(planning)
    relaxed = relax(parts.program, continuous_indices(planning.variables))
    lagrangian = Lagrangian(parts, relaxed)
    pool = ColumnPool(parts, relaxed, lagrangian.cost)
    seats = SlowSeats(Programs.of(block_programs(parts, relaxed)))
    clock, told = Clock(100.0, deterministic), list[PricingRound]()
    slot = slots_of(planning)
    pricing = BlockPricing(parts, pool, NeverEnough(), clock, slot)  # type: ignore[arg-type]
    if deterministic:
        # A round that repeats waits for all.
        seats.let_go.set()
    with Workers(seats) as workers:
        linear = workers.solve_one(whole_job(relaxed, lagrangian.cost))
        assert linear.row_duals is not None
        priced = lagrangian.price(linear.row_duals[parts.linking_rows])
        found = pricing.price(workers, priced, EXACT, on_bound=told.append, ahead=True)
        assert found.complete is deterministic
        assert (found.bound > -np.inf) is deterministic
        assert bool(told) is deterministic
        missing = np.flatnonzero(found.bounds == -np.inf).tolist()
        assert missing == ([] if deterministic else [HELD])
        if not deterministic:
            # Prices of the next round are found, and its blocks priced, before the answer is there.
            assert workers.solve_one(whole_job(relaxed, lagrangian.cost)).objective == linear.objective
            assert not told
            seats.let_go.set()
            second = pricing.price(workers, lagrangian.price(0 * priced.duals), EXACT, on_bound=told.append)
            assert second.complete
            # The seat that was held answers at any time; answers are handed on while others are waited for.
            for _ in range(MOST_WAITS):
                if any(each is found for each in told):
                    break
                workers.solve_one(whole_job(relaxed, lagrangian.cost))
        assert any(each is found for each in told)
        jobs = [Job(n, priced.reduced_cost[each.variables], EXACT) for n, each in enumerate(parts.blocks)]
        alone = np.array([answer.bound for answer in workers.solve(jobs)])
    assert found.bound == pytest.approx(total_bound(priced, alone), rel=1e-9)


@pytest.mark.parametrize(
    "size", first_parts(([1, 2, 2, 2], [2, 2, 2, 2], [1, 4, 2, 2], [2, 4, 2, 2]), 1, more=1), ids=str
)
def test_columns_among_few_slots_are_solutions_and_no_dearer_than_those_known(size: list[int]) -> None:
    planning = built(large_case(*size))
    parts, slot = parts_of(planning), slots_of(planning)
    relaxed = relax(parts.program, continuous_indices(planning.variables))
    lagrangian = Lagrangian(parts, relaxed)
    pool = ColumnPool(parts, relaxed, lagrangian.cost)
    clock = Clock(100.0, deterministic=True)
    pricing = BlockPricing(parts, pool, NeverEnough(), clock, slot)  # type: ignore[arg-type]
    with Workers(ProcessSeats(1, Programs.of(block_programs(parts, relaxed)))) as workers:
        linear = workers.solve_one(whole_job(relaxed, lagrangian.cost))
        assert linear.row_duals is not None
        priced = lagrangian.price(linear.row_duals[parts.linking_rows])
        costs = [priced.reduced_cost[each.variables] for each in parts.blocks]
        jobs = [Job(number, cost, EXACT) for number, cost in enumerate(costs)]
        best = [answer.objective for answer in workers.solve(jobs)]
        assert pricing.more_columns(workers, lagrangian.price(0 * priced.duals), EXACT) == len(parts.blocks)
        known = [pool.cheapest(block, cost) for block, cost in enumerate(costs)]
        new = pricing.more_columns(workers, priced, EXACT)
        assert new
        assert len(pool.columns) == len(parts.blocks) + new
    programs = block_programs(parts, relaxed)
    for block, (cost, least, before) in enumerate(zip(costs, best, known, strict=True)):
        found, program = pool.cheapest(block, cost), programs.program(block)
        assert found is not None
        assert before is not None
        assert least - 1e-6 * abs(least) <= cost @ found <= cost @ before
        rows = sp.csr_array(
            (program.rows.data, program.rows.indices, program.rows.indptr), program.rows.shape
        )
        used = rows @ found
        assert (used >= program.row_lower - 1e-5).all()
        assert (used <= program.row_upper + 1e-5).all()


class OneAnswer:
    """Answers the relaxation of a block, and remembers what is left open."""

    def __init__(self, linear: Answer, held: Rows) -> None:
        self._linear, self._held = linear, held
        self.upper: FloatArray | None = None

    def __call__(self, job: Job) -> Answer:
        self.upper = job.upper
        return self._linear if job.effort is None else Answer(np.ones(1), 1.0, 1.0, infeasible=True)

    def program(self, number: int) -> Rows:
        assert number == HELD
        return self._held

    def growing(
        self, program: Rows, cost: FloatArray, variables: IntArray, start: Basis | None = None
    ) -> GrowingProgram:
        raise AssertionError


def test_slots_that_are_used_or_cheap_are_open() -> None:
    n_slots = 2 + MORE_SLOTS + 3
    # Each slot has a load and its replicas; one variable more has no slot.
    slot = np.append(np.repeat(np.arange(n_slots), 2), -1)
    whole = np.append(np.tile([False, True], n_slots), True)
    n = len(slot)
    lower = np.zeros(n)
    lower[2 * (n_slots - 1) + 1] = 0.5
    empty = sp.csr_array((0, n))
    held = Rows(empty, np.zeros(0), np.zeros(0), lower, np.full(n, 9.0), whole)
    values, start = np.zeros(n), np.zeros(n)
    # The relaxation uses the dearest slot but one, and the known column the dearest but two.
    values[2 * (n_slots - 2)], start[2 * (n_slots - 3) + 1] = 0.2, 1.0
    reduced = np.append(np.repeat(np.arange(float(n_slots)), 2), 0.0)
    reduced[::2] = -7.0
    solver = OneAnswer(Answer(values, 0.0, 0.0, reduced_costs=reduced), held)
    answer = price_few(FewSlotsJob(Job(HELD, np.zeros(n), EXACT, start), slot), solver)
    assert (answer.bound, answer.infeasible) == (-np.inf, False)
    assert solver.upper is not None
    open_slots = [*range(MORE_SLOTS), n_slots - 3, n_slots - 2]
    expected = np.where(np.isin(slot, [*open_slots, -1]), 9.0, lower)
    assert solver.upper.tolist() == expected.tolist()


def test_a_block_without_an_answer_leaves_a_round_without_a_bound() -> None:
    planning = built(large_case(1, 4, 2, 2))
    parts = parts_of(planning)
    relaxed = relax(parts.program, continuous_indices(planning.variables))
    lagrangian = Lagrangian(parts, relaxed)
    priced = lagrangian.price(np.zeros(len(parts.linking_rows)))
    found = PricingRound(priced, ColumnPool(parts, relaxed, lagrangian.cost))
    for block in range(len(parts.blocks) - 1):
        found.take(block, Answer(None, np.inf, 0.0))
    assert (found.complete, found.bound) == (False, -np.inf)
    found.take(len(parts.blocks) - 1, Answer(None, np.inf, 0.0))
    assert (found.complete, found.bound) == (True, priced.constant)
