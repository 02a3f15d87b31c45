"""Rounds that do not wait for the last block: its answer comes later, and the bound with it."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.test_bound import EXACT, built, parts_of

from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.block_pricing import BlockPricing, PricingRound
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian, total_bound
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

HELD = 3
"""The block whose first answer is held back."""


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


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_round_goes_on_without_its_last_block_and_tells_its_bound_once_that_has_come(
    deterministic: bool,
) -> None:
    planning = built(large_case(1, 4, 2, 2))
    parts = parts_of(planning)
    relaxed = relax(parts.program, continuous_indices(planning.variables))
    lagrangian = Lagrangian(parts, relaxed)
    pool = ColumnPool(parts, relaxed, lagrangian.cost)
    seats = SlowSeats(Programs.of(block_programs(parts, relaxed)))
    clock, told = Clock(100.0, deterministic), list[PricingRound]()
    pricing = BlockPricing(parts, pool, NeverEnough(), clock)  # type: ignore[arg-type]
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
        assert told[0] is found
        jobs = [Job(n, priced.reduced_cost[each.variables], EXACT) for n, each in enumerate(parts.blocks)]
        alone = np.array([answer.bound for answer in workers.solve(jobs)])
    assert found.bound == pytest.approx(total_bound(priced, alone), rel=1e-9)


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
