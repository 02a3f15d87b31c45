"""Where a search over blocks stands: its best plan, its best bound, and whether they are enough."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.request import BlockOutcome, Request
from fleetplan.planner.search.solvers.request import Step

FAR_RATIO: Final = 0.1
"""Gap of a plan that is far from good. A master then runs beside every round, and looks at few columns: the
cheapest of each block and what the master LP mixes. Unmet demand and cost of a large scarce fleet after
two rounds: 1.37e14 in 4 s; 1.51e14 in 3 s without the cheapest, 3.96e15 in 4 s with two a block, 2.29e14 in
14 s among three a block alone. Plans of medium fleets whose gap is 1 to 6 % gain less from it."""


class SearchState:
    """Holds the best plan and the best bound, tells of them, and says when to end.

    Parameters
    ----------
    request : Request
        What is enough, and who is told.
    clock : Clock
        When to stop.
    incumbent : Incumbent
        The best plan.
    bound : float
        What is proven before the search begins. [objective units]

    Attributes
    ----------
    bound : float
        The best bound. [objective units]
    """

    def __init__(self, request: Request, clock: Clock, incumbent: Incumbent, bound: float) -> None:
        self._request = request
        self._clock = clock
        self._source = "bounds of the variables"
        self._late = False
        self.incumbent = incumbent
        self.bound = bound

    def raise_bound(self, bound: float, source: str) -> None:
        """Keep a bound if it is the best."""
        if bound > self.bound:
            self.bound, self._source = bound, source

    def tell(self, source: str, detail: str) -> None:
        """Report a step, with the plan and the bound as they are."""
        found = self.incumbent
        objective = None if found.objective is None else float(found.objective)
        self._request.on_step(Step(source, detail, objective, self.bound, found.values))

    def outcome(self, infeasible: bool) -> BlockOutcome:
        """What the search answers.

        Parameters
        ----------
        infeasible : bool
            Whether a relaxation has no solution.
        """
        found = self.incumbent
        return BlockOutcome(
            values=found.values,
            objective=None if found.objective is None else float(found.objective),
            bound=self.bound,
            bound_source=self._source,
            infeasible=infeasible and found.values is None,
            work_s=self._clock.worked_s,
        )

    def far(self) -> bool:
        """Whether there is a plan, and it is far from good."""
        objective = self.incumbent.objective
        return objective is not None and objective - self.bound > FAR_RATIO * abs(objective)

    def good(self) -> bool:
        """Whether the plan does without overtime; without any plan there is nothing to improve."""
        objective, overtime = self.incumbent.objective, self._request.overtime
        return objective is None or overtime is None or overtime.good(objective, self.bound)

    def overtime_s(self) -> float:
        """How much later than its limit the search would end as its plan is now. [s]"""
        overtime = self._request.overtime
        return 0.0 if self._late or overtime is None or self.good() else overtime.seconds

    def expired(self) -> bool:
        """Whether work that is under way should be cut short; counted work is always done."""
        if self._clock.deterministic:
            return False
        return self._clock.left_s() + self.overtime_s() <= 0 or self._impatient()

    def hopeless(self, rounds: int) -> bool:
        """Whether so many rounds, or so much time, without a plan is reason enough to give up."""
        without = self.incumbent.objective is None
        return without and (rounds >= self._request.patience.rounds or self._impatient())

    def _impatient(self) -> bool:
        """Whether so much time without a plan is."""
        return self.incumbent.objective is None and self._clock.spent_s() > self._request.patience.seconds

    def finished(self) -> bool:
        """Whether the search is to end: its time is over, or what it has is enough."""
        if self._clock.left_s() <= 0 and not self._goes_on():
            return True
        if self._late and self.good():
            return True
        return self.content()

    def content(self) -> bool:
        """Whether plan and bound are as close as was asked."""
        objective = self.incumbent.objective
        return objective is not None and self._request.enough(objective, self.bound)

    def _goes_on(self) -> bool:
        """Whether the plan is so far from good that the limit is put off: once, until it is good."""
        more_s = self.overtime_s()
        if not more_s:
            return False
        self._late = True
        self._clock.extend(more_s)
        return self._clock.left_s() > 0
