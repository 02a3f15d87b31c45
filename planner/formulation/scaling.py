"""Conversion of floats to integers; no other module does it.

Rates are rounded down and demand up, so plans of the integer model are valid in unrounded numbers. Figures
count at their decimal value (2.3 is 23/10, not the nearest binary fraction): a fleet in which two replicas of
7.3 requests/s serve exactly 14.6 requests/s stays feasible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.problem.load_units import FASTEST_RATIO
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, USD_RESOLUTION, exact

DEMAND_RESOLUTION: Final = 10**8
"""Rate units of a service's largest demand: rounding is 1e-8 of it."""

WATTS_PER_KW: Final = 1000

WEIGHT_RESOLUTION: Final = 1_000
"""Steps of the largest weight where weights have no small common unit. Weights only rank the unmet demand of
moments; their sums must stay below `LARGEST_SUM`."""

ROW_DIGITS: Final = 6
"""Digits of a row's smallest weight: rounding changes it by less than 1e-6 of itself."""

LARGEST_SUM: Final = 2**62
"""Limit of sums of coefficients times bounds; CP-SAT computes in 64-bit integers."""


def exact_planned_ratio(headroom: float) -> Fraction:
    """Return the planned capacity per unit of demand."""
    return 1 + exact(headroom)


@lru_cache(maxsize=2**16)
def _scaled(requests_per_s: float, headroom: float, exponent: int) -> Fraction:
    """Return a rate with its headroom in rate units; cached, because all pools need the same rates."""
    return exact(requests_per_s) * exact_planned_ratio(headroom) * Fraction(10) ** exponent


