"""Search regions one by one where they share only the maxima of offers.

Their bounds add up to a bound on the whole, and so do their plans where these keep the maxima. Where they
exceed one, each region is searched again with what the others leave. All begin with a plan of the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from fleetplan.planner.formulation import Solution, goal_of
from fleetplan.planner.problem.independent_parts import Component, components
from fleetplan.planner.problem.supply import Acquisition
from fleetplan.planner.search.blocks import solve as blocks
from fleetplan.planner.search.joint_plans import better_of
from fleetplan.planner.search.parts import merge_parts
from fleetplan.planner.search.result import (
    LEAST_S,
    CostThresholds,
    Progress,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Watcher,
    decided,
    open_gap,
)
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.units import gap_of_cost

VARIABLES_A_SLOT: Final = 3
"""Model variables per configuration, pool and moment: 3.0 in quarterly.yaml, 3.1 in a fleet of twelve
services."""

LARGE_REGION_VARIABLES: Final = 1200
"""Model size from which blocks of the whole outperform the search of one region: its gap is a third of theirs
at 570 variables, equal at 1,170, two to three times theirs at 2,300 (benchmarks/RESULTS.md)."""

FIRST_SHARE, FIRST_LIMIT_S = 0.3, 15.0
"""Share of the time for the first plan of the whole, and its limit. [s]"""

STAGES_SHARE: Final = 0.3
"""Factor on that time where a goal or unmet demand comes before cost, as a plan does not end that stage."""

ROUNDS: Final = (0.5, 1.0)
"""Shares of the remaining time to search all regions, and once more those whose gap is open."""

DIVIDED_SHARE: Final = 0.4
"""Share of the remaining time to search the regions again with what the others leave of the maxima."""

ANY_PLAN: Final = CostThresholds(below_usd=math.inf, above_usd=math.inf)
"""A verge that any plan decides."""

Use = Mapping[tuple[str, int], int]
"""Units by offer and period that count against the offer's maximum."""

SearchPart = Callable[[Component, SearchLimits, Watcher, Solution | None, SearchResult | None], SearchResult]
"""Function that searches a part within limits from a known plan and an earlier result, and reports to a
watcher."""


def separable_regions(part: Component) -> list[Component]:
    """Return a part's regions that share only maxima of offers, smallest first; empty if it has only one."""
    found = components(part.problem, maxima=False)
    most = min(LARGE_REGION_VARIABLES if in_blocks(part) else math.inf, blocks.LEAST_VARIABLES)
    if len(found) < 2 or any(VARIABLES_A_SLOT * _slots(each) >= most for each in found):
        return []
    return sorted(found, key=_slots)


def in_blocks(part: Component) -> bool:
    """Return whether the estimated size of a part's model calls for the block decomposition."""
    return VARIABLES_A_SLOT * _slots(part) >= blocks.LEAST_VARIABLES


def _slots(part: Component) -> int:
    """Count the part's combinations of configuration, pool and moment that can serve demand."""
    return sum(len(part.problem.slots(cell)) for cell in part.problem.cells)


