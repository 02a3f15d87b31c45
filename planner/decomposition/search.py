"""The search over blocks: guide, rounds of pricing, then neighbourhoods.

A round prices all blocks at the current prices of the linking rows, which gives a bound and new patterns;
beside it an integer master chooses among the patterns found so far, which gives a plan. Prices come from the
linear master, the first ones from the linear relaxation of the whole program. When rounds gain little,
neighbourhoods take over: the blocks around a shared row are priced at prices of their own and chosen anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.planner.decomposition.blocks import Split
from fleetplan.planner.decomposition.bound import Lagrangian
from fleetplan.planner.decomposition.effort import Clock
from fleetplan.planner.decomposition.highs_jobs import Answer, Job, Rows
from fleetplan.planner.decomposition.incumbent import Completion, Incumbent
from fleetplan.planner.decomposition.master import Choice, Master
from fleetplan.planner.decomposition.matrix import IntArray
from fleetplan.planner.decomposition.neighbourhoods import Neighbourhoods
from fleetplan.planner.decomposition.patterns import PatternPool
from fleetplan.planner.decomposition.relaxation import BOUND_SAFETY, Relaxation, relax
from fleetplan.planner.decomposition.rounds import InfeasibleBlockError, Prices, pricing_jobs, take
from fleetplan.planner.decomposition.workers import Workers, WorkersStoppedError
from fleetplan.planner.interrupt import Stop

PENALTY_RATIO: Final = 20.0
"""Penalty of passing a linking row's limit in the linear master, over the largest first price."""

PENALTY_GROWTH: Final = 10.0
"""Factor of the penalty where patterns pass limits in spite of it."""

ROUNDS_SHARE_OF_TIME: Final = 0.45
"""Share of the time for rounds; the rest is for plans."""

SETTLED_RATIO: Final = 1.5e-3
"""Distance of the bound from the linear master at which more rounds gain too little."""

MASTER_S_A_BLOCK: Final = 0.015
"""Time of an integer master over all blocks, per block. [s]"""

LEAST_MASTER_S: Final = 2.0
"""Its least time. [s]"""


@dataclass(frozen=True, slots=True, eq=False)
class BlockOutcome:
    """What a search over blocks found.

    Attributes
    ----------
    values : IntArray or None
        Of all variables, exact.
    objective, bound : float or None
        In objective units.
    bound_source : str
        What proved the bound.
    infeasible : bool
        Whether a relaxation has no solution, within the tolerances of floating point.
    work_s : float
        Work in deterministic seconds.
    """

    values: IntArray | None
    objective: float | None
    bound: float | None
    bound_source: str
    infeasible: bool
    work_s: float


