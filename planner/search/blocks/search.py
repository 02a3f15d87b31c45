"""Search over blocks: root relaxation, first plan, then rounds for the bound in parallel to plans.

Rounds price blocks (pricing_search.py), or choose whole supply with block cuts if periods are small enough
(period_rounds.py). Plans are constructed in first_plans.py and improved in plan_search.py.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.area_decomposition import AreaDecomposition
from fleetplan.planner.search.blocks.areas import relaxation_from, relaxations_apart
from fleetplan.planner.search.blocks.block_cuts import BlockCuts
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import RootRelaxation, Structure, sifting_job
from fleetplan.planner.search.blocks.cover_cuts import CoverRows
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.master import Master
from fleetplan.planner.search.blocks.period_rounds import PeriodRounds
from fleetplan.planner.search.blocks.periods import Periods, small_periods
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import InfeasibleBlockError, PartFailedError, Prices
from fleetplan.planner.search.blocks.pricing_search import PricingSearch
from fleetplan.planner.search.blocks.request import BlockOutcome, Request
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.blocks.strengthening import Strengthening
from fleetplan.planner.search.solvers.highs_jobs import Answer
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY, Relaxation, relax
from fleetplan.planner.search.solvers.seats import SeatsLostError
from fleetplan.planner.search.solvers.workers import Workers, WorkersStoppedError, ending

GRACE_S: Final = 1.0
"""Time past the limit after which running jobs are aborted. [s]"""


class BlockSearch:
    """One search over blocks.

    Parameters
    ----------
    request : Request
        Program, limits and callbacks.
    clock : Clock
        Time limits.
    seed : int
        Random seed of the neighbourhoods.
    """

    def __init__(self, request: Request, clock: Clock, seed: int) -> None:
        self._request = request
        self._clock = clock
        self._seed = seed
        self.parts = request.parts
        self._relaxation: Relaxation = relax(self.parts.program, request.continuous)
        self._lagrangian = Lagrangian(self.parts, self._relaxation)
        self._master = Master(self.parts, self._relaxation, self._lagrangian.cost)
        self._pool = ColumnPool(self.parts, self._relaxation, self._lagrangian.cost)
        incumbent = Incumbent(self.parts, self._relaxation, request.complete)
        self._state = SearchState(request, clock, incumbent, self._lagrangian.least)
        self._structure = Structure(
            roles=request.roles,
            relaxation=self._relaxation,
            cost=self._lagrangian.cost,
            linking=self.parts.linking_rows,
            following=self.parts.following_variables,
        )
        self._plans = PlanSearch(
            self.parts, self._structure, self._master, self._pool, self._state, clock, seed
        )
        self._pricing = PricingSearch(self.parts, self._lagrangian, self._plans, self._state, clock, seed)

    def run(self, stop: Stop) -> BlockOutcome:
        """Search until the gap is small enough, time is over, or the user stops it."""
        programs = Programs.of(block_programs(self.parts, self._relaxation))
        infeasible = False
        limit_s = math.inf if self._clock.deterministic else self._clock.left_s() + GRACE_S
        if self._request.extra_time is not None:
            limit_s += self._request.extra_time.seconds
        try:
            seats = self._request.seats(programs)
            with (
                Workers(seats, self._clock.count, self._request.on_job) as workers,
                ending(workers, stop, limit_s),
            ):
                infeasible = self._run(workers)
        except WorkersStoppedError:
            # A stopped search returns its best plan.
            pass
        except SeatsLostError as lost:
            self._state.tell("search", f"gave up: {lost}")
        self._request.warm_start.memory.keep(self._pool)
        return self._state.outcome(infeasible)

    def _run(self, workers: Workers) -> bool:
        """Run all stages; return True if a relaxation is infeasible."""
        if self._request.start is not None:
            self._state.incumbent.offer(self._plans.selection_of(self._request.start))
            self._state.tell("warm start", "loaded a known plan")
        try:
            return self._search(workers)
        except InfeasibleBlockError:
            return True
        except PartFailedError as failed:
            self._state.tell("pricing", f"gave up: {failed}")
            self._plans.improve_to_the_end(workers)
            return False

    def _search(self, workers: Workers) -> bool:
        """Solve the root relaxation, then search bound and plan; return True if it is infeasible."""
        experienced = self._request.warm_start.memory.recall(self._pool)
        prices = self._root(workers)
        if prices is None:
            return True
        rounds = self._period_rounds(workers)
        if rounds is not None:
            rounds.run(workers)
        else:
            self._pricing.run(workers, prices, experienced)
        return False

    def _in_periods(self) -> bool:
        """Return whether periods are small enough to solve as a whole, given the last relaxation."""
        root = self._plans.root
        if root is None or len(root.duals) != len(self._relaxation.row_lower):
            return False
        return small_periods(self._structure.roles)

    def _period_rounds(self, workers: Workers) -> PeriodRounds | None:
        """Return rounds that choose whole supply; None if periods are too large."""
        root = self._plans.root
        if root is None or not self._in_periods():
            return None
        structure, root = self._strengthened(root, workers)
        periods = Periods(structure, self._request.indicators, root)
        share = self._plans.even_share
        cuts = BlockCuts(self.parts, self._lagrangian, self._master, self._pool, share)
        return PeriodRounds(periods, cuts, self._state, self._clock, self._plans)

    def _strengthened(self, root: RootRelaxation, workers: Workers) -> tuple[Structure, RootRelaxation]:
        """Return the program with cover cuts, and its linear relaxation; later plans are searched in it."""
        cover = CoverRows(self.parts.program, self._relaxation)
        look = Strengthening(self._structure, cover, self._request.indicators, self._seed)
        found = look.found(root.values, workers, self._clock)
        relaxed = found.relaxation.without_limits_on(self._request.indicators)
        answer = workers.solve_one(whole_job(relaxed, found.cost))
        if answer.row_duals is None:
            return self._structure, root
        bound = found.relaxation.bound(found.cost, answer.row_duals)
        self._state.raise_bound(bound - BOUND_SAFETY * abs(bound), "linear relaxation")
        n_cuts = len(found.relaxation.row_lower) - len(self._relaxation.row_lower)
        self._state.tell("root relaxation", f"added {counted(n_cuts, 'cut')} for whole replicas")
        strengthened = self._plans.note_root(answer, found)
        return (self._structure, root) if strengthened is None else (found, strengthened)

    def _relaxed(self, workers: Workers) -> Answer:
        """Solve the linear relaxation, starting from those of areas if there are any."""
        job, areas = sifting_job(self._structure, self._request.indicators), self._plans.areas
        if not areas:
            return workers.solve_one(job)
        apart = AreaDecomposition(job.program, job.cost, areas, relaxations_apart(job, areas))
        found = apart.solve(workers)
        detail = f"relaxed {counted(len(areas), 'area')}"
        if found is not None:
            self._state.tell("root relaxation", f"{detail} in {counted(apart.rounds, 'round')} of prices")
            return found
        joined = relaxation_from(job, areas, apart.answers)
        self._state.tell("root relaxation", f"{detail} without joint limits")
        return workers.solve_one(job if joined is None else joined)

    def _root(self, workers: Workers) -> Prices | None:
        """Return the first prices: known ones, or those of the linear relaxation.

        Returns
        -------
        Prices or None
            None if the linear relaxation is infeasible.
        """
        cost, linking = self._lagrangian.cost, self.parts.linking_rows
        answer = self._relaxed(workers)
        if answer.infeasible:
            return None
        if answer.row_duals is None:
            raise PartFailedError(f"HiGHS did not solve the linear relaxation: {answer.status}")
        self._plans.note_root(answer)
        known = self._request.warm_start.row_duals
        if known is not None:
            # Rounds at known prices prove more than the relaxation, which weighs fractional unmet demand.
            self._state.tell("root relaxation", "reused known dual prices")
            duals = (known * self._relaxation.row_scale)[linking]
            return Prices(duals, duals, -np.inf)
        bound = self._relaxation.bound(cost, answer.row_duals)
        self._state.raise_bound(bound - BOUND_SAFETY * abs(bound), "linear relaxation")
        self._state.tell("root relaxation", "solved the linear relaxation")
        if self._in_periods():
            # Supply rounds lead to better plans, and should start soon.
            self._plans.construct_in_background(workers)
        else:
            self._plans.construct(workers)
        duals = answer.row_duals[linking]
        return Prices(duals, duals, -np.inf)
