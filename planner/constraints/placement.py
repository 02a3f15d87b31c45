r"""Family 11, placement rules: one pool serves at most a share g of a service, by policy or as spot capacity.

For each service s, moment m, pool p and phase, with D the demand of all regions and classes, S load units a
replica, and mu rounded up::

    sum_{c in phase or aggregated, k} mu[c,k] w[c,k,p,i] <= S g D[s,m] + sum mu[c,k]    share[...]

The last sum is one load unit for each load: without it a share that is met exactly could not be written in
whole load units. An offline service has one row a day instead, over its moments weighted with their hours:
a pool does at most that share of a day's work. Maintenance windows lower what a pool holds, so they are part
of family 3.
"""

from __future__ import annotations

import math

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA, exact
from fleetplan.planner.variables import LoadKey, Variables, hour_weights, rate_scales


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every service, phase, pool and moment (day), where the share of the pool is limited."""
    scales, hours = rate_scales(problem), hour_weights(problem)
    for (name, phase, p, moments), keys in _loads(problem, variables).items():
        share = max_share(problem, p)
        if share is None:
            continue
        weights = {m: hours[m] if len(moments) > 1 else 1 for m in moments}
        service, scale = problem.services[name], scales[name]
        rates = [
            weights[problem.cells[cell].moment]
            * scale.rate_units_at_most(problem.candidates[c].requests_per_s[k])
            for c, k, _, cell in keys
        ]
        demand = sum(
            weights[m] * scale.demand_units(rate, service.headroom)
            for m in moments
            for rate in problem.demand(name, m).values()
        )
        most = math.floor(exact(share) * demand * LOAD_UNITS_PER_REPLICA) + sum(rates)
        served = sum(rate * variables.load[key] for rate, key in zip(rates, keys, strict=True))
        first = problem.moments[moments[0]]
        when = first.label if len(moments) == 1 else first.day_label
        label = f"{name},{phase},{problem.pools[p].name},{when}"
        model.add(served <= most).with_name(f"share[{label}]")


def max_share(problem: Problem, p: int) -> float | None:
    """Most of a service that a pool may serve: by the policy, and where it may be taken away."""
    limits = (problem.fleet.policy.max_share_per_pool, problem.pools[p].spot_max_share)
    return min((limit for limit in limits if limit is not None), default=None)


def limited_together(problem: Problem, service: str, moment: int) -> tuple[int, ...]:
    """Moments whose traffic a limited share counts together: each alone, of an offline service the day."""
    return (moment,) if problem.services[service].offline is None else problem.day_of(moment)


def _loads(
    problem: Problem, variables: Variables
) -> dict[tuple[str, Phase, int, tuple[int, ...]], list[LoadKey]]:
    """Loads that carry a phase of a service in a pool and moments; aggregated ones carry both."""
    found: dict[tuple[str, Phase, int, tuple[int, ...]], list[LoadKey]] = {}
    for key in variables.load:
        c, _, p, cell = key
        candidate = problem.candidates[c]
        moments = limited_together(problem, candidate.service, problem.cells[cell].moment)
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                found.setdefault((candidate.service, phase, p, moments), []).append(key)
    return found
