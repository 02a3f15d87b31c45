r"""Family 3, capacity: replicas fit the units of a pool, packed by host or pod, less the reserve.

For each pool p with H accelerators a unit and each period q, with footprint a'[c] (the replica's
accelerators, or whole units where it is larger than one)::

    sum_c a'[c] n[c,p,q] <= H (E[p] - retired + arrived - reserve[p] b)   capacity[...]
    n[c,p,q] <= U b[p,q]                                                  in_use[...]
    (reserve[p] + 1) b[p,q] <= E[p] + arrived[p,q]                        in_use_units[...]

b tells whether the pool runs anything: a pool that nobody buys into needs no spare host. For each cell,
class k and phase, the rate that a pool in use serves is at most the demand; the row is implied for whole b
and keeps the linear relaxation from paying for a sliver of the reserve (one load unit each is rounding)::

    sum_{c in phase} mu[c,k] w[c,k,p,q] <= (S D[k] + sum_c mu[c,k]) b[p,q]   in_use_share[...]

Where the sizes
do not divide each other, z[p,q,t] units are divided by pattern t, which takes m[t,a] replicas of size a::

    sum_{c of size a} n[c,p,q] <= sum_t m[t,a] z[p,q,t]                   slots[...]
    sum_t z[p,q,t] <= units - whole units of larger replicas              patterns[...]

What is out for maintenance in a period is taken from E in all of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from fleetplan.planner.packing import packing
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA
from fleetplan.planner.variables import LoadKey, ReplicaKey, Variables, most_units, rate_scales


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the capacity rows of every pool and period."""
    hosted: dict[tuple[int, int], list[ReplicaKey]] = {}
    for key in variables.replicas:
        hosted.setdefault((key[1], key[2]), []).append(key)
    for (p, q), keys in hosted.items():
        pool = problem.pools[p]
        unit = pool.accelerators_per_unit
        label = f"{pool.name},{problem.periods[q]}"
        units = available_units(problem, variables, p, q)
        used = sum(
            pool.footprint_accelerators(problem.candidates[key[0]].accelerators) * variables.replicas[key]
            for key in keys
        )
        model.add(used <= unit * units).with_name(f"capacity[{label}]")
        if (p, q) in variables.in_use:
            for key in keys:
                bound = variables.replicas[key].proto.domain[1]
                model.add(variables.replicas[key] <= bound * variables.in_use[p, q]).with_name(
                    f"in_use[{problem.candidates[key[0]].label},{label}]"
                )
            standing = standing_units(problem, variables, p, q) - pool.maintenance_in(q)
            model.add((pool.reserve_units + 1) * variables.in_use[p, q] <= standing).with_name(
                f"in_use_units[{label}]"
            )
        running = {key[0]: variables.replicas[key] for key in keys}
        for pattern, count in add_patterns(model, problem, (p, q), running, units, label).items():
            variables.packed[p, q, pattern] = count
    _add_shares(model, problem, variables)


def _add_shares(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Rows that tie the use of a pool to the share of the demand that it serves."""
    scales = rate_scales(problem)
    served: dict[tuple[str, str, int, int, Phase, int], list[LoadKey]] = {}
    for key in variables.load:
        c, k, p, q = key
        if (p, q) in variables.in_use:
            candidate = problem.candidates[c]
            group = (candidate.service, problem.pools[p].region, q, k, candidate.phase, p)
            served.setdefault(group, []).append(key)
    demand = {(cell.service, cell.region, cell.period): cell.requests_per_s for cell in problem.cells}
    for (service, region, q, k, phase, p), keys in served.items():
        scale, headroom = scales[service], problem.services[service].headroom
        rates = [scale.rate_units(problem.candidates[key[0]].requests_per_s[k]) for key in keys]
        units = scale.demand_units(demand[service, region, q][k], headroom)
        total = sum(rate * variables.load[key] for rate, key in zip(rates, keys, strict=True))
        most = units * LOAD_UNITS_PER_REPLICA + sum(rates)
        name = problem.services[service].classes[k].name
        label = f"{service},{name},{phase},{problem.pools[p].name},{problem.periods[q]}"
        model.add(total <= most * variables.in_use[p, q]).with_name(f"in_use_share[{label}]")


def arrived_units(problem: Problem, variables: Variables, p: int, q: int) -> cp_model.LinearExpr:
    """Units of a pool that offers have brought by a period: bought ones stay, rented ones do not."""
    return cp_model.LinearExpr.sum(
        [
            variable
            for (pool, a, ordered), variable in variables.acquired.items()
            if pool == p and problem.pools[p].acquisitions[a].serves(ordered, q)
        ]
    )


def standing_units(problem: Problem, variables: Variables, p: int, q: int) -> cp_model.LinearExpr:
    """Units that stand in a pool in a period, the reserve included."""
    left = [variable for (pool, when), variable in variables.retired.items() if pool == p and when <= q]
    existing = problem.pools[p].existing_units
    return arrived_units(problem, variables, p, q) + existing - cp_model.LinearExpr.sum(left)


def available_units(problem: Problem, variables: Variables, p: int, q: int) -> cp_model.LinearExpr:
    """Units of a pool that may run replicas in a period."""
    pool = problem.pools[p]
    standing = standing_units(problem, variables, p, q) - pool.maintenance_in(q)
    if (p, q) in variables.in_use:
        return standing - pool.reserve_units * variables.in_use[p, q]
    return standing - min(pool.reserve_units, pool.existing_units - pool.maintenance_in(q))


def add_patterns(
    model: cp_model.CpModel,
    problem: Problem,
    place: tuple[int, int],
    running: Mapping[int, cp_model.IntVar],
    units: cp_model.LinearExpr,
    label: str,
) -> dict[tuple[int, ...], cp_model.IntVar]:
    """Add slots of the sizes that do not divide each other.

    Parameters
    ----------
    model : CpModel
        Receives variables and rows.
    problem : Problem
        Sets and data.
    place : tuple[int, int]
        Pool index, period index.
    running : Mapping[int, IntVar]
        Replicas by candidate index.
    units : LinearExpr
        Units that may run them.
    label : str
        Of the rows.

    Returns
    -------
    dict[tuple[int, ...], IntVar]
        Units by packing pattern; empty where the sizes divide each other.
    """
    p, q = place
    unit = problem.pools[p].accelerators_per_unit
    sizes = {c: problem.candidates[c].accelerators for c in running}
    plan = packing(unit, sizes.values())
    if not plan.patterns:
        return {}
    most = most_units(problem, p, q)
    packed = {pattern: model.new_int_var(0, most, f"packed[{label},{pattern}]") for pattern in plan.patterns}
    for index, size in enumerate(plan.pattern_sizes):
        slots = sum(pattern[index] * count for pattern, count in packed.items())
        fitting = sum(replicas for c, replicas in running.items() if sizes[c] == size)
        model.add(fitting <= slots).with_name(f"slots[{label},{size}]")
    whole = sum(-(-sizes[c] // unit) * replicas for c, replicas in running.items() if sizes[c] >= unit)
    model.add(sum(packed.values()) + whole <= units).with_name(f"patterns[{label}]")
    return packed
