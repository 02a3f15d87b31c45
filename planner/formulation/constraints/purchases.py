r"""Family 7, purchases: an offer brings at most its maximum, over all its pools, in whole lots.

For each offer o and period q, the units ordered in q (purchase), or held in q under terms that began by q
(rent). Purchases arrive after their lead time, rentals stay for their term::

    sum_{p, t counts in q} acquired[o,p,t] <= max[o,q]                    offer[...]
    acquired[o,p,q] = lot[o] lots[o,p,q]                                  lot[...]
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.variables import AcquireKey, Variables
from fleetplan.planner.problem import Problem

FAMILY = 7


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every offer with a maximum and every period, and one for every order in lots."""
    by_offer: dict[str, list[AcquireKey]] = {}
    for p, a, q in variables.acquired:
        by_offer.setdefault(problem.pools[p].acquisitions[a].offer.name, []).append((p, a, q))
    for name, keys in by_offer.items():
        p, a, _ = keys[0]
        acquisition = problem.pools[p].acquisitions[a]
        for q, (period, limit) in enumerate(zip(problem.periods, acquisition.offer.max_units, strict=True)):
            held = [variables.acquired[key] for key in keys if acquisition.counts_in(key[2], q)]
            if limit is not None and held:
                model.add(sum(held) <= limit).with_name(f"offer[{name},{period}]")
    for (p, a, q), lots in variables.lots.items():
        offer = problem.pools[p].acquisitions[a].offer
        label = f"{offer.name},{problem.pools[p].name},{problem.periods[q]}"
        model.add(variables.acquired[p, a, q] == offer.lot_units * lots).with_name(f"lot[{label}]")
