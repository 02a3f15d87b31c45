"""Whole units that the model counts in, exact floats, and the gap of a cost. Knows no solver."""

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


NOTHING_USD: Final = 0.01
"""A cost of nothing, or less, that exceeds its bound by no more is as low as it can be. [USD]"""


def gap_of_cost(objective_usd: float, bound_usd: float) -> float:
    """By how much a cost exceeds its bound, over its size: sales may bring more than everything costs.

    Parameters
    ----------
    objective_usd, bound_usd : float
        Cost of a plan, and what every plan costs at least. [USD]

    Returns
    -------
    float
        One where nothing is spent, and something might be earned.
    """
    if objective_usd > 0:
        return (objective_usd - bound_usd) / objective_usd
    if objective_usd - bound_usd <= NOTHING_USD:
        return 0.0
    return (objective_usd - bound_usd) / -objective_usd if objective_usd < 0 else 1.0
