r"""Family 10, loss of a region: whatever region is lost, the others serve the protected services.

For each lost region z, protected service s, moment m and class k, with replicas n' and loads w' in the other
regions after the loss, S load units per replica, d'[e] the rate through a pair e of groups of prefill and
decode replicas, and D the demand of all regions::

    sum_{c in aggregated} mu w' + S sum_e d'[e] + S sum_r u[r] >= S sum_r D[r]   surviving_coverage[...]
    sum_{c in prefill group} mu w' >= S sum_{e of the group} d'[e]               surviving_prefill[...]
    sum_{c in decode group} mu w' >= S sum_{e of the group} d'[e]                surviving_decode[...]
    sum_k w'[c,k,p] <= S n'[c,p], with limits under load as in family 2          surviving_load[...]
    sum_c a'[c] n'[c,p] <= H units[p,m]                                          surviving_capacity[...]
    sum_{c,p in r} a[c] (watts[c] - idle[p]) n'[c,p]
      + sum_{p in r} H idle[p] units[p,m] <= limit[r,m] / PUE[r]                 surviving_power[...]

Other services stop then, and reserve hosts may serve, because it is an emergency. Installed units are those
of the plan, so a loss costs only the units that are bought and rented for it. Limits on configurations, pool
shares and links do not apply, and the way to another region adds nothing to TTFT. Latency limits under load
apply: a pool carries what its lines allow, as in family 2, with the rows `surviving_pooled[...]`,
`surviving_one_line[...]`, `surviving_pooled_replicas[...]` and `surviving_share[...]`.
"""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.bounds import most_units, replicas_needed
from fleetplan.planner.formulation.constraints.capacity import add_patterns, installed_units
from fleetplan.planner.formulation.constraints.power import watts_drawn
from fleetplan.planner.formulation.constraints.replica_load import carried_load, share_of_replicas
from fleetplan.planner.formulation.rates import rate_scales
from fleetplan.planner.formulation.scaling import RateScale, watts_floor
from fleetplan.planner.formulation.variables import Variables, replica_label, with_label
from fleetplan.planner.problem import Cell, Phase, Problem, Slot
from fleetplan.planner.problem.kv_pairs import surviving_pairs
from fleetplan.planner.problem.region_loss import joint_cells
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

