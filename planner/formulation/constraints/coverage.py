r"""Family 1, coverage: every class of every service is served in both phases where it has demand.

For each cell (service s, region r, moment m) and class k, with load w in load units, rate :math:`\mu` of one
replica and S load units per replica::

    sum_{c in aggregated} mu[c,k] w[c,k] + S sum_e d[k,e] + S u[k] >= S D[k]   coverage[...]
    sum_{c in prefill group}  mu[c,k] w[c,k]   >= S sum_{e of the group} d[k,e]   prefill[...]
    sum_{c in decode group}   mu[c,k] w[c,k]   >= S sum_{e of the group} d[k,e]   decode[...]

d[k,e] is the rate that passes through a pair e of groups of prefill and decode replicas, so both phases
disaggregate the same share of the traffic; u is unmet demand; D is demand with its headroom.
planner/problem/kv_pairs.py defines the pairs; a region in which all replicas pair has one. For an offline
service, S worked (family 13) replaces S D - S u.

planner/formulation/constraints/whole_replicas.py states the implications for whole replicas.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.constraints import whole_replicas
from fleetplan.planner.formulation.rates import rate_scales, rate_units
from fleetplan.planner.formulation.variables import Variables, cell_label, with_label
from fleetplan.planner.problem import Phase, Problem, Slot
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

FAMILY = 1


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the coverage rows of every cell and class."""
    scales = rate_scales(problem)
    for cell_index, cell in enumerate(problem.cells):
        scale = scales[cell.service]
        asked: dict[int, cp_model.LinearExprT] = {}
        left: dict[int, cp_model.LinearExprT] = {}
        for k, demand in enumerate(cell.requests_per_s):
            worked = variables.worked.get((cell_index, k))
            units = scale.demand_units(demand) if worked is None else worked
            if worked is None and units == 0:
                continue
            label = cell_label(problem, cell, k)
            served = _served(problem, variables, cell_index, k)
            total = cp_model.LinearExpr.sum
            # Missing variables leave empty sums, which are zero.
            missing = [(cell_index, k)] if worked is None else []
            unmet = total([variables.unmet[key] for key in missing if key in variables.unmet])
            known = variables.kv_pairs[cell_index, k]
            separate = [variables.disaggregated[cell_index, k, g] for g in range(len(known.pairs))]
            whole = [load for slot, load in served.items() if _phase(problem, slot) is Phase.AGGREGATED]
            model.add(
                total(whole) + LOAD_UNITS_PER_REPLICA * (total(separate) + unmet)
                >= LOAD_UNITS_PER_REPLICA * units
            ).with_name(f"coverage[{label}]")
            for phase in (Phase.PREFILL, Phase.DECODE):
                for index, group in enumerate(known.groups(phase)):
                    passed = total([separate[g] for g in known.pairs_of(phase, index)])
                    loads = total([served[slot] for slot in group.slots if slot in served])
                    model.add(loads >= LOAD_UNITS_PER_REPLICA * passed).with_name(
                        f"{phase}[{with_label(label, group.label)}]"
                    )
            asked[k], left[k] = units, unmet
        whole_replicas.add_rows(model, problem, variables, cell_index, asked, left)


def _served(
    problem: Problem, variables: Variables, cell_index: int, k: int
) -> dict[Slot, cp_model.LinearExpr]:
    """Return the rate served by a class's loads, by candidate and pool. [rate units times load units]"""
    served: dict[Slot, cp_model.LinearExpr] = {}
    for c, p in problem.slots(problem.cells[cell_index]):
        if (c, k, p, cell_index) in variables.load:
            served[c, p] = rate_units(problem, c, k) * variables.load[c, k, p, cell_index]
    return served


def _phase(problem: Problem, slot: Slot) -> Phase:
    return problem.candidates[slot[0]].phase
