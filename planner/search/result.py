"""Inputs and outputs of a search: limits, progress, and the result with its quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.formulation import ReachedGoal, Solution
from fleetplan.planner.plan import UNMET_GAP_RATIO
from fleetplan.planner.search.deadline import NEVER, Deadline

if TYPE_CHECKING:
    from fleetplan.planner.jobs import Cluster
    from fleetplan.planner.search.program_cache import ProgramCache

LEAST_S = 0.1
"""The shortest time limit of a solve. [s]"""

OPTIMAL_GAP = 1e-9
"""Gap below which a plan counts as optimal: float rounding of the objective."""


class SolveStatus(StrEnum):
    """Outcome of a search."""

    OPTIMAL = "optimal"
    WITHIN_GAP = "within_gap"
    LIMIT = "limit"
    INFEASIBLE = "infeasible"
    NO_PLAN = "no_plan"


@dataclass(frozen=True, slots=True)
class CostThresholds:
    """Thresholds on the least TCO that answer a yes-or-no question before the gap closes.

    Attributes
    ----------
    below_usd, above_usd : float
        A plan at or below `below_usd` decides, and so does a bound at or above `above_usd`. [USD]
    gap_ratio : float
        Gap required, as a share of the plan, once the bound passes `above_usd`; infinite for none.
    """

    below_usd: float
    above_usd: float
    gap_ratio: float = math.inf

    def decided(self, plan_usd: float, bound_usd: float) -> bool:
        """Return whether a plan and a bound answer the question."""
        if plan_usd <= self.below_usd:
            return True
        near = math.isinf(self.gap_ratio) or plan_usd - bound_usd <= self.gap_ratio * plan_usd
        return near and bound_usd >= self.above_usd

    @property
    def any_plan(self) -> bool:
        """Return whether any plan decides, at any cost."""
        return self.below_usd == math.inf

    def less(self, usd: float) -> CostThresholds:
        """Return the verge of a cost that lacks a constant. [USD]"""
        return replace(self, below_usd=self.below_usd - usd, above_usd=self.above_usd - usd)


MODEL_ROUNDING_RATIO: Final = 1e-5
"""Relative cost of a plan above its value in the model: energy, a tenth of a fleet's cost, is rounded by at
most 1e-4. Subtracted from the target gap, so that the reported gap meets it."""


SIMPLER_ROUNDING_RATIO: Final = 1e-4
"""The same margin for simpler plans, which use up their cost allowance: 1.04e-5 was seen where 4 % of the
cost was energy."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits and options of a search.

    Attributes
    ----------
    time_limit_s : float
        Wall time of all solves together. [s]
    gap_ratio : float
        Target gap: (plan - bound) / plan.
    seed : int
        Random seed of the solvers.
    workers : int
        Parallel solver threads.
    reproducible : bool
        Whether the same question returns the same plan on every machine, which takes longer
        (planner/search/solvers/reproducible.py).
    latest : Deadline
        Deadline of the whole question: the search returns its best plan then. In reproducible runs it counts
        work, or is ignored.
    explained : Deadline
        Deadline for explaining infeasibility, unless that leaves too little time to explain anything.
    verge : CostThresholds or None
        Thresholds that decide the question before the gap closes.
    simplified : bool
        Whether to look for a plan of about the same cost with fewer configurations and more local serving,
        for plans that users see.
    slack_usd : float
        Allowance of a part's gap beyond the target, left unused by the gaps of other parts. [USD]
    cluster : Cluster or None
        Runs the jobs of block searches while it is connected; None for local processes.
    remembered : ProgramCache or None
        Cache of programs that other questions solved; ignored in reproducible runs.
    """

    time_limit_s: float = 120.0
    gap_ratio: float = 0.005
    seed: int = 1
    workers: int = 8
    reproducible: bool = False
    latest: Deadline = NEVER
    explained: Deadline = NEVER
    thresholds: CostThresholds | None = None
    simplified: bool = True
    slack_usd: float = 0.0
    # These two change how a question is answered, not the question.
    cluster: Cluster | None = field(default=None, repr=False, compare=False)
    program_cache: ProgramCache | None = field(default=None, repr=False, compare=False)

    @property
    def search_gap_ratio(self) -> float:
        """Return the gap at which a search stops: the target less the rounding of the model."""
        return self._gap_ratio_less(MODEL_ROUNDING_RATIO)

    @property
    def simpler_gap_ratio(self) -> float:
        """Return the model gap of a simpler plan at which its stated gap still meets the target."""
        return self._gap_ratio_less(SIMPLER_ROUNDING_RATIO)

    def _gap_ratio_less(self, rounding_ratio: float) -> float:
        return max(self.gap_ratio - rounding_ratio, self.gap_ratio / 2)

    def from_now(self) -> SearchLimits:
        """Return the limits of a solve that starts now, within the deadline of the whole question."""
        if self.reproducible and self.latest.spent is None:
            return self
        return replace(self, time_limit_s=max(min(self.time_limit_s, self.latest.left_s), LEAST_S))


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a running search.

    Attributes
    ----------
    stage : str
        Objective of the stage.
    wall_s : float
        Since the start of the search. [s]
    objective_usd, bound_usd : float or None
        Best plan and bound so far, in stages that minimise cost. [USD]
    source, detail : str
        Search component that made the step, and what it did.
    goal : ReachedGoal or None
        Best value and bound so far, in stages that optimise a goal.
    """

    stage: str
    wall_s: float
    objective_usd: float | None
    bound_usd: float | None
    source: str
    detail: str
    goal: ReachedGoal | None = None


