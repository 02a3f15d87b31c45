"""Least hardware and power that would serve a demand, by the configurations of its service."""

from __future__ import annotations

import math
from collections.abc import Callable

from fleetplan.fleet.units import W_PER_KW
from fleetplan.planner.formulation import replicas_for_load
from fleetplan.planner.problem import Candidate, Cell, Phase, Problem
from fleetplan.planner.units import exact


def accelerators_needed(problem: Problem, cell: Cell, k: int, requests_per_s: float) -> dict[str, int]:
    """Return the accelerators needed for a class's request rate, by hardware in its regions or on offer."""
    needed = _needed(problem, cell, k, requests_per_s, lambda candidate: candidate.accelerators)
    return {name: round(count) for name, count in needed.items()}


def power_needed_kw(problem: Problem, cell: Cell, k: int, requests_per_s: float) -> float | None:
    """Return the least facility power to serve a class's request rate, PUE included; None where unknown. [kW]

    Accelerators that exist in the region already draw idle power, which does not count again.
    """
    standing = {
        pool.hardware for pool in problem.pools if pool.region == cell.region and pool.existing_units > 0
    }

    def more_kw(candidate: Candidate) -> float:
        idle_w = 0.0
        if candidate.hardware in standing:
            idle_w = candidate.accelerators * problem.hardware[candidate.hardware].idle_w_per_accelerator
        return max((candidate.power_kw or 0.0) - idle_w / W_PER_KW, 0.0)

    kilowatts = _needed(problem, cell, k, requests_per_s, more_kw)
    return min(kilowatts.values(), default=0.0) * problem.regions[cell.region].pue or None


def _needed(
    problem: Problem, cell: Cell, k: int, requests_per_s: float, of_replica: Callable[[Candidate], float]
) -> dict[str, float]:
    """Return what replicas need to serve a class's request rate, by hardware, least first.

    Aggregated replicas, or prefill and decode on the same hardware, whichever needs less. Hardware that
    serves only one phase is left out.
    """
    wanted = requests_per_s * problem.services[cell.service].planned_ratio
    regions = problem.serving_regions(cell)
    supplied = {pool.hardware for pool in problem.pools if pool.region in regions}
    least: dict[str, dict[Phase, float]] = {}
    for c in problem.candidates_of(cell.service):
        candidate = problem.candidates[c]
        if candidate.requests_per_s[k] > 0 and (candidate.hardware in supplied or not supplied):
            load = exact(wanted) / exact(candidate.requests_per_s[k])
            replicas = math.ceil(replicas_for_load(candidate, load) - exact(1e-9))
            by_phase = least.setdefault(candidate.hardware, {})
            taken = replicas * of_replica(candidate)
            by_phase[candidate.phase] = min(by_phase.get(candidate.phase, taken), taken)
    result = {}
    for hardware, by_phase in least.items():
        ways = []
        if Phase.AGGREGATED in by_phase:
            ways.append(by_phase[Phase.AGGREGATED])
        if Phase.PREFILL in by_phase and Phase.DECODE in by_phase:
            ways.append(by_phase[Phase.PREFILL] + by_phase[Phase.DECODE])
        if ways:
            result[hardware] = min(ways)
    return dict(sorted(result.items(), key=lambda item: item[1]))
