"""Waiting and sojourn times of n equal servers with one queue, for general arrivals and service times.

Times are in mean service times. Symbols: rho utilisation; ca2 and cs2 squared coefficients of variation of
interarrival and service times; W waiting time; S service time; A interarrival time; T = W + S sojourn time;
index p a percentile::

    z = 1 + (ca2 - 1) / (1 + cs2)        peakedness of the number of busy servers
    n' = n / z                           servers with the same wait under Poisson arrivals (Hayward)
    P(W > 0) = Erlang C of n' servers at utilisation rho, with n' any positive number
    E[W] = P(W > 0) (1 + cs2) / (2 n' (1 - rho))
    P(W > x) = min(1, E[W] eta) exp(-eta x)
    T_p = 1 + E[W] + hypot(W_p - E[W], S_p - 1)

eta is the decay rate of long waits: E[exp(eta S / n)] E[exp(-eta A)] = 1 for gamma-distributed S and A. The
factor E[W] eta keeps the mean. The last line adds the deviations of W and S as those of independent
variables. M/M/n and the mean of M/G/1 are exact.

Sources: Hayward's approximation: A. A. Fredericks, "Congestion in blocking systems: a simple approximation
technique", Bell System Technical Journal 59 (1980). The factor (1 + cs2) / 2: A. M. Lee and P. A. Longton,
Operational Research Quarterly 10 (1959). The rate eta: J. F. C. Kingman, "A martingale inequality in the
theory of queues", Proceedings of the Cambridge Philosophical Society 60 (1964).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray

_BRACKET: Final = (0.05, 50.0)
"""Bracket of the decay rate, divided by its heavy-traffic value."""

_CONSTANT: Final = 1e-9
"""Squared coefficient of variation of what does not vary, instead of zero."""

_HALVINGS: Final = 14
"""Halvings of the bracket, in logarithms: to a relative 4e-4."""

_NEWTON_STEPS: Final = 4
"""Steps from there: to a relative 1e-9 in 99 % of random pools, to 2e-4 where next to no request waits."""


Numbers: TypeAlias = float | FloatArray
"""A number, or an array that broadcasts against the servers."""


@dataclass(frozen=True, slots=True)
class Variability:
    """Variability of traffic.

    Attributes
    ----------
    arrivals : float or FloatArray
        Squared coefficient of variation of the interarrival times; 1 is Poisson.
    service : float or FloatArray
        Squared coefficient of variation of the service times; 0 is a constant.
    """

    arrivals: Numbers = 1.0
    service: Numbers = 0.0

    @property
    def peakedness(self) -> FloatArray:
        """Peakedness z, at least 0.01."""
        return np.asarray(np.maximum(0.01, 1.0 + (self.arrivals - 1.0) / (1.0 + self.service)))


@dataclass(frozen=True, slots=True)
class Waiting:
    """The wait for a server, in mean service times, each of shape (n,).

    Attributes
    ----------
    chance : FloatArray
        Probability of waiting.
    mean : FloatArray
        Mean over all requests.
    fall : FloatArray
        Decay rate eta of long waits.
    """

    chance: FloatArray
    mean: FloatArray
    fall: FloatArray

    def percentile(self, share: float) -> FloatArray:
        """Return the wait that `share` of the requests do not exceed."""
        reached = np.minimum(1.0, self.mean * self.fall) / (1.0 - share)
        found: FloatArray = np.log(np.maximum(reached, 1.0)) / self.fall
        return found


def waiting(servers: FloatArray, utilisation: FloatArray, variability: Variability) -> Waiting:
    """Return the wait of a pool.

    Parameters
    ----------
    servers : FloatArray
        Their number, shape (n,).
    utilisation : FloatArray
        Arrivals times mean service time over servers, above 0 and below 1, shape (n,).
    variability : Variability
        Squared coefficients of variation of arrivals and service.
    """
    alike = servers / variability.peakedness
    chance = erlang_c(alike, utilisation)
    mean = chance * (1.0 + variability.service) / (2.0 * alike * (1.0 - utilisation))
    return Waiting(chance, mean, fall_rate(servers, utilisation, variability))


def fall_rate(servers: FloatArray, utilisation: FloatArray, variability: Variability) -> FloatArray:
    """Return the decay rate eta of long waits, per mean service time, shape (n,)."""
    # In heavy traffic it is 2 n (1 - rho) / (ca2 + cs2); gamma distributions stay within the bracket.
    heavy = 2.0 * (1.0 - utilisation) / (variability.arrivals + variability.service)
    low, high = heavy * _BRACKET[0], heavy * _BRACKET[1]
    service = np.maximum(variability.service, _CONSTANT)
    arrivals = np.maximum(variability.arrivals, _CONSTANT)
    high = np.minimum(high, (1.0 - 1e-9) / service)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        above = _log_moment(middle, service) + _log_moment(-middle / utilisation, arrivals)
        low, high = np.where(above < 0, middle, low), np.where(above < 0, high, middle)
    # The sum is convex: from above, Newton's steps end at the root and never pass it.
    for _ in range(_NEWTON_STEPS):
        above = _log_moment(high, service) + _log_moment(-high / utilisation, arrivals)
        slope = 1.0 / (1.0 - service * high) - 1.0 / (utilisation + arrivals * high)
        high = np.where((above > 0) & (slope > 0), np.maximum(high - above / slope, low), high)
    found: FloatArray = servers * high
    return found


def _log_moment(rate: FloatArray, squared_variation: Numbers) -> FloatArray:
    """Return the logarithm of E[exp(rate X)] for a gamma-distributed X of mean one."""
    found: FloatArray = -np.log1p(-squared_variation * rate) / squared_variation
    return found


def erlang_c(servers: FloatArray, utilisation: FloatArray) -> FloatArray:
    """Return the probability of waiting in M/M/n (Erlang C) for any positive n, shape (n,)."""
    # SciPy takes a tenth of the start to import, and most fleets do not need it.
    from scipy.special import gammaincc, gammaln  # noqa: PLC0415

    load = np.maximum(servers * utilisation, 1e-300)
    tail = np.maximum(gammaincc(servers + 1.0, load), 1e-300)
    blocked = np.exp(servers * np.log(load) - load - gammaln(servers + 1.0)) / tail
    found: FloatArray = blocked / (1.0 - utilisation * (1.0 - blocked))
    return np.minimum(found, 1.0)


def sojourn_mean(servers: FloatArray, utilisation: FloatArray, variability: Variability) -> FloatArray:
    """Return the mean sojourn time, in mean service times, shape (n,)."""
    return 1.0 + waiting(servers, utilisation, variability).mean


def sojourn_percentile(
    servers: FloatArray,
    utilisation: FloatArray,
    variability: Variability,
    share: float,
    service_percentile: Numbers = 1.0,
) -> FloatArray:
    """Return the sojourn time that `share` of the requests do not exceed, in mean service times, shape (n,).

    Parameters
    ----------
    servers, utilisation, variability
        As in `waiting`.
    share : float
        Such as 0.95.
    service_percentile : float or FloatArray
        Service time that `share` of the requests do not exceed, in mean service times.
    """
    wait = waiting(servers, utilisation, variability)
    spread = np.hypot(wait.percentile(share) - wait.mean, service_percentile - 1.0)
    found: FloatArray = 1.0 + wait.mean + spread
    return found
