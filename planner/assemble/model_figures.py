"""Cost of a plan by the rounded coefficients of the solver's model."""

from __future__ import annotations

from fleetplan.planner.assemble.changes import started_replicas, switched_replicas
from fleetplan.planner.assemble.traffic import ServedTraffic
from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.formulation.objective.tco import (
    fixed_usd,
    load_usd,
    started_usd,
    switched_usd,
)
from fleetplan.planner.formulation.scaling import usd_units
from fleetplan.planner.formulation.solution import Solution
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import load_units
from fleetplan.planner.units import USD_RESOLUTION


def model_unused_usd(
    problem: Problem, solution: Solution, traffic: ServedTraffic, objective_usd: float | None
) -> float | None:
    """Return the part of the solver's objective that the plan does not need, if there is one. [USD]"""
    return None if objective_usd is None else objective_usd - model_usd(problem, solution, traffic)


def model_usd(problem: Problem, solution: Solution, traffic: ServedTraffic) -> float:
    """Return the TCO of a plan's placements and supply decisions by the model's coefficients. [USD]

    Below the solver's objective if the plan drops unneeded parts of the solution.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Purchases, rentals and retirements.
    traffic : ServedTraffic
        Replicas and their traffic.
    """
    total = 0.0
    for name, charges in supply_charges().items():
        for key, units in getattr(solution, name).items():
            usd = sum(sum(by_period) for by_period in charges(problem, key).values())
            total += units * usd_units(usd)
    for key, rate in traffic.rates.items():
        candidate = problem.candidates[key[0]]
        planned = rate * problem.services[candidate.service].planned_ratio
        load = planned / candidate.requests_per_s[key[1]] * load_units(problem, key[0], key[1])
        total += load * usd_units(load_usd(problem, key))
    for place in traffic.replicas:
        total += started_replicas(problem, traffic.replicas, place) * usd_units(started_usd(problem, place))
        total += switched_replicas(problem, traffic.replicas, place) * usd_units(switched_usd(problem, place))
    return total / USD_RESOLUTION + fixed_usd(problem)
