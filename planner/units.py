"""Integer units of the model, exact floats, and the gap of a cost. Independent of the solvers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

LOAD_UNITS_PER_REPLICA: Final = 55_440
"""Steps in which a replica's load is divided among classes and pools.

Divisible by every number from 1 to 12, so that the thirds, fifths and eighths of round demands are exact.
[load units per replica]
"""

USD_RESOLUTION: Final = 10**6
"""Objective units per dollar. The smallest coefficient is the energy of one load unit, a few cents: rounding
changes the energy cost by less than `ENERGY_ROUNDING_RATIO`."""

ENERGY_ROUNDING_RATIO: Final = 1e-4
"""Largest relative change of the energy cost by that rounding."""


@lru_cache(maxsize=2**16)
def exact(value: float) -> Fraction:
    """Return the decimal value that a float was written as."""
    return Fraction(Decimal(repr(float(value))))


NOTHING_USD: Final = 0.01
"""A cost of at most 0 is minimal if it exceeds its bound by no more than this. [USD]"""


def gap_of_cost(objective_usd: float, bound_usd: float) -> float:
    """Return the excess of a cost over its bound, relative to its size; sales may make costs negative.

    Parameters
    ----------
    objective_usd, bound_usd : float
        Cost of a plan, and its lower bound. [USD]

    Returns
    -------
    float
        1 if the cost is 0 and the bound is negative.
    """
    if objective_usd > 0:
        return (objective_usd - bound_usd) / objective_usd
    if objective_usd - bound_usd <= NOTHING_USD:
        return 0.0
    return (objective_usd - bound_usd) / -objective_usd if objective_usd < 0 else 1.0
