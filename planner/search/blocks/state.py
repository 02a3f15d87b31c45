"""State of a search over blocks: best plan, best bound, and when to stop."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.request import BlockOutcome, Request
from fleetplan.planner.search.solvers.request import Step

FAR_RATIO: Final = 0.1
"""Gap above which a plan is far from its bound. Then a master runs with every round, with few columns: the
cheapest of each block and those of the master LP. Objective of a large scarce fleet after two rounds: 1.37e14
in 4 s; 1.51e14 in 3 s without the cheapest, 3.96e15 in 4 s with two per block, 2.29e14 in 14 s with three per
block and no others. Medium fleets with gaps of 1 to 6 % gain less."""


class SearchState:
    """Best plan and bound of a search, its progress reports and stop conditions.

    Parameters
    ----------
    request : Request
        Target gap and callbacks.
    clock : Clock
        Time limits.
    incumbent : Incumbent
        Holds the best plan.
    bound : float
        Bound known before the search. [objective units]

    Attributes
    ----------
    bound : float
        Best bound. [objective units]
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
        """Report a step with the current plan and bound."""
        found = self.incumbent
        objective = None if found.objective is None else float(found.objective)
        self._request.on_step(Step(source, detail, objective, self.bound, found.values))

    def outcome(self, infeasible: bool) -> BlockOutcome:
        """Return the outcome of the search.

        Parameters
        ----------
        infeasible : bool
            Whether a relaxation is infeasible.
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
        """Return whether there is a plan far from its bound."""
        objective = self.incumbent.objective
        return objective is not None and objective - self.bound > FAR_RATIO * abs(objective)

    def good(self) -> bool:
        """Return whether the plan needs no overtime; True without a plan to improve."""
        objective, extra_time = self.incumbent.objective, self._request.extra_time
        return objective is None or extra_time is None or extra_time.good(objective, self.bound)

    def overtime_s(self) -> float:
        """Return by how much the search may exceed its limit with the current plan. [s]"""
        extra_time = self._request.extra_time
        return 0.0 if self._late or extra_time is None or self.good() else extra_time.seconds

    def expired(self) -> bool:
        """Return whether to abort running work; in reproducible runs, never."""
        if self._clock.deterministic:
            return False
        return self._clock.left_s() + self.overtime_s() <= 0 or self._impatient()

    def hopeless(self, rounds: int) -> bool:
        """Return whether the search should give up after so many rounds, or so much time, without a plan."""
        without = self.incumbent.objective is None
        return without and (rounds >= self._request.patience.rounds or self._impatient())

    def _impatient(self) -> bool:
        """Return whether the time without a plan exceeds the request's patience."""
        return self.incumbent.objective is None and self._clock.spent_s() > self._request.patience.seconds

    def finished(self) -> bool:
        """Return whether the search should end: time is over, or the gap is small enough."""
        if self._clock.left_s() <= 0 and not self._goes_on():
            return True
        if self._late and self.good():
            return True
        return self.content()

    def content(self) -> bool:
        """Return whether the gap is as small as requested."""
        objective = self.incumbent.objective
        return objective is not None and self._request.enough(objective, self.bound)

    def _goes_on(self) -> bool:
        """Extend the limit once, for a plan that needs overtime; return whether time is left."""
        more_s = self.overtime_s()
        if not more_s:
            return False
        self._late = True
        self._clock.extend(more_s)
        return self._clock.left_s() > 0
