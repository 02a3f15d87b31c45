"""Regions that share nothing but maxima of offers, searched one by one as if each had every offer for itself.

That is a relaxation: the bounds of the regions add up to one of the whole, and so do their plans where these
keep the maxima together, which most fleets do. Three regions of some hundred variables are solved in a
fraction of the time of the whole (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from fleetplan.planner.problem.independent_parts import Component, components
from fleetplan.planner.search.blocks import solve as blocks
from fleetplan.planner.search.parts import merge_parts
from fleetplan.planner.search.result import (
    LEAST_S,
    Progress,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Watcher,
    open_gap,
)
from fleetplan.planner.units import gap_of_cost

VARIABLES_A_SLOT: Final = 3
"""Variables of a model for each configuration in a pool in a moment: 3.0 of quarterly.yaml and its year, 3.1
of a fleet of twelve services."""

ROUNDS: Final = (0.5, 1.0)
"""Shares of the time that is left for a search of all regions, and for one more, from their plans, of those
that are still open. Where they take more than there is together, the whole has the other half."""

SearchRegion = Callable[[Component, SearchLimits, Watcher, SearchResult | None], SearchResult]
"""Searches a region within limits, tells a watcher, and begins with what was found before."""


def regions_apart(part: Component) -> list[Component]:
    """The regions of a part that share maxima of offers alone, the smallest first; none if it is one."""
    found = components(part.problem, maxima=False)
    size = [sum(len(each.problem.slots(cell)) for cell in each.problem.cells) for each in found]
    if len(found) < 2 or VARIABLES_A_SLOT * max(size) >= blocks.LEAST_VARIABLES:
        # A region that is solved in blocks is bounded as well among the others.
        return []
    return [found[number] for number in sorted(range(len(found)), key=lambda number: size[number])]


class ApartSearch:
    """The search of the regions of one part.

    Parameters
    ----------
    part : Component
        All of them.
    regions : list[Component]
        As `regions_apart` has them.
    limits : SearchLimits
        With the gap that is asked for.
    watch : callable
        Told of plans and bounds of the part.
    search_region : callable
        Searches one of them, and begins with what it found before.

    Attributes
    ----------
    spent : float
        Work of the searches so far. [solver units]
    """

    def __init__(
        self,
        part: Component,
        regions: list[Component],
        limits: SearchLimits,
        watch: Watcher,
        search_region: SearchRegion,
    ) -> None:
        # What has to be known of all says little of one, unless any plan will do.
        verge = limits.verge if limits.verge is not None and limits.verge.any_plan else None
        self._part, self._regions, self._limits = part, regions, replace(limits, verge=verge)
        self._watch, self._search_region = watch, search_region
        self._elsewhere_usd = part.fixed_usd - sum(region.fixed_usd for region in regions)
        self._found: dict[int, SearchResult] = {}
        self._told: dict[int, Progress] = {}
        self.spent = 0.0

    def run(self, seconds_left: Callable[[], float]) -> SearchResult | None:
        """Search the regions.

        Parameters
        ----------
        seconds_left : callable
            Time that is left. [s]

        Returns
        -------
        SearchResult or None
            Of the part; None where a region has no plan in its time, or their plans take more of an offer
            than there is.
        """
        for share in ROUNDS:
            for number in [each for each in range(len(self._regions)) if self._is_open(each)]:
                waiting = sum(map(self._is_open, range(number, len(self._regions))))
                seconds = max(seconds_left() * share / waiting, LEAST_S)
                before = self._found.get(number)
                found = self._search_region(
                    self._regions[number],
                    replace(self._limits, time_limit_s=seconds, slack_usd=self._slack_usd(number)),
                    partial(self._tell, number),
                    before,
                )
                self.spent += found.deterministic_time
                if found.status is SolveStatus.INFEASIBLE:
                    return replace(found, deterministic_time=self.spent)
                if found.solution is None:
                    return None
                self._found[number] = min([found, *([] if before is None else [before])], key=_gap)
                if not self._keeps_maxima():
                    return None
        found = merge_parts(
            self._regions,
            list(map(self._found.__getitem__, range(len(self._regions)))),
            self._elsewhere_usd,
            self._limits,
            0.0,
        )
        return replace(found, deterministic_time=self.spent)

    def _slack_usd(self, number: int) -> float:
        """What regions that are searched already leave of their gaps. [USD]"""
        left_usd = self._limits.slack_usd
        for other, found in self._found.items():
            objective_usd, bound_usd = found.objective_usd or 0.0, found.bound_usd or 0.0
            if other != number:
                left_usd += self._limits.search_gap_ratio * objective_usd - (objective_usd - bound_usd)
        return max(left_usd, 0.0)

    def _is_open(self, number: int) -> bool:
        return number not in self._found or self._found[number].status is SolveStatus.LIMIT

    def _keeps_maxima(self) -> bool:
        """Whether there is as much of every offer as the regions that have a plan take together."""
        problem = self._part.problem
        left: dict[tuple[str, int], int] = {}
        for found in self._found.values():
            assert found.solution is not None, "only plans are kept"
            for (p, a, ordered), units in found.solution.acquired.items():
                acquisition = problem.pools[p].acquisitions[a]
                for q, limit in enumerate(acquisition.offer.max_units):
                    if limit is not None and acquisition.counts_in(ordered, q):
                        key = acquisition.offer.name, q
                        left[key] = left.get(key, limit) - units
        return all(units >= 0 for units in left.values())

    def _tell(self, number: int, step: Progress) -> None:
        """Tell of the part what is known of it, once every region has a plan or a bound."""
        self._told[number] = step
        self._watch(
            replace(
                step,
                objective_usd=self._together([each.objective_usd for each in self._told.values()]),
                bound_usd=self._together([each.bound_usd for each in self._told.values()]),
            )
        )

    def _together(self, usd: list[float | None]) -> float | None:
        known = [each for each in usd if each is not None]
        return self._elsewhere_usd + sum(known) if len(known) == len(self._regions) else None


def _gap(result: SearchResult) -> float:
    cost_gap = gap_of_cost(result.objective_usd or 0.0, result.bound_usd or 0.0)
    return open_gap(cost_gap, result.goal, result.unmet)
