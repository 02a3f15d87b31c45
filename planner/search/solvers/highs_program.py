"""A CP-SAT model as a mixed-integer program in arrays, scaled so that HiGHS finds its way."""

from __future__ import annotations

import io
import math
from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

UNBOUNDED: Final = 2**62
"""Limits of rows from here on stand for none."""

ANY_NODES: Final = 2**31 - 1
"""Nodes of a tree without a limit."""

EMPTY: Final = (1, -1)
"""Limits of a row that nothing keeps."""


def column_scales(model: cp_model.CpModel, continuous: Collection[int]) -> NDArray[np.float64]:
    """Units of the columns: a continuous one runs from 0 to 1."""
    return np.array(
        [
            max(float(variable.domain[1]), 1.0) if index in continuous else 1.0
            for index, variable in enumerate(model.proto.variables)
        ]
    )


def cost_unit(model: cp_model.CpModel, scales: NDArray[np.float64]) -> float:
    """The largest cost of a column; HiGHS loses its way with coefficients of 1e11."""
    objective = model.proto.objective
    costs = [
        abs(cost) * scales[column] for column, cost in zip(objective.vars, objective.coeffs, strict=True)
    ]
    return max([1.0, *(float(cost) for cost in costs)])


def archive(
    model: cp_model.CpModel,
    scales: NDArray[np.float64],
    unit: float,
    continuous: Collection[int],
    time_limit_s: float,
    gap_ratio: float,
    node_limit: int,
) -> bytes:
    """The program as an npz archive of plain arrays; rows are divided by their largest coefficient."""
    proto = model.proto
    values, columns, row_starts, row_lower, row_upper = [], [], [0], [], []
    for constraint in proto.constraints:
        linear = constraint.linear
        indices = np.array(list(linear.vars), dtype=np.int64)
        coefficients = np.array(list(linear.coeffs), dtype=float) * scales[indices]
        # A row without variables, where a cell has no candidate, may be what no plan can keep.
        largest = float(np.abs(coefficients).max(initial=0.0)) or 1.0
        values.append(coefficients / largest)
        columns.append(indices)
        row_starts.append(row_starts[-1] + indices.size)
        # By position: an index of -1 into an OR-Tools field gives 0.
        lower, upper = (linear.domain[0], linear.domain[1]) if len(linear.domain) else EMPTY
        row_lower.append(lower / largest if lower > -UNBOUNDED else -math.inf)
        row_upper.append(upper / largest if upper < UNBOUNDED else math.inf)
    cost = np.zeros(len(proto.variables))
    cost[list(proto.objective.vars)] = list(proto.objective.coeffs)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        values=np.concatenate([*values, np.zeros(0)]),
        columns=np.concatenate([*columns, np.zeros(0, dtype=np.int64)]),
        row_starts=np.array(row_starts),
        row_lower=np.array(row_lower),
        row_upper=np.array(row_upper),
        shape=np.array([len(row_lower), len(proto.variables)]),
        lower=np.array([v.domain[0] for v in proto.variables], dtype=float) / scales,
        upper=np.array([v.domain[1] for v in proto.variables], dtype=float) / scales,
        integrality=np.array([index not in continuous for index in range(len(scales))], dtype=np.int64),
        cost=cost * scales / unit,
        time_limit_s=np.array(time_limit_s),
        gap_ratio=np.array(gap_ratio),
        node_limit=np.array(node_limit),
    )
    return buffer.getvalue()
