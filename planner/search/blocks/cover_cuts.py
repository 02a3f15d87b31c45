r"""Cuts that say how many whole replicas a demand takes, whatever they are bought for.

A row of whole variables :math:`n_j \ge 0` that have to cover a demand,

.. math:: \sum_j a_j n_j \ge D,

lets a fraction of a large replica cover a small demand. For every divisor q the rounded row holds as well,
with D / q a fraction f above a whole number:

.. math:: \sum_j \left(\lfloor a_j / q \rfloor + \min(1, (a_j / q - \lfloor a_j / q \rfloor) / f)\right) n_j
          \ge \lceil D / q \rceil

What need not be whole, such as unmet demand, counts :math:`a_j / (q f)` there. That is mixed-integer rounding
(Nemhauser, Wolsey, Integer and Combinatorial Optimization, 1988, II.1.6). A solver finds such cuts while it
looks for whole replicas. The programs that decide supply leave replicas in fractions, and know only what they
are told: their bounds of team 2 and 5 (benchmarks/realistic) rise by 48 and 97 thousand USD of 2.6 and 2.9
million with 160 of these cuts.
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
"""Divisors are the coefficients of a row and these parts of them."""

MOST_MULTIPLES: Final = 60
"""Of a demand of more replicas the last fraction says next to nothing."""

LEAST_VIOLATION: Final = 1e-3
"""Share of its limit by which a row is missed that is worth adding."""

BINDS: Final = 1e-6
"""A cut binds where it is kept by a smaller share of its limit."""

ROUND_UP: Final = 1 + 1e-12
"""Factor on computed fractions: a larger coefficient is a weaker row, and holds."""

MOST_COEFFICIENT: Final = 2**60 // max(PARTS)
"""Rows with larger coefficients are left alone: their products would leave 64 bits."""

PASSES: Final = 2
"""How often least values are passed on from row to row: from work to what is put off to what is worked."""


@dataclass(frozen=True, slots=True, eq=False)
class _CoverRow:
    """`coefficients @ n + others >= demand` over variables that are not negative.

    Attributes
    ----------
    variables : IntArray
        The whole ones, then the continuous ones.
    coefficients : IntArray
        Of the whole ones, all positive.
    others : FloatArray
        Of the continuous ones, scaled, all positive.
    demand : int
        Positive.
    """

    variables: IntArray
    coefficients: IntArray
    others: FloatArray
    demand: int

    def most_violated(self, values: FloatArray) -> tuple[FloatArray, float] | None:
        """The rounded row that some values miss by the largest share of its limit; None where they keep all.

        Parameters
        ----------
        values : FloatArray
            Of all variables, scaled.

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
        """How many."""
        return len(self.least)

    def and_more(self, others: Sequence[Cuts]) -> Cuts:
        """All of them, each once."""
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
        """The first ones, and of the others those that bind at any of some points."""
        kept = np.arange(self.count) < first
        for point in points:
            kept |= self.rows @ point <= self.least + binds * np.abs(self.least)
        return Cuts(self.rows[np.flatnonzero(kept)], self.least[kept])


class CoverRows:
    """The rows of a program that whole variables have to cover.

    Parameters
    ----------
    program : Program
        In whole numbers.
    relaxation : Relaxation
        The same program scaled, which says what need not be whole.
    """

    def __init__(self, program: Program, relaxation: Relaxation) -> None:
        self._n_variables = len(program.cost)
        self._rows = _cover_rows(program, relaxation)

    @property
    def none(self) -> Cuts:
        """No cut."""
        return Cuts(sp.csr_array((0, self._n_variables)), np.zeros(0))

    def violated_by(self, values: FloatArray) -> Cuts:
        """The cut of each row that some values miss by most.

        Parameters
        ----------
        values : FloatArray
            Of all variables, scaled.
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
    """Rows with a least sum of whole variables, once the least of what else they need is known."""
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
        # What is taken away is at least its least, and what else may be added is added as it is.
        taken, added = ~own & (sizes < 0), ~own & able & (sizes > 0)
        more = sum(-int(a) * least[j] for a, j in zip(sizes[taken], variables[taken], strict=True))
        demand = int(program.row_lower[number]) + more
        if 0 < demand <= MOST_COEFFICIENT:
            together = np.concatenate([variables[own], variables[added]])
            others = sizes[added] * scale[variables[added]]
            found.append(_CoverRow(together, sizes[own], others, demand))
    return found


def _least_values(program: Program, whole: BoolArray) -> list[int]:
    """The least that continuous variables can be, by the rows that hold them; rounded down.

    In whole numbers of any size: a range of 1e18 beside one of 3 would hide it in floating point, and with it
    what the others can do.
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
