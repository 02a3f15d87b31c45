r"""Family 3, capacity: replicas fit into the units of a pool, packed by host or pod, less the reserve.

For each pool p with H accelerators per unit, each moment m of period q, and footprint a'[c] (the replica's
accelerators, or whole units for a replica larger than one)::

    sum_c a'[c] n[c,p,m] <= H (E[p,q] - left + arrived - reserve[p] in_use[p,m])   capacity[...]
    sum_c a'[c] n[c,p,m] <= H (N - reserve[p]) in_use[p,m]                     in_use[...]
    (reserve[p] + 1) in_use[p,m] <= E[p,q] - left + arrived                    in_use_units[...]
    N sum_c a'[c] n[c,p,m] <= H (N - reserve[p]) (E[p,q] - left + arrived)     reserve[...]

If the reserve is a percentage of the units in use, hosts_in_use units may be filled and replace the units
less the reserve in these rows. Both are whole, so the reserve is rounded up to whole units::

    (100 + percent[p]) hosts_in_use[p,m] <= 100 (E[p,q] - left + arrived)      reserve_percent[...]

An idle pool needs no spare host. A pool has at most N units. With a reserve of one unit of N, a unit serves
at most N - 1 of N parts: the last row is the convex hull of what whole units may hold, without which the
linear relaxation pays for a fraction of the reserve. The next row states, for each cell, class k and phase,
that a pool in use serves at most the demand (of offline work, the most that the moment may serve); its last
sum is one load unit of rounding per load::

    sum_{c in phase} mu[c,k] w[c,k,p,i] <= (S D[i,k] + sum_c mu[c,k]) in_use[p,m]   in_use_share[...]

If replica sizes do not divide each other, packed[p,m,t] units are divided by pattern t, which holds
fits[t,size] replicas of a size::

    sum_{c of one size} n[c,p,m] <= sum_t fits[t,size] packed[p,m,t]           slots[...]
    sum_t packed[p,m,t] <= units - whole units of larger replicas              patterns[...]

If there are too many patterns, packed[p,m,a,s] replicas of size s are placed after a accelerators of their
units::

    sum_{c of size s} n[c,p,m] <= sum_a packed[p,m,a,s]                        slots[...]
    sum_s packed[p,m,0,s] <= units - whole units of larger replicas            patterns[...]
    sum_s packed[p,m,a,s] <= sum_s packed[p,m,a-s,s]                           filled[...]

Units in maintenance are subtracted from E in all rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from fleetplan.fleet.errors import InputError
from fleetplan.planner.formulation.bounds import most_units
from fleetplan.planner.formulation.packing import packing
from fleetplan.planner.formulation.rates import rate_scales, rate_units
from fleetplan.planner.formulation.variables import LoadKey, ReplicaKey, Variables
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.problem.file_positions import item_issue
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

FAMILY = 3


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the capacity rows of every pool and moment."""
    hosted: dict[tuple[int, int], list[ReplicaKey]] = {}
    for key in variables.replicas:
        hosted.setdefault((key[1], key[2]), []).append(key)
    for (p, m), keys in hosted.items():
        pool, moment = problem.pools[p], problem.moments[m]
        unit = pool.accelerators_per_unit
        label = f"{pool.name},{moment.label}"
        units = available_units(problem, variables, p, m)
        used = sum(
            pool.footprint_accelerators(problem.candidates[key[0]].accelerators) * variables.replicas[key]
            for key in keys
        )
        model.add(used <= unit * units).with_name(f"capacity[{label}]")
        if (p, m) in variables.in_use:
            in_use = variables.in_use[p, m]
            held = installed_units(problem, variables, p, moment.period) - pool.maintenance_in(moment.period)
            most = most_installed(problem, variables, p, moment.period)
            most_filled = unit * max(most - pool.reserve_units, 0)
            model.add(used <= most_filled * in_use).with_name(f"in_use[{label}]")
            model.add((pool.reserve_units + 1) * in_use <= held).with_name(f"in_use_units[{label}]")
            model.add(most * used <= most_filled * held).with_name(f"reserve[{label}]")
        if (p, m) in variables.hosts_in_use:
            ratio = pool.reserve_ratio
            installed = installed_units(problem, variables, p, moment.period)
            held = installed - pool.maintenance_in(moment.period)
            with_reserve = (ratio.denominator + ratio.numerator) * variables.hosts_in_use[p, m]
            model.add(with_reserve <= ratio.denominator * held).with_name(f"reserve_percent[{label}]")
        running = {key[0]: variables.replicas[key] for key in keys}
        for pattern, count in add_patterns(model, problem, (p, m), running, units, label).items():
            variables.packed[p, m, pattern] = count
    _add_shares(model, problem, variables)


