"""A program in floating point for HiGHS: scaled, with loads and rates continuous."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.highs_jobs import Rows
from fleetplan.planner.search.solvers.matrix import UNBOUNDED, BoolArray, FloatArray, Program

BOUND_SAFETY: Final = 1e-6
"""Share that a bound of HiGHS is lowered by: it computes with tolerances of that size."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """A relaxation of an integer program: some variables need not be whole.

    A continuous variable runs from 0 to about 1, a row is divided by its largest coefficient.

    Attributes
    ----------
    rows : csr_array
        Scaled coefficients, shape (n_rows, n_variables).
    row_lower, row_upper : FloatArray
        Scaled limits of the rows; infinite where there is none.
    lower, upper : FloatArray
        Scaled bounds of the variables.
    whole : array of bool
        Which variables are whole.
    variable_scale, row_scale : FloatArray
        What variables were multiplied and rows divided by.
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
        """The relaxation as HiGHS takes it."""
        limits = (self.row_lower, self.row_upper, self.lower, self.upper)
        return Rows(self.rows, *limits, self.whole)

    def bound(self, cost: FloatArray, duals: FloatArray) -> float:
        """What any solution costs at least, by prices of its rows, however these were found.

        At the prices of a linear optimum this is the optimum. The objective that a solver gives is no bound
        beyond its tolerances: beside prices of a million times the cost it was twice what a plan costs.

        Parameters
        ----------
        cost : FloatArray
            Of the variables, scaled.
        duals : FloatArray
            What one more unit of each scaled row's limit costs.
        """
        prices, worth = priced_limits(duals, self.row_lower, self.row_upper)
        reduced = cost - self.rows.T @ prices
        return worth + float(np.minimum(reduced * self.lower, reduced * self.upper).sum())

    def with_cuts(self, rows: sp.csr_array, least: FloatArray) -> Relaxation:
        """The same with `rows @ x >= least` below its rows.

        Parameters
        ----------
        rows : csr_array
            Over scaled variables, shape (n_cuts, n_variables); not scaled themselves.
        least : FloatArray
            Shape (n_cuts,).
        """
        return replace(
            self,
            rows=sp.vstack([self.rows, rows], format="csr"),
            row_lower=np.concatenate([self.row_lower, least]),
            row_upper=np.concatenate([self.row_upper, np.full(len(least), np.inf)]),
            row_scale=np.concatenate([self.row_scale, np.ones(len(least))]),
        )

    def without_limits_on(self, variables: Collection[int]) -> Relaxation:
        """The same without the limits of the rows that hold any of some variables."""
        row_lower, row_upper = self.row_lower.copy(), self.row_upper.copy()
        loose = self.rows.tocsc()[:, list(variables)].indices
        row_lower[loose], row_upper[loose] = -np.inf, np.inf
        return replace(self, row_lower=row_lower, row_upper=row_upper)


def priced_limits(
    duals: FloatArray, row_lower: FloatArray, row_upper: FloatArray
) -> tuple[FloatArray, float]:
    """Prices that rows may have, as a limit that does not exist has none, and the worth of their limits."""
    lowest = np.where(np.isfinite(row_upper), -np.inf, 0.0)
    highest = np.where(np.isfinite(row_lower), np.inf, 0.0)
    prices = np.clip(duals, lowest, highest)
    limits = np.where(prices > 0, row_lower, np.where(prices < 0, row_upper, 0.0))
    return prices, float(prices @ limits)


def relax(program: Program, continuous: Collection[int]) -> Relaxation:
    """The relaxation of a program.

    Parameters
    ----------
    program : Program
        In whole numbers.
    continuous : Collection[int]
        Variables that need not be whole.
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
