"""The load reached in a run of a load generator, which may differ from the requested one."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.units import MS_PER_S
from fleetplan.planner.importing.records import RejectedRowError, number

BINDING_CAP_RATIO: Final = 0.95
"""Ratio of the requests in flight at the requested rate to the concurrency cap from which the cap is binding.
"""

LEAST_FILLED_RATIO: Final = 0.5
"""Minimum ratio of mean requests in flight to the concurrency cap. Below it, a run never filled its cap: it
had fewer than two requests per place, which all arrived at once.
"""

MOST_FAILED_SHARE: Final = 0.01
"""Maximum share of failed requests. Failures free their places and are in no mean, so the load is off by that
share; two runs of the same load also differ by 1 %.
"""

RANDOM_ARRIVALS: Final = frozenset({"poisson", "gamma"})
"""Arrival patterns that are Poisson if the shape of the gamma distribution is 1. Sources: AIPerf, Arrival
Patterns; GuideLLM, scheduler/strategies.py. The constant rate of inference-perf has random gaps.
"""


def reached_load(
    cap: float | None, asked: object, reached: float | None, request_ms: float
) -> tuple[float | None, float | None]:
    """Return concurrency or rate [requests/s] of a run: the rate reached, unless a cap is binding.

    Parameters
    ----------
    cap : float or None
        Maximum requests in flight.
    asked : object
        Requested rate as in the file; "inf" or None if only the cap sets the load. [requests/s]
    reached : float or None
        Rate reached; None if not stated. [requests/s]
    request_ms : float
        Mean time of a request; 0 if unknown. [ms]

    Raises
    ------
    RejectedRowError
        The load was not steady.
    """
    if asked is None or str(asked) in {"inf", "Infinity"}:
        if cap is None and asked is not None:
            raise RejectedRowError("all requests at once (request_rate inf, no cap): no steady load")
        _check_filled(cap, reached, request_ms)
        return cap, None
    rate = number(asked, "request_rate")
    # Use the requested rate: a capped load never reaches it.
    if cap is not None and rate * request_ms / MS_PER_S >= BINDING_CAP_RATIO * cap:
        _check_filled(cap, reached, request_ms)
        return cap, None
    return None, rate if reached is None else reached


def _check_filled(cap: float | None, reached: float | None, request_ms: float) -> None:
    if cap is None or reached is None or not request_ms:
        return
    in_flight = reached * request_ms / MS_PER_S
    if in_flight < LEAST_FILLED_RATIO * cap:
        raise RejectedRowError(
            f"{in_flight:.3g} requests were in flight on average under a cap of {cap:g}: no steady load"
        )


def request_ms(ttft_ms: float | None, tpot_ms: float | None, output_tokens: float) -> float:
    """Return the mean time of a request; 0 if one of its parts is not stated. [ms]"""
    if ttft_ms is None or tpot_ms is None:
        return 0.0
    return ttft_ms + tpot_ms * max(0.0, output_tokens - 1)


def check_poisson(shape: object, what: str) -> None:
    """Reject an open loop with bursty or regular arrivals instead of Poisson ones.

    Parameters
    ----------
    shape : object
        Shape of the gamma distribution of times between requests, as in the file; 1 is Poisson.
    what : str
        Name of the setting in the file.
    """
    if shape is not None and number(shape, what) != 1.0:
        raise RejectedRowError(f"{what} {shape}: requests do not arrive like those of independent users")


def check_uneven(arrivals: object, what: str, rate: float | None) -> None:
    """Reject an open loop with regular or scheduled arrivals.

    With a binding cap, the arrival pattern does not matter.

    Parameters
    ----------
    arrivals : object
        Arrival pattern in the file; None if not stated.
    what : str
        Name of the setting in the file.
    rate : float or None
        Rate of an open loop; None for a closed one. [requests/s]
    """
    if rate is not None and arrivals is not None and str(arrivals) not in RANDOM_ARRIVALS:
        raise RejectedRowError(
            f"{what} {arrivals}: requests do not arrive like those of independent users (Poisson arrivals)"
        )


def check_failures(failed: float | None, answered: float) -> None:
    """Reject a run with too many failed requests for its means to be valid.

    Parameters
    ----------
    failed : float or None
        Failed requests; None if not stated.
    answered : float
        Answered requests.
    """
    if failed and failed > MOST_FAILED_SHARE * (failed + answered):
        raise RejectedRowError(
            f"{failed:g} of {failed + answered:g} requests failed, {MOST_FAILED_SHARE:.0%} may: "
            "the load of the others is unknown"
        )
