"""False position with halved weights (the Illinois algorithm), for arrays of equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Brackets:
    """Brackets of the rows that have not converged, each of shape (n_left,)."""

    rows: IntArray
    low: FloatArray
    high: FloatArray
    below: FloatArray
    above: FloatArray
    side: FloatArray

    def narrowed(self, starts: FloatArray, found: FloatArray) -> Brackets:
        """Replace one end of the bracket by `starts`, whose clients differ by `found`."""
        short = found < 0
        return Brackets(
            self.rows,
            np.where(short, starts, self.low),
            np.where(short, self.high, starts),
            np.where(short, found, np.where(self.side > 0, self.below / 2, self.below)),
            np.where(short, np.where(self.side < 0, self.above / 2, self.above), found),
            np.where(short, -1.0, 1.0),
        )

    def take(self, kept: NDArray[np.bool_]) -> Brackets:
        """Return some of the rows."""
        return Brackets(*(getattr(self, name)[kept] for name in Brackets.__slots__))
