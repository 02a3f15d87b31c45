"""What another figure costs: plans along the frontier of TCO against energy, carbon, latency or headroom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose
from typing import Final

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.assemble import figure_of
from fleetplan.planner.formulation import UNITS
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import KnownBound, Problem, find_candidate
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_question import FleetAnswer, FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.taken_over import bound_of

ALLOWANCES: Final = (0.0, 0.01, 0.02, 0.05, 0.1)
"""What the TCO may be above that of the plan, as a share of it, one point each."""

ROUNDING: Final = 1e-6
"""The model rounds costs: at its own TCO a plan still has to fit."""

LATENCY_RATIOS: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Latency limits of all services over what they are, one point each."""

HEADROOMS_MORE: Final = (0.0, 0.05, 0.1, 0.2, 0.3)
"""Headroom of all services above what it is, one point each."""

MINIMISED: Final = ("energy", "carbon", "accelerators")
"""Figures that are minimised below a cap on TCO; of the others a value is asked and TCO minimised."""

AGAINST: Final = (*MINIMISED, "latency", "headroom")
"""All figures that TCO is held against."""


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A point of the frontier.

    Attributes
    ----------
    asked : str
        What was asked for.
    usd, bound_usd : float or None
        TCO of the plan, and what none costs less that is as good; None where there is no plan, the bound
        also where a plan of an earlier point is the best one that is known. [USD]
    value : float or None
        The other figure.
    unit : str
        Of the figure.
    proven_value : float or None
        What no plan within the cap is below, where the figure is minimised.
    """

    asked: str
    usd: float | None
    bound_usd: float | None
    value: float | None
    unit: str
    proven_value: float | None = None


def pareto(plan: Plan, fleet: Fleet, against: str, resolver: Resolver) -> Iterator[ParetoPoint]:
    """Yield plans along a frontier, one a point, as they are solved.

    Parameters
    ----------
    plan : Plan
        Of the fleet; serves everything at the least TCO.
    fleet : Fleet
        What it was made for.
    against : str
        One of `AGAINST`.
    resolver : Resolver
        Solves, once a point.

    Raises
    ------
    InputError
        If there is no such figure, or the fleet lacks what it is made of.
    """
    if against in MINIMISED:
        return _minimised(plan, fleet, against, resolver)
    ratios = LATENCY_RATIOS if against == "latency" else HEADROOMS_MORE
    return _asked_for(plan, fleet, against, ratios, resolver)


def require_figures(fleet: Fleet, against: str) -> None:
    """Refuse what is no figure of a plan, energy without power figures, and carbon without the grid's.

    Raises
    ------
    InputError
        If there is no such figure, or the fleet lacks what it is made of.
    """
    if against not in AGAINST:
        hint = names_hint(against, AGAINST)
        raise InputError([Issue(f"--against {against}", 0, 0, "", "is not a figure of a plan", hint)])
    issues = []
    if against in ("energy", "carbon"):
        for hardware in fleet.hardware.values():
            if hardware.power_w_per_accelerator is None:
                key, hint = f"hardware.{hardware.name}.all_in_w", f"{against} counts it"
                issues.append(Issue(str(fleet.path), 0, 0, key, "is missing", hint))
    if against == "carbon":
        for region in fleet.regions:
            if region.grid_kg_co2_per_kwh is None:
                key = f"regions.{region.name}.grid_kg_co2_per_kwh"
                issues.append(Issue(str(fleet.path), 0, 0, key, "is missing", "carbon counts it"))
    if against == "latency" and not any(_has_limits(service) for service in fleet.services):
        message, hint = "no service has a latency limit that could be tighter", "give one in services.*.slo"
        issues.append(Issue(str(fleet.path), 0, 0, "services", message, hint))
    if issues:
        raise InputError(issues)


def _has_limits(service: Service) -> bool:
    under_load = service.traffic is not None and bool(service.traffic.ttft or service.traffic.tpot)
    return under_load or service.ttft_ms is not None or service.tpot_ms is not None


def point_count(against: str) -> int:
    """Points of a frontier."""
    counts = {"latency": len(LATENCY_RATIOS), "headroom": len(HEADROOMS_MORE)}
    return counts.get(against, len(ALLOWANCES))


def _minimised(plan: Plan, fleet: Fleet, against: str, resolver: Resolver) -> Iterator[ParetoPoint]:
    """Each search begins with the best plan before it, or with the plan where points are not to wait.

    No plan below a cap costs less than the plan's lower bound: where that is near, its TCO is not searched.
    """
    known = [plan]
    bound = bound_of(plan, fleet)
    asked = [
        FleetQuestion(_capped(plan, fleet, against, more), begin=plan, bound=bound) for more in ALLOWANCES
    ]
    apart = resolver.side_by_side or resolver.limits.reproducible
    answers = resolver.answers(asked) if apart else iter(())
    for allowance, question in zip(ALLOWANCES, asked, strict=True):
        answer = next(answers) if apart else resolver.answer(replace(question, begin=known[-1]))
        point = _point(f"TCO up to {allowance:+.0%}", answer, UNITS[against])
        if answer.plan is not None and answer.plan.goal is not None:
            goal = answer.plan.goal
            point = replace(point, value=goal.value, proven_value=goal.bound)
        best = _figure(answer.problem, known[-1], against)
        if best is not None and (point.value is None or best < point.value):
            # Caps rise, so the best plan of the points before is within this one too.
            point = replace(point, usd=known[-1].objective_usd, bound_usd=None, value=best)
        elif answer.plan is not None:
            known.append(answer.plan)
        yield point


def known_from_later(points: Sequence[ParetoPoint], against: str) -> list[ParetoPoint]:
    """Return the points with what plans of later ones do better.

    Parameters
    ----------
    points : Sequence[ParetoPoint]
        In the order in which they are solved, each within the asked gap.
    against : str
        Their figure. A plan that costs no more than that of an earlier point is within its cap. One with more
        headroom or tighter limits keeps what an earlier point asks for. What is proven of all plans within a
        cap holds for those within an earlier, lower one.
    """
    found: list[ParetoPoint] = []
    best: ParetoPoint | None = None
    proven = -inf
    for solved in reversed(points):
        point = solved
        if solved.proven_value is not None:
            proven = max(proven, solved.proven_value)
            point = replace(solved, proven_value=proven)
        known = point
        if best is not None and best.usd is not None and (point.usd is None or best.usd < point.usd):
            if against not in MINIMISED:
                known = replace(point, usd=best.usd)
            elif _is_better(best, point):
                known = replace(point, usd=best.usd, value=best.value, bound_usd=None)
        best = best if known.usd is None else known
        found.append(known)
    return found[::-1]


def _is_better(one: ParetoPoint, other: ParetoPoint) -> bool:
    """Whether a point of less TCO has no more of the other figure, and is not the same but for rounding."""
    if one.usd is None or other.usd is None or one.value is None or other.value is None:
        return False
    same = isclose(one.usd, other.usd, rel_tol=ROUNDING) and isclose(one.value, other.value, rel_tol=ROUNDING)
    return one.value <= other.value and not same


def _capped(plan: Plan, fleet: Fleet, against: str, allowance: float) -> Fleet:
    """The fleet with another figure to minimise, below a cap on TCO."""
    # Where sales of hosts bring more than all else costs, a TCO is below zero.
    cap_usd = plan.objective_usd + abs(plan.objective_usd) * (allowance + ROUNDING)
    limit = fleet.budget.tco_usd
    budget = replace(fleet.budget, tco_usd=cap_usd if limit is None else min(limit, cap_usd))
    # A regret would come before the figure.
    return replace(fleet, objective=against, demand_objective="expected-cost", budget=budget)


def _figure(problem: Problem, plan: Plan, against: str) -> float | None:
    """What a plan has of a figure; None where it runs a configuration that is none of the problem."""
    if any(find_candidate(problem, row) is None for row in plan.placements):
        return None
    return figure_of(problem, against, plan.placements, plan.pools)


def _asked_for(
    plan: Plan, fleet: Fleet, against: str, ratios: Sequence[float], resolver: Resolver
) -> Iterator[ParetoPoint]:
    """Points at which a value is asked for and TCO minimised, each tighter than the one before.

    The plans of a point are among those of the point before, whose lower bound is one of theirs. Where points
    are not to wait, it is that of the plan.
    """
    edit: Callable[[Fleet, float], Fleet] = _with_headroom
    text, unit = "headroom {:+.0%} of demand", "of demand"
    if against == "latency":
        edit, text, unit = fleet_edits.latency_limits_scaled, "latency limits times {:g}", "of today's"
    before, bound = plan, bound_of(plan, fleet)
    asked = [FleetQuestion(edit(fleet, ratio), begin=plan, bound=bound) for ratio in ratios]
    apart = resolver.side_by_side or resolver.limits.reproducible
    answers = resolver.answers(asked) if apart else iter(())
    for ratio, question in zip(ratios, asked, strict=True):
        if apart:
            answer = next(answers)
        else:
            answer = resolver.answer(replace(question, begin=before, bound=bound))
            before, bound = _tighter(answer, fleet, before, bound)
        yield replace(_point(text.format(ratio), answer, unit), value=ratio)


def _tighter(
    answer: FleetAnswer, fleet: Fleet, before: Plan, bound: KnownBound | None
) -> tuple[Plan, KnownBound | None]:
    """Where a search among some plans of a point begins, and what none of them costs less than."""
    if answer.plan is None:
        return before, bound
    own = bound_of(answer.plan, fleet)
    return answer.plan, bound if own is None or (bound is not None and bound.usd >= own.usd) else own


def _with_headroom(fleet: Fleet, more: float) -> Fleet:
    services = tuple(replace(each, headroom=each.headroom + more) for each in fleet.services)
    return replace(fleet, services=services)


def _point(asked: str, answer: FleetAnswer, unit: str) -> ParetoPoint:
    if answer.plan is None:
        return ParetoPoint(asked, None, None, None, unit)
    return ParetoPoint(asked, answer.plan.objective_usd, answer.plan.bound_usd, None, unit)


def pareto_table(points: Sequence[ParetoPoint]) -> pd.DataFrame:
    """One row a point. [USD; unit of the figure]"""
    return pd.DataFrame(
        [
            {
                "asked": point.asked,
                "tco_usd": point.usd,
                "tco_bound_usd": point.bound_usd,
                "value": point.value,
                "proven_value": point.proven_value,
                "unit": point.unit,
            }
            for point in points
        ]
    )