@dataclass(frozen=True, slots=True)
class Report:
    """Told after every step: the part, what it did, the best objective and bound."""

    source: str
    detail: str
    objective: float | None
    bound: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is to be solved.

    Attributes
    ----------
    parts : Split
        The program in blocks.
    continuous : Collection[int]
        Variables that a relaxation need not keep whole.
    start : IntArray or None
        A plan to begin with.
    complete : callable
        Makes a plan exact where patterns alone are not.
    enough : callable
        Whether an objective and a bound are close enough.
    listen : callable
        Told after every step.
    """

    parts: Split
    continuous: Collection[int]
    start: IntArray | None
    complete: Completion
    enough: Callable[[float, float], bool]
    listen: Callable[[Report], None]


class BlockSearch:
    """One search.

    Parameters
    ----------
    request : Request
        What is to be solved.
    clock : Clock
        When to stop.
    seed : int
        Of the neighbourhoods.
    """

    def __init__(self, request: Request, clock: Clock, seed: int) -> None:
        self._request = request
        self._clock = clock
        self._seed = seed
        self.parts = request.parts
        self._relaxation: Relaxation = relax(self.parts.program, request.continuous)
        self._lagrangian = Lagrangian(self.parts, self._relaxation)
        self._master = Master(self.parts, self._relaxation, self._lagrangian.cost)
        self._pool = PatternPool(self.parts, self._relaxation, self._lagrangian.cost)
        self._incumbent = Incumbent(self.parts, self._relaxation, request.complete)
        self._bound: float | None = None
        self._bound_source = "linear relaxation"

    def run(self, stop: Stop) -> BlockOutcome:
        """Search until the gap is small enough, the time is over, or somebody stops it."""
        blocks = [rows_of(self._relaxation.part(block.rows, block.columns)) for block in self.parts.blocks]
        infeasible = False
        with Workers(self._clock.workers, blocks) as workers:
            stop.running(workers)
            try:
                infeasible = self._run(workers)
            except WorkersStoppedError:
                # The best plan so far is what somebody who stops a search wants.
                pass
            finally:
                stop.running(None)
        found = self._incumbent
        return BlockOutcome(
            values=found.values,
            objective=None if found.objective is None else float(found.objective),
            bound=self._bound,
            bound_source=self._bound_source,
            infeasible=infeasible and found.values is None,
            work_s=self._clock.worked_s,
        )

    def _run(self, workers: Workers) -> bool:
        """All stages; True if a relaxation is infeasible."""
        if self._request.start is not None:
            self._incumbent.offer(self._choice_of(self._request.start))
            self._tell("start", "the plan of the stage before")
        prices = self._guide(workers)
        if prices is None:
            return True
        try:
            self._rounds(workers, prices)
        except InfeasibleBlockError:
            return True
        if self._incumbent.choice is not None and not self._finished():
            around = Neighbourhoods(
                self.parts, self._master, self._lagrangian, self._pool, prices.best, self._seed
            )
            while not self._finished():
                choice, what = around.improve(workers, self._clock, self._incumbent.choice)
                improved = choice is not None and self._incumbent.offer(choice)
                around.learn(improved)
                if improved:
                    self._tell("neighbourhood", what)
        return False

    def _choice_of(self, values: IntArray) -> Choice:
        """A plan as patterns, which are remembered."""
        scaled = values / self._relaxation.column_scale
        patterns = [
            self._pool.known(block, scaled[each.columns]) for block, each in enumerate(self.parts.blocks)
        ]
        return self._master.choice(patterns, scaled[self.parts.master_columns])

    def _finished(self) -> bool:
        objective = self._incumbent.objective
        if self._clock.left_s() <= 0:
            return True
        return (
            objective is not None and self._bound is not None and self._request.enough(objective, self._bound)
        )

    def _guide(self, workers: Workers) -> Prices | None:
        """First prices from the linear relaxation of everything; None where it has no solution."""
        job = Job(rows_of(self._relaxation), self._lagrangian.cost, None)
        answer = workers.solve([job])[0]
        self._clock.count(1, 0)
        if answer.row_duals is None:
            if not answer.infeasible:
                raise RuntimeError("HiGHS did not solve the linear relaxation")
            return None
        self._raise_bound(answer.bound - BOUND_SAFETY * abs(answer.bound), "linear relaxation")
        self._tell("guide", "linear relaxation of the whole program")
        duals = answer.row_duals[self.parts.linking_rows]
        return Prices(duals, duals, -np.inf)

    def _rounds(self, workers: Workers, prices: Prices) -> None:
        """Price until the bound settles, its share of time is spent, or the gap is small enough."""
        columns = [block.columns for block in self.parts.blocks]
        penalty = PENALTY_RATIO * float(np.abs(prices.current).max(initial=1.0))
        pending: Job | None = None
        used = 0
        while not self._finished():
            priced = self._lagrangian.price(prices.current)
            rough = prices.rounds < 2
            jobs = pricing_jobs(priced, columns, self._clock, rough)
            answers = workers.solve([*jobs, *([] if pending is None else [pending])])
            self._count(answers)
            if pending is not None:
                self._offer(answers[-1], used)
            bound, new = take(priced, answers[: len(jobs)], self._pool)
            if prices.note(priced.duals, bound):
                self._raise_bound(bound, "pricing of blocks")
            patterns = list(self._pool.patterns)
            mixed = workers.solve([self._master.linear_job(self._master.everything(), patterns, penalty)])[0]
            self._clock.count(1, 0)
            if mixed.row_duals is None or mixed.values is None:
                # HiGHS lost its way; what is proven and what was found stay.
                self._tell("pricing", "HiGHS did not solve the linear master: no more rounds")
                return
            slack = float(mixed.values[-2 * len(self.parts.linking_rows) :].sum())
            if slack > 1e-6 and prices.rounds > 2:
                penalty *= PENALTY_GROWTH
            prices.follow(mixed.row_duals[: len(self.parts.linking_rows)])
            self._tell(
                "pricing",
                f"round {prices.rounds}: {new} new patterns of {len(patterns)}, linear master "
                f"{mixed.objective:.6g}, bound of the round {bound:.6g}",
            )
            settled = slack <= 1e-6 and mixed.objective - prices.bound <= SETTLED_RATIO * abs(mixed.objective)
            spent = self._clock.spent_s() > ROUNDS_SHARE_OF_TIME * self._clock.limit_s
            used = len(patterns)
            seconds = max(LEAST_MASTER_S, MASTER_S_A_BLOCK * len(columns))
            pending = self._master.integer_job(
                self._master.everything(),
                patterns,
                self._clock.master(seconds),
                self._incumbent.choice,
            )
            if (settled or (spent and slack <= 1e-6) or new == 0) and not self._finished():
                answers = workers.solve([pending])
                self._count(answers)
                self._offer(answers[0], used)
                return

    def _offer(self, answer: Answer, used: int) -> None:
        """What an integer master found, and its plan if it is better."""
        patterns = self._pool.patterns[:used]
        choice = self._master.chosen(self._master.everything(), patterns, answer, None)
        if choice is not None and self._incumbent.offer(choice):
            self._tell("master", f"integer master over {used} patterns")

    def _count(self, answers: list[Answer]) -> None:
        self._clock.count(len(answers), sum(answer.nodes for answer in answers))

    def _raise_bound(self, bound: float, source: str) -> None:
        if self._bound is None or bound > self._bound:
            self._bound, self._bound_source = bound, source

    def _tell(self, source: str, detail: str) -> None:
        objective = self._incumbent.objective
        self._request.listen(
            Report(source, detail, None if objective is None else float(objective), self._bound)
        )


def rows_of(relaxation: Relaxation) -> Rows:
    """A relaxation as HiGHS takes it."""
    return Rows(
        relaxation.rows,
        relaxation.row_lower,
        relaxation.row_upper,
        relaxation.lower,
        relaxation.upper,
        relaxation.whole,
    )