class RegionalSearch:
    """Search of the regions of one part, each as if it had every offer for itself.

    Parameters
    ----------
    part : Component
        The whole.
    regions : list[Component]
        Its regions, from `separable_regions`.
    limits : SearchLimits
        Time limit and target gap.
    watch : callable
        Called with plans and bounds of the whole part.
    stop : Stop
        Ends the search at the best plan so far.
    search_part : callable
        Searches a region or the whole, from a known plan and an earlier result.

    Attributes
    ----------
    spent : float
        Work of all searches so far. [solver units]
    """

    def __init__(
        self,
        part: Component,
        regions: list[Component],
        limits: SearchLimits,
        watch: Watcher,
        stop: Stop,
        search_part: SearchPart,
    ) -> None:
        # A verge on the cost of the whole decides nothing about one region.
        self._part, self._regions, self._limits = part, regions, replace(limits, thresholds=None)
        self._verge = limits.thresholds
        self._watch, self._stop, self._search_part = watch, stop, search_part
        self._elsewhere_usd = part.fixed_usd - sum(region.fixed_usd for region in regions)
        self._first: SearchResult | None = None
        # By region: results with every offer for itself, and with what the others leave.
        self._alone: dict[int, SearchResult] = {}
        self._plans: dict[int, SearchResult] = {}
        self._bounds_usd: dict[int, float] = {}
        self._plan_usd: float | None = None
        self._last: Progress | None = None
        self.spent = 0.0

    def run(self, seconds_left: Callable[[], float]) -> SearchResult | None:
        """Search the regions one by one.

        Parameters
        ----------
        seconds_left : callable
            Remaining time. [s]

        Returns
        -------
        SearchResult or None
            Result of the part, whose gap may still be open; None without a plan.
        """
        first = self._first_plan(seconds_left())
        if first.status is SolveStatus.INFEASIBLE or decided(first, self._verge):
            return replace(first, deterministic_time=self.spent)
        if first.solution is not None:
            self._first, self._plan_usd = first, first.objective_usd
        for share in ROUNDS:
            failed = self._search_alone(share, seconds_left)
            if failed is not None:
                return failed if failed.status is SolveStatus.INFEASIBLE else self._result()
            if not self._fit(self._alone):
                self._divide(DIVIDED_SHARE, seconds_left)
                break
            self._plans = dict(self._alone)
            if in_blocks(self._part):
                # From here the block decomposition improves plan and bound more than another search of the
                # regions.
                break
        return self._result()

    def _first_plan(self, left_s: float) -> SearchResult:
        """Find any plan of the whole; it keeps the shared maxima."""
        seconds = min(FIRST_SHARE * left_s, FIRST_LIMIT_S)
        if goal_of(self._part.problem) is not None or self._part.problem.fleet.policy.unmet != "forbid":
            seconds *= STAGES_SHARE
        seconds = max(seconds, LEAST_S)
        limits = replace(self._limits, time_limit_s=seconds, thresholds=ANY_PLAN, simplified=False)
        if not limits.reproducible:
            limits = replace(limits, latest=limits.latest.within(seconds))
        return self._search(self._part, limits, self._watch, None, None)

    def _search_alone(self, share: float, seconds_left: Callable[[], float]) -> SearchResult | None:
        """Search every region with an open gap; return a result if it ends the search, such as no plan."""
        until_s = (1 - share) * seconds_left()
        waiting = [number for number in range(len(self._regions)) if self._is_open(number)]
        for done, number in enumerate(waiting):
            if self._stop.requested and self._first is not None:
                return self._first
            seconds = max((seconds_left() - until_s) / (len(waiting) - done), LEAST_S)
            before = self._alone.get(number)
            found = self._search(
                self._regions[number],
                replace(self._limits, time_limit_s=seconds, slack_usd=self._slack_usd(number)),
                partial(self._tell_bound, number),
                self._share_of(number) if before is None else before.solution,
                before,
            )
            if found.solution is None:
                return replace(found, deterministic_time=self.spent)
            self._alone[number] = min([found, *([] if before is None else [before])], key=_gap)
            if len(self._alone) == len(self._regions) and self._fit(self._alone):
                self._tell_plan(self._alone)
        return None

    def _divide(self, share: float, seconds_left: Callable[[], float]) -> None:
        """Search each region again with what the others leave of the maxima, from the plan of the whole."""
        if self._first is None or not _by_cost_alone(self._first):
            return
        until_s = (1 - share) * seconds_left()
        known = self._first
        used = {number: self._use(number, self._plans.get(number, known)) for number in self._alone}
        wanted = {number: self._use(number, found) for number, found in self._alone.items()}
        scarce = self._passed(wanted.values())
        # First the regions that use no scarce offer: they keep their plans.
        order = sorted(wanted, key=lambda number: bool(scarce & wanted[number].keys()))
        for done, number in enumerate(order):
            others = [used[other] for other in used if other != number]
            found = self._alone[number]
            if self._passed([wanted[number], *others]):
                seconds = max((seconds_left() - until_s) / (len(order) - done), LEAST_S)
                found = self._search(
                    _with_maxima(self._regions[number], self._left_by(others)),
                    replace(self._limits, time_limit_s=seconds, slack_usd=self._slack_usd(number)),
                    lambda _: None,
                    self._plans[number].solution if number in self._plans else self._share_of(number),
                    found,
                )
                if found.solution is None:
                    return
            self._plans[number], used[number] = found, self._use(number, found)
        self._tell_plan(self._plans)

    def _search(
        self,
        component: Component,
        limits: SearchLimits,
        watch: Watcher,
        begin: Solution | None,
        before: SearchResult | None,
    ) -> SearchResult:
        found = self._search_part(component, limits, watch, begin, before)
        self.spent += found.deterministic_time
        return found

    def _share_of(self, number: int) -> Solution | None:
        """Return a region's part of the first plan."""
        if self._first is None or self._first.solution is None:
            return None
        return self._first.solution.of_part(self._regions[number].cell_indices)

    def _slack_usd(self, number: int) -> float:
        """Return how far the regions searched so far stay below the target gap, added up. [USD]"""
        left_usd = self._limits.slack_usd
        for other, found in self._alone.items():
            objective_usd, bound_usd = found.objective_usd or 0.0, found.bound_usd or 0.0
            if other != number:
                left_usd += self._limits.search_gap_ratio * objective_usd - (objective_usd - bound_usd)
        return max(left_usd, 0.0)

    def _is_open(self, number: int) -> bool:
        return number not in self._alone or self._alone[number].status is SolveStatus.LIMIT

    def _use(self, number: int, found: SearchResult) -> Counter[tuple[str, int]]:
        """Count the units of every offer with a maximum that a plan acquires in a region."""
        own, used = self._regions[number].problem, Counter[tuple[str, int]]()
        assert found.solution is not None, "only plans are kept"
        for (p, a, ordered), units in found.solution.acquired.items():
            if own.pools[p].region not in own.regions:
                continue
            acquisition = own.pools[p].acquisitions[a]
            for q, limit in enumerate(acquisition.offer.max_units):
                if limit is not None and acquisition.counts_in(ordered, q):
                    used[acquisition.offer.name, q] += units
        return used

    def _fit(self, found: Mapping[int, SearchResult]) -> bool:
        """Return whether the plans of all regions together keep the maxima of offers."""
        return not self._passed(self._use(number, each) for number, each in found.items())

    def _passed(self, used: Iterable[Use]) -> set[tuple[str, int]]:
        """Return the maxima that the regions' plans exceed together."""
        return {key for key, units in self._left_by(used).items() if units < 0}

    def _left_by(self, used: Iterable[Use]) -> dict[tuple[str, int], int]:
        """Return what the regions' plans leave of every maximum; negative where exceeded."""
        left = {
            (acquisition.offer.name, q): limit
            for pool in self._part.problem.pools
            for acquisition in pool.acquisitions
            for q, limit in enumerate(acquisition.offer.max_units)
            if limit is not None
        }
        for each in used:
            for key, units in each.items():
                left[key] -= units
        return left

    def _result(self) -> SearchResult | None:
        """Return the best plan of the whole with the sum of the regions' bounds."""
        best = self._first
        if len(self._plans) == len(self._regions):
            plans = [
                replace(self._plans[number], bound_usd=alone.bound_usd, bound_source=alone.bound_source)
                for number, alone in sorted(self._alone.items())
            ]
            best = merge_parts(self._regions, plans, self._elsewhere_usd, self._limits, 0.0)
            if best.status is SolveStatus.LIMIT and self._first is not None and _by_cost_alone(self._first):
                best = better_of(self._first, best, self._limits)
        return None if best is None else replace(best, deterministic_time=self.spent)

    def _tell_bound(self, number: int, step: Progress) -> None:
        """Report a region's bound as one of the part, without its plan, which may exceed shared maxima."""
        if step.bound_usd is not None:
            self._bounds_usd[number] = max(step.bound_usd, self._bounds_usd.get(number, -math.inf))
        bound_usd = None if self._first is None else self._first.bound_usd
        if len(self._bounds_usd) == len(self._regions):
            together = self._elsewhere_usd + sum(self._bounds_usd.values())
            bound_usd = together if bound_usd is None else max(together, bound_usd)
        # Regions reach a better goal, at which their bounds may be higher than the cost of this plan.
        bound_usd = bound_usd if _by_cost_alone(self._first) else None
        self._last = replace(step, objective_usd=self._plan_usd, bound_usd=bound_usd, goal=None)
        self._watch(self._last)

    def _tell_plan(self, plans: Mapping[int, SearchResult]) -> None:
        """Report the joint plan of all regions if it is cheaper or reaches a better goal."""
        usd = self._elsewhere_usd + sum(each.objective_usd or 0.0 for each in plans.values())
        cheaper = self._plan_usd is None or usd < self._plan_usd
        if self._last is not None and (cheaper or not _by_cost_alone(self._first)):
            self._plan_usd = usd
            self._watch(replace(self._last, objective_usd=usd))


def _with_maxima(region: Component, left: Mapping[tuple[str, int], int]) -> Component:
    """Return a region with these maxima of offers."""

    def limited(acquisition: Acquisition) -> Acquisition:
        offer = acquisition.offer
        most = tuple(left.get((offer.name, q), limit) for q, limit in enumerate(offer.max_units))
        return replace(acquisition, offer=replace(offer, max_units=most))

    pools = tuple(
        replace(pool, acquisitions=tuple(limited(each) for each in pool.acquisitions))
        if pool.region in region.problem.regions
        else pool
        for pool in region.problem.pools
    )
    return replace(region, problem=replace(region.problem, pools=pools))


def _by_cost_alone(result: SearchResult | None) -> bool:
    """Return whether results like this compare by cost alone: no goal, no unmet demand."""
    return result is None or not (result.goal or result.unmet)


def _gap(found: SearchResult) -> float:
    return open_gap(gap_of_cost(found.objective_usd or 0.0, found.bound_usd or 0.0), found.goal, found.unmet)
