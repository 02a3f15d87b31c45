"""Whole units that the model counts in, and floats at their decimal value. Knows no solver."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

LOAD_UNITS_PER_REPLICA: Final = 55_440
"""Steps in which the load of one replica is divided among classes and pools.

Divisible by every number up to 12 except 0, so that the thirds, fifths and eighths that round demands
lead to are exact. [load units a replica]
"""

USD_RESOLUTION: Final = 10**6
"""Objective units a dollar. The smallest coefficient is the energy of one load unit, some cents: rounding
it moves the energy cost by less than `ENERGY_ROUNDING_RATIO` of itself."""

ENERGY_ROUNDING_RATIO: Final = 1e-4
"""What that rounding moves the energy cost by, at most."""


@lru_cache(maxsize=2**16)
def exact(value: float) -> Fraction:
    """The decimal value that a float was written as."""
    return Fraction(Decimal(repr(float(value))))