FAMILY = 10


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows of every region that may be lost."""
    joint = joint_cells(problem)
    if not joint:
        return
    scales = rate_scales(problem)
    for lost in problem.regions:
        for cell, parts in joint:
            _create_replicas(model, problem, variables, lost, cell, scales[cell.service])
            for k in range(len(cell.requests_per_s)):
                _cover(model, problem, variables, lost, cell, parts, k)
        _hold(model, problem, variables, lost)
        _power(model, problem, variables, lost)


def _create_replicas(
    model: cp_model.CpModel, problem: Problem, variables: Variables, lost: str, cell: Cell, scale: RateScale
) -> None:
    """Create the replicas and loads of a protected service after a loss, with the rows that tie them."""
    names = [request_class.name for request_class in problem.services[cell.service].classes]
    for c in problem.candidates_of(cell.service):
        candidate = problem.candidates[c]
        surviving_regions = [region for region in problem.regions if region != lost]
        for p in [p for region in surviving_regions for p in problem.pools_for(candidate, region)]:
            pool = problem.pools[p]
            moment = problem.moments[cell.moment]
            capacity = most_units(problem, p, moment.period) * pool.accelerators_per_unit
            capacity //= pool.footprint_accelerators(candidate.accelerators)
            bound = min(capacity, replicas_needed(problem, (cell,), c))
            if bound <= 0:
                continue
            label = f"{lost} lost,{replica_label(problem, (c, p, cell.moment))}"
            replicas = model.new_int_var(0, bound, f"surviving[{label}]")
            variables.surviving[lost, c, p, cell.moment] = replicas
            loads = []
            for k, rate in enumerate(candidate.requests_per_s):
                rate_units = scale.rate_units(rate)
                demand = scale.demand_units(cell.requests_per_s[k])
                if rate_units and demand:
                    largest_load = min(
                        bound * LOAD_UNITS_PER_REPLICA, -(-demand * LOAD_UNITS_PER_REPLICA // rate_units)
                    )
                    load = model.new_int_var(0, largest_load, f"surviving_load[{label},{names[k]}]")
                    variables.surviving_load[lost, c, k, p, cell.moment] = load
                    loads.append(load)
            place = (lost, c, p, cell.moment)
            line_variables = [
                _line_variables(model, variables, (*place, j), bound, f"{label},{j}")
                for j in range(len(candidate.pooling))
            ]
            carried = carried_load(model, candidate.pooling, replicas, line_variables, label, "surviving_")
            model.add(sum(loads) <= carried).with_name(f"surviving_load[{label}]")
            if candidate.pooling and loads:
                share = share_of_replicas(candidate.pooling, replicas, [(1, load) for load in loads])
                model.add(sum(loads) <= share).with_name(f"surviving_share[{label}]")


def _line_variables(
    model: cp_model.CpModel,
    variables: Variables,
    key: tuple[str, int, int, int, int],
    bound: int,
    label: str,
) -> tuple[cp_model.IntVar, cp_model.IntVar]:
    """Create the choice of a line after a loss, and the replicas it applies to."""
    by_line = model.new_bool_var(f"surviving_pooled[{label}]")
    count = model.new_int_var(0, bound, f"surviving_pooled_replicas[{label}]")
    variables.surviving_pooled[key] = by_line
    variables.surviving_pooled_replicas[key] = count
    return by_line, count


def _cover(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    lost: str,
    cell: Cell,
    cell_indices: tuple[int, ...],
    k: int,
) -> None:
    """Serve all demand of a class after a loss, with both phases of a request in one region."""
    scale = rate_scales(problem)[cell.service]
    demand = sum(scale.demand_units(problem.cells[index].requests_per_s[k]) for index in cell_indices)
    if not demand:
        return
    served: dict[Slot, cp_model.LinearExpr] = {}
    for (lost_region, c, class_index, p, m), load in variables.surviving_load.items():
        candidate = problem.candidates[c]
        if (lost_region, candidate.service, class_index, m) == (lost, cell.service, k, cell.moment):
            served[c, p] = scale.rate_units(candidate.requests_per_s[k]) * load
    request_class = problem.services[cell.service].classes[k].name
    label = f"{lost} lost,{cell.service},{request_class},{problem.moments[cell.moment].label}"
    served_terms = [
        load for (c, _), load in served.items() if problem.candidates[c].phase is Phase.AGGREGATED
    ]
    kv_pairs = surviving_pairs(problem, cell.service, k, lost)
    separate = []
    for g, pair in enumerate(kv_pairs.pairs):
        passed_rate = model.new_int_var(0, demand, f"surviving_separate[{with_label(label, pair.label)}]")
        variables.surviving_separate[lost, cell.service, k, g, cell.moment] = passed_rate
        separate.append(passed_rate)
        served_terms.append(LOAD_UNITS_PER_REPLICA * passed_rate)
    for phase in (Phase.PREFILL, Phase.DECODE):
        for index, group in enumerate(kv_pairs.groups(phase)):
            rate = cp_model.LinearExpr.sum([served[slot] for slot in group.slots if slot in served])
            passed = cp_model.LinearExpr.sum([separate[g] for g in kv_pairs.pairs_of(phase, index)])
            model.add(rate >= LOAD_UNITS_PER_REPLICA * passed).with_name(
                f"surviving_{phase}[{with_label(label, group.label)}]"
            )
    unmet = [variables.unmet[index, k] for index in cell_indices if (index, k) in variables.unmet]
    model.add(
        cp_model.LinearExpr.sum(served_terms) + LOAD_UNITS_PER_REPLICA * cp_model.LinearExpr.sum(unmet)
        >= LOAD_UNITS_PER_REPLICA * demand
    ).with_name(f"surviving_coverage[{label}]")


def _hold(model: cp_model.CpModel, problem: Problem, variables: Variables, lost: str) -> None:
    """Limit the replicas after a loss to the units of their pools."""
    hosted: dict[tuple[int, int], dict[int, cp_model.IntVar]] = defaultdict(dict)
    for (gone, c, p, m), replicas in variables.surviving.items():
        if gone == lost:
            hosted[p, m][c] = replicas
    for (p, m), running in hosted.items():
        pool, moment = problem.pools[p], problem.moments[m]
        label = f"{lost} lost,{pool.name},{moment.label}"
        units = installed_units(problem, variables, p, moment.period) - pool.maintenance_in(moment.period)
        used = sum(
            pool.footprint_accelerators(problem.candidates[c].accelerators) * replicas
            for c, replicas in running.items()
        )
        model.add(used <= pool.accelerators_per_unit * units).with_name(f"surviving_capacity[{label}]")
        add_patterns(model, problem, (p, m), running, units, label)


def _power(model: cp_model.CpModel, problem: Problem, variables: Variables, lost: str) -> None:
    """Limit the replicas after a loss, with idle accelerators, to their region's power."""
    for region in problem.regions.values():
        if region.power_kw is None or region.name == lost:
            continue
        for m, moment in enumerate(problem.moments):
            running = {
                (c, p): replicas
                for (gone, c, p, when), replicas in variables.surviving.items()
                if (gone, problem.pools[p].region, when) == (lost, region.name, m)
            }
            if running:
                drawn = watts_drawn(problem, variables, running, (region.name, moment.period))
                limit = watts_floor(region.power_kw[moment.period], region.pue)
                model.add(drawn <= limit).with_name(
                    f"surviving_power[{lost} lost,{region.name},{moment.label}]"
                )
