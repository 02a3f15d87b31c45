r"""Family 13, offline work: each day's work is done before its deadline, in moments with spare capacity.

For each cell i of an offline service (service, region and moment of h[i] hours) and class k, with D the
arrival rate, put_off[i,j] the work of cell i done in cell j, and J(i) the cells of the same day within the
deadline (planner/problem/deferral.py)::

    sum_{j in J(i)} put_off[i,j,k] + h[i] u[i,k] >= h[i] D[i,k]           work[...]
    h[j] worked[j,k] >= sum_{i: j in J(i)} put_off[i,j,k]                 worked[...]

worked is the rate at which the moment serves the class; it replaces demand in the coverage rows.
"""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.rates import hours_of_day, rate_scales
from fleetplan.planner.formulation.variables import CellClassKey, Variables, cell_label
from fleetplan.planner.problem import Problem

FAMILY = 13


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add both rows for every cell and class of the offline services."""
    scales, hours = rate_scales(problem), hours_of_day(problem)
    out: dict[CellClassKey, list[cp_model.IntVar]] = defaultdict(list)
    into: dict[CellClassKey, list[cp_model.IntVar]] = defaultdict(list)
    for (i, j, k), work in variables.put_off.items():
        out[i, k].append(work)
        into[j, k].append(work)
    for (i, k), worked in variables.worked.items():
        cell = problem.cells[i]
        h, label = hours[cell.moment], cell_label(problem, cell, k)
        units = scales[cell.service].demand_units(cell.requests_per_s[k])
        unmet = [variables.unmet[i, k]] if (i, k) in variables.unmet else []
        done = cp_model.LinearExpr.sum(out[i, k])
        model.add(done + h * cp_model.LinearExpr.sum(unmet) >= h * units).with_name(f"work[{label}]")
        model.add(h * worked >= cp_model.LinearExpr.sum(into[i, k])).with_name(f"worked[{label}]")
