"""A CP-SAT model as HiGHS takes it, and what HiGHS answers in the units of the model.

Loads and rates are continuous for HiGHS: its bound holds for the integer model, which is a restriction, and
its plans are completed by CP-SAT before they count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.cpsat import configured_solver, solve_by_work
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Rows
from fleetplan.planner.search.solvers.matrix import read_program
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY, relax
from fleetplan.planner.search.solvers.request import Enough

COMPLETION_GAP: Final = 1e-7
"""Share of the objective at which a completed plan is good enough. Its replicas are decided, only loads are
not: to prove the last 3e-8 of a small fleet took 2.5 s, to come this near 3 ms."""

GAP_MARGIN: Final = 0.9
"""Part of the gap that HiGHS is asked for: completing its plan in whole loads costs a little."""

GAP_STEPS: Final = 8
"""Objectives between a bound and a plan at which a gap has to be enough."""

FINEST_GAP: Final = 1e-6
"""The smallest gap that it is asked for."""


@dataclass(frozen=True, slots=True)
class HighsAnswer:
    """What HiGHS knows, in units of the CP-SAT objective and variables.

    Attributes
    ----------
    bound : float or None
        No solution has a lower objective.
    values : list[float] or None
        By variable, of the best plan with continuous loads.
    infeasible : bool
        Whether there is no plan, within tolerances.
    """

    bound: float | None
    values: list[float] | None
    infeasible: bool = False

    def besides(self, earlier: HighsAnswer) -> HighsAnswer:
        """The best of this answer and an earlier one: each is better than those before it."""
        return HighsAnswer(
            earlier.bound if self.bound is None else self.bound,
            earlier.values if self.values is None else self.values,
            self.infeasible or earlier.infeasible,
        )


class HighsProgram:
    """A CP-SAT model as HiGHS takes it.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    continuous : frozenset[int]
        Indices of the variables that HiGHS need not keep whole.

    Attributes
    ----------
    rows : Rows
        Constraints and bounds, scaled.
    cost : Array
        Objective without its constant part, scaled. [objective units]
    entries : int
        Coefficients of the rows.
    """

    def __init__(self, model: cp_model.CpModel, continuous: frozenset[int]) -> None:
        program = read_program(model)
        relaxed = relax(program, continuous)
        self._scale = relaxed.variable_scale
        self._offset = model.proto.objective.offset
        self.rows: Rows = relaxed.program.without_scipy()
        self.cost: Array = program.cost * self._scale
        self.entries = int(program.rows.nnz)

    def objective(self, units: float) -> float:
        """A value of the model's objective, in units of the program's."""
        return units - self._offset

    def start(self, values: cp_model.CpSolver) -> Array:
        """A plan of the model, in units of the program."""
        return np.asarray(values.response_proto.solution, dtype=float) / self._scale

    def answer(self, found: Answer) -> HighsAnswer:
        """What HiGHS says, in units of the model."""
        bound = found.bound - BOUND_SAFETY * abs(found.bound) + self._offset
        return HighsAnswer(
            bound if math.isfinite(bound) else None,
            None if found.values is None else (found.values * self._scale).tolist(),
            found.infeasible,
        )


def gap_for(objective: float, enough: Enough) -> float:
    """The gap of the program that is enough, with a margin for completing its plan in integers."""
    low, high = 0.0, 1.0
    while high - low > FINEST_GAP:
        middle = (low + high) / 2
        low, high = (middle, high) if enough(objective, objective * (1 - middle)) else (low, middle)
    return max(low * GAP_MARGIN, FINEST_GAP)


def gap_between(lowest: float, known: float, enough: Enough) -> float:
    """The gap that is enough for whatever plan is found between a bound and a plan that is known.

    A gap of cost is one of the whole TCO, of which a program decides a part: the share of that part which is
    enough is smaller for a poor plan than for a good one.

    Returns
    -------
    float
        With the same margin. [objective units]
    """
    least = known - lowest
    for step in range(GAP_STEPS + 1):
        objective = lowest + (known - lowest) * step / GAP_STEPS
        low, high = 0.0, least
        while high - low > FINEST_GAP * (known - lowest):
            middle = (low + high) / 2
            low, high = (middle, high) if enough(objective, objective - middle) else (low, middle)
        least = low
    return least * GAP_MARGIN


def complete(
    model: cp_model.CpModel,
    continuous: frozenset[int],
    values: list[float],
    time_limit_s: float,
    reproducible: bool = False,
) -> tuple[cp_model.CpSolver | None, float]:
    """An exact solution of the integer model with the replicas and units that HiGHS found.

    The limit is on solver units instead of wall time where the answer must not depend on the machine.

    Returns
    -------
    tuple[CpSolver or None, float]
        None if rounding the rates down leaves those replicas too few; and the work that it took.
    """
    fixed = model.clone()
    fixed.clear_hints()  # type: ignore[no-untyped-call]
    for index, value in enumerate(values):
        variable = fixed.get_int_var_from_proto_index(index)
        if index in continuous:
            fixed.add_hint(variable, min(round(value), variable.proto.domain[1]))
        else:
            fixed.add(variable == round(value))
    solver = configured_solver(math.inf if reproducible else time_limit_s, seed=1, workers=1)
    solver.parameters.relative_gap_limit = COMPLETION_GAP
    if reproducible:
        status, work_s = solve_by_work(solver, fixed, time_limit_s)
    else:
        status = solver.solve(fixed)
        work_s = solver.response_proto.deterministic_time
    return (solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None), work_s
