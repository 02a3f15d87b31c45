"""The only place where floats become integers.

Rates are rounded down and demand up, so a plan of the integer model holds in unrounded numbers. Figures
are taken at their decimal value (2.3 is 23/10, not the nearest binary fraction): a fleet in which two
replicas of 7.3 requests/s serve 14.6 requests/s exactly stays feasible.
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
"""Rate units that the largest demand of a service is divided into: 1e-8 of it is the rounding."""

WATTS_PER_KW: Final = 1000

WEIGHT_RESOLUTION: Final = 1_000
"""Steps of the largest weight where weights are no small whole numbers. The weights only rank unmet demand
of different moments; the sums they multiply must stay below `LARGEST_SUM`."""

ROW_DIGITS: Final = 6
"""Digits that the smallest weight of a row keeps: rounding moves it by less than 1e-6 of itself."""

LARGEST_SUM: Final = 2**62
"""Sums of coefficients times bounds must stay below; CP-SAT computes in 64-bit integers."""


def exact_planned_ratio(headroom: float) -> Fraction:
    """Capacity planned for a unit of demand."""
    return 1 + exact(headroom)


@lru_cache(maxsize=2**16)
def _scaled(requests_per_s: float, headroom: float, exponent: int) -> Fraction:
    """A rate with its headroom, in rate units; the same ones come up in every pool."""
    return exact(requests_per_s) * exact_planned_ratio(headroom) * Fraction(10) ** exponent


class RateScale:
    """Integer rate units of one service.

    Parameters
    ----------
    largest_requests_per_s : float
        The largest demand of the service, its headroom included; it becomes about `DEMAND_RESOLUTION` units.
    headroom : float
        Capacity that is planned beyond demand, as a share of it.
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
        """Demand with its headroom, rounded up. [rate units]"""
        return math.ceil(_scaled(requests_per_s, self.headroom, self.exponent))

    def rate_units(self, requests_per_s: float, parts: int = 1) -> int:
        """Rate of a part of a replica, `FASTEST_RATIO` demands in all at most, rounded down. [rate units]"""
        rate = _scaled(min(requests_per_s, self.fastest_requests_per_s), 0.0, self.exponent)
        # To divide fractions takes ten times as long as to divide their whole numbers.
        return rate.numerator // (rate.denominator * parts)

    def rate_units_at_most(self, requests_per_s: float, parts: int = 1) -> int:
        """The same rounded up: for limits on what it may serve. [rate units]"""
        rate = _scaled(min(requests_per_s, self.fastest_requests_per_s), 0.0, self.exponent)
        return -(-rate.numerator // (rate.denominator * parts))

    def requests_per_s(self, units: float) -> float:
        """Rate units back to requests per second."""
        return float(units / self.units_per_request_per_s)


def line_units(line: CapacityLine, parts: int = 1) -> tuple[int, int]:
    """Load of a replica more by a line, rounded down, and its loss, rounded up. [parts of load units]"""
    units = LOAD_UNITS_PER_REPLICA * parts
    return math.floor(exact(line.slope) * units), math.ceil(exact(line.loss) * units)


def usd_units(usd: float) -> int:
    """Cost coefficient of the objective, rounded to the nearest unit."""
    return round(exact(usd) * USD_RESOLUTION)


def whole_row(weights: Sequence[Fraction], bounds: Sequence[int], limit: Fraction) -> tuple[list[int], int]:
    """Whole numbers of a row ``sum weight * x <= limit`` that holds unrounded where they hold.

    Weights are rounded up, the limit down. They are multiples of a unit that whole load units and short
    decimals fill exactly, fine enough that the smallest weight keeps `ROW_DIGITS` digits where 64 bits allow.

    Parameters
    ----------
    weights : Sequence[Fraction]
        One a variable.
    bounds : Sequence[int]
        Largest values of the variables.
    limit : Fraction
        In the unit of the weights times the variables.
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
    """Whole numbers of a row ``sum weight * x <= limit`` that holds where the unrounded one does.

    Weights are rounded down, the limit up, in a unit in which all of that is at most an error, where 64 bits
    allow.

    Parameters
    ----------
    weights, bounds, limit
        As `whole_row` has them.
    error : Fraction
        By how much what keeps the whole row may pass the limit.
    """
    total = sum((abs(weight) * bound for weight, bound in zip(weights, bounds, strict=True)), abs(limit))
    used = sum(bound for weight, bound in zip(weights, bounds, strict=True) if weight)
    finest = math.floor(LARGEST_SUM / 4 / max(total, Fraction(1, 10**9)))
    needed = 10 ** math.ceil(math.log10((used + 1) / error)) if error else finest
    resolution = max(min(needed, finest), 1)
    return [math.floor(weight * resolution) for weight in weights], math.ceil(limit * resolution)


def whole_weights(values: Sequence[Fraction], resolution: int = WEIGHT_RESOLUTION) -> list[int]:
    """Small whole numbers in the ratio of some weights: exactly, or in so many steps of the largest."""
    multiple = math.lcm(*(value.denominator for value in values))
    whole = [int(value * multiple) for value in values]
    divisor = math.gcd(*whole) or 1
    if max(whole) // divisor <= resolution:
        return [value // divisor for value in whole]
    return [max(1, round(value * resolution / max(values))) for value in values]


def watts_per_accelerator(kw_per_replica: float, accelerators: int) -> int:
    """Power of one accelerator in whole watts, rounded up.

    A row takes ``accelerators`` times this, so the rounding is additive in the accelerator count and
    dominance pruning stays exact.
    """
    return math.ceil(exact(kw_per_replica) * WATTS_PER_KW / accelerators)


def watts_ceil(watts: float) -> int:
    """A draw in whole watts, rounded up."""
    return math.ceil(exact(watts))


def watts_floor(facility_kw: float, pue: float) -> int:
    """IT power that a facility's power limit leaves, in whole watts, rounded down."""
    return math.floor(exact(facility_kw) / exact(pue) * WATTS_PER_KW)
