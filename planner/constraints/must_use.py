r"""Family 13, must use: what a question forces into the plan serves a share h of some class of some cell.

For each requirement x, cell i and class k with something that matches x, in phase f, load units S::

    sum_{c in f that match} mu[c,k] w[c,k,p,i] >= S h D[i,k] y                 must_use_load[...]
    sum_{c in aggregated} mu[c,k] w[c,k,p,i]   <= S (D - h D) y + M (1 - y)    must_use_apart[...]
    sum_{i,k,f} y[x,i,k,f] >= 1                                                must_use[...]

The second row is that of separate phases alone: it leaves them traffic that aggregated replicas do not take,
so that the load of the first row is traffic and not a spare. Of an offer the third row counts units::

    sum_{p,q} acquired[o,p,q] >= 1                                             must_use[...]
"""

from __future__ import annotations

import math
from collections import defaultdict

from ortools.sat.python import cp_model

from fleetplan.fleet.inventory import MustUse
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA, exact
from fleetplan.planner.variables import LoadKey, Variables, cell_label, rate_scales

Group = tuple[int, int, Phase]
"""Cell index, class index, phase."""


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows of everything that must be used; a problem with any is in one part (`components`)."""
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
    """Whether a candidate in a pool is what must be used."""
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
    """Whether each class of each cell is served by what must be used."""
    scales = rate_scales(problem)
    loads: dict[Group, list[LoadKey]] = defaultdict(list)
    for c, k, p, i in variables.load:
        loads[i, k, problem.candidates[c].phase].append((c, k, p, i))
    here = []
    for (i, k, phase), keys in loads.items():
        matching = [key for key in keys if matches(problem, required, key[0], key[2])]
        if not matching:
            continue
        cell = problem.cells[i]
        scale, headroom = scales[cell.service], problem.services[cell.service].headroom
        units = scale.demand_units(cell.requests_per_s[k], headroom)
        share = math.ceil(exact(required.share) * units)
        label = f"{required.name},{phase},{cell_label(problem, cell, k)}"
        used = model.new_bool_var(f"must_use_here[{label}]")
        here.append(used)
        rate = scale.rate_units
        served = sum(
            rate(problem.candidates[c].requests_per_s[k]) * variables.load[c, k, p, i]
            for c, k, p, i in matching
        )
        model.add(served >= LOAD_UNITS_PER_REPLICA * share * used).with_name(f"must_use_load[{label}]")
        if phase is not Phase.AGGREGATED:
            together = {
                variables.load[key]: rate(problem.candidates[key[0]].requests_per_s[k])
                for key in loads.get((i, k, Phase.AGGREGATED), ())
            }
            most = sum(mu * variable.proto.domain[1] for variable, mu in together.items())
            left = LOAD_UNITS_PER_REPLICA * (units - share)
            aggregated = cp_model.LinearExpr.weighted_sum(list(together), list(together.values()))
            model.add(aggregated + (most - left) * used <= most).with_name(f"must_use_apart[{label}]")
    return here
