"""Reuse results from another fleet in a solve: candidates, bounds, or the optimum of an equal program."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from dataclasses import fields, replace
from typing import Final

from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.candidates import CandidateSet, supplied_hardware
from fleetplan.planner.formulation import build_model, fixed_usd
from fleetplan.planner.plan import Plan, Rejections
from fleetplan.planner.problem import KnownBound, Problem
from fleetplan.planner.problem.kv_pairs import cell_pairs
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.search import LEAST_REGRET


def on_hardware(found: CandidateSet, names: frozenset[str]) -> CandidateSet:
    """Return the candidates on some hardware; candidates only dominate others on the same hardware."""
    rejections = []
    for row in found.rejections:
        by_hardware = {name: counts for name, counts in row.by_hardware.items() if name in names}
        total = sum(map(Counter, by_hardware.values()), Counter())
        rejections.append(Rejections(service=row.service, counts=dict(total), by_hardware=by_hardware))
    candidates = tuple(each for each in found.candidates if each.hardware in names)
    return replace(found, candidates=candidates, rejections=tuple(rejections))


def same_hardware(one: Fleet, other: Fleet) -> bool:
    """Return whether a service has the same choice of hardware in two fleets."""
    return one is other or (
        has_hardware_of(one, other) and set(supplied_hardware(one)) == set(supplied_hardware(other))
    )


def has_hardware_of(one: Fleet, other: Fleet) -> bool:
    """Return whether a fleet supplies all hardware of another one, with the same specification."""
    return (
        one.path == other.path
        and one.hardware == other.hardware
        and one.calibration == other.calibration
        and set(supplied_hardware(one)) >= set(supplied_hardware(other))
    )


def counts_cost_alone(fleet: Fleet) -> bool:
    """Return whether the plan minimises cost without regret; only then do bounds hold for all plans."""
    return not (fleet.demand_scenarios and fleet.demand_objective == LEAST_REGRET)


def bound_of(plan: Plan, fleet: Fleet) -> KnownBound | None:
    """Return the lower bound of a plan for any fleet whose plans are a subset of its own at no lower cost.

    None if the bound only covers some plans: those that reach a goal, or leave no more demand unmet.
    """
    if plan.goal is not None or plan.shortages or not counts_cost_alone(fleet):
        return None
    return KnownBound(plan.bound_usd, plan.solve.bound_source)


@memoised
def program_sha256(problem: Problem) -> str:
    """Return the hash of the integer program for least cost; equal programs have the same optimum."""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    return hashlib.sha256(f"{fixed_usd(problem)!r}{planning.model.proto}".encode()).hexdigest()


def same_program(one: Problem, other: Problem) -> bool:
    """Whether two problems have the same integer program, so that their optimum is the same.

    Models are built and compared only where what they are made of differs.
    """
    if [each.label for each in one.candidates] != [each.label for each in other.candidates]:
        # Variables are named after candidates. Where none of them has any, an equal program is solved again.
        return False
    return states_the_same(one, other) or program_sha256(one) == program_sha256(other)


def states_the_same(one: Problem, other: Problem) -> bool:
    """Whether two problems state the same except for latency limits that decide nothing.

    A program depends on these limits by the candidates that keep them, and by the regions and pairs of phases
    that the time left allows. Both are compared.
    """
    plain = [_without_latency_limits(each) for each in (one, other)]
    if any(getattr(plain[0], each) != getattr(plain[1], each) for each in STATED):
        return False
    changed = {name for name, service in one.services.items() if service != other.services[name]}
    return _reached(one, changed) == _reached(other, changed)


STATED: Final = tuple(each.name for each in fields(Problem) if each.name not in ("begins_with", "bounded_by"))
"""Fields of a problem that its program is made of."""


def _without_latency_limits(problem: Problem) -> Problem:
    services = {name: replace(each, ttft_ms=None, tpot_ms=None) for name, each in problem.services.items()}
    # The fleet has the same services.
    return replace(problem, services=services, fleet=replace(problem.fleet, services=()))


def _reached(problem: Problem, services: Collection[str]) -> object:
    """Return where candidates of some services may serve, and which pairs of phases they form."""
    part = replace(problem, cells=tuple(each for each in problem.cells if each.service in services))
    served = [
        [
            part.may_serve(slot, k, cell.region)
            for slot in part.slots(cell)
            for k in range(len(cell.requests_per_s))
        ]
        for cell in part.cells
    ]
    return served, cell_pairs(part)


def runs_alike(one: Service, other: Service) -> bool:
    """Return whether two services have the same candidates: they may differ in demand only.

    With latency limits under load, the rate of a replica depends on the demand.
    """
    if one.traffic is not None and one.traffic.limits_load:
        asked = (one.demand.peak, one.headroom)
        if asked != (other.demand.peak, other.headroom):
            return False
    alike = replace(
        other,
        demand=one.demand,
        headroom=one.headroom,
        priority=one.priority,
        allowed_regions=one.allowed_regions,
    )
    if one.engines is None or other.engines is None:
        return one == alike and one.engines is other.engines
    return one == alike and (one.engines is other.engines or one.engines.equals(other.engines))
