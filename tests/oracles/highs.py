"""The same integer model in a second solver: scipy's HiGHS."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from fleetplan.planner.model import build_model
from fleetplan.planner.objective import fixed_usd, total_cost
from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import USD_RESOLUTION


def highs_usd(problem: Problem, time_limit_s: float = 30.0) -> float | None:
    """Least TCO by HiGHS, or None if it proves the model infeasible."""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(total_cost(problem, planning.variables))
    units = minimise(planning.model, time_limit_s)
    return None if units is None else units / USD_RESOLUTION + fixed_usd(problem)


def minimise(model: cp_model.CpModel, time_limit_s: float) -> float | None:
    """Objective of a linear CP-SAT model by HiGHS."""
    proto = model.proto
    n = len(proto.variables)
    lower = np.array([variable.domain[0] for variable in proto.variables], dtype=float)
    upper = np.array([variable.domain[1] for variable in proto.variables], dtype=float)
    rows, columns, values, low, high = [], [], [], [], []
    for i, constraint in enumerate(proto.constraints):
        linear = constraint.linear
        coefficients = np.array(list(linear.coeffs), dtype=float)
        scale = float(np.abs(coefficients).max()) if coefficients.size else 1.0
        rows += [i] * coefficients.size
        columns += list(linear.vars)
        values += list(coefficients / scale)
        low.append(linear.domain[0] / scale if linear.domain[0] > -(2**62) else -np.inf)
        high.append(linear.domain[1] / scale if linear.domain[1] < 2**62 else np.inf)
    cost = np.zeros(n)
    for variable, coefficient in zip(proto.objective.vars, proto.objective.coeffs, strict=True):
        cost[variable] += coefficient
    scale = float(np.abs(cost).max()) or 1.0
    matrix = coo_array((values, (rows, columns)), shape=(len(proto.constraints), n)).tocsr()
    solved = milp(
        cost / scale,
        integrality=np.ones(n),
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(matrix, low, high),
        options={"time_limit": time_limit_s, "mip_rel_gap": 1e-9},
    )
    if solved.status == 2:
        return None
    if solved.status != 0:
        raise RuntimeError(solved.message)
    return float(solved.fun * scale + proto.objective.offset)
