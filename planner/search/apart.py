"""Regions that share nothing but maxima of offers, searched one by one as if each had every offer for itself.

That is a relaxation: the bounds of the regions add up to one of the whole, and so do their plans where these
keep the maxima together, which most fleets do. Three regions of some hundred variables are solved in a
fraction of the time of the whole (benchmarks/RESULTS.md). All of them begin with a first plan of the whole.
Where their plans take more of an offer than there is, each is searched once more with what the others leave.
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
    Progress,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Verge,
    Watcher,
    decided,
    open_gap,
)
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.units import gap_of_cost

VARIABLES_A_SLOT: Final = 3
"""Variables of a model for each configuration in a pool in a moment: 3.0 of quarterly.yaml and its year, 3.1
of a fleet of twelve services."""

LARGE_REGION_VARIABLES: Final = 1200
"""Variables of a region from which on blocks of the whole do better than its search: regions of 570 end at a
third of the gap of the whole, those of 1,170 at about the same one, those of 2,300 at two to three times it
(benchmarks/RESULTS.md)."""

FIRST_SHARE, FIRST_LIMIT_S = 0.3, 15.0
"""Share of the time that a first plan of the whole may take, and at most. [s]"""

STAGES_SHARE: Final = 0.3
"""Share of that where other stages come before cost, which any plan does not end."""

ROUNDS: Final = (0.5, 1.0)
"""Shares of the time that is left for a search of all regions, and for one more, from their plans, of those
that are still open."""

DIVIDED_SHARE: Final = 0.4
"""Share of the time that is left for a search of all regions with what the others leave of the maxima."""

ANY_PLAN: Final = Verge(below_usd=math.inf, above_usd=math.inf)
"""Whatever a plan costs, it ends the search."""

Use = Mapping[tuple[str, int], int]
"""Units of each offer that count against its maximum of a period."""

SearchPart = Callable[[Component, SearchLimits, Watcher, Solution | None, SearchResult | None], SearchResult]
"""Searches a part within limits, tells a watcher, and begins with a plan and with what was proven before."""


def regions_apart(part: Component) -> list[Component]:
    """The regions of a part that share maxima of offers alone, the smallest first; none if it is one."""
    found = components(part.problem, maxima=False)
    most = min(LARGE_REGION_VARIABLES if in_blocks(part) else math.inf, blocks.LEAST_VARIABLES)
    if len(found) < 2 or any(VARIABLES_A_SLOT * _slots(each) >= most for each in found):
        return []
    return sorted(found, key=_slots)


def in_blocks(part: Component) -> bool:
    """Whether the model of a part is about large enough to be solved in blocks."""
    return VARIABLES_A_SLOT * _slots(part) >= blocks.LEAST_VARIABLES


def _slots(part: Component) -> int:
    """Configurations in a pool in a moment that may serve something."""
    return sum(len(part.problem.slots(cell)) for cell in part.problem.cells)


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
    stop : Stop
        Ends the search at its best plan.
    search_part : callable
        Searches one of them, or the whole, from a plan and a proof that are known.

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
        stop: Stop,
        search_part: SearchPart,
    ) -> None:
        # What has to be known of all says little of one.
        self._part, self._regions, self._limits = part, regions, replace(limits, verge=None)
        self._verge = limits.verge
        self._watch, self._stop, self._search_part = watch, stop, search_part
        self._elsewhere_usd = part.fixed_usd - sum(region.fixed_usd for region in regions)
        self._first: SearchResult | None = None
        # Of each region as if it had every offer for itself, and with what the others leave.
        self._alone: dict[int, SearchResult] = {}
        self._plans: dict[int, SearchResult] = {}
        self._bounds_usd: dict[int, float] = {}
        self._plan_usd: float | None = None
        self._last: Progress | None = None
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
            Of the part, whose gap may be open; None without a plan.
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
                # Blocks make more of the plan and the bound than regions that are searched once more.
                break
        return self._result()

    def _first_plan(self, left_s: float) -> SearchResult:
        """Any plan of the whole, which keeps the maxima."""
        seconds = min(FIRST_SHARE * left_s, FIRST_LIMIT_S)
        if goal_of(self._part.problem) is not None or self._part.problem.fleet.policy.unmet != "forbid":
            seconds *= STAGES_SHARE
        seconds = max(seconds, LEAST_S)
        limits = replace(self._limits, time_limit_s=seconds, verge=ANY_PLAN, simplified=False)
        if not limits.reproducible:
            limits = replace(limits, latest=limits.latest.within(seconds))
        return self._search(self._part, limits, self._watch, None, None)

    def _search_alone(self, share: float, seconds_left: Callable[[], float]) -> SearchResult | None:
        """Search every region that is open; what ends this, such as a region that has no plan."""
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
        """Search every region with what the others leave of the maxima, from the plan of the whole."""
        if self._first is None or not _by_cost_alone(self._first):
            return
        until_s = (1 - share) * seconds_left()
        known = self._first
        used = {number: self._use(number, self._plans.get(number, known)) for number in self._alone}
        wanted = {number: self._use(number, found) for number, found in self._alone.items()}
        scarce = self._passed(wanted.values())
        # Those that want nothing of what is scarce have it.
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
        """What a region does in the first plan."""
        if self._first is None or self._first.solution is None:
            return None
        return self._first.solution.of_part(self._regions[number].cell_indices)

    def _slack_usd(self, number: int) -> float:
        """What regions that are searched already leave of their gaps. [USD]"""
        left_usd = self._limits.slack_usd
        for other, found in self._alone.items():
            objective_usd, bound_usd = found.objective_usd or 0.0, found.bound_usd or 0.0
            if other != number:
                left_usd += self._limits.search_gap_ratio * objective_usd - (objective_usd - bound_usd)
        return max(left_usd, 0.0)

    def _is_open(self, number: int) -> bool:
        return number not in self._alone or self._alone[number].status is SolveStatus.LIMIT

    def _use(self, number: int, found: SearchResult) -> Counter[tuple[str, int]]:
        """What a region takes in a plan, of itself or of the whole, of every offer with a maximum."""
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
        """Whether there is as much of every offer as the regions take together."""
        return not self._passed(self._use(number, each) for number, each in found.items())

    def _passed(self, used: Iterable[Use]) -> set[tuple[str, int]]:
        """Maxima that regions pass together."""
        return {key for key, units in self._left_by(used).items() if units < 0}

    def _left_by(self, used: Iterable[Use]) -> dict[tuple[str, int], int]:
        """What regions leave of every maximum."""
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
        """The best plan of the whole, with the bounds of all regions."""
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
        """Tell of the part what is known of it: its plan may not have what a region decides alone."""
        if step.bound_usd is not None:
            self._bounds_usd[number] = max(step.bound_usd, self._bounds_usd.get(number, -math.inf))
        bound_usd = None if self._first is None else self._first.bound_usd
        if len(self._bounds_usd) == len(self._regions):
            together = self._elsewhere_usd + sum(self._bounds_usd.values())
            bound_usd = together if bound_usd is None else max(together, bound_usd)
        self._last = replace(step, objective_usd=self._plan_usd, bound_usd=bound_usd)
        self._watch(self._last)

    def _tell_plan(self, plans: Mapping[int, SearchResult]) -> None:
        """Tell of the plans of all regions together."""
        usd = self._elsewhere_usd + sum(each.objective_usd or 0.0 for each in plans.values())
        if self._last is not None and (self._plan_usd is None or usd < self._plan_usd):
            self._plan_usd = usd
            self._watch(replace(self._last, objective_usd=usd))


def _with_maxima(region: Component, left: Mapping[tuple[str, int], int]) -> Component:
    """A region that may take so much of every offer."""

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


def _by_cost_alone(result: SearchResult) -> bool:
    """Whether a plan serves everything, at the least cost: costs then tell which of two is better."""
    return result.goal is None and not result.unmet


def _gap(result: SearchResult) -> float:
    cost_gap = gap_of_cost(result.objective_usd or 0.0, result.bound_usd or 0.0)
    return open_gap(cost_gap, result.goal, result.unmet)
