"""CP-SAT model as a program for HiGHS, and HiGHS's answers in the model's units.

Loads and rates are continuous for HiGHS. Its bound is valid for the integer model, which is a restriction;
its plans count once CP-SAT has completed them in integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
"""Relative gap at which a completed plan is good enough. Only loads are open: proving the last 3e-8 of a
small fleet takes 2.5 s, reaching this gap 3 ms."""

GAP_MARGIN: Final = 0.9
"""Share of the gap requested from HiGHS: completing its plan in whole loads costs a little."""

GAP_STEPS: Final = 8
"""Objectives between bound and plan at which a gap must suffice."""

FINEST_GAP: Final = 1e-6
"""Smallest requested gap."""


@dataclass(frozen=True, slots=True)
class HighsAnswer:
    """Answer of HiGHS, in units of the CP-SAT objective and variables.

    Attributes
    ----------
    bound : float or None
        Lower bound on the objective.
    values : list[float] or None
        Values of the best plan by variable, with continuous loads.
    infeasible : bool
        Whether there is no plan, within tolerances.
    """

    bound: float | None
    values: list[float] | None
    infeasible: bool = False

    def besides(self, earlier: HighsAnswer) -> HighsAnswer:
        """Combine this answer with an earlier one: each improves on those before."""
        return HighsAnswer(
            earlier.bound if self.bound is None else self.bound,
            earlier.values if self.values is None else self.values,
            self.infeasible or earlier.infeasible,
        )


class HighsProgram:
    """CP-SAT model as a program for HiGHS.

    Parameters
    ----------
    model : CpModel
        Linear model with an objective.
    continuous : frozenset[int]
        Variables that may be fractional.

    Attributes
    ----------
    rows : Rows
        Scaled constraints and bounds.
    cost : Array
        Scaled objective without its constant. [objective units]
    entries : int
        Number of coefficients.
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
        """Convert a value of the model's objective to the program's."""
        return units - self._offset

    def start(self, values: cp_model.CpSolver) -> Array:
        """Convert a plan of the model to the program's units."""
        return self.scaled(values.response_proto.solution)

    def scaled(self, solution: Sequence[int]) -> Array:
        """Convert values of the model's variables to the program's units."""
        scaled: Array = np.asarray(solution, dtype=float) / self._scale
        return scaled

    def answer(self, found: Answer) -> HighsAnswer:
        """Convert an answer to the model's units."""
        bound = found.bound - BOUND_SAFETY * abs(found.bound) + self._offset
        return HighsAnswer(
            bound if math.isfinite(bound) else None,
            None if found.values is None else (found.values * self._scale).tolist(),
            found.infeasible,
        )


def gap_for(objective: float, enough: Enough) -> float:
    """Return the relative gap that is small enough, with a margin for completing the plan in integers.

    The objective lacks fixed costs, and is negative where hosts are sold.
    """
    low, high = 0.0, 1.0
    while high - low > FINEST_GAP:
        middle = (low + high) / 2
        bound = objective - middle * abs(objective)
        low, high = (middle, high) if enough(objective, bound) else (low, middle)
    return max(low * GAP_MARGIN, FINEST_GAP)


def gap_between(lowest: float, known: float, enough: Enough) -> float:
    """Return a gap that is small enough for any plan between a bound and a known plan.

    The target gap is a share of the whole TCO, of which the program's objective is a part. The allowed gap of
    that part is smaller for a poor plan than for a good one.

    Returns
    -------
    float
        Absolute gap, with the same margin. [objective units]
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
    """Return an exact solution of the integer model with the replicas and units that HiGHS found.

    In reproducible runs the limit counts solver units instead of wall time.

    Returns
    -------
    tuple[CpSolver or None, float]
        None if these replicas are too few for whole loads; and the work done.
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
