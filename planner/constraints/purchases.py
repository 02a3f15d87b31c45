r"""Family 7, purchases: an offer brings at most its maximum, over all the pools that it feeds.

For each offer o and period q of order (purchase) or use (rent); a purchase stands in the pool from its
lead time on to the end of its life::

    sum_p acquired[o,p,q] <= max[o,q]                                     offer[...]
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Problem
from fleetplan.planner.variables import AcquireKey, Variables


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every offer with a maximum and every period."""
    by_offer: dict[tuple[str, int], list[AcquireKey]] = {}
    for p, a, q in variables.acquired:
        name = problem.pools[p].acquisitions[a].offer.name
        by_offer.setdefault((name, q), []).append((p, a, q))
    for (name, q), keys in by_offer.items():
        p, a, _ = keys[0]
        limit = problem.pools[p].acquisitions[a].offer.max_units[q]
        if limit is not None:
            model.add(sum(variables.acquired[key] for key in keys) <= limit).with_name(
                f"offer[{name},{problem.periods[q]}]"
            )
