"""Relaxation of a program for HiGHS: floating point, scaled, with continuous loads and rates."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.highs_jobs import Rows
from fleetplan.planner.search.solvers.matrix import UNBOUNDED, BoolArray, FloatArray, Program

BOUND_SAFETY: Final = 1e-6
"""Relative amount by which bounds of HiGHS are lowered, the size of its tolerances."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Relaxation of an integer program, with some continuous variables.

    Continuous variables are scaled to the range 0 to about 1, rows to a largest coefficient of 1.

    Attributes
    ----------
    rows : csr_array
        Scaled coefficients, shape (n_rows, n_variables).
    row_lower, row_upper : FloatArray
        Scaled limits of the rows; infinite if there is none.
    lower, upper : FloatArray
        Scaled bounds of the variables.
    whole : array of bool
        Integer variables.
    variable_scale, row_scale : FloatArray
        Factors of variables and divisors of rows.
    """

    rows: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    whole: BoolArray
    variable_scale: FloatArray
    row_scale: FloatArray

    @property
    def program(self) -> Rows:
        """Return the relaxation as HiGHS's program."""
        limits = (self.row_lower, self.row_upper, self.lower, self.upper)
        return Rows(self.rows, *limits, self.whole)

    def bound(self, cost: FloatArray, duals: FloatArray) -> float:
        """Return a lower bound on any solution, from any prices of the rows.

        At the prices of a linear optimum, the bound equals the optimum. A solver's objective is a bound only
        up to its tolerances: with prices of a million times the cost, it was twice the cost of a plan.

        Parameters
        ----------
        cost : FloatArray
            Scaled costs of the variables.
        duals : FloatArray
            Dual price of each scaled row.
        """
        prices, worth = priced_limits(duals, self.row_lower, self.row_upper)
        reduced = cost - self.rows.T @ prices
        return worth + float(np.minimum(reduced * self.lower, reduced * self.upper).sum())

    def with_cuts(self, rows: sp.csr_array, least: FloatArray) -> Relaxation:
        """Return the relaxation with the rows `rows @ x >= least` appended.

        Parameters
        ----------
        rows : csr_array
            Coefficients over scaled variables, shape (n_cuts, n_variables); the rows are not scaled.
        least : FloatArray
            Lower limits, shape (n_cuts,).
        """
        return replace(
            self,
            rows=sp.vstack([self.rows, rows], format="csr"),
            row_lower=np.concatenate([self.row_lower, least]),
            row_upper=np.concatenate([self.row_upper, np.full(len(least), np.inf)]),
            row_scale=np.concatenate([self.row_scale, np.ones(len(least))]),
        )

    def without_limits_on(self, variables: Collection[int]) -> Relaxation:
        """Return the relaxation without the limits of rows that contain any of these variables."""
        row_lower, row_upper = self.row_lower.copy(), self.row_upper.copy()
        loose = self.rows.tocsc()[:, list(variables)].indices
        row_lower[loose], row_upper[loose] = -np.inf, np.inf
        return replace(self, row_lower=row_lower, row_upper=row_upper)


def priced_limits(
    duals: FloatArray, row_lower: FloatArray, row_upper: FloatArray
) -> tuple[FloatArray, float]:
    """Return prices with valid signs, 0 for missing limits, and the value of the limits at these prices."""
    lowest = np.where(np.isfinite(row_upper), -np.inf, 0.0)
    highest = np.where(np.isfinite(row_lower), np.inf, 0.0)
    prices = np.clip(duals, lowest, highest)
    limits = np.where(prices > 0, row_lower, np.where(prices < 0, row_upper, 0.0))
    return prices, float(prices @ limits)


def relax(program: Program, continuous: Collection[int]) -> Relaxation:
    """Return the relaxation of a program.

    Parameters
    ----------
    program : Program
        Integer program.
    continuous : Collection[int]
        Variables that may be fractional.
    """
    whole = np.ones(len(program.cost), dtype=bool)
    whole[list(continuous)] = False
    variable_scale = np.where(whole, 1.0, np.maximum(program.upper, 1))
    scaled = (program.rows.astype(float) @ sp.diags_array(variable_scale)).tocsr()
    row_scale = np.ones(scaled.shape[0])
    filled = np.diff(scaled.indptr) > 0
    if filled.any():
        row_scale[filled] = np.maximum.reduceat(np.abs(scaled.data), scaled.indptr[:-1][filled])
    row_scale[row_scale == 0] = 1.0
    scaled.data /= np.repeat(row_scale, np.diff(scaled.indptr))
    return Relaxation(
        rows=scaled,
        row_lower=np.where(program.row_lower <= -UNBOUNDED, -np.inf, program.row_lower / row_scale),
        row_upper=np.where(program.row_upper >= UNBOUNDED, np.inf, program.row_upper / row_scale),
        lower=program.lower / variable_scale,
        upper=program.upper / variable_scale,
        whole=whole,
        variable_scale=variable_scale,
        row_scale=row_scale,
    )
