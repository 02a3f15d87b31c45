r"""The Lagrangian bound: linking rows priced into the objective, every block on its own.

For prices y of the linking rows (y > 0 on a lower limit, y < 0 on an upper one), cost c, linking matrix A
with limits b, blocks B and the master's variables M::

    L(y) = y b + sum_B bound_B(c - A' y) + sum_{j in M} min over its bounds of (c - A' y)_j x_j

No plan costs less than L(y), whatever y is. Blocks enter with the *bounds* that their solver proved, never
with the values it found, so a block that ran out of time weakens the bound and does not break it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY, Relaxation, priced_limits


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """The linking rows at certain prices.

    Attributes
    ----------
    duals : FloatArray
        Prices by linking row, of signs that its limits allow.
    reduced_cost : FloatArray
        By variable, scaled.
    constant : float
        What the limits and the master's variables add to the bound.
    """

    duals: FloatArray
    reduced_cost: FloatArray
    constant: float


class Lagrangian:
    """Prices linking rows into the cost of variables.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    relaxation : Relaxation
        Of the same program.

    Attributes
    ----------
    cost : FloatArray
        Of the variables, scaled.
    least : float
        Bound on the cost by the bounds of the variables alone. [objective units]
    """

    def __init__(self, parts: Split, relaxation: Relaxation) -> None:
        linking = parts.linking_rows
        self.cost: FloatArray = parts.program.cost * relaxation.variable_scale
        self._lower, self._upper = relaxation.row_lower[linking], relaxation.row_upper[linking]
        self._transposed: sp.csr_array = relaxation.rows[linking].T.tocsr()
        self._master = parts.master_variables
        self._bounds = relaxation.lower[self._master], relaxation.upper[self._master]
        every = np.minimum(self.cost * relaxation.lower, self.cost * relaxation.upper)
        self.least: float = float(every.sum())

    def price(self, duals: FloatArray) -> Priced:
        """Reduced costs and the constant part of the bound at some prices."""
        allowed, worth = priced_limits(duals, self._lower, self._upper)
        reduced = self.cost - self._transposed @ allowed
        master = reduced[self._master]
        least = np.minimum(master * self._bounds[0], master * self._bounds[1])
        return Priced(allowed, reduced, worth + float(least.sum()))


def total_bound(priced: Priced, block_bounds: FloatArray) -> float:
    """The Lagrangian bound from the bounds of all blocks. [objective units]"""
    slack = BOUND_SAFETY * float(np.abs(block_bounds).sum())
    return priced.constant + float(block_bounds.sum()) - slack
