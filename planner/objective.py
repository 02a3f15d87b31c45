r"""What a plan minimises: unmet demand by priority first, then total cost of ownership.

TCO over the horizon, with C the fixed cost of what exists, acquired units at their unit cost, and energy
at the served utilisation::

    C + sum usd[o,q] acquired[o,p,q] + sum e[c,p,q] w[c,k,p,q] / (1 + headroom[s])
      + sum t a[c] started[c,p,q] + sum v[p,q] retired[p,q]

e is the energy of one load unit (power of the replica * PUE * price * hours / load units a replica); the
headroom is capacity that stands ready, not traffic, so it draws no energy. t is the cost of an accelerator
whose replica starts (family 8); v is what a unit that leaves saves, loses in the books and sells for.
"""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA, usd_units
from fleetplan.planner.variables import AcquireKey, LoadKey, ReplicaKey, Variables, rate_scales


def energy_usd_per_load_unit(problem: Problem, key: LoadKey) -> float:
    """Energy cost of one load unit over its period. [USD]"""
    c, _, p, q = key
    candidate = problem.candidates[c]
    headroom = problem.services[candidate.service].headroom
    power_kw = candidate.power_kw or 0.0
    return power_kw * problem.pools[p].energy_usd_per_kw[q] / LOAD_UNITS_PER_REPLICA / (1 + headroom)


def cost_coefficients(
    problem: Problem, variables: Variables
) -> tuple[Mapping[AcquireKey, int], Mapping[LoadKey, int]]:
    """Integer cost of every acquired unit and load unit. [objective units]"""
    acquired = {
        (p, a, q): usd_units(problem.pools[p].acquisitions[a].unit_usd[q]) for p, a, q in variables.acquired
    }
    load = {key: usd_units(energy_usd_per_load_unit(problem, key)) for key in variables.load}
    return acquired, load


def started_usd(problem: Problem, key: ReplicaKey) -> float:
    """Cost of starting one replica. [USD]"""
    accelerators = problem.candidates[key[0]].accelerators
    return problem.fleet.policy.transition_usd_per_accelerator * accelerators


def started_accelerators(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """Accelerators whose replicas did not run in the period before."""
    return sum(
        problem.candidates[key[0]].accelerators * started for key, started in variables.started.items()
    )


def retired_usd(problem: Problem, p: int, q: int) -> float:
    """What retiring one unit at the start of a period changes over the horizon. [USD]"""
    retirement = problem.pools[p].retirement
    return 0.0 if retirement is None else retirement.unit_usd[q]


def total_cost(problem: Problem, variables: Variables) -> cp_model.LinearExprT:
    """Variable part of the TCO in objective units; `fixed_usd` is the rest."""
    acquired, load = cost_coefficients(problem, variables)
    return cp_model.LinearExpr.weighted_sum(
        [
            *(variables.acquired[key] for key in acquired),
            *(variables.load[key] for key in load),
            *variables.started.values(),
            *variables.retired.values(),
        ],
        [
            *acquired.values(),
            *load.values(),
            *(usd_units(started_usd(problem, key)) for key in variables.started),
            *(usd_units(retired_usd(problem, p, q)) for p, q in variables.retired),
        ],
    )


def fixed_usd(problem: Problem) -> float:
    """Cost of what exists, whatever is decided. [USD]"""
    return sum(sum(pool.fixed_usd) for pool in problem.pools)


def unmet_demand(problem: Problem, variables: Variables, priority: int) -> cp_model.LinearExprT:
    """Unmet demand of the services of one priority, in rate units of the finest service scale."""
    scales = rate_scales(problem)
    finest = max(scale.exponent for scale in scales.values())
    terms: list[cp_model.LinearExprT] = []
    for (cell_index, _), variable in variables.unmet.items():
        service = problem.cells[cell_index].service
        if problem.services[service].priority == priority:
            terms.append(10 ** (finest - scales[service].exponent) * variable)
    return sum(terms)
