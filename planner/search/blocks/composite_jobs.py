"""Jobs of many programs that a child process does by itself: sifting, and rolling-horizon construction."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.search.blocks.rolling import construct
from fleetplan.planner.search.blocks.sifting import sift
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Effort, Indices, Mask, Rows, Solve


@dataclass(frozen=True, slots=True, eq=False)
class SiftingJob:
    """A linear relaxation to solve among few slots.

    Attributes
    ----------
    program : Rows
        The whole program.
    cost : Array
        Objective.
    stage : Indices
        By variable: the moment that it belongs to, and -1 where it joins moments.
    growth, slot : Indices
        As `RollingJob` has them.
    linking : Mask
        Which rows may be violated at a price.
    penalty_ratio : float
        That price, over what the dearest variable costs.
    length : float
        As `Job` has it.
    """

    program: Rows
    cost: Array
    stage: Indices
    growth: Indices
    slot: Indices
    linking: Mask
    penalty_ratio: float
    length: float = 0.0

    def run(self, solve: Solve) -> Answer:
        """Solve the relaxation among few slots."""
        return sift(self, solve)


@dataclass(frozen=True, slots=True, eq=False)
class RollingJob:
    """A plan to construct moment by moment.

    Attributes
    ----------
    program : Rows
        The whole program.
    cost : Array
        Objective.
    root : Array
        An optimum of its linear relaxation.
    stages : tuple[Indices, ...]
        Variables of a moment each, in the order of the decisions, in each the dearest region first, and in
        that the dearest service; others are supply, or join stages.
    service, region : Indices
        By variable: the service that it places, and the region where it runs; -1 for none.
    growth : Indices
        By variable: 1 where more of it is more supply, -1 where less of it is, 0 elsewhere.
    slot : Indices
        By variable: the candidate and pool whose use it decides; -1 for none.
    rank : Array
        By slot: 0 where the relaxation uses it, else its place among the others.
    widths : tuple[float, ...]
        Ranks up to which slots are looked at, one attempt after the other.
    supply : Mask
        By variable: which are decided before all stages, with fractions of everything else; none without it.
    linking : Mask
        Which rows may be violated at a price if nothing else helps.
    penalty : Array
        That price, by row. [objective units per scaled unit]
    effort : Effort
        The time limit is that of the whole construction, the gaps and the nodes are those of a stage.
    length : float
        As `Job` has it.
    """

    program: Rows
    cost: Array
    root: Array
    stages: tuple[Indices, ...]
    service: Indices
    region: Indices
    growth: Indices
    slot: Indices
    rank: Array
    widths: tuple[float, ...]
    supply: Mask
    linking: Mask
    penalty: Array
    effort: Effort
    length: float = 0.0

    def run(self, solve: Solve) -> Answer:
        """Construct the plan."""
        return construct(self, solve)
