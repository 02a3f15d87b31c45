"""Power of accelerators, busy and idle, independent of the planner's formulas."""

from __future__ import annotations

from collections.abc import Hashable

from fleetplan.planner.problem import Problem


def above_idle_kw(problem: Problem, c: int) -> float:
    """Return the power of a replica at full load above the idle power of its accelerators. [kW]"""
    candidate = problem.candidates[c]
    idle_w = problem.hardware[candidate.hardware].idle_w_per_accelerator
    return max((candidate.power_kw or 0.0) - candidate.accelerators * idle_w / 1000, 0.0)


def standing_kw(problem: Problem, region: str, q: int) -> tuple[dict[Hashable, float], float]:
    """Return the idle power of a region: per unit that may come or leave, and of existing units. [kW]"""
    terms: dict[Hashable, float] = {}
    existing, n_periods = 0.0, len(problem.periods)
    for p, pool in enumerate(problem.pools):
        if pool.region == region:
            kw = problem.hardware[pool.hardware].idle_w_per_accelerator * pool.accelerators_per_unit / 1000
            existing += kw * pool.existing_units
            for a, acquisition in enumerate(pool.acquisitions):
                for ordered in range(n_periods):
                    if acquisition.useful_in(ordered, n_periods) and acquisition.serves(ordered, q):
                        terms["acquired", p, a, ordered] = kw
            if pool.retirement is not None:
                terms |= {("retired", p, left): -kw for left in range(q + 1)}
    return terms, existing
