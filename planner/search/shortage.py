"""Explain infeasibility: the least unmet demand, the hardware it needs, and the limits in the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import build_model, rate_scales, unmet_exponent
from fleetplan.planner.formulation.constraints import (
    budgets,
    capacity,
    configurations,
    kv_transfer,
    placement,
    power,
    quality,
    region_loss,
)
from fleetplan.planner.formulation.constraints.placement import max_share
from fleetplan.planner.plan import UNMET_GAP_RATIO, Rejections, Shortage
from fleetplan.planner.problem import Cell, Problem
from fleetplan.planner.problem.load_units import part_of, units_requests_per_s
from fleetplan.planner.search.blocks.solve import solve_planning
from fleetplan.planner.search.deadline import NEVER, Deadline
from fleetplan.planner.search.required_capacity import accelerators_needed, power_needed_kw
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import ModelStatus, SolverLimits
from fleetplan.planner.search.unmet_prices import hint_nothing
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

SHORTAGE_TIME_LIMIT_S = 20.0
"""Time to minimise unmet demand; the best plan found by then counts. [s]"""

SHORTAGE_SHARE_OF_TIME = 0.35
"""Share of the remaining time for that, where little is left."""

LEAST_SHORTAGE_S = 1.0
"""Least time for that, past the deadline too: an explanation must name what is short. [s]"""

LIFTING_SHARE_OF_TIME = 0.5
"""Share of the remaining time to test one limit, where little is left."""

LIFTING_TIME_LIMIT_S = 5.0
"""Time to find a plan with one limit lifted. [s]"""


@dataclass(frozen=True, slots=True)
class Shortages:
    """Unmet demand of an infeasible fleet.

    Attributes
    ----------
    rows : tuple[Shortage, ...]
        Unmet demand with the least total, within a gap; empty if the limits exclude even the existing hosts.
    complete : bool
        False if time ran out; `rows` then list demand that no configuration could serve with any supply.
    least : bool
        Whether the total is proven to be the least, within the gap.
    """

    rows: tuple[Shortage, ...]
    complete: bool = True
    least: bool = True


def find_shortages(
    problem: Problem,
    rejections: tuple[Rejections, ...],
    seed: int,
    workers: int,
    deadline: Deadline = NEVER,
    gap_ratio: float = UNMET_GAP_RATIO,
) -> Shortages:
    """Find the demand that no plan serves, and the accelerators that would serve it.

    Parameters
    ----------
    problem : Problem
        Problem proven infeasible while unmet demand is forbidden.
    rejections : tuple[Rejections, ...]
        Reasons why configurations were rejected, for services without any.
    seed, workers : int
        Solver settings.
    deadline : Deadline
        Deadline of the whole explanation.
    gap_ratio : float
        Target gap of the total unmet demand.

    Returns
    -------
    Shortages
        For all services and moments, if time allowed.
    """
    if not problem.cells:
        # No demand: existing hosts exceed the budget.
        return Shortages(())
    planning = build_model(problem, allow_unmet=True)
    scales, finest = rate_scales(problem), unmet_exponent(problem)
    planning.model.minimize(
        sum(
            10 ** max(0, finest - scales[problem.cells[cell].service].exponent) * variable
            for (cell, _), variable in planning.variables.unmet.items()
        )
    )
    # Start from the plan that serves nothing: any plan names the demand that is short.
    hint_nothing(planning.model, planning.variables)
    first = deadline.share(SHORTAGE_SHARE_OF_TIME).within(SHORTAGE_TIME_LIMIT_S)
    limits = SolverLimits(max(first.left_s, LEAST_SHORTAGE_S), seed, workers, Stop(), latest=first)
    found = solve_planning(planning, limits, lambda value, bound: value - bound <= gap_ratio * value)
    if found.values is None:
        known = found.status is ModelStatus.INFEASIBLE
        return Shortages((), True) if known else Shortages(_never_served(problem, rejections), False)
    blocking = blocking_limits(_servable(problem), seed, workers, deadline)
    unserved = _unserved(problem, planning.variables.unmet, found.values).items()
    rows = tuple(_shortage(problem, key, unmet, blocking, rejections) for key, unmet in unserved)
    return Shortages(rows, least=found.status is ModelStatus.SOLVED)


def _never_served(problem: Problem, rejections: tuple[Rejections, ...]) -> tuple[Shortage, ...]:
    """Return the demand that no configuration serves, however much hardware there is."""
    return tuple(
        _shortage(problem, (number, k), rate, Blocking((), decided=False), rejections)
        for number, cell in enumerate(problem.cells)
        for k, rate in enumerate(cell.requests_per_s)
        if rate > 0 and not accelerators_needed(problem, cell, k, rate)
    )


def _servable(problem: Problem) -> Problem:
    """Return the problem without demand that nothing can serve.

    Such demand would hide the limits in the way of the rest.
    """
    cells = []
    for cell in problem.cells:
        served = [
            bool(accelerators_needed(problem, cell, k, rate)) and not _unsupplied(problem, cell)
            for k, rate in enumerate(cell.most_requests_per_s)
        ]
        rates, most = (
            tuple(rate if is_served else 0.0 for rate, is_served in zip(each, served, strict=True))
            for each in (cell.requests_per_s, cell.most_requests_per_s)
        )
        if any(most):
            cells.append(replace(cell, requests_per_s=rates, most_requests_per_s=most))
    return problem if tuple(cells) == problem.cells else part_of(problem, cells=tuple(cells))


def _shortage(
    problem: Problem,
    key: tuple[int, int],
    unmet: float,
    blocking: Blocking,
    rejections: tuple[Rejections, ...],
) -> Shortage:
    """Return the row of one class's unmet demand in a cell. [requests/s]"""
    number, k = key
    cell = problem.cells[number]
    service = problem.services[cell.service]
    short = accelerators_needed(problem, cell, k, unmet)
    by_power = bool(short) and POWER in blocking.names
    return Shortage(
        **problem.row_moment(cell.moment),
        region=cell.region,
        service=cell.service,
        request_class=service.classes[k].name,
        unmet_requests_per_s=min(unmet, cell.requests_per_s[k]),
        demand_requests_per_s=cell.requests_per_s[k],
        accelerators_short=short,
        power_short_kw=power_needed_kw(problem, cell, k, unmet) if by_power else None,
        reason=_unsupplied(problem, cell) or _reason(cell.service, bool(short), blocking, rejections),
    )


