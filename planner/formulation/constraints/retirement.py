r"""Family 7, retirement: owned units leave at most once, by choice, and all of them at their end of life.

For each owned pool p with E units that may or must leave, and the period e of its end of life. A unit that
leaves at the start of a period is absent in it and later (family 3)::

    sum_q retired[p,q] <= E[p]                                            retired_units[...]
    sum_{q <= e} retired[p,q] >= E[p]                                     end_of_life[...]
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem

FAMILY = 7


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows of every pool from which units may leave."""
    for p, pool in enumerate(problem.pools):
        leaving = [variable for (index, _), variable in variables.retired.items() if index == p]
        if pool.retirement is None or not leaving:
            continue
        gone = cp_model.LinearExpr.sum(leaving)
        model.add(gone <= pool.existing_units).with_name(f"retired_units[{pool.name}]")
        if pool.retirement.end_period is not None:
            # Nothing leaves after the end of life, so all have left by then.
            model.add(gone >= pool.existing_units).with_name(f"end_of_life[{pool.name}]")
