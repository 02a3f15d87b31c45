"""The linear relaxation among few slots and more of them is that among all, with prices that prove it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts import first_of
from tests.planner.random_fleets import PlanningCase, large_case, several_periods_case
from tests.planner.search.blocks.test_construction import TOLERANCE, passed, structured

from fleetplan.planner.search.blocks.composite_jobs import SiftingJob, SlottedJob
from fleetplan.planner.search.blocks.construction import sifting_job
from fleetplan.planner.search.blocks.linear import slotted_job, whole_job
from fleetplan.planner.search.blocks.sifting import sift
from fleetplan.planner.search.blocks.subprograms import SlotPrices
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    Array,
    Basis,
    BasisStatus,
    Indices,
    Job,
    Mask,
    Rows,
)
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

CASES = [
    large_case(1, 4, 2, 2),
    *(several_periods_case(seed) for seed in range(1, 9)),
    large_case(2, 4, 2, 2),
]


@pytest.mark.parametrize("case", first_of(CASES, 4))
def test_few_slots_lead_to_the_optimum_of_all(case: PlanningCase) -> None:
    structure, _ = structured(case)
    relaxed, cost, slot = structure.relaxation, structure.cost, structure.roles.slot
    nothing = np.zeros(int(slot.max()) + 1, dtype=bool)
    some = nothing.copy()
    some[::2] = True
    with Workers(ProcessSeats(1)) as workers:
        whole = workers.solve_one(whole_job(relaxed, cost))
        sifted = workers.solve_one(sifting_job(structure))
        known = [workers.solve_one(slotted_job(relaxed, cost, slot, each)) for each in (nothing, some)]
    for answer in (sifted, *known):
        assert answer.infeasible == whole.infeasible
        if whole.infeasible:
            continue
        assert answer.values is not None
        assert answer.row_duals is not None
        assert passed(structure, answer.values) <= TOLERANCE
        assert answer.objective == pytest.approx(whole.objective, rel=1e-6)
        assert relaxed.bound(cost, answer.row_duals) == pytest.approx(whole.objective, rel=1e-6)
        assert (answer.work_s > 0) == (whole.work_s > 0)


@dataclass
class Begun:
    """A linear program over some variables; the others are zero."""

    workers: Workers
    program: Rows
    cost: Array
    there: Mask
    sizes: list[int]

    def add(self, variables: Indices) -> None:
        assert not self.there[variables].any()
        self.there[variables] = True

    def solve(self) -> Answer:
        self.sizes.append(int(self.there.sum()))
        upper = np.where(self.there, self.program.upper, 0.0)
        return self.workers.solve_one(Job(self.program.within(self.program.lower, upper), self.cost, None))


@dataclass
class Watched:
    """Solves programs from their beginning, and remembers among how many variables."""

    workers: Workers
    jobs: int = 0
    begun: list[list[int]] = field(default_factory=list)

    def __call__(self, job: Job) -> Answer:
        self.jobs += 1
        return self.workers.solve_one(job)

    def program(self, number: int) -> Rows:
        raise AssertionError(number)

    def growing(self, program: Rows, cost: Array, variables: Indices, start: Basis | None = None) -> Begun:
        assert start is None
        there = np.zeros(len(cost), dtype=bool)
        there[variables] = True
        self.begun.append([])
        return Begun(self.workers, program, cost, there, self.begun[-1])


def shared_budget() -> SiftingJob:
    """Two moments of demand 1, in one of which a cheap slot may serve; a dear one may in both."""
    # Cheap and dear in the first moment, cheap and dear in the second.
    rows = sp.csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]))
    program = Rows(
        rows=rows,
        row_lower=np.array([1.0, 1.0, -np.inf]),
        row_upper=np.array([np.inf, np.inf, 1.0]),
        lower=np.zeros(4),
        upper=np.ones(4),
        whole=np.zeros(4, dtype=bool),
    )
    return SiftingJob(
        program=program,
        cost=np.array([1.0, 3.0, 1.0, 3.0]),
        stage=np.array([0, 0, 1, 1]),
        growth=np.zeros(4, dtype=np.int64),
        slot=np.array([0, 1, 0, 1]),
        linking=np.array([False, False, True]),
        penalty_ratio=2.0,
    )


def test_slots_of_single_moments_that_break_a_shared_limit_are_joined_by_more() -> None:
    with Workers(ProcessSeats(1)) as workers:
        watched = Watched(workers)
        answer = sift(shared_budget(), watched)
    assert answer.objective == pytest.approx(4.0)
    assert answer.values is not None
    assert answer.values @ np.array([1.0, 0, 1, 0]) == pytest.approx(1.0)
    # Of both moments, strictly, and at a price of what passes the limit: by the cheap slot, then both.
    assert watched.begun[-1] == [3, 5]


def test_what_broke_a_limit_at_first_ends_in_a_basis_that_others_begin_from() -> None:
    job = shared_budget()
    everything = np.ones(2, dtype=bool)
    with Workers(ProcessSeats(1)) as workers:
        answer = workers.solve_one(job)
        assert answer.basis is not None
        assert (len(answer.basis.columns), len(answer.basis.rows)) == (4, 3)
        basic = [int((each == BasisStatus.BASIC).sum()) for each in (answer.basis.columns, answer.basis.rows)]
        assert sum(basic) == 3
        again = SlottedJob(
            program=job.program, cost=job.cost, slot=job.slot, open_slots=everything, start=answer.basis
        )
        assert workers.solve_one(again).objective == pytest.approx(4.0)


def test_what_no_slot_can_keep_is_infeasible() -> None:
    job = shared_budget()
    upper = np.array([1.0, 0.2, 1.0, 0.2])
    with Workers(ProcessSeats(1)) as workers:
        answer = sift(replace(job, program=job.program.within(job.program.lower, upper)), Watched(workers))
    assert answer.infeasible
    assert answer.values is None


def test_a_load_costs_its_replicas_where_a_line_says_what_they_carry() -> None:
    # Load, replicas that a line counts, and replicas, which alone cost something; load and replicas without.
    counted_load = [1.0, -0.9, 0, 0, 0]
    counted_replicas = [0.0, 1, -1, 0, 0]
    share = [1.0, 0, -0.8, 0, 0]
    load = [0.0, 0, 0, 1, -1]
    program = Rows(
        rows=sp.csr_array(np.array([counted_load, counted_replicas, share, load])),
        row_lower=np.full(4, -np.inf),
        row_upper=np.zeros(4),
        lower=np.zeros(5),
        upper=np.ones(5),
        whole=np.array([False, True, True, False, True]),
    )
    prices = SlotPrices(program, np.array([0, 0, 0, 1, 1])).at(np.array([-1.0, 0, 2, -1, 0.5]))
    assert prices == pytest.approx([-1 + 2 / 0.8, -0.5])
