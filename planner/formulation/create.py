"""Creation of one variable per open decision of a problem, but for those of a family's own `decide`."""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.bounds import (
    UNLIMITED_UNITS,
    Served,
    most_replicas,
    most_units,
    served_cells,
    units_after_loss,
    units_that_serve_everything,
)
from fleetplan.planner.formulation.rates import hours_of_day, rate_scales, rate_units
from fleetplan.planner.formulation.scaling import LARGEST_SUM, RateScale
from fleetplan.planner.formulation.variables import Variables, cell_label, replica_label, with_label
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.deferral import work_places
from fleetplan.planner.problem.kv_pairs import cell_pairs
from fleetplan.planner.problem.load_units import load_parts
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA


def create_variables(
    model: cp_model.CpModel, problem: Problem, allow_unmet: bool, bounded_by_supply: bool = True
) -> Variables:
    """Create the variables of open decisions.

    Parameters
    ----------
    model : CpModel
        Receives the variables.
    problem : Problem
        Sets and data.
    allow_unmet : bool
        Whether demand may stay unmet.
    bounded_by_supply : bool
        Whether the capacity of pools limits replicas; demand always does.

    Returns
    -------
    Variables
        A candidate has variables only where its region has demand and a pool of its hardware.
    """
    variables = Variables(kv_pairs=cell_pairs(problem))
    scales = rate_scales(problem)
    served = served_cells(problem)
    created: set[tuple[str, str, int]] = set()
    for cell_index, cell in enumerate(problem.cells):
        for region in problem.serving_regions(cell):
            group = (cell.service, region, cell.moment)
            if group not in created:
                created.add(group)
                _create_service_variables(model, problem, variables, served, group, bounded_by_supply)
        scale = scales[cell.service]
        for k, demand in enumerate(cell.requests_per_s):
            most = scale.demand_units(cell.most_requests_per_s[k])
            label = cell_label(problem, cell, k)
            for index, pair in enumerate(variables.kv_pairs[cell_index, k].pairs):
                variables.disaggregated[cell_index, k, index] = model.new_int_var(
                    0, most, f"disaggregated[{with_label(label, pair.label)}]"
                )
            if allow_unmet:
                units = scale.demand_units(demand)
                variables.unmet[cell_index, k] = model.new_int_var(0, units, f"unmet[{label}]")
    _create_work_variables(model, problem, variables, scales)
    if problem.keeps_idle_replicas:
        _create_idle_moments(model, problem, variables, served, bounded_by_supply)
    if problem.counts_changes:
        _create_change_variables(model, problem, variables)
    if problem.counts_tides:
        _create_tide_variables(model, problem, variables)
    _create_supply_variables(model, problem, variables, served)
    return variables


def _create_work_variables(
    model: cp_model.CpModel, problem: Problem, variables: Variables, scales: Mapping[str, RateScale]
) -> None:
    """Create the variables of offline work: the rate in each moment, and deferred work between moments."""
    hours = hours_of_day(problem)
    by_place = {(cell.service, cell.region, cell.moment): i for i, cell in enumerate(problem.cells)}
    for i, cell in enumerate(problem.cells):
        service = problem.services[cell.service]
        if service.offline is None:
            continue
        places = work_places(problem.moments, service.offline.deadline_hours)[cell.moment]
        # A moment that accepts no deferred work has no cell.
        keys = [(cell.service, cell.region, m) for m in places]
        cells = [by_place[key] for key in keys if key in by_place]
        for k, demand in enumerate(cell.requests_per_s):
            label, scale = cell_label(problem, cell, k), scales[cell.service]
            most = scale.demand_units(cell.most_requests_per_s[k])
            # Rounding up each moment's work may add one unit per moment.
            variables.worked[i, k] = model.new_int_var(0, most + len(cells), f"worked[{label}]")
            arising = hours[cell.moment] * scale.demand_units(demand)
            for j in cells if arising else ():
                done_in = problem.moments[problem.cells[j].moment].slice
                variables.put_off[i, j, k] = model.new_int_var(
                    0, arising, f"put_off[{with_label(label, done_in or '')}]"
                )


