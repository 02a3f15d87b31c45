"""Array types of the performance model, and how sure a number is."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.uint8]


class Provenance(IntEnum):
    """Source of a number, most reliable first."""

    MEASURED = 0
    INTERPOLATED = 1
    EXTRAPOLATED = 2
    ROOFLINE = 3

    @property
    def label(self) -> str:
        """The word that files and reports use."""
        return self.name.lower()
