r"""Cover cuts: how many whole replicas a demand needs, whatever hardware is bought for it.

A row of whole variables :math:`n_j \ge 0` that must cover a demand,

.. math:: \sum_j a_j n_j \ge D,

lets a fraction of a large replica cover a small demand. For every divisor q, with f the fractional part of D
/ q, the rounded row is valid too:

.. math::
    \sum_j \left(\lfloor a_j / q \rfloor + \min(1, (a_j / q - \lfloor a_j / q \rfloor) / f)\right) n_j
    \ge \lceil D / q \rceil

Continuous variables, such as unmet demand, get the coefficient :math:`a_j / (q f)`. This is mixed-integer
rounding (Nemhauser, Wolsey, Integer and Combinatorial Optimization, 1988, II.1.6). A solver finds such cuts
when it branches on replicas. The programs that decide supply keep replicas fractional and know only the cuts
they are given: 160 of them raise the bounds of teams 2 and 5 (benchmarks/realistic) by 48 and 97 thousand
USD, of 2.6 and 2.9 million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.matrix import UNBOUNDED, BoolArray, FloatArray, IntArray, Program
from fleetplan.planner.search.solvers.relaxation import Relaxation

PARTS: Final = (1, 2, 3)
"""Divisors are the coefficients of a row, and these fractions of them."""

MOST_MULTIPLES: Final = 60
"""Largest multiple of a divisor: in a demand for more replicas, rounding up the last one gains next to
nothing."""

LEAST_VIOLATION: Final = 1e-3
"""Least violation, as a share of its limit, at which a cut is added."""

BINDS: Final = 1e-6
"""A cut binds if its slack is a smaller share of its limit."""

ROUND_UP: Final = 1 + 1e-12
"""Factor on computed fractions: a larger coefficient weakens the row but keeps it valid."""

MOST_COEFFICIENT: Final = 2**60 // max(PARTS)
"""Rows with larger coefficients are skipped: their products would overflow 64 bits."""

PASSES: Final = 2
"""Passes that propagate least values from row to row: from work to deferred work to work done."""


@dataclass(frozen=True, slots=True, eq=False)
class _CoverRow:
    """`coefficients @ n + others >= demand` over nonnegative variables.

    Attributes
    ----------
    variables : IntArray
        Integer variables, then continuous ones.
    coefficients : IntArray
        Coefficients of the integer variables, all positive.
    others : FloatArray
        Scaled coefficients of the continuous variables, all positive.
    demand : int
        Positive.
    """

    variables: IntArray
    coefficients: IntArray
    others: FloatArray
    demand: int

    def most_violated(self, values: FloatArray) -> tuple[FloatArray, float] | None:
        """Return the rounded row that these values violate by the largest share of its limit; None if none.

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables.

        Returns
        -------
        tuple[FloatArray, float] or None
            Coefficients of `variables`, and the limit.
        """
        found, most = None, LEAST_VIOLATION
        sizes = np.unique(self.coefficients)
        for part in PARTS:
            divisors = sizes[(part * self.demand) // sizes < MOST_MULTIPLES]
            over = (part * self.demand) % divisors
            divisors, over = divisors[over > 0], over[over > 0]
            if not len(divisors):
                continue
            limit = (part * self.demand) // divisors + 1
            whole, rest = np.divmod(part * self.coefficients[None, :], divisors[:, None])
            fraction = np.minimum(1.0, rest / over[:, None] * ROUND_UP)
            others = part * self.others[None, :] / over[:, None] * ROUND_UP
            rounded = np.hstack([np.minimum(whole + fraction, limit[:, None]), others])
            violation = 1 - rounded @ values[self.variables] / limit
            worst = int(violation.argmax())
            if violation[worst] > most:
                found, most = (rounded[worst], float(limit[worst])), float(violation[worst])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """`rows @ x >= least` over scaled variables."""

    rows: sp.csr_array
    least: FloatArray

    @property
    def count(self) -> int:
        """Return the number of cuts."""
        return len(self.least)

    def and_more(self, others: Sequence[Cuts]) -> Cuts:
        """Return all cuts without duplicates."""
        rows = sp.vstack([self.rows, *(each.rows for each in others)], format="csr")
        least = np.concatenate([self.least, *(each.least for each in others)])
        seen: dict[bytes, int] = {}
        for number in range(len(least)):
            entries = slice(*rows.indptr[number : number + 2])
            text = rows.indices[entries].tobytes() + rows.data[entries].tobytes() + least[number].tobytes()
            seen.setdefault(text, number)
        kept = np.array(sorted(seen.values()), dtype=np.int64)
        return Cuts(rows[kept], least[kept])

    def first_and_binding(self, first: int, points: Sequence[FloatArray], binds: float = BINDS) -> Cuts:
        """Return the first cuts, and those of the others that bind at any of these points."""
        kept = np.arange(self.count) < first
        for point in points:
            kept |= self.rows @ point <= self.least + binds * np.abs(self.least)
        return Cuts(self.rows[np.flatnonzero(kept)], self.least[kept])


class CoverRows:
    """Rows of a program that whole variables must cover.

    Parameters
    ----------
    program : Program
        Program in whole numbers.
    relaxation : Relaxation
        The same program, scaled, with the integrality of its variables.
    """

    def __init__(self, program: Program, relaxation: Relaxation) -> None:
        self._n_variables = len(program.cost)
        self._rows = _cover_rows(program, relaxation)

    @property
    def none(self) -> Cuts:
        """Return an empty set of cuts."""
        return Cuts(sp.csr_array((0, self._n_variables)), np.zeros(0))

    def violated_by(self, values: FloatArray) -> Cuts:
        """Return the most violated cut of each row.

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables.
        """
        missed = [(row, cut) for row in self._rows if (cut := row.most_violated(values)) is not None]
        if not missed:
            return self.none
        lengths = [len(row.variables) for row, _ in missed]
        rows = sp.csr_array(
            (
                np.concatenate([cut[0] for _, cut in missed]),
                np.concatenate([row.variables for row, _ in missed]),
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
            shape=(len(missed), self._n_variables),
        )
        return Cuts(rows, np.array([cut[1] for _, cut in missed]))


def _cover_rows(program: Program, relaxation: Relaxation) -> list[_CoverRow]:
    """Return rows with a lower limit on whole variables, given the least of their continuous variables."""
    whole, scale = relaxation.whole, relaxation.variable_scale
    least = _least_values(program, whole)
    rows = program.rows
    found = []
    for number in np.flatnonzero(program.row_lower > -UNBOUNDED):
        entries = slice(*rows.indptr[number : number + 2])
        variables, sizes = rows.indices[entries].astype(np.int64), rows.data[entries]
        own, able = whole[variables], program.upper[variables] > 0
        covering = own.sum() > 1 and bool(np.all(program.lower[variables] >= 0))
        if not covering or np.any(sizes[own] < 0) or sizes[own].max() > MOST_COEFFICIENT:
            continue
        # Negative terms count at their least value; positive continuous terms stay in the row.
        taken, added = ~own & (sizes < 0), ~own & able & (sizes > 0)
        more = sum(-int(a) * least[j] for a, j in zip(sizes[taken], variables[taken], strict=True))
        demand = int(program.row_lower[number]) + more
        if 0 < demand <= MOST_COEFFICIENT:
            together = np.concatenate([variables[own], variables[added]])
            others = sizes[added] * scale[variables[added]]
            found.append(_CoverRow(together, sizes[own], others, demand))
    return found


def _least_values(program: Program, whole: BoolArray) -> list[int]:
    """Return the least values of continuous variables implied by their rows, rounded down.

    Integer arithmetic is exact: in floating point, a range of 1e18 would hide one of 3 in the same row.
    """
    rows = program.rows
    least: list[int] = program.lower.tolist()
    most: list[int] = program.upper.tolist()
    holding = np.zeros(rows.shape[0], dtype=bool)
    entries = rows.tocoo()
    row, variable = entries.coords
    holding[row[(entries.data > 0) & ~whole[variable]]] = True
    for _ in range(PASSES):
        for number in np.flatnonzero(holding & (program.row_lower > -UNBOUNDED)).tolist():
            own = slice(*rows.indptr[number : number + 2])
            held = list(zip(rows.data[own].tolist(), rows.indices[own].tolist(), strict=True))
            largest = sum(size * (most[j] if size > 0 else least[j]) for size, j in held)
            left = int(program.row_lower[number]) - largest
            for size, j in held:
                if size > 0 and not whole[j]:
                    least[j] = max(least[j], left // size + most[j])
    return least
