r"""Family 11, placement rules: one pool serves at most a share g of a service, by policy or as spot capacity.

For each service s, period q, pool p and phase, with D the demand of all regions and classes, S load units a
replica, and mu rounded up::

    sum_{c in phase or aggregated, k} mu[c,k] w[c,k,p,q] <= S g D[s,q] + sum mu[c,k]    share[...]

The last sum is one load unit for each load: without it a share that is met exactly could not be written in
whole load units. Maintenance windows lower what a pool holds, so they are part of family 3.
"""

from __future__ import annotations

import math

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA, exact
from fleetplan.planner.variables import LoadKey, Variables, rate_scales


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every service, phase, pool and period, where the share of the pool is limited."""
    scales = rate_scales(problem)
    for (name, phase, p, q), keys in _loads(problem, variables).items():
        share = max_share(problem, p)
        if share is None:
            continue
        service, scale, period = problem.services[name], scales[name], problem.periods[q]
        rates = [scale.rate_units_at_most(problem.candidates[c].requests_per_s[k]) for c, k, _, _ in keys]
        demand = sum(
            scale.demand_units(rate, service.headroom)
            for (_, when, _), rate in service.demand_requests_per_s.items()
            if when == period
        )
        most = math.floor(exact(share) * demand * LOAD_UNITS_PER_REPLICA) + sum(rates)
        served = sum(rate * variables.load[key] for rate, key in zip(rates, keys, strict=True))
        model.add(served <= most).with_name(f"share[{name},{phase},{problem.pools[p].name},{period}]")


def max_share(problem: Problem, p: int) -> float | None:
    """Most of a service that a pool may serve: by the policy, and where it may be taken away."""
    limits = (problem.fleet.policy.max_share_per_pool, problem.pools[p].spot_max_share)
    return min((limit for limit in limits if limit is not None), default=None)


def _loads(problem: Problem, variables: Variables) -> dict[tuple[str, Phase, int, int], list[LoadKey]]:
    """Loads that carry a phase of a service in a pool and period; aggregated ones carry both."""
    found: dict[tuple[str, Phase, int, int], list[LoadKey]] = {}
    for key in variables.load:
        c, _, p, q = key
        candidate = problem.candidates[c]
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                found.setdefault((candidate.service, phase, p, q), []).append(key)
    return found
