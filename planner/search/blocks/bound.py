r"""Lagrangian bound: linking rows priced into the objective, each block solved separately.

For prices y of the linking rows (y > 0 on a lower limit, y < 0 on an upper one), cost c, linking matrix A
with limits b, blocks B and the master's variables M::

    L(y) = y b + sum_B bound_B(c - A' y) + sum_{j in M} min over its bounds of (c - A' y)_j x_j

No plan costs less than L(y), for any y. Blocks contribute the *bounds* that their solver proved, not the
values it found: a block that runs out of time weakens the bound but does not invalidate it.
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
    """Prices of the linking rows, with the reduced costs they imply.

    Attributes
    ----------
    duals : FloatArray
        Prices by linking row, with signs that its limits allow.
    reduced_cost : FloatArray
        Scaled reduced cost by variable.
    constant : float
        Contribution of the limits and the master's variables to the bound.
    """

    duals: FloatArray
    reduced_cost: FloatArray
    constant: float


class Lagrangian:
    """Lagrangian relaxation: prices linking rows into the costs of variables.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    relaxation : Relaxation
        Relaxation of the same program.

    Attributes
    ----------
    cost : FloatArray
        Scaled costs of the variables.
    least : float
        Lower bound on the cost from the bounds of the variables alone. [objective units]
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
        """Return reduced costs and the constant part of the bound at these prices."""
        allowed, worth = priced_limits(duals, self._lower, self._upper)
        reduced = self.cost - self._transposed @ allowed
        master = reduced[self._master]
        least = np.minimum(master * self._bounds[0], master * self._bounds[1])
        return Priced(allowed, reduced, worth + float(least.sum()))


def total_bound(priced: Priced, block_bounds: FloatArray) -> float:
    """Return the Lagrangian bound from the bounds of all blocks. [objective units]"""
    slack = BOUND_SAFETY * float(np.abs(block_bounds).sum())
    return priced.constant + float(block_bounds.sum()) - slack