def _add_shares(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add rows that tie the use of a pool to its share of the demand."""
    scales = rate_scales(problem)
    served: dict[tuple[int, int, Phase, int], list[LoadKey]] = {}
    for key in variables.load:
        c, k, p, cell_index = key
        if (p, problem.cells[cell_index].moment) in variables.in_use:
            group = (cell_index, k, problem.candidates[c].phase, p)
            served.setdefault(group, []).append(key)
    for (cell_index, k, phase, p), keys in served.items():
        cell = problem.cells[cell_index]
        service, scale = problem.services[cell.service], scales[cell.service]
        rates = [rate_units(problem, key[0], k) for key in keys]
        units = scale.demand_units(cell.most_requests_per_s[k])
        total = sum(rate * variables.load[key] for rate, key in zip(rates, keys, strict=True))
        most = units * LOAD_UNITS_PER_REPLICA + sum(rates)
        moment, pool = problem.moments[cell.moment], problem.pools[p]
        origin = "" if pool.region == cell.region else f",{cell.region}"
        label = f"{cell.service},{service.classes[k].name},{phase},{pool.name},{moment.label}{origin}"
        model.add(total <= most * variables.in_use[p, cell.moment]).with_name(f"in_use_share[{label}]")


def arrived_units(problem: Problem, variables: Variables, p: int, q: int) -> cp_model.LinearExpr:
    """Return the units of a pool that arrived by a period: purchases stay, rentals end."""
    return cp_model.LinearExpr.sum(
        [
            variable
            for (pool, a, ordered), variable in variables.acquired.items()
            if pool == p and problem.pools[p].acquisitions[a].serves(ordered, q)
        ]
    )


def installed_units(problem: Problem, variables: Variables, p: int, q: int) -> cp_model.LinearExpr:
    """Return the units installed in a pool in a period, the reserve included."""
    left = [variable for (pool, when), variable in variables.retired.items() if pool == p and when <= q]
    existing = problem.pools[p].existing_units
    return arrived_units(problem, variables, p, q) + existing - cp_model.LinearExpr.sum(left)


def most_installed(problem: Problem, variables: Variables, p: int, q: int) -> int:
    """Return the most units that a pool may have in a period, less those in maintenance."""
    pool = problem.pools[p]
    arrived: dict[int, int] = {}
    for (at, a, ordered), variable in variables.acquired.items():
        if at == p and pool.acquisitions[a].serves(ordered, q):
            arrived[a] = arrived.get(a, 0) + variable.proto.domain[1]
    most = pool.existing_units - pool.maintenance_in(q)
    for a, units in arrived.items():
        offer = pool.acquisitions[a].offer
        limit = offer.max_units[q]
        # The maximum limits all running terms of rentals, and each order of purchases.
        bought = offer.capex_usd_per_host is not None
        most += units if bought or limit is None else min(units, limit)
    return most


def available_units(problem: Problem, variables: Variables, p: int, m: int) -> cp_model.LinearExpr:
    """Return the units of a pool that may run replicas in a moment."""
    if (p, m) in variables.hosts_in_use:
        return cp_model.LinearExpr.sum([variables.hosts_in_use[p, m]])
    pool, q = problem.pools[p], problem.moments[m].period
    installed = installed_units(problem, variables, p, q) - pool.maintenance_in(q)
    if (p, m) in variables.in_use:
        return installed - pool.reserve_units * variables.in_use[p, m]
    return installed - min(pool.reserve_units, pool.existing_units - pool.maintenance_in(q))


def add_patterns(
    model: cp_model.CpModel,
    problem: Problem,
    place: tuple[int, int],
    running: Mapping[int, cp_model.IntVar],
    units: cp_model.LinearExpr,
    label: str,
) -> dict[tuple[int, ...], cp_model.IntVar]:
    """Add packing rows for replica sizes that do not divide each other.

    Parameters
    ----------
    model : CpModel
        Receives variables and rows.
    problem : Problem
        Sets and data.
    place : tuple[int, int]
        Pool index, moment index.
    running : Mapping[int, IntVar]
        Replicas by candidate index.
    units : LinearExpr
        Units that may run them.
    label : str
        Label of the rows.

    Returns
    -------
    dict[tuple[int, ...], IntVar]
        Units by packing pattern, or replicas by step; empty if the sizes divide each other.

    Raises
    ------
    InputError
        If a unit of thousands of accelerators can be shared in too many ways.
    """
    p, m = place
    unit = problem.pools[p].accelerators_per_unit
    sizes = {c: problem.candidates[c].accelerators for c in running}
    try:
        plan = packing(unit, sizes.values())
    except ValueError as error:
        pool = problem.pools[p]
        offer_names = [held.offer.name for held in pool.acquisitions]
        block, name = (
            ("pools", pool.name) if pool.existing_units or not offer_names else ("offers", offer_names[0])
        )
        message = f"a host of {unit:,} accelerators: {error}"
        hint = "fewer accelerators_per_host, or replicas whose sizes divide each other"
        issue = item_issue(problem.fleet, block, name, "hardware", message, hint)
        raise InputError([issue]) from error
    if not plan.pattern_sizes:
        return {}
    largest_count = most_units(problem, p, problem.moments[m].period)
    packed = {
        key: model.new_int_var(0, largest_count, f"packed[{label},{key}]")
        for key in plan.patterns or plan.steps
    }
    for index, size in enumerate(plan.pattern_sizes):
        if plan.patterns:
            slots = sum(pattern[index] * count for pattern, count in packed.items())
        else:
            slots = sum(count for (_, step_size), count in packed.items() if step_size == size)
        replicas_of_size = sum(replicas for c, replicas in running.items() if sizes[c] == size)
        model.add(replicas_of_size <= slots).with_name(f"slots[{label},{size}]")
    whole_units = sum(-(-sizes[c] // unit) * replicas for c, replicas in running.items() if sizes[c] >= unit)
    opened_units = [count for key, count in packed.items() if plan.patterns or key[0] == 0]
    model.add(sum(opened_units) + whole_units <= units).with_name(f"patterns[{label}]")
    if plan.steps:
        _add_filled(model, packed, label)
    return packed


def _add_filled(
    model: cp_model.CpModel, steps: Mapping[tuple[int, ...], cp_model.IntVar], label: str
) -> None:
    """Allow replicas after others only where those are placed."""
    before: dict[int, list[cp_model.IntVar]] = {}
    behind: dict[int, list[cp_model.IntVar]] = {}
    for (taken, size), count in steps.items():
        behind.setdefault(taken, []).append(count)
        before.setdefault(taken + size, []).append(count)
    for taken, counts in behind.items():
        if taken:
            model.add(sum(counts) <= sum(before[taken])).with_name(f"filled[{label},{taken}]")