class RateScale:
    """Integer rate units of one service.

    Parameters
    ----------
    largest_requests_per_s : float
        Largest demand of the service, headroom included; becomes about `DEMAND_RESOLUTION` units.
    headroom : float
        Capacity planned above demand, as a share of it.
    """

    __slots__ = (
        "exponent",
        "fastest_requests_per_s",
        "headroom",
        "largest_requests_per_s",
        "units_per_request_per_s",
    )

    def __init__(self, largest_requests_per_s: float, headroom: float) -> None:
        self.headroom = headroom
        self.largest_requests_per_s = largest_requests_per_s
        self.fastest_requests_per_s = FASTEST_RATIO * largest_requests_per_s
        self.exponent = math.floor(math.log10(DEMAND_RESOLUTION / largest_requests_per_s))
        self.units_per_request_per_s = Fraction(10) ** self.exponent

    def demand_units(self, requests_per_s: float) -> int:
        """Return a demand with its headroom, rounded up. [rate units]"""
        return math.ceil(_scaled(requests_per_s, self.headroom, self.exponent))

    def rate_units(self, requests_per_s: float, parts: int = 1) -> int:
        """Return the rate of a part of a replica, rounded down. [rate units]

        A replica's rate is capped at `FASTEST_RATIO` times the largest demand.
        """
        rate = _scaled(min(requests_per_s, self.fastest_requests_per_s), 0.0, self.exponent)
        # Dividing fractions takes ten times as long as dividing their integers.
        return rate.numerator // (rate.denominator * parts)

    def rate_units_at_most(self, requests_per_s: float, parts: int = 1) -> int:
        """Return that rate rounded up, for upper limits on served traffic. [rate units]"""
        rate = _scaled(min(requests_per_s, self.fastest_requests_per_s), 0.0, self.exponent)
        return -(-rate.numerator // (rate.denominator * parts))

    def requests_per_s(self, units: float) -> float:
        """Convert rate units back to requests per second."""
        return float(units / self.units_per_request_per_s)


def line_units(line: CapacityLine, parts: int = 1) -> tuple[int, int]:
    """Return a line's load per added replica, rounded down, and loss, rounded up. [parts of load units]"""
    units = LOAD_UNITS_PER_REPLICA * parts
    return math.floor(exact(line.slope) * units), math.ceil(exact(line.loss) * units)


def usd_units(usd: float) -> int:
    """Return the cost coefficient of the objective, rounded to the nearest unit."""
    return round(exact(usd) * USD_RESOLUTION)


def whole_row(weights: Sequence[Fraction], bounds: Sequence[int], limit: Fraction) -> tuple[list[int], int]:
    """Return integers of a row ``sum weight * x <= limit`` that imply the unrounded row.

    Weights are rounded up, the limit down, to a unit that whole load units and short decimals express
    exactly. It is fine enough to keep `ROW_DIGITS` digits of the smallest weight, as far as 64 bits allow.

    Parameters
    ----------
    weights : Sequence[Fraction]
        One weight per variable.
    bounds : Sequence[int]
        Largest values of the variables.
    limit : Fraction
        In the unit of weights times variables.
    """
    sizes = [abs(weight) for weight in weights if weight]
    largest = (abs(weight) * bound for weight, bound in zip(weights, bounds, strict=True))
    total = sum(largest, start=abs(limit))
    wanted = ROW_DIGITS - math.floor(math.log10(min(sizes, default=Fraction(1))))
    possible = math.floor(math.log10(LARGEST_SUM / 4 / max(float(total), 1e-9)))
    whole = min(wanted, possible) - math.ceil(math.log10(LOAD_UNITS_PER_REPLICA))
    resolution = LOAD_UNITS_PER_REPLICA * Fraction(10) ** whole
    return [math.ceil(weight * resolution) for weight in weights], math.floor(limit * resolution)


def whole_limit(
    weights: Sequence[Fraction], bounds: Sequence[int], limit: Fraction, error: Fraction
) -> tuple[list[int], int]:
    """Return integers of a row ``sum weight * x <= limit`` that the unrounded row implies.

    Weights are rounded towards 0, the limit up, in a unit that limits the total error, as far as 64 bits
    allow. A negative weight counts as a positive one of what its variable lacks to its bound: of a demand of
    which most stays unmet, the rounding is that of the served part.

    Parameters
    ----------
    weights, bounds, limit
        As in `whole_row`.
    error : Fraction
        Largest excess over the limit that the integer row may allow.
    """
    total = sum((abs(weight) * bound for weight, bound in zip(weights, bounds, strict=True)), abs(limit))
    used = sum(bound for weight, bound in zip(weights, bounds, strict=True) if weight)
    finest = math.floor(LARGEST_SUM / 4 / max(total, Fraction(1, 10**9)))
    needed = 10 ** math.ceil(math.log10((used + 1) / error)) if error else finest
    resolution = max(min(needed, finest), 1)
    whole = [int(weight * resolution) for weight in weights]
    signed = list(zip(weights, whole, bounds, strict=True))
    lacking = sum((-weight * bound for weight, _, bound in signed if weight < 0), Fraction(0))
    whole_lacking = sum(-each * bound for weight, each, bound in signed if weight < 0)
    return whole, math.ceil((limit + lacking) * resolution) - whole_lacking


def whole_weights(values: Sequence[Fraction], resolution: int = WEIGHT_RESOLUTION) -> list[int]:
    """Return small integers in the ratio of these values, exact or rounded to `resolution` steps."""
    multiple = math.lcm(*(value.denominator for value in values))
    whole = [int(value * multiple) for value in values]
    divisor = math.gcd(*whole) or 1
    if max(whole) // divisor <= resolution:
        return [value // divisor for value in whole]
    return [max(1, round(value * resolution / max(values))) for value in values]


def watts_per_accelerator(kw_per_replica: float, accelerators: int) -> int:
    """Return the power of one accelerator in whole watts, rounded up.

    A row takes ``accelerators`` times this, so the rounding is additive in the accelerator count and
    dominance pruning stays exact.
    """
    return math.ceil(exact(kw_per_replica) * WATTS_PER_KW / accelerators)


def watts_ceil(watts: float) -> int:
    """Return a draw in whole watts, rounded up."""
    return math.ceil(exact(watts))


def watts_floor(facility_kw: float, pue: float) -> int:
    """Return the IT power within a facility's power limit, in whole watts, rounded down."""
    return math.floor(exact(facility_kw) / exact(pue) * WATTS_PER_KW)