@dataclass(frozen=True, slots=True)
class LeastUnmet:
    """Unmet demand of one priority, headroom included, averaged over all moments.

    Attributes
    ----------
    value, bound : float
        Of the plan, and a lower bound for all plans that leave no more unmet of higher priorities.
        [requests/s]
    """

    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Return the share of the unmet demand that another plan might serve."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0


@dataclass(frozen=True, slots=True)
class CheapestPlan:
    """Cheapest plan found, kept where a simpler plan was chosen.

    Attributes
    ----------
    usd : float
        TCO in the integer model. [USD]
    solution : Solution
        Its variable values.
    home_usd : float
        Extra cost of the chosen plan for serving requests in their own region. [USD]
    """

    usd: float
    solution: Solution
    home_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes
    ----------
    status : SolveStatus
        Why the search ended.
    solution : Solution or None
        Variable values of the best plan.
    objective_usd, bound_usd : float or None
        TCO in the integer model, and a proven lower bound on it. [USD]
    bound_source : str
        Solver or component that proved the bound or the infeasibility; never CP-SAT with presolve alone.
    wall_s, deterministic_time : float
        Time and work of all solves. [s; solver units]
    goal : ReachedGoal or None
        Value of a goal that comes before TCO; the TCO bound then covers plans that reach as much.
    unmet : dict[int, LeastUnmet]
        Unmet demand by priority; the TCO bound then covers plans that leave no more unmet.
    cheapest : CheapestPlan or None
        The cheapest plan found, where a simpler and more expensive one was chosen.
    """

    status: SolveStatus
    solution: Solution | None
    objective_usd: float | None
    bound_usd: float | None
    bound_source: str
    wall_s: float
    deterministic_time: float
    goal: ReachedGoal | None = None
    unmet: Mapping[int, LeastUnmet] = field(default_factory=dict)
    cheapest: CheapestPlan | None = None


Watcher = Callable[[Progress], None]


def open_gap(cost_gap: float, goal: ReachedGoal | None, unmet: Mapping[int, LeastUnmet]) -> float:
    """Return the largest open gap: of cost, goal or unmet demand."""
    gaps = [cost_gap, 0.0 if goal is None else goal.gap]
    # Gaps of unmet demand below the rounding of its search count as closed.
    return max(*gaps, *(each.gap for each in unmet.values() if each.gap > UNMET_GAP_RATIO))


def decided(found: SearchResult, thresholds: CostThresholds | None) -> bool:
    """Return whether a result answers a yes-or-no question."""
    if thresholds is None or found.objective_usd is None or found.bound_usd is None:
        return False
    return thresholds.decided(found.objective_usd, found.bound_usd)


def status_of(gap: float, limits: SearchLimits) -> SolveStatus:
    """Return the status of a plan with this gap."""
    if gap <= OPTIMAL_GAP:
        return SolveStatus.OPTIMAL
    return SolveStatus.WITHIN_GAP if gap <= limits.gap_ratio else SolveStatus.LIMIT


def default_workers() -> int:
    """Return the number of solver threads: at least eight, as CP-SAT's strategies complement each other."""
    return max(8, usable_cores())
