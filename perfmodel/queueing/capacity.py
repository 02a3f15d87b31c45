"""Capacity of a pool within a latency limit, as a function of its size.

Let rho(n) be the largest utilisation at which n servers meet the limit. A larger pool may run closer to
saturation, so n rho(n), its load, is convex in n and lies above each line through two neighbouring points. A
line load <= slope n - loss therefore holds for every n: it is exact at its points and conservative elsewhere.
The planner uses these lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.queueing.capacity_line import CapacityLine
from fleetplan.perfmodel.queueing.pool import Numbers, Variability, erlang_c, sojourn_mean, sojourn_percentile

MARGIN: Final = 0.03
"""Margin subtracted from every utilisation, so that simulations meet the formula's limits. Source:
`benchmarks/queueing.py`, capacity cells."""

_HALVINGS: Final = 30
"""Halvings of the interval of utilisations: to 1e-9."""


@dataclass(frozen=True, slots=True)
class SojournLimit:
    """A limit on wait and service together.

    Attributes
    ----------
    service_times : float or FloatArray
        The limit, in mean service times; an array broadcasts against the servers.
    share : float or None
        Share of the requests that must keep it; None limits the mean.
    service_percentile : float or FloatArray
        Service time that this share does not exceed, in mean service times.
    """

    service_times: Numbers
    share: float | None
    service_percentile: Numbers = 1.0


def utilisation_within(
    servers: FloatArray, variability: Variability, limit: SojournLimit, margin: float = MARGIN
) -> FloatArray:
    """Return the largest utilisation at which a pool meets a limit, 0 if none does, shape (n,).

    Parameters
    ----------
    servers : FloatArray
        Their number, shape (n,).
    variability : Variability
        Squared coefficients of variation of arrivals and service.
    limit : SojournLimit
        Latency limit.
    margin : float
        Taken off.
    """
    shape = np.broadcast_shapes(servers.shape, np.shape(limit.service_times), np.shape(variability.service))
    low, high = np.full(shape, 1e-6), np.full(shape, 1.0 - 1e-6)
    kept = _sojourn(servers, low, variability, limit) <= limit.service_times
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        good = _sojourn(servers, middle, variability, limit) <= limit.service_times
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    found: FloatArray = np.where(kept, np.maximum(low - margin, 0.0), 0.0)
    return found


def _sojourn(
    servers: FloatArray, utilisation: FloatArray, variability: Variability, limit: SojournLimit
) -> FloatArray:
    if limit.share is None:
        return sojourn_mean(servers, utilisation, variability)
    return sojourn_percentile(servers, utilisation, variability, limit.share, limit.service_percentile)


def utilisation_without_wait(
    servers: FloatArray, variability: Variability, chance: float, margin: float = MARGIN
) -> FloatArray:
    """Return the largest utilisation at which at most `chance` of the requests wait at all, shape (n,).

    Parameters
    ----------
    servers, variability, margin
        As in `utilisation_within`.
    chance : float
        Share of the requests.
    """
    alike = servers / variability.peakedness
    low, high = np.zeros(alike.shape), np.full(alike.shape, 1.0 - 1e-6)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        good = erlang_c(alike, middle) <= chance
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    found: FloatArray = np.maximum(low - margin, 0.0)
    return found


def capacity_lines(sizes: IntArray, loads: FloatArray, knots: Iterable[int]) -> tuple[CapacityLine, ...]:
    """Return lines below the loads of pools of different sizes, each exact next to one of the knots.

    Parameters
    ----------
    sizes : IntArray
        Pool sizes in rising order, shape (n,), some of them neighbours.
    loads : FloatArray
        Capacities, shape (n,).
    knots : Iterable[int]
        Pool sizes at which lines should be exact: each line goes through the two sizes next to its knot,
        lowered if it would exceed the load of another size.

    Returns
    -------
    tuple[CapacityLine, ...]
        The steepest last; none if no pool carries anything.
    """
    pairs = np.flatnonzero(np.diff(sizes) == 1)
    found: dict[CapacityLine, None] = {}
    for knot in knots:
        at = int(pairs[np.argmin(np.abs(sizes[pairs] - knot))])
        slope = float(loads[at + 1] - loads[at])
        if slope > 0:
            found[CapacityLine(slope, max(0.0, float((slope * sizes - loads).max())))] = None
    return tuple(sorted(found, key=lambda line: line.slope))
