r"""Family 1, coverage: every class of every service is served in both phases, where it is asked for.

For each cell (service s, region r, period q) and class k, with load w in load units, rate
:math:`\mu` of one replica and S load units a replica::

    sum_{c in aggregated} mu[c,k] w[c,k] + S d[k] + S u[k] >= S D[k]      coverage[...]
    sum_{c in prefill}    mu[c,k] w[c,k]                   >= S d[k]      prefill[...]
    sum_{c in decode}     mu[c,k] w[c,k]                   >= S d[k]      decode[...]

d is the rate served by separate prefill and decode replicas, so the same share of the traffic is
disaggregated in both phases; u is unmet demand; D is demand with its headroom. A prefill and a decode
replica of one request stand in the same region because d belongs to one region.

For a service of one class the loads are implied by the replicas, which gives the solver rows in whole
replicas to cut on::

    sum_{c in phase or aggregated} mu[c] n[c] + u >= D                    replicas_<phase>[...]
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA
from fleetplan.planner.variables import Variables, cell_label, rate_scales


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the coverage rows of every cell and class."""
    scales = rate_scales(problem)
    for cell_index, cell in enumerate(problem.cells):
        scale = scales[cell.service]
        headroom = problem.services[cell.service].headroom
        for k, demand in enumerate(cell.requests_per_s):
            units = scale.demand_units(demand, headroom)
            if units == 0:
                continue
            label = cell_label(problem, cell, k)
            served: dict[Phase, list[cp_model.LinearExpr]] = {phase: [] for phase in Phase}
            running: dict[Phase, list[cp_model.LinearExpr]] = {phase: [] for phase in Phase}
            for c in problem.candidates_of(cell.service):
                candidate = problem.candidates[c]
                rate = scale.rate_units(candidate.requests_per_s[k])
                for p in problem.pools_for(candidate, cell.region):
                    if (c, k, p, cell.period) in variables.load:
                        served[candidate.phase].append(rate * variables.load[c, k, p, cell.period])
                        running[candidate.phase].append(rate * variables.replicas[c, p, cell.period])
            total = cp_model.LinearExpr.sum
            # Where a variable does not exist its sum is empty, so zero.
            unmet = total([variables.unmet[key] for key in [(cell_index, k)] if key in variables.unmet])
            separate = total(
                [variables.disaggregated[key] for key in [(cell_index, k)] if key in variables.disaggregated]
            )
            model.add(
                total(served[Phase.AGGREGATED]) + LOAD_UNITS_PER_REPLICA * (separate + unmet)
                >= LOAD_UNITS_PER_REPLICA * units
            ).with_name(f"coverage[{label}]")
            if (cell_index, k) in variables.disaggregated:
                for phase in (Phase.PREFILL, Phase.DECODE):
                    model.add(total(served[phase]) >= LOAD_UNITS_PER_REPLICA * separate).with_name(
                        f"{phase}[{label}]"
                    )
            if len(cell.requests_per_s) == 1:
                for phase in (Phase.PREFILL, Phase.DECODE):
                    model.add(
                        total(running[phase]) + total(running[Phase.AGGREGATED]) + unmet >= units
                    ).with_name(f"replicas_{phase}[{label}]")
