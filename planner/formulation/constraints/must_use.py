r"""Family 14, must use: a configuration or offer that a question forces into the plan serves some share.

For each requirement x, and each cell i and class k with a match for x in group g of a phase, with load units
S, y = must_use_here[x,i,k,g] and the required share::

    sum_{c in g that match} mu[c,k] w[c,k,p,i] >= S share D[i,k] y               must_use_load[...]
    sum_{pairs of g} d[i,k,pair]               >= share D[i,k] y           must_use_passed[...]
    sum_{c in aggregated} mu[c,k] w[c,k,p,i]   <= S (1 - share) D y + U (1 - y)  must_use_apart[...]
    sum_{i,k,g} y >= 1                                                        must_use[...]

The second and third rows apply to separate phases: requests pass through the group, and aggregated replicas
leave them to it, so that the load of the first row is real traffic. For an offer, the last row counts units::

    sum_{p,q} acquired[o,p,q] >= 1                                             must_use[...]
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ortools.sat.python import cp_model

from fleetplan.fleet.inventory import MustUse
from fleetplan.planner.formulation.rates import rate_scales, rate_units
from fleetplan.planner.formulation.variables import LoadKey, Variables, cell_label
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, exact

FAMILY = 14

Place = tuple[int, int, Phase]
"""Cell index, class index, phase."""

Slot = tuple[int, int]
"""Candidate index, pool index."""


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows of every requirement; a problem with any is not split into parts (`components`)."""
    for required in problem.fleet.policy.must_use:
        if required.offer is not None:
            terms = [
                variable
                for (p, a, _), variable in variables.acquired.items()
                if problem.pools[p].acquisitions[a].offer.name == required.offer
            ]
        else:
            terms = _served(model, problem, variables, required)
        model.add(cp_model.LinearExpr.sum(terms) >= 1).with_name(f"must_use[{required.name}]")


def matches(problem: Problem, required: MustUse, c: int, p: int) -> bool:
    """Return whether a candidate in a pool matches a requirement."""
    candidate, pool = problem.candidates[c], problem.pools[p]
    return (
        required.service in (None, candidate.service)
        and required.hardware in (None, candidate.hardware)
        and required.config in (None, candidate.config)
        and required.region in (None, pool.region)
        and (required.phases is None or candidate.phase.value in required.phases)
    )


def _served(
    model: cp_model.CpModel, problem: Problem, variables: Variables, required: MustUse
) -> list[cp_model.IntVar]:
    """Return indicators of whether each class of each cell is served by a match, by group."""
    scales = rate_scales(problem)
    loads: dict[Place, list[LoadKey]] = defaultdict(list)
    for c, k, p, i in variables.load:
        loads[i, k, problem.candidates[c].phase].append((c, k, p, i))
    indicators = []
    for (i, k, phase), keys in loads.items():
        cell = problem.cells[i]
        scale = scales[cell.service]
        units = scale.demand_units(cell.requests_per_s[k])
        share = math.ceil(exact(required.share) * units)
        for group, passed, slots in _groups(variables, i, k, phase):
            matching = [
                key
                for key in keys
                if matches(problem, required, key[0], key[2]) and (slots is None or (key[0], key[2]) in slots)
            ]
            if not matching:
                continue
            label = f"{required.name},{phase}{group},{cell_label(problem, cell, k)}"
            used = model.new_bool_var(f"must_use_here[{label}]")
            indicators.append(used)
            served = _rate(problem, variables, matching)
            least = LOAD_UNITS_PER_REPLICA * share * used
            model.add(served >= least).with_name(f"must_use_load[{label}]")
            if phase is not Phase.AGGREGATED:
                model.add(passed >= share * used).with_name(f"must_use_passed[{label}]")
                aggregated_keys = loads.get((i, k, Phase.AGGREGATED), [])
                largest_aggregated = _most(problem, variables, aggregated_keys)
                other_demand = LOAD_UNITS_PER_REPLICA * (units - share)
                aggregated = _rate(problem, variables, aggregated_keys)
                model.add(
                    aggregated + (largest_aggregated - other_demand) * used <= largest_aggregated
                ).with_name(f"must_use_apart[{label}]")
    return indicators


def _groups(
    variables: Variables, i: int, k: int, phase: Phase
) -> Iterator[tuple[str, cp_model.LinearExprT, frozenset[Slot] | None]]:
    """Yield the groups of a phase: a label, the rate that passes through, and their slots (None for all)."""
    if phase is Phase.AGGREGATED:
        yield "", 0, None
        return
    known = variables.kv_pairs.get((i, k))
    if known is None:
        return
    for index, group in enumerate(known.groups(phase)):
        passed = [variables.disaggregated[i, k, g] for g in known.pairs_of(phase, index)]
        label = f",{group.label}" if group.label else ""
        yield label, cp_model.LinearExpr.sum(passed), frozenset(group.slots)


def _rate(problem: Problem, variables: Variables, keys: Sequence[LoadKey]) -> cp_model.LinearExpr:
    """Return the rate that these loads serve. [rate units * load units]"""
    return cp_model.LinearExpr.weighted_sum(
        [variables.load[key] for key in keys],
        [rate_units(problem, key[0], key[1]) for key in keys],
    )


def _most(problem: Problem, variables: Variables, keys: Sequence[LoadKey]) -> int:
    """Return the largest rate that these loads can serve. [rate units * load units]"""
    return sum(rate_units(problem, key[0], key[1]) * variables.load[key].proto.domain[1] for key in keys)
