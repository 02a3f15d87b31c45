"""What a search is asked and what it answers: limits, progress, the values of a plan, how good it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.formulation import Reached, Solution
from fleetplan.planner.plan import UNMET_GAP_RATIO
from fleetplan.planner.search.deadline import NEVER, Deadline

if TYPE_CHECKING:
    from fleetplan.planner.jobs import Cluster
    from fleetplan.planner.search.remembered import Remembered

LEAST_S = 0.1
"""The shortest time limit of a solve. [s]"""

OPTIMAL_GAP = 1e-9
"""Gap below which a plan is called optimal: the float rounding of the objective."""


class SolveStatus(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"
    WITHIN_GAP = "within_gap"
    LIMIT = "limit"
    INFEASIBLE = "infeasible"
    NO_PLAN = "no_plan"


@dataclass(frozen=True, slots=True)
class Verge:
    """What a question has to know of a least TCO: on which side of a gap it lies.

    Attributes
    ----------
    below_usd, above_usd : float
        A plan that costs at most the former decides, and so does a bound of at least the latter. [USD]
    gap_ratio : float
        What the least TCO beyond the latter is known to, as a share of the plan; infinite where nobody asks.
    """

    below_usd: float
    above_usd: float
    gap_ratio: float = math.inf

    def decided(self, plan_usd: float, bound_usd: float) -> bool:
        """Whether a plan and a bound tell the side."""
        if plan_usd <= self.below_usd:
            return True
        near = math.isinf(self.gap_ratio) or plan_usd - bound_usd <= self.gap_ratio * plan_usd
        return near and bound_usd >= self.above_usd

    @property
    def any_plan(self) -> bool:
        """Whether every plan decides, whatever it costs."""
        return self.below_usd == math.inf

    def less(self, usd: float) -> Verge:
        """The same of a cost without a part of it."""
        return replace(self, below_usd=self.below_usd - usd, above_usd=self.above_usd - usd)


MODEL_ROUNDING_RATIO: Final = 1e-5
"""What a plan may cost more than in the model, over its cost: energy is rounded by 1e-4 of itself at most,
and is a tenth of what a fleet costs. What was at the asked gap in the model was above it as stated."""


SIMPLER_ROUNDING_RATIO: Final = 1e-4
"""The same of a simpler plan, which is chosen by what it may cost: a random fleet's (seed 904390) cost
1.04e-5 more than in the model, 4 % of it energy, and was above the asked gap as stated."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When a search may stop.

    Attributes
    ----------
    time_limit_s : float
        Wall time of all solves together. [s]
    gap_ratio : float
        (plan - bound) / plan at which a plan is good enough.
    seed : int
        Seed of the solver.
    workers : int
        Parallel searches.
    reproducible : bool
        Whether the same question gets the same plan everywhere, which takes longer
        (planner/search/solvers/reproducible.py).
    latest : Deadline
        When a search comes back with whatever it has: of the question that it is a part of. Where the clock
        must not decide it counts work, or is not looked at.
    explained : Deadline
        When it is to be over why there is no plan, unless that is known too late to say anything.
    verge : Verge or None
        When a search may stop before its gap is closed, as the question is decided.
    simplified : bool
        Whether a plan of about the same cost with fewer configurations, and with requests served where they
        arise, is looked for: plans that are shown.
    slack_usd : float
        What a plan of a part may be above its bound beside the gap: other parts have as much left of theirs.
        [USD]
    cluster : Cluster or None
        Does the jobs of searches over blocks while it is not lost; None for processes of this machine.
    remembered : Remembered or None
        What other questions have found of the same programs; not looked at where the clock must not decide.
    """

    time_limit_s: float = 120.0
    gap_ratio: float = 0.005
    seed: int = 1
    workers: int = 8
    reproducible: bool = False
    latest: Deadline = NEVER
    explained: Deadline = NEVER
    verge: Verge | None = None
    simplified: bool = True
    slack_usd: float = 0.0
    # The same question wherever it is answered.
    cluster: Cluster | None = field(default=None, repr=False, compare=False)
    remembered: Remembered | None = field(default=None, repr=False, compare=False)

    @property
    def search_gap_ratio(self) -> float:
        """Gap at which a search stops: the plan is stated without the rounding of the model."""
        return self._gap_ratio_less(MODEL_ROUNDING_RATIO)

    @property
    def simpler_gap_ratio(self) -> float:
        """Gap that a simpler plan may have in the model, so that it is within the asked one as stated."""
        return self._gap_ratio_less(SIMPLER_ROUNDING_RATIO)

    def _gap_ratio_less(self, rounding_ratio: float) -> float:
        return max(self.gap_ratio - rounding_ratio, self.gap_ratio / 2)

    def from_now(self) -> SearchLimits:
        """The limits of a solve that begins now: no longer than the whole question has left."""
        if self.reproducible and self.latest.spent is None:
            return self
        return replace(self, time_limit_s=max(min(self.time_limit_s, self.latest.left_s), LEAST_S))


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a running search, for those who watch it.

    Attributes
    ----------
    stage : str
        What is being minimised.
    wall_s : float
        Since the search began. [s]
    objective_usd, bound_usd : float or None
        The best plan and bound, where the stage is about cost. [USD]
    source, detail : str
        The part of the search that made the last step, and what it did.
    """

    stage: str
    wall_s: float
    objective_usd: float | None
    bound_usd: float | None
    source: str
    detail: str


