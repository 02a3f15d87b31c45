"""Plans that cost a little more than the cheapest and are better at something that cost does not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.resolving import FleetAnswer, Resolver

TRANSITION_PRICES: Final = (1e2, 1e3, 1e4)
"""What starting an accelerator is made to cost, step by step, in the search for few changes. [USD]"""

GAP_PART: Final = 0.25
"""Part of the allowance that a solve may leave open."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan within the allowance.

    Attributes
    ----------
    name : str
        What it is best at.
    figure : str
        How good it is at that, and how good the plan is.
    plan : Plan or None
        None where no plan within the allowance is better at it.
    usd : float or None
        Its TCO, whatever was added to find it taken out. [USD]
    proven : bool
        Whether no plan within the allowance is better at it; else it is the best that was found.
    """

    name: str
    figure: str
    plan: Plan | None
    usd: float | None
    proven: bool


def alternatives(plan: Plan, fleet: Fleet, within_ratio: float, resolver: Resolver) -> Iterator[Alternative]:
    """Alternatives to a plan: fewest hardware kinds, no purchase, nothing new, fewest changes.

    Parameters
    ----------
    plan : Plan
        Of the fleet; serves everything at the least TCO.
    fleet : Fleet
        What it was made for.
    within_ratio : float
        What an alternative may cost more than the plan, as a share of it.
    resolver : Resolver
        Solves; its gap is narrowed to a part of the allowance.
    """
    limits = replace(resolver.limits, gap_ratio=min(resolver.limits.gap_ratio, within_ratio * GAP_PART))
    own = replace(resolver, limits=limits)
    cap_usd = plan.objective_usd * (1 + within_ratio)
    yield fewest_kinds(plan, fleet, cap_usd, own)
    if any(row.kind == "buy" for row in plan.purchases):
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


def kinds_of(plan: Plan) -> frozenset[str]:
    """Hardware that a plan runs on."""
    return frozenset(row.hardware for row in plan.placements)


def fewest_kinds(plan: Plan, fleet: Fleet, cap_usd: float, resolver: Resolver) -> Alternative:
    """The plan on the fewest kinds of hardware that costs no more than a cap.

    Sets of kinds are tried from the largest down; what a set cannot serve within the cap, no part of it can.
    """
    candidates = resolver.candidates(fleet).candidates
    start = frozenset(candidate.hardware for candidate in candidates)
    level, proven = {start}, True
    best, best_kinds = plan, kinds_of(plan)
    beyond: list[frozenset[str]] = []
    while level:
        smaller: set[frozenset[str]] = set()
        for kinds in sorted(level, key=sorted):
            if kinds != start:
                if not _may_fit(kinds, beyond):
                    continue
                resolver.say(f"on {', '.join(sorted(kinds))} alone")
                answer = _on_kinds(kinds, fleet, resolver)
                if answer.plan is None or answer.most_usd > cap_usd:
                    beyond.append(kinds)
                    proven = proven and answer.least_usd > cap_usd
                    continue
                found = kinds_of(answer.plan)
                if (len(found), answer.most_usd) < (len(best_kinds), best.objective_usd):
                    best, best_kinds = answer.plan, found
            smaller |= {kinds - {each} for each in kinds if len(kinds) > 1}
        level = smaller
    figure = f"{len(best_kinds)} kinds ({', '.join(sorted(best_kinds))}), the plan has {len(kinds_of(plan))}"
    better = len(best_kinds) < len(kinds_of(plan))
    return Alternative(
        "fewest kinds of hardware",
        figure,
        best if better else None,
        best.objective_usd if better else None,
        proven,
    )


def _may_fit(kinds: frozenset[str], beyond: list[frozenset[str]]) -> bool:
    """Whether no larger set is beyond the cap."""
    return not any(kinds <= other for other in beyond)


def _on_kinds(kinds: frozenset[str], fleet: Fleet, resolver: Resolver) -> FleetAnswer:
    return resolver.solve(fleet, lambda candidate: candidate if candidate.hardware in kinds else None)


def _without_offers(
    name: str, verb: str, fleet: Fleet, plan: Plan, cap_usd: float, resolver: Resolver
) -> Alternative:
    """The plan of a fleet whose offers are cut, if it costs no more than a cap."""
    resolver.say(name)
    answer = resolver.solve(fleet)
    now = sum(row.accelerators for row in plan.purchases if verb != "bought" or row.kind == "buy")
    proven = answer.plan is not None or answer.infeasible or answer.least_usd > cap_usd
    if answer.plan is None or answer.most_usd > cap_usd:
        what = "infeasible" if answer.infeasible else "beyond the allowance"
        return Alternative(name, f"{what}; the plan has {now} accelerators {verb}", None, None, proven)
    figure = f"no accelerators {verb}, the plan has {now}"
    return Alternative(name, figure, answer.plan, answer.plan.objective_usd, True)


def started_accelerators(plan: Plan) -> int:
    """Accelerators that begin to run something else than in the period before."""
    return sum(max(0, row.accelerators) for row in plan.transitions)


def fewest_changes(plan: Plan, fleet: Fleet, cap_usd: float, resolver: Resolver) -> Alternative:
    """The plan with the fewest accelerators that start which was found below a cap.

    Starting an accelerator is made dearer step by step; that finds plans with few changes, not each of them.
    """
    resolver.say("fewest changes")
    best, best_usd, fewest = plan, plan.objective_usd, started_accelerators(plan)
    price = fleet.policy.transition_usd_per_accelerator
    for added in TRANSITION_PRICES:
        dearer = replace(fleet.policy, transition_usd_per_accelerator=price + added)
        answer = resolver.solve(replace(fleet, policy=dearer))
        if answer.plan is None:
            continue
        count = started_accelerators(answer.plan)
        stated = answer.plan.cost_breakdown.get("transition", 0.0)
        usd = answer.plan.objective_usd - stated * added / (price + added)
        if usd <= cap_usd and count < fewest:
            best, best_usd, fewest = answer.plan, usd, count
    better = best is not plan
    figure = f"{fewest} accelerators start, in the plan {started_accelerators(plan)}"
    return Alternative(
        "fewest changes", figure, best if better else None, best_usd if better else None, False
    )
