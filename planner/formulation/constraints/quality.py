r"""Family 12, quality: requests have at least the average quality that their service requires.

For each cell i of a service with an average floor, with the score of its variants, the load w of aggregated
replicas in load units S, and the rate d that passes between prefill and decode replicas of a variant::

    sum_{variants, c in aggregated of it, k} (score - floor) mu[c,k] w[c,k] / S
        + sum_{variants, k, e of it} (score - floor) d[i,k,e] >= 0        quality[...]

Coverage rows allow traffic above demand, which would shift the average. Therefore these cells have, for each
class k with demand D and unmet demand u::

    sum_{c in aggregated} mu w[c,k] + S sum_e d[k,e] + S u[k] <= S D[k] + sum mu   quality_traffic[...]

The last sum is one load unit per load, without which whole load units could not meet a demand. A floor for
every request needs no row: lower variants are not candidates.
"""

from __future__ import annotations

from fractions import Fraction

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.rates import rate_scales, rate_units
from fleetplan.planner.formulation.scaling import whole_row
from fleetplan.planner.formulation.variables import Variables, cell_label
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.problem.load_units import load_units
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, exact

FAMILY = 12


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every cell of a service with an average floor."""
    terms: dict[int, list[tuple[cp_model.IntVar, Fraction]]] = {}
    floors = {
        index: exact(floor)
        for index, cell in enumerate(problem.cells)
        if (floor := problem.services[cell.service].average_quality_floor) is not None
    }
    if not floors:
        return
    for (c, k, _, index), load in variables.load.items():
        candidate = problem.candidates[c]
        if index in floors and candidate.phase is Phase.AGGREGATED:
            surplus = exact(problem.quality(candidate)) - floors[index]
            rate = exact(candidate.requests_per_s[k]) / exact(load_units(problem, c, k))
            terms.setdefault(index, []).append((load, surplus * rate))
    scales = rate_scales(problem)
    for (index, k, g), passed in variables.disaggregated.items():
        if index in floors:
            known = variables.kv_pairs[index, k]
            candidate = problem.candidates[known.prefill[known.pairs[g].prefill].slots[0][0]]
            surplus = exact(problem.quality(candidate)) - floors[index]
            units = scales[candidate.service].units_per_request_per_s
            terms.setdefault(index, []).append((passed, surplus / units))
    for index, surpluses in terms.items():
        cell = problem.cells[index]
        serving, missing = [variable for variable, _ in surpluses], [-surplus for _, surplus in surpluses]
        bounds = [variable.proto.domain[1] for variable in serving]
        weights, limit = whole_row(missing, bounds, Fraction(0))
        row = cp_model.LinearExpr.weighted_sum(serving, weights) <= limit
        label = f"{cell.service},{cell.region},{problem.moments[cell.moment].label}"
        model.add(row).with_name(f"quality[{label}]")
        for k in range(len(cell.requests_per_s)):
            _add_traffic(model, problem, variables, index, k)


def _add_traffic(
    model: cp_model.CpModel, problem: Problem, variables: Variables, cell_index: int, k: int
) -> None:
    """Limit the served rate of a class to its demand, plus one load unit per load."""
    cell = problem.cells[cell_index]
    scale = rate_scales(problem)[cell.service]
    units = scale.demand_units(cell.requests_per_s[k])
    rates, loads = [], []
    for c, p in problem.slots(cell):
        candidate = problem.candidates[c]
        if candidate.phase is Phase.AGGREGATED and (c, k, p, cell_index) in variables.load:
            rates.append(rate_units(problem, c, k))
            loads.append(variables.load[c, k, p, cell_index])
    pairs = range(len(variables.kv_pairs[cell_index, k].pairs))
    apart = [variables.disaggregated[cell_index, k, g] for g in pairs]
    apart += [variables.unmet[key] for key in [(cell_index, k)] if key in variables.unmet]
    total = cp_model.LinearExpr.weighted_sum(loads, rates)
    most = LOAD_UNITS_PER_REPLICA * units + sum(rates)
    row = total + LOAD_UNITS_PER_REPLICA * cp_model.LinearExpr.sum(apart) <= most
    model.add(row).with_name(f"quality_traffic[{cell_label(problem, cell, k)}]")