def _unserved(
    problem: Problem, unmet: Mapping[tuple[int, int], cp_model.IntVar], values: cp_model.CpSolver
) -> dict[tuple[int, int], float]:
    """Return unmet demand by cell and class beyond rounding; if all of it is rounding, return all."""
    scales = rate_scales(problem)
    every: dict[tuple[int, int], float] = {}
    beyond: dict[tuple[int, int], float] = {}
    for (cell_index, k), variable in unmet.items():
        cell = problem.cells[cell_index]
        rate = scales[cell.service].requests_per_s(values.value(variable))
        rate /= problem.services[cell.service].planned_ratio
        if rate > 0:
            every[cell_index, k] = rate
            if rate > _rounding(problem, cell, k):
                beyond[cell_index, k] = rate
    return beyond or every


def _rounding(problem: Problem, cell: Cell, k: int) -> float:
    """Return the unmet demand due to whole load units: one unit of the fastest replica. [requests/s]"""
    units = (
        units_requests_per_s(problem, problem.candidates[c])[k] for c in problem.candidates_of(cell.service)
    )
    ratio = problem.services[cell.service].planned_ratio
    return max(max(units, default=0.0) / ratio, cell.requests_per_s[k] / LOAD_UNITS_PER_REPLICA)


POWER: Final = "power"
SHARES: Final = "share of a pool"

