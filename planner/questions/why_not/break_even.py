"""Bracket the price, speed or supply at which an item enters the cheapest plan, proven by solves.

Compare the fleet with the item forced in (`F`) and without it (`W`). The item belongs in the plan if the
optimum of F is below that of W. Each optimum is only known between a bound and a plan. So there is a last
value proven in and a first value proven out, and the gaps leave values between them undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.fleet_question import FleetAnswer
from fleetplan.planner.search import CostThresholds

Force = Callable[[float, CostThresholds | None], FleetAnswer]
"""Solves for the cheapest plan with the item at a ratio, until a threshold on its cost is decided."""

MOST_PRICE_SOLVES: Final = 8
"""Maximum number of solves for the break-even price; each plan with other quantities takes one more."""

SAVING_SHARE: Final = 0.25
"""Share of the saving at a price of zero that makes a plan at another price good enough to continue."""

MOST_SPEED: Final = 16.0
"""Speed ratio above which it would no longer be the same hardware."""

SPEED_RESOLUTION: Final = 1.02
"""Ratio between speeds that are distinguished."""

UNDECIDED_RESOLUTION: Final = 1.1
"""The same after a solve that ended undecided at its limit. Repeated runs for one fleet differ by 9 %; a
finer ratio would measure the search instead of the hardware.
"""

MONEY_RESOLUTION: Final = 1e-6
"""Relative difference of costs that counts as rounding."""


@dataclass(frozen=True, slots=True)
class CostWithout:
    """Cost of the fleet without the item.

    Attributes
    ----------
    least_usd, most_usd : float
        Lower and upper bound on the optimum. [USD]
    """

    least_usd: float
    most_usd: float

    @property
    def thresholds(self) -> CostThresholds:
        """Cost below which a plan with the item proves it in, and bound that proves it out."""
        # The model rounds costs.
        return CostThresholds(self.least_usd * (1 - 2 * MONEY_RESOLUTION), self.most_usd)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Ratio to the present value at which an item enters the plan.

    Attributes
    ----------
    proven_in : float or None
        Ratio proven in; None if no tried ratio is.
    proven_out : float or None
        Ratio proven out; None if the gaps leave even the present value undecided.
    solves : int
        Number of solved fleets.
    """

    proven_in: float | None
    proven_out: float | None
    solves: int


def price_break_even(
    force: Force,
    priced_usd: Callable[[Plan], float],
    without: CostWithout,
    today: FleetAnswer,
    highest: float = 1.0,
) -> BreakEven:
    """Return the highest ratio of a price at which the item belongs in the plan; 1 is the present price.

    Parameters
    ----------
    force : callable
        Solves for the cheapest plan with the item at a ratio of its price.
    priced_usd : callable
        Returns the part of a plan's cost that the ratio scales, at the present price; the rest is constant.
        [USD]
    without : CostWithout
        The fleet without the item.
    today : FleetAnswer
        Cheapest plan with the item at the present price.
    highest : float
        Maximum ratio.

    Notes
    -----
    The least cost with the item is concave in the price, because the cost of each plan is linear. The line of
    the cheapest plan at a price below the break-even therefore meets `without` at a price that is not above
    it. Repeating this (Newton's method) converges to the break-even from below. Intermediate plans need not
    be the cheapest: a plan that saves a good part of the saving at a price of zero is enough. Lower bounds at
    two prices hold on the chord between them, which gives the price proven too high.
    """
    ratio, solved = 0.0, []
    proven_in: float | None = None
    dearest = today if highest == 1.0 else force(highest, None)
    good_enough: CostThresholds | None = None
    for _ in range(MOST_PRICE_SOLVES):
        answer = force(ratio, good_enough)
        solved.append((ratio, answer))
        plan = answer.plan
        if plan is None or plan.objective_usd >= without.most_usd * (1 + MONEY_RESOLUTION):
            break
        if good_enough is None:
            saving_usd = without.most_usd - plan.objective_usd
            enough_usd = min(without.thresholds.below_usd, without.most_usd - SAVING_SHARE * saving_usd)
            good_enough = CostThresholds(enough_usd, without.most_usd)
        slope = priced_usd(plan)
        rest = plan.objective_usd - ratio * slope
        if slope <= 0:
            break
        if rest < without.least_usd:
            proven_in = max(proven_in or 0.0, min(highest, (without.least_usd - rest) / slope))
        meets = (without.most_usd - rest) / slope
        if meets >= highest or meets <= ratio * (1 + MONEY_RESOLUTION):
            break
        if plan.objective_usd >= without.least_usd * (1 + MONEY_RESOLUTION):
            # Not proven in at this price, so not at a higher one either.
            break
        ratio = meets
    return BreakEven(proven_in, _first_out([*solved, (highest, dearest)], without), len(solved) + 1)


def _first_out(solved: Sequence[tuple[float, FleetAnswer]], without: CostWithout) -> float | None:
    """Return the lowest price at which the bounds prove that the fleet without the item is cheaper."""
    points = sorted((ratio, answer.least_usd) for ratio, answer in solved)
    (high, high_usd) = points[-1]
    if high_usd < without.most_usd * (1 - MONEY_RESOLUTION):
        return None
    out = high
    for low, low_usd in points[:-1]:
        if low_usd >= without.most_usd:
            return min(out, low)
        if high_usd != float("inf") and high_usd > low_usd:
            crossing = low + (high - low) * (without.most_usd - low_usd) / (high_usd - low_usd)
            out = min(out, max(low, crossing))
    return out


def speed_break_even(force: Force, without: CostWithout, today: FleetAnswer) -> BreakEven:
    """Return the lowest speed ratio at which the item belongs in the plan; 1 is the present speed.

    Parameters
    ----------
    force : callable
        Solves for the cheapest plan with the item at a ratio of its rates; faster never costs more.
    without : CostWithout
        The fleet without the item.
    today : FleetAnswer
        Cheapest plan with the item at its present speed.
    """
    tried: dict[float, FleetAnswer] = {1.0: today}
    side = without.thresholds
    if today.least_usd < without.most_usd:
        # If even the present speed is not proven out, no higher speed will be. It is then enough to bound the
        # cost at the level where no plan can prove the item in.
        side = replace(side, above_usd=without.least_usd)

    def belongs(ratio: float) -> bool:
        tried[ratio] = force(ratio, side)
        return tried[ratio].most_usd < without.least_usd * (1 - MONEY_RESOLUTION)

    low, high, resolution = 1.0, MOST_SPEED, SPEED_RESOLUTION
    if belongs(high):
        while high / low > resolution:
            middle = (low * high) ** 0.5
            if belongs(middle):
                high = middle
                continue
            low = middle
            if tried[middle].least_usd < side.above_usd * (1 - MONEY_RESOLUTION):
                resolution = UNDECIDED_RESOLUTION
    proven_in = [ratio for ratio, answer in tried.items() if answer.most_usd < without.least_usd]
    proven_out = [ratio for ratio, answer in tried.items() if answer.least_usd >= without.most_usd]
    return BreakEven(
        min(proven_in) if proven_in else None, max(proven_out) if proven_out else None, len(tried) - 1
    )
