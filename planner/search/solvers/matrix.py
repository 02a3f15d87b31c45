"""CP-SAT model as a sparse integer matrix: the form that HiGHS and column generation use.

Rows and columns have no meaning here, so any linear constraint family is supported.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

UNBOUNDED: Final = 2**62
"""Row limits of at least this size mean none."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Integer program: minimise cost within rows and bounds.

    Attributes
    ----------
    rows : csr_array
        Integer coefficients, shape (n_rows, n_variables).
    row_lower, row_upper : IntArray
        Limits of the rows, shape (n_rows,); at least `UNBOUNDED` in size if there is none.
    lower, upper : IntArray
        Bounds of the variables, shape (n_variables,).
    cost : IntArray
        Objective, shape (n_variables,). [objective units]
    """

    rows: sp.csr_array
    row_lower: IntArray
    row_upper: IntArray
    lower: IntArray
    upper: IntArray
    cost: IntArray

    def holds(self, values: IntArray) -> bool:
        """Return whether values satisfy all rows and bounds, in exact integers."""
        within = bool(np.all(values >= self.lower) and np.all(values <= self.upper))
        sums = self.rows @ values
        return within and bool(np.all(sums >= self.row_lower) and np.all(sums <= self.row_upper))

    def value(self, values: IntArray) -> int:
        """Return the objective, in exact integers. [objective units]"""
        used = np.flatnonzero(values * (self.cost != 0))
        return sum(int(self.cost[j]) * int(values[j]) for j in used)


def read_program(model: cp_model.CpModel) -> Program:
    """Read the matrix of a linear model.

    Raises
    ------
    ValueError
        If a row is not linear, is conditional, or its limits are no interval.
    """
    proto = _read_at_once(model)
    columns: list[int] = []
    coefficients: list[int] = []
    starts, lower, upper = [0], [], []
    for constraint in proto.constraints:
        linear = constraint.linear
        domain = linear.domain
        if len(domain) != 2 or len(constraint.enforcement_literal):
            raise ValueError(f"row {constraint.name!r} is not a plain linear row")
        columns.extend(linear.vars)
        coefficients.extend(linear.coeffs)
        starts.append(len(columns))
        lower.append(domain[0])
        upper.append(domain[1])
    # A negative index means the complement of a literal, which our rows do not use.
    if columns and min(columns) < 0:
        raise ValueError("a row uses the complement of a literal")
    bounds = [variable.domain for variable in proto.variables]
    if any(len(domain) != 2 for domain in bounds):
        raise ValueError("the values of a variable are not an interval")
    shape = (len(lower), len(bounds))
    rows = sp.csr_array(
        (np.array(coefficients, dtype=np.int64), np.array(columns, dtype=np.int64), np.array(starts)),
        shape=shape,
    )
    rows.sum_duplicates()
    cost = np.zeros(len(bounds), dtype=np.int64)
    np.add.at(cost, list(proto.objective.vars), list(proto.objective.coeffs))
    return Program(
        rows=rows,
        row_lower=np.array(lower, dtype=np.int64),
        row_upper=np.array(upper, dtype=np.int64),
        lower=np.array([domain[0] for domain in bounds], dtype=np.int64),
        upper=np.array([domain[1] for domain in bounds], dtype=np.int64),
        cost=cost,
    )


def _read_at_once(model: cp_model.CpModel) -> cp_model_pb2.CpModelProto:
    """Return a model as Python's protocol buffer, whose fields are read three times as fast as OR-Tools'."""
    with tempfile.TemporaryDirectory(prefix="fleetplan-") as folder:
        # OR-Tools writes models only to files.
        written = Path(folder) / "model.pb"
        if not model.export_to_file(str(written)):
            raise OSError(f"the model was not written to {folder}")
        proto = cp_model_pb2.CpModelProto()
        proto.ParseFromString(written.read_bytes())
    return proto