LIMITS: Final[dict[str, ModuleType]] = {
    POWER: power,
    "budget": budgets,
    "configurations (max_configs_per_service_region)": configurations,
    "capacity after the loss of a region (survive_region_loss)": region_loss,
    SHARES: placement,
    "links for KV caches (kv_links)": kv_transfer,
    "average quality (quality_floor)": quality,
    "hardware (all that can serve it is in use, or arrives later)": capacity,
}
"""Constraint families that may cause a shortage, by user-facing name. Hardware comes last: without capacity
rows hardware is free, so it is the cause only if no other limit alone is."""


def _states(problem: Problem, family: ModuleType) -> bool:
    """Return whether a problem states any limit of a constraint family."""
    fleet, policy = problem.fleet, problem.fleet.policy
    budget = fleet.budget
    stated: dict[ModuleType, bool] = {
        power: any(region.power_kw is not None for region in problem.regions.values()),
        budgets: any(
            limit is not None
            for limit in (budget.capex_usd, budget.opex_usd, budget.tco_usd, *budget.capex_usd_by_period)
        ),
        configurations: policy.max_configs_per_service_region is not None,
        region_loss: bool(policy.survive_region_loss),
        placement: any(max_share(problem, p) is not None for p in range(len(problem.pools))),
        kv_transfer: bool(fleet.kv_links),
        quality: any(service.average_quality_floor is not None for service in problem.services.values()),
    }
    return stated.get(family, True)


def _as_stated(problem: Problem, name: str) -> str:
    """Return the name of a limit with the keys that state it."""
    if name != SHARES:
        return name
    by_policy = problem.fleet.policy.max_share_per_pool is not None
    by_offer = any(pool.spot_max_share is not None for pool in problem.pools)
    keys = ["max_share_per_pool"] * by_policy + ["max_share of spot offers"] * by_offer
    return f"{name} ({', '.join(keys)})"


@dataclass(frozen=True, slots=True)
class Blocking:
    """Limits that prevent a fleet from serving its demand.

    Attributes
    ----------
    names : tuple[str, ...]
        Limits of which each alone, lifted, would let all demand be served.
    decided : bool
        Whether every other limit is proven not to suffice alone.
    """

    names: tuple[str, ...]
    decided: bool


def blocking_limits(problem: Problem, seed: int, workers: int, deadline: Deadline = NEVER) -> Blocking:
    """Find the limits of which each alone, if lifted, would let all demand be served."""
    if not problem.cells:
        return Blocking((), decided=True)
    found: list[str] = []
    decided = True
    stated = [(name, family) for name, family in LIMITS.items() if _states(problem, family)]
    for name, family in stated:
        if family is capacity and found:
            break
        # Give the first families more time: they are the most frequent cause.
        seconds = deadline.share(LIFTING_SHARE_OF_TIME).within(LIFTING_TIME_LIMIT_S).left_s
        if not seconds:
            return Blocking(tuple(found), decided=False)
        limits = SolverLimits(seconds, seed, workers, Stop(), latest=deadline.within(seconds))
        planning = build_model(problem, allow_unmet=False, without=(family,))
        planning.model.minimize(planning.guiding_cost)
        outcome = solve_planning(planning, limits, lambda *_: True)
        if outcome.values is not None:
            found.append(_as_stated(problem, name))
        elif outcome.status is not ModelStatus.INFEASIBLE:
            decided = False
    return Blocking(tuple(found), decided)


def _unsupplied(problem: Problem, cell: Cell) -> str:
    """Name the missing pool or offer where the regions that may serve a cell have none; empty otherwise."""
    regions = problem.serving_regions(cell)
    supplied = any(pool.region in regions for pool in problem.pools)
    return "" if supplied else f"a pool or an offer in {' or '.join(regions)}"


def _reason(service: str, servable: bool, blocking: Blocking, rejections: tuple[Rejections, ...]) -> str:
    if servable and blocking.names:
        return " or ".join(blocking.names)
    if servable:
        return "several limits together" if blocking.decided else "limits that were not identified in time"
    counts = next((row.counts for row in rejections if row.service == service), {})
    excluded = ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))
    what = "a configuration that meets the SLO and fits memory"
    return f"{what} ({excluded})" if excluded else what
