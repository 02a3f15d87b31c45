r"""Family 4, KV transfer: bandwidth of the links that carry KV caches from prefill to decode.

Reach, hardware, variant and time decide which replicas may hand over requests: the pairs of family 1. For
each link with a capacity and each moment m, with d the rate that passes through a pair e of groups over the
link and gb the cache of a request::

    sum_{i in m, k, e over the link} gb[e,k] d[i,k,e] <= GB/s of the link kv_link[...]

d includes its service's headroom, so links carry the planned capacity, as replicas do. Rates are in rate
units of their service; coefficients are rounded up and the limit down.
"""

from __future__ import annotations

from fractions import Fraction

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.scaling import whole_row
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.units import exact

FAMILY = 4


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every link and moment that requests may use."""
    if not problem.fleet.kv_links:
        return
    scales = rate_scales(problem)
    loads: dict[tuple[int, int], list[tuple[cp_model.IntVar, Fraction]]] = {}
    for (cell_index, k, g), passed in variables.disaggregated.items():
        pair, cell = variables.kv_pairs[cell_index, k].pairs[g], problem.cells[cell_index]
        for used in pair.links:
            if pair.kv_gb is None:
                raise ValueError(f"{cell.service} transfers KV caches of unknown size")
            gb_per_unit = exact(pair.kv_gb) / scales[cell.service].units_per_request_per_s
            loads.setdefault((used, cell.moment), []).append((passed, gb_per_unit))
    for (index, m), terms in loads.items():
        link = problem.fleet.kv_links[index]
        passing, sizes = [passed for passed, _ in terms], [size for _, size in terms]
        bounds = [passed.proto.domain[1] for passed in passing]
        weights, limit = whole_row(sizes, bounds, exact(link.gb_per_s))
        row = cp_model.LinearExpr.weighted_sum(passing, weights) <= limit
        model.add(row).with_name(f"kv_link[{link.name},{problem.moments[m].label}]")
