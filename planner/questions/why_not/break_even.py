"""From which price, speed or supply on something belongs in the cheapest plan: brackets that solves prove.

What is asked about is forced into the plan (`F`), and beside it stands a plan that does without (`W`). It
belongs in where F's optimum is below W's. Both optima are known only between a bound and a plan, so there is
a last value that is proven in and a first one that is proven out; between the two the gaps decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.fleet_question import FleetAnswer
from fleetplan.planner.search import Verge

Force = Callable[[float, Verge | None], FleetAnswer]
"""The cheapest plan with what is asked about at a ratio, as far as it tells on which side of a gap its cost
lies."""

MOST_PRICE_SOLVES: Final = 8
"""Solves after which the break-even price is taken as it is; a plan of another shape takes one more each."""

SAVING_SHARE: Final = 0.25
"""Share of what it saves as a gift, from which on a plan at another price is good enough to go on from."""

MOST_SPEED: Final = 16.0
"""Speed from which on nobody would call it the same hardware."""

SPEED_RESOLUTION: Final = 1.02
"""Ratio of speeds that are told apart."""

UNDECIDED_RESOLUTION: Final = 1.1
"""The same where a solve ended at its limit without deciding. Three runs for L40S on `quarterly.yaml` ended
between 8.45 and 9.21 times its speed: closer, a solve tells about its search and not about the hardware."""

MONEY_RESOLUTION: Final = 1e-6
"""Relative difference of costs that is rounding."""


@dataclass(frozen=True, slots=True)
class Without:
    """What the fleet costs without what is asked about.

    Attributes
    ----------
    least_usd, most_usd : float
        Between these lies the optimum. [USD]
    """

    least_usd: float
    most_usd: float

    @property
    def verge(self) -> Verge:
        """Cost below which a plan with it proves that it belongs in, and bound that proves the contrary."""
        # The model rounds costs.
        return Verge(self.least_usd * (1 - 2 * MONEY_RESOLUTION), self.most_usd)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where something begins to belong in the plan, as a ratio to what it is today.

    Attributes
    ----------
    proven_in : float or None
        At this ratio it is proven to belong in; None where it is at no ratio that was tried.
    proven_out : float or None
        At this one it is proven not to; None where the gaps leave even today's value open.
    solves : int
        Fleets that were solved.
    """

    proven_in: float | None
    proven_out: float | None
    solves: int


def price_break_even(
    force: Force,
    priced_usd: Callable[[Plan], float],
    without: Without,
    today: FleetAnswer,
    highest: float = 1.0,
) -> BreakEven:
    """The highest ratio of a price at which something belongs in, 1 being today's price.

    Parameters
    ----------
    force : callable
        The cheapest plan with it at a ratio of its price.
    priced_usd : callable
        What a plan pays at today's price for what the ratio scales; the rest of its cost does not depend on
        it. [USD]
    without : Without
        The fleet without it.
    today : FleetAnswer
        The cheapest plan with it at today's price.
    highest : float
        Ratio up to which is looked.

    Notes
    -----
    The least cost with it is concave in the price, as every plan's cost is a line. So the line of the
    cheapest plan at a price below the break-even meets `without` at a price that is still not above it:
    going there again and again (Newton's method) ends at the break-even, from below. On the way there a plan
    need not be the cheapest: one that saves a good part of what the gift saves leads on. Lower bounds at two
    prices hold on the chord between them, which gives the price that is proven too high.
    """
    ratio, solved = 0.0, []
    proven_in: float | None = None
    dearest = today if highest == 1.0 else force(highest, None)
    good_enough: Verge | None = None
    for _ in range(MOST_PRICE_SOLVES):
        answer = force(ratio, good_enough)
        solved.append((ratio, answer))
        plan = answer.plan
        if plan is None or plan.objective_usd >= without.most_usd * (1 + MONEY_RESOLUTION):
            break
        if good_enough is None:
            saving_usd = without.most_usd - plan.objective_usd
            enough_usd = min(without.verge.below_usd, without.most_usd - SAVING_SHARE * saving_usd)
            good_enough = Verge(enough_usd, without.most_usd)
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
            # It is not proven in at this price, so it will not be at a higher one.
            break
        ratio = meets
    return BreakEven(proven_in, _first_out([*solved, (highest, dearest)], without), len(solved) + 1)


def _first_out(solved: Sequence[tuple[float, FleetAnswer]], without: Without) -> float | None:
    """The lowest price at which the bounds prove that the fleet without it is cheaper."""
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


def speed_break_even(force: Force, without: Without, today: FleetAnswer) -> BreakEven:
    """The least speed at which something belongs in, 1 being what the rates say today.

    Parameters
    ----------
    force : callable
        The cheapest plan with it at a ratio of its rates: faster is never dearer.
    without : Without
        The fleet without it.
    today : FleetAnswer
        The cheapest plan with it at its speed of today.
    """
    tried: dict[float, FleetAnswer] = {1.0: today}
    side = without.verge
    if today.least_usd < without.most_usd:
        # Where not even today's speed is proven not to pay, none above it will be: a bound at which no plan
        # can prove that it pays is all that is asked.
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
