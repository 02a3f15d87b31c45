"""Cost and unmet demand of a plan in each demand scenario, against the best plan for it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.planner.plan import DemandScenarioCost, Placement, ScenarioPurchase, Unmet
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.scenarios import ScenarioOptimum
from fleetplan.planner.search import unmet_requests_per_s


def scenario_costs(
    problem: Problem,
    capacity_usd: float,
    placements: Sequence[Placement],
    unmet: Sequence[Unmet],
) -> tuple[DemandScenarioCost, ...]:
    """Return the cost of a plan in each demand scenario.

    Parameters
    ----------
    problem : Problem
        Sets and data, with the optimum of each scenario alone if known.
    capacity_usd : float
        Cost of supply, equal in every scenario. [USD]
    placements, unmet
        Placements and unmet demand of the plan.
    """
    best: Mapping[str, ScenarioOptimum] = problem.scenario_optima or {}
    rows = []
    for scenario in problem.fleet.demand_scenarios:
        running = sum(row.running_usd for row in placements if row.scenario == scenario.name)
        usd = capacity_usd + running / scenario.probability
        known = best.get(scenario.name)
        rows.append(
            DemandScenarioCost(
                name=scenario.name,
                probability=scenario.probability,
                usd=usd,
                unmet_requests_per_s=unmet_requests_per_s(problem, unmet, scenario.name),
                best_usd=None if known is None else known.usd,
                best_bound_usd=None if known is None else known.bound_usd,
                best_unmet_requests_per_s=None if known is None else known.unmet_requests_per_s,
                best_unmet_gap=None if known is None else known.unmet_gap,
                regret_usd=None if known is None else usd - known.usd,
                regret_at_most_usd=None if known is None else usd - known.bound_usd,
            )
        )
    return tuple(rows)


def scenario_purchases(problem: Problem) -> tuple[ScenarioPurchase, ...]:
    """Return the purchases of the best plan for each demand scenario alone, if known."""
    return tuple(
        ScenarioPurchase(
            scenario=name,
            period=problem.periods[q],
            offer=problem.pools[p].acquisitions[a].offer.name,
            pool=problem.pools[p].name,
            units=units,
        )
        for name, best in (problem.scenario_optima or {}).items()
        for (p, a, q), units in sorted(best.supply.acquired.items(), key=lambda item: (item[0][2], item[0]))
        if units
    )
