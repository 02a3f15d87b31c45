"""Charges of supply decisions, by kind of cost and period.

The objective, the budgets, the cost of a pool and the bill of a plan all use `supply_charges`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fleetplan.planner.formulation.variables import AcquireKey
from fleetplan.planner.problem import Problem

Charges: TypeAlias = Mapping[str, Sequence[float]]
"""Cost of one unit by kind, and by period charged. [USD]"""


def acquired_charges(problem: Problem, key: AcquireKey) -> Charges:
    """Return the charges of a unit ordered in a period, or rented for it. [USD]"""
    p, a, q = key
    return {kind: rows[q] for kind, rows in problem.pools[p].acquisitions[a].unit_cost_by_period.items()}


def retired_charges(problem: Problem, key: tuple[int, int]) -> Charges:
    """Return the change of charges if a unit leaves at the start of a period, its sale included. [USD]"""
    p, q = key
    retirement = problem.pools[p].retirement
    table = {} if retirement is None else retirement.unit_cost_by_period
    return {kind: rows[q] for kind, rows in table.items()}


def supply_charges() -> Mapping[str, Callable[[Problem, Any], Charges]]:
    """Return the charge functions of supply decisions by group; keys begin with the pool."""
    return {"acquired": acquired_charges, "retired": retired_charges}
