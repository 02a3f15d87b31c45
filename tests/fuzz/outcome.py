"""Outcome of a random fleet, as figures in order of minimisation, and the check of a law."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fleetplan.planner.api import NoPlanFoundError, Purpose, prepare, prepare_within, solve_problem
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.formulation.constraints.placement import max_share
from fleetplan.planner.formulation.objective.tco import load_usd
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet
from tests.fuzz.law import Law
from tests.oracles.independent.planned import unmet_by_priority

PLAN, INFEASIBLE, NO_PLAN = "plan", "infeasible", "no plan"
COST, REGRET = "cost", "least-regret"
MEANS = ("served", "accelerators")
"""Goals that are means of the periods."""

RELATIVE_TOLERANCE = 1e-5
"""Of every figure: the planner takes unmet demand and goals within this share for equals."""

TRAFFIC_TOLERANCE = 1e-4
"""Of energy and data in a cost: the planner bills whole load units (planner/FORMULATION.md, Integers)."""

ABSOLUTE_TOLERANCE = 1e-3
"""Of figures near zero, in their unit."""


class Solves(Protocol):
    """Limits of a solve."""

    time_limit_s: float
    gap_ratio: float
    workers: int
    explain: bool


@dataclass(frozen=True)
class OutcomeFigure:
    """Minimised figure: `value` is reached, and no plan is below `bound`."""

    name: str
    value: float
    bound: float


@dataclass(frozen=True)
class Outcome:
    """A plan with its figures, or the reason that there is none."""

    kind: str
    wall_s: float
    figures: tuple[OutcomeFigure, ...] = ()
    plan: Plan | Infeasible | None = None
    rounding_usd: float = 0.0
    """What whole load units may cost."""
    prepared: tuple[CandidateSet, Problem] | None = None
    """What a plan was searched in."""


def solved(path: Path, solves: Solves, baseline: Plan | None = None) -> Outcome:
    """Plan a fleet file; exceptions are the planner's own."""
    fleet = load_fleet(path)
    limits = SearchLimits(solves.time_limit_s, solves.gap_ratio, workers=solves.workers)
    started = time.monotonic()
    try:
        candidates, problem, limits = prepare_within(
            limits, lambda late: prepare(fleet, lambda _: None, baseline, late)
        )
        purpose = Purpose.ANSWER if solves.explain else Purpose.STEP
        found = solve_problem(candidates, problem, limits, None, lambda _: None, purpose).outcome
    except NoPlanFoundError:
        return Outcome(NO_PLAN, time.monotonic() - started)
    wall_s = time.monotonic() - started
    if isinstance(found, Infeasible):
        return Outcome(INFEASIBLE, wall_s, plan=found)
    gaps = {each.priority: each.gap for each in found.unmet_gaps}
    # What `served` leaves unmet is its goal, not a figure before it.
    unmet = {} if fleet.objective == "served" else unmet_by_priority(found, fleet)
    figures = [
        OutcomeFigure(f"unmet of priority {priority}", value, value * (1 - gaps.get(priority, 0.0)))
        for priority, value in sorted(unmet.items())
    ]
    if found.goal is not None:
        sign = -1.0 if found.goal.objective == "served" else 1.0
        value = found.goal.value
        if found.goal.objective == REGRET:
            # Counted from the best plan that was found for each scenario, which may not be the best there is.
            value = max(row.regret_at_most_usd or 0.0 for row in found.demand_scenarios)
        figures.append(OutcomeFigure(found.goal.objective, sign * value, sign * found.goal.bound))
    figures.append(OutcomeFigure(COST, found.objective_usd, found.bound_usd))
    return Outcome(PLAN, wall_s, tuple(figures), found, _rounding_usd(found, problem), (candidates, problem))


def _rounding_usd(plan: Plan, problem: Problem) -> float:
    """Return the cost by which rounding to whole load units may change a plan. [USD]

    Where the share of a pool is limited, each of its loads may serve a unit more than that, and what a unit
    costs elsewhere is saved.
    """
    traffic_usd = sum(plan.cost_breakdown.get(kind, 0.0) for kind in ("energy", "data"))
    loads: Counter[tuple[str, int, int]] = Counter()
    dearest_usd: dict[tuple[str, int], float] = defaultdict(float)
    for i, cell in enumerate(problem.cells):
        for c, p in problem.slots(cell):
            if max_share(problem, p) is not None:
                loads[cell.service, cell.moment, p] += len(cell.requests_per_s)
            units_usd = (load_usd(problem, (c, k, p, i)) for k in range(len(cell.requests_per_s)))
            dearest_usd[cell.service, cell.moment] = max(dearest_usd[cell.service, cell.moment], *units_usd)
    most: dict[tuple[str, int], int] = defaultdict(int)
    for (service, moment, _), units in loads.items():
        most[service, moment] = max(most[service, moment], units)
    return TRAFFIC_TOLERANCE * traffic_usd + sum(most[key] * usd for key, usd in dearest_usd.items())


def broken(first: Outcome, second: Outcome, law: Law) -> str | None:
    """Return how a changed fleet breaks a law, or None where it keeps it or nothing is proven.

    Parameters
    ----------
    first, second : Outcome
        Of the fleet, which has a plan, and of the changed one.
    law : Law
        What holds between them.
    """
    if second.kind == INFEASIBLE:
        return "infeasible" if law.at_most else None
    if second.kind == NO_PLAN:
        return None
    names = sorted({each.name for each in (*first.figures, *second.figures)}, key=_order)
    for name in names:
        stays = (law.only_usd and name not in (COST, REGRET)) or (law.means_stay and name in MEANS)
        factor = 1.0 if stays else law.factor
        one, other = _figure(first, name), _figure(second, name)
        tolerance = _tolerance(first, second, name, one.value * factor)
        said = f"{name} {other.value!r} (bound {other.bound!r}) after {one.value!r} (bound {one.bound!r})"
        if law.at_most and other.bound > one.value * factor + tolerance:
            return f"worse: {said}"
        if law.at_least and one.bound * factor > other.value + tolerance:
            return f"better: {said}"
        # A bound is one of the plans that reach the figures before it.
        if other.value != one.value * factor:
            return None
    return None


def _order(name: str) -> tuple[bool, bool, str]:
    return name == COST, not name.startswith("unmet"), name


def _figure(outcome: Outcome, name: str) -> OutcomeFigure:
    return next((each for each in outcome.figures if each.name == name), OutcomeFigure(name, 0.0, 0.0))


def _tolerance(first: Outcome, second: Outcome, name: str, value: float) -> float:
    tolerance = max(RELATIVE_TOLERANCE * abs(value), ABSOLUTE_TOLERANCE)
    if name == COST:
        return tolerance + max(first.rounding_usd, second.rounding_usd)
    return tolerance + TRAFFIC_TOLERANCE * abs(value) * (name in ("energy", "carbon"))
