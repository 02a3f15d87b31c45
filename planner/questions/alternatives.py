"""Find plans that cost slightly more than the cheapest and are better in a figure other than cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import supplied_hardware
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_question import FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.reuse import bound_of
from fleetplan.planner.search import CostThresholds

TRANSITION_PRICES: Final = (1e2, 1e3, 1e4)
"""Prices of starting an accelerator, tried in this order to find plans with few changes. [USD]"""

GAP_PART: Final = 0.25
"""Optimality gap of a solve as a share of the allowance."""

FEWEST_UNDECIDED: Final = 2
"""Minimum size of a set of hardware kinds that the solves of single kinds do not already decide."""

ROUNDING_RATIO: Final = 1e-6
"""Relative difference between the cost in the model and in the plan that counts as rounding."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan within the allowance that is better than the given plan in one figure.

    Attributes
    ----------
    name : str
        The figure in which it is best.
    figure : str
        Value of the figure, here and in the given plan.
    plan : Plan or None
        None if no plan within the allowance is better.
    usd : float or None
        TCO without any price added to steer the search. [USD]
    proven : bool
        Whether the figure is proven best within the allowance; otherwise it is the best found.
    """

    name: str
    figure: str
    plan: Plan | None
    usd: float | None
    proven: bool


def alternatives(plan: Plan, fleet: Fleet, within_ratio: float, resolver: Resolver) -> Iterator[Alternative]:
    """Yield alternatives to a plan: fewest hardware kinds, no purchase, nothing new, fewest changes.

    Parameters
    ----------
    plan : Plan
        Plan of the fleet that serves all demand at the lowest TCO.
    fleet : Fleet
        Fleet of the plan.
    within_ratio : float
        Allowance: extra cost of an alternative as a share of the plan's cost.
    resolver : Resolver
        Solves changed fleets; its gap is narrowed to a share of the allowance.
    """
    limits = replace(resolver.limits, gap_ratio=min(resolver.limits.gap_ratio, within_ratio * GAP_PART))
    own = replace(resolver, limits=limits)
    cap_usd = plan.objective_usd + abs(plan.objective_usd) * within_ratio
    yield fewest_kinds(plan, fleet, cap_usd, own)
    if _buys(plan):
        rented = fleet
        for offer in fleet.offers:
            if offer.capex_usd_per_host is not None:
                rented = fleet_edits.maximum_set(rented, offer.name, 0)
        yield _without_offers("no purchase", "bought", rented, plan, cap_usd, own)
    if plan.purchases:
        nothing = fleet
        for offer in fleet.offers:
            nothing = fleet_edits.maximum_set(nothing, offer.name, 0)
        yield _without_offers("nothing new", "bought and rented", nothing, plan, cap_usd, own)
    if plan.transitions:
        yield fewest_changes(plan, fleet, cap_usd, own)


def alternative_count(plan: Plan) -> int:
    """Return the number of alternatives to search for."""
    return 1 + _buys(plan) + bool(plan.purchases) + bool(plan.transitions)


def least_solves(plan: Plan, fleet: Fleet) -> int:
    """Return the minimum number of solves: each single kind of hardware, and each other alternative."""
    single = len(supplied_hardware(fleet)) if len(kinds_of(plan)) > 1 else 1
    return single + alternative_count(plan) - 1


def _buys(plan: Plan) -> bool:
    return any(row.kind == "buy" for row in plan.purchases)


def kinds_of(plan: Plan) -> frozenset[str]:
    """Return the kinds of hardware in a plan."""
    return frozenset(row.hardware for row in plan.placements)


def fewest_kinds(plan: Plan, fleet: Fleet, cap_usd: float, resolver: Resolver) -> Alternative:
    """Find the plan on the fewest kinds of hardware that costs at most a cap.

    Solve single kinds first: they are fast, and one kind is often enough. Then solve larger sets, largest
    first. If a set cannot serve the fleet within the cap, no subset can; if a subset can, so can the set.
    Each solve only decides whether the cost of the set is below or above the cap. A final solve minimises the
    cost of the best set.
    """
    candidates = resolver.candidates(fleet).candidates
    start = frozenset(candidate.hardware for candidate in candidates)
    side = CostThresholds(cap_usd - abs(cap_usd) * ROUNDING_RATIO, math.nextafter(cap_usd, math.inf))
    asked = FleetQuestion(fleet, begin=plan, bound=bound_of(plan, fleet), thresholds=side)
    sets = _Kinds(resolver, asked, cap_usd, plan)
    if len(kinds_of(plan)) > 1:
        sets.ask([frozenset((each,)) for each in start])
    level = {start}
    # The subsets of a pair are single kinds, which are already decided.
    while level and sets.fewest > FEWEST_UNDECIDED:
        open_sets = [kinds for kinds in sorted(level, key=sorted) if not sets.is_beyond(kinds)]
        sets.ask(open_sets)
        level = {
            kinds - {each}
            for kinds in open_sets
            if not sets.is_beyond(kinds) and len(kinds) > FEWEST_UNDECIDED
            for each in kinds
        }
    best_kinds = min(sets.within, key=lambda kinds: (len(kinds), sets.within[kinds].objective_usd))
    best = sets.within[best_kinds]
    proven = sets.proven or len(best_kinds) == 1
    figure = (
        f"{counted(len(best_kinds), 'kind')} ({', '.join(sorted(best_kinds))}), the plan has "
        f"{len(kinds_of(plan))}"
    )
    if len(best_kinds) == len(kinds_of(plan)):
        return Alternative("fewest kinds of hardware", figure, None, None, proven)
    resolver.say(f"the least cost on {', '.join(sorted(best_kinds))}")
    cheapest = resolver.answer(
        replace(asked, change=OnHardwareAlone(best_kinds), begin=best, thresholds=None, shown=True)
    ).plan
    if cheapest is not None and cheapest.objective_usd < best.objective_usd:
        best = cheapest
    return Alternative("fewest kinds of hardware", figure, best, best.objective_usd, proven)


class _Kinds:
    """Sets of hardware kinds, each known to serve the fleet within a cap, beyond it, or undecided.

    Parameters
    ----------
    resolver : Resolver
        Solves changed fleets.
    asked : FleetQuestion
        Question about the fleet on all kinds.
    cap_usd : float
        Cost cap. [USD]
    plan : Plan
        A plan that costs at most the cap.

    Attributes
    ----------
    within : dict[frozenset[str], Plan]
        A plan within the cap for each set of kinds.
    proven : bool
        Whether every set considered beyond the cap is proven to be.
    """

    def __init__(self, resolver: Resolver, asked: FleetQuestion, cap_usd: float, plan: Plan) -> None:
        self._resolver, self._asked, self._cap_usd = resolver, asked, cap_usd
        self.within = {kinds_of(plan): plan}
        self._beyond: list[frozenset[str]] = []
        self.proven = True

    @property
    def fewest(self) -> int:
        """Return the smallest number of kinds of a plan within the cap."""
        return min(map(len, self.within))

    def is_beyond(self, kinds: frozenset[str]) -> bool:
        """Return whether a set is known to cost more than the cap."""
        return any(kinds <= other for other in self._beyond)

    def ask(self, sets: Sequence[frozenset[str]]) -> None:
        """Decide for each undecided set whether it costs more than the cap."""
        unknown = [
            kinds
            for kinds in sorted(sets, key=sorted)
            if not self.is_beyond(kinds) and not any(known <= kinds for known in self.within)
        ]
        for kinds in unknown:
            self._resolver.say(f"on {', '.join(sorted(kinds))} alone")
        asked = [replace(self._asked, change=OnHardwareAlone(kinds)) for kinds in unknown]
        for kinds, answer in zip(unknown, self._resolver.answers(asked), strict=True):
            if answer.plan is None or answer.most_usd > self._cap_usd:
                self._beyond.append(kinds)
                self.proven = self.proven and answer.least_usd > self._cap_usd
            else:
                self.within[kinds_of(answer.plan)] = answer.plan


@dataclass(frozen=True, slots=True)
class OnHardwareAlone:
    """Keeps only candidates on certain kinds of hardware."""

    kinds: frozenset[str]

    def __call__(self, candidate: Candidate) -> Candidate | None:
        """Return the candidate, or None if its hardware is excluded."""
        return candidate if candidate.hardware in self.kinds else None


def _without_offers(
    name: str, verb: str, fleet: Fleet, plan: Plan, cap_usd: float, resolver: Resolver
) -> Alternative:
    """Return the plan of a fleet with fewer offers, if it costs at most a cap."""
    resolver.say(name)
    # Its plans are also plans of the fleet with all offers, at the same cost. A solve ends once the cost is
    # proven to exceed the cap.
    beyond = CostThresholds(-math.inf, math.nextafter(cap_usd, math.inf))
    answer = resolver.answer(FleetQuestion(fleet, begin=plan, bound=bound_of(plan, fleet), thresholds=beyond))
    now = sum(row.accelerators for row in plan.purchases if verb != "bought" or row.kind == "buy")
    proven = answer.plan is not None or answer.infeasible or answer.least_usd > cap_usd
    if answer.plan is None or answer.most_usd > cap_usd:
        what = "there is no plan without them" if answer.infeasible else "beyond the allowance"
        return Alternative(
            name, f"the plan has {counted(now, 'accelerator')} {verb}; {what}", None, None, proven
        )
    figure = f"no accelerators {verb}, the plan has {now}"
    return Alternative(name, figure, answer.plan, answer.plan.objective_usd, True)


def started_accelerators(plan: Plan) -> int:
    """Return the accelerators that start to run a different configuration than in the period before."""
    return sum(max(0, row.accelerators) for row in plan.transitions)


def fewest_changes(plan: Plan, fleet: Fleet, cap_usd: float, resolver: Resolver) -> Alternative:
    """Return the plan with the fewest starting accelerators found below a cap.

    Raise the price of a start step by step. This finds plans with few changes, but not all of them.
    """
    resolver.say("fewest changes")
    best, best_usd, fewest = plan, plan.objective_usd, started_accelerators(plan)
    price = fleet.policy.transition_usd_per_accelerator
    for added in TRANSITION_PRICES:
        dearer = replace(fleet.policy, transition_usd_per_accelerator=price + added)
        answer = resolver.answer(FleetQuestion(replace(fleet, policy=dearer), begin=best))
        if answer.plan is None:
            continue
        count = started_accelerators(answer.plan)
        stated = answer.plan.cost_breakdown.get("transition", 0.0)
        usd = answer.plan.objective_usd - stated * added / (price + added)
        if usd <= cap_usd and count < fewest:
            best, best_usd, fewest = answer.plan, usd, count
    better = best is not plan
    figure = f"{counted(fewest, 'accelerator', 'start')}, in the plan {started_accelerators(plan)}"
    return Alternative(
        "fewest changes", figure, best if better else None, best_usd if better else None, False
    )
