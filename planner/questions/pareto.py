"""Trace the Pareto frontier of TCO against energy, carbon, accelerators, latency or headroom."""

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
from fleetplan.planner.questions.reuse import bound_of

ALLOWANCES: Final = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Allowances above the TCO of the plan, as shares of it, one point each."""

ROUNDING: Final = 1e-6
"""Tolerance on caps: the model rounds costs, and a plan must fit a cap at its own TCO."""

LATENCY_RATIOS: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Factors on the latency limits of all services, one point each."""

HEADROOMS_MORE: Final = (0.0, 0.05, 0.1, 0.2, 0.3)
"""Increases of the headroom of all services, one point each."""

MINIMISED: Final = ("energy", "carbon", "accelerators")
"""Figures minimised below a cap on TCO; for the others, TCO is minimised at a given value."""

AGAINST: Final = (*MINIMISED, "latency", "headroom")
"""All figures that can be compared with TCO."""


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A point of the frontier.

    Attributes
    ----------
    asked : str
        Constraint of the point.
    usd, bound_usd : float or None
        TCO of the plan, and its lower bound; None without a plan, the bound also if the plan comes from
        another point. [USD]
    value : float or None
        Value of the other figure.
    unit : str
        Unit of the figure.
    proven_value : float or None
        Lower bound on the figure within the cap, if it is minimised.
    """

    asked: str
    usd: float | None
    bound_usd: float | None
    value: float | None
    unit: str
    proven_value: float | None = None


def pareto(plan: Plan, fleet: Fleet, against: str, resolver: Resolver) -> Iterator[ParetoPoint]:
    """Yield the plans along a frontier, one per point, as soon as they are solved.

    Parameters
    ----------
    plan : Plan
        Plan of the fleet that serves all demand at the lowest TCO.
    fleet : Fleet
        Fleet of the plan.
    against : str
        One of `AGAINST`.
    resolver : Resolver
        Solves changed fleets, one per point.

    Raises
    ------
    InputError
        The figure does not exist, or the fleet lacks its inputs.
    """
    if against in MINIMISED:
        return _minimised(plan, fleet, against, resolver)
    ratios = LATENCY_RATIOS if against == "latency" else HEADROOMS_MORE
    return _asked_for(plan, fleet, against, ratios, resolver)


def require_figures(fleet: Fleet, against: str) -> None:
    """Raise an error for an unknown figure, energy without power figures, and carbon without grid data.

    Raises
    ------
    InputError
        The figure does not exist, or the fleet lacks its inputs.
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
    """Return the number of points of a frontier."""
    counts = {"latency": len(LATENCY_RATIOS), "headroom": len(HEADROOMS_MORE)}
    return counts.get(against, len(ALLOWANCES))


def _minimised(plan: Plan, fleet: Fleet, against: str, resolver: Resolver) -> Iterator[ParetoPoint]:
    """Start each search from the best earlier plan, or from the given plan if points run in parallel.

    The plan's lower bound on TCO holds below every cap, so a TCO near it needs no search.
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
            # Caps increase, so the best plan of the earlier points is within this cap too.
            point = replace(point, usd=known[-1].objective_usd, bound_usd=None, value=best)
        elif answer.plan is not None:
            known.append(answer.plan)
        yield point


def known_from_later(points: Sequence[ParetoPoint], against: str) -> list[ParetoPoint]:
    """Return the points, improved by plans of later points.

    Parameters
    ----------
    points : Sequence[ParetoPoint]
        Points in the order of their solves, each within the requested gap.
    against : str
        Figure of the points. A plan that costs no more than that of an earlier point is within its cap. One
        with more headroom or tighter limits satisfies the constraint of an earlier point. A bound on all
        plans within a cap also holds within an earlier, lower cap.
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
    """Return whether a cheaper point has no higher figure, and differs by more than rounding."""
    if one.usd is None or other.usd is None or one.value is None or other.value is None:
        return False
    same = isclose(one.usd, other.usd, rel_tol=ROUNDING) and isclose(one.value, other.value, rel_tol=ROUNDING)
    return one.value <= other.value and not same


def _capped(plan: Plan, fleet: Fleet, against: str, allowance: float) -> Fleet:
    """Return the fleet with another objective below a cap on TCO."""
    # TCO is negative if sales of hosts exceed all costs.
    cap_usd = plan.objective_usd + abs(plan.objective_usd) * (allowance + ROUNDING)
    limit = fleet.budget.tco_usd
    budget = replace(fleet.budget, tco_usd=cap_usd if limit is None else min(limit, cap_usd))
    # A regret objective would take precedence over the figure.
    return replace(fleet, objective=against, demand_objective="expected-cost", budget=budget)


def _figure(problem: Problem, plan: Plan, against: str) -> float | None:
    """Return the figure of a plan, or None if a configuration of the plan is unknown to the problem."""
    if any(find_candidate(problem, row) is None for row in plan.placements):
        return None
    return figure_of(problem, against, plan.placements, plan.pools)


def _asked_for(
    plan: Plan, fleet: Fleet, against: str, ratios: Sequence[float], resolver: Resolver
) -> Iterator[ParetoPoint]:
    """Yield points that minimise TCO at given values, each tighter than the one before.

    Plans of a point are feasible for the point before, so its lower bound applies. If points run in parallel,
    the bound of the given plan applies.
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
    """Return the start of the next search and its lower bound, from the answer of a looser point."""
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
    """Return one row per point. [USD; unit of the figure]"""
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