@dataclass(frozen=True, slots=True)
class LeastUnmet:
    """What a plan leaves unmet of one priority's demand, headroom included, in the mean over all moments.

    Attributes
    ----------
    value, bound : float
        Of the plan, and proven of all plans that leave no more unmet of the priorities above. [requests/s]
    """

    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Share of it that another plan might serve."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0


@dataclass(frozen=True, slots=True)
class CheapestPlan:
    """The cheapest plan found, where a simpler one was taken.

    Attributes
    ----------
    usd : float
        Its TCO by the integer model. [USD]
    solution : Solution
        Its values.
    home_usd : float
        What was paid more than that so that requests are served in their own region. [USD]
    """

    usd: float
    solution: Solution
    home_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    status : SolveStatus
        How it ended.
    solution : Solution or None
        The best plan's values.
    objective_usd, bound_usd : float or None
        TCO of the integer model and a proven lower bound on it. [USD]
    bound_source : str
        Who proved the bound, or that there is no plan; never CP-SAT with presolve alone.
    wall_s, deterministic_time : float
        Time that the solves took. [s; solver units]
    goal : Reached or None
        What was reached of an objective that comes before TCO; the bound on TCO is then one of the plans
        that reach as much.
    unmet : dict[int, LeastUnmet]
        By priority, where some of its demand is unmet; the bound on TCO is then one of the plans that leave
        no more unmet.
    cheapest : CheapestPlan or None
        The cheapest plan found, where a simpler one that costs more was taken.
    """

    status: SolveStatus
    solution: Solution | None
    objective_usd: float | None
    bound_usd: float | None
    bound_source: str
    wall_s: float
    deterministic_time: float
    goal: Reached | None = None
    unmet: Mapping[int, LeastUnmet] = field(default_factory=dict)
    cheapest: CheapestPlan | None = None


Watcher = Callable[[Progress], None]


def open_gap(cost_gap: float, goal: Reached | None, unmet: Mapping[int, LeastUnmet]) -> float:
    """The largest share by which another plan might be better: in cost, goal or unmet demand."""
    gaps = [cost_gap, 0.0 if goal is None else goal.gap]
    # Unmet demand is minimised until its gap is no more than rounding.
    return max(*gaps, *(each.gap for each in unmet.values() if each.gap > UNMET_GAP_RATIO))


def decided(found: SearchResult, verge: Verge | None) -> bool:
    """Whether a plan and its bound are all that a question has to know."""
    if verge is None or found.objective_usd is None or found.bound_usd is None:
        return False
    return verge.decided(found.objective_usd, found.bound_usd)


def status_of(gap: float, limits: SearchLimits) -> SolveStatus:
    """How good a plan of a gap is."""
    if gap <= OPTIMAL_GAP:
        return SolveStatus.OPTIMAL
    return SolveStatus.WITHIN_GAP if gap <= limits.gap_ratio else SolveStatus.LIMIT


def default_workers() -> int:
    """Parallel searches for this machine: at least eight, as CP-SAT's strategies complement each other."""
    return max(8, usable_cores())