def _create_change_variables(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Create the variables of starting replicas, in moments with an earlier one or a plan in force."""
    for (c, p, m), replicas in variables.replicas.items():
        if problem.moments[m].before is not None or problem.running_before is not None:
            label = replica_label(problem, (c, p, m))
            most = replicas.proto.domain[1]
            variables.started[c, p, m] = model.new_int_var(0, most, f"started[{label}]")


def _create_tide_variables(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Create the variables of replicas that start between slices; days with one slice have none."""
    for key, replicas in variables.replicas.items():
        if problem.moments[key[2]].slice_before is None:
            continue
        most, label = replicas.proto.domain[1], replica_label(problem, key)
        variables.switched[key] = model.new_int_var(0, most, f"switched[{label}]")


def _create_idle_moments(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    served: Served,
    bounded_by_supply: bool,
) -> None:
    """Create replicas in moments without demand: they may stay for a later moment's demand."""
    for service, region in dict.fromkeys((service, region) for service, region, _ in served):
        for m in range(len(problem.moments)):
            if (service, region, m) not in served:
                group = (service, region, m)
                _create_service_variables(model, problem, variables, served, group, bounded_by_supply)


def _create_service_variables(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    served: Served,
    group: tuple[str, str, int],
    bounded_by_supply: bool,
) -> None:
    """Create a service's replicas in the pools of a region and moment, with the loads of their cells."""
    service, region, m = group
    limit = problem.fleet.policy.max_configs_per_service_region
    for c in problem.candidates_of(service):
        candidate = problem.candidates[c]
        hosted = False
        for p in problem.pools_for(candidate, region):
            pool = problem.pools[p]
            capacity = most_units(problem, p, problem.moments[m].period) * pool.accelerators_per_unit
            held = capacity // pool.footprint_accelerators(candidate.accelerators)
            needed = most_replicas(problem, served, (region, m), c, p)
            cells = served.get(group, ())
            needed = min(needed, _most_summed(problem, c, len(cells)))
            bound = min(needed, held) if bounded_by_supply else needed
            if bound <= 0:
                continue
            hosted = True
            label = replica_label(problem, (c, p, m))
            variables.replicas[c, p, m] = model.new_int_var(0, bound, f"replicas[{label}]")
            for line in range(len(candidate.pooling)):
                key = (c, p, m, line)
                variables.pooled[key] = model.new_bool_var(f"pooled[{label},{line}]")
                variables.pooled_replicas[key] = model.new_int_var(
                    0, bound, f"pooled_replicas[{label},{line}]"
                )
            for cell_index in cells:
                _create_loads(model, problem, variables, (c, p, cell_index), bound)
        if hosted and limit is not None:
            variables.configuration[c, region, m] = model.new_bool_var(
                f"configuration[{candidate.label},{region},{problem.moments[m].label}]"
            )


def _most_summed(problem: Problem, c: int, cells: int) -> int:
    """Return the most replicas of a candidate whose loads of all cells add up within 64 bits."""
    parts = load_parts(problem)[c]
    return LARGEST_SUM // (LOAD_UNITS_PER_REPLICA * max(parts) * (len(parts) * cells + 1))


def _create_loads(
    model: cp_model.CpModel,
    problem: Problem,
    variables: Variables,
    place: tuple[int, int, int],
    replicas: int,
) -> None:
    """Create the load of every class of a cell on replicas, given as (candidate, pool, cell)."""
    c, p, cell_index = place
    cell = problem.cells[cell_index]
    service, scale = problem.services[cell.service], rate_scales(problem)[cell.service]
    label = replica_label(problem, (c, p, cell.moment))
    origin = "" if problem.pools[p].region == cell.region else f",{cell.region}"
    for k in range(len(service.classes)):
        served = rate_units(problem, c, k)
        demand_units = scale.demand_units(cell.most_requests_per_s[k])
        if served and demand_units and problem.may_serve((c, p), k, cell.region):
            # At most what the class needs: a fast replica of a small service would otherwise make sums
            # overflow 64 bits.
            needed_load = -(-demand_units * LOAD_UNITS_PER_REPLICA // served)
            held = replicas * LOAD_UNITS_PER_REPLICA * load_parts(problem)[c][k]
            variables.load[c, k, p, cell_index] = model.new_int_var(
                0,
                min(held, needed_load),
                f"load[{label},{service.classes[k].name}{origin}]",
            )


def _create_supply_variables(
    model: cp_model.CpModel, problem: Problem, variables: Variables, served: Served
) -> None:
    """Create acquisitions, retirements, and the use of pools that keep a reserve."""
    for p, pool in enumerate(problem.pools):
        if pool.region not in problem.regions:
            # Another part of the fleet decides this pool.
            continue
        most = max(units_that_serve_everything(problem, served, p), units_after_loss(problem, p))
        for a, acquisition in enumerate(pool.acquisitions):
            for q, period in enumerate(problem.periods):
                limit, lot = acquisition.offer.max_units[q], acquisition.offer.lot_units
                limit = UNLIMITED_UNITS if limit is None else limit
                bound = min(-(-most // lot) * lot, limit // lot * lot)
                least = 0
                if problem.fixed_supply is not None:
                    least = bound = problem.fixed_supply.acquired.get((p, a, q), 0)
                if bound <= 0 or not acquisition.useful_in(q, len(problem.periods)):
                    continue
                variables.acquired[p, a, q] = model.new_int_var(
                    least, bound, f"acquired[{acquisition.offer.name},{pool.name},{period}]"
                )
                if lot > 1:
                    variables.lots[p, a, q] = model.new_int_var(
                        0, bound // lot, f"lots[{acquisition.offer.name},{pool.name},{period}]"
                    )
        if pool.retirement is not None:
            for q, period in enumerate(problem.periods):
                if pool.retirement.possible_in(q):
                    least, leaving = 0, pool.existing_units
                    if problem.fixed_supply is not None:
                        least = leaving = problem.fixed_supply.retired.get((p, q), 0)
                    variables.retired[p, q] = model.new_int_var(
                        least, leaving, f"retired[{pool.name},{period}]"
                    )
        if pool.reserve_percent:
            for m, moment in enumerate(problem.moments):
                bound = min(most_units(problem, p, moment.period), most)
                variables.hosts_in_use[p, m] = model.new_int_var(
                    0, max(bound, 0), f"hosts_in_use[{pool.name},{moment.label}]"
                )
        if pool.reserve_units and pool.may_stay_empty:
            for m, moment in enumerate(problem.moments):
                # If more than the reserve always stays, using the pool costs no wanted unit.
                stays = pool.existing_units - pool.maintenance_in(moment.period) > pool.reserve_units
                if pool.retirement is not None or not stays:
                    variables.in_use[p, m] = model.new_bool_var(f"in_use[{pool.name},{moment.label}]")
