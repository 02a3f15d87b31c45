"""From raw solver values to what a plan runs after the loss of a region."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

from fleetplan.planner.formulation.solution import Solution
from fleetplan.planner.formulation.variables import replicas_for_load
from fleetplan.planner.plan import SurvivingPlacement
from fleetplan.planner.problem import Problem
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA


def region_losses(problem: Problem, solution: Solution) -> tuple[SurvivingPlacement, ...]:
    """What serves the protected services without each region, idle replicas left out."""
    loads: dict[tuple[str, int, int, int], dict[int, int]] = defaultdict(dict)
    for (lost, c, k, p, m), units in solution.surviving_load.items():
        loads[lost, m, c, p][k] = units
    rows = []
    for lost in problem.regions:
        for (gone, m, c, p), by_class in sorted(loads.items()):
            if gone != lost:
                continue
            candidate, pool, moment = problem.candidates[c], problem.pools[p], problem.moments[m]
            service = problem.services[candidate.service]
            load = Fraction(sum(by_class.values()), LOAD_UNITS_PER_REPLICA)
            rates = {
                service.classes[k].name: candidate.requests_per_s[k]
                * units
                / LOAD_UNITS_PER_REPLICA
                / (1 + service.headroom)
                for k, units in sorted(by_class.items())
            }
            rows.append(
                SurvivingPlacement(
                    lost_region=lost,
                    period=problem.periods[moment.period],
                    slice=moment.slice,
                    scenario=moment.scenario,
                    region=pool.region,
                    pool=pool.name,
                    service=candidate.service,
                    phase=candidate.phase.value,
                    hardware=candidate.hardware,
                    config=candidate.config,
                    replicas=math.ceil(replicas_for_load(candidate, load)),
                    requests_per_s_by_class=rates,
                )
            )
    return tuple(rows)
