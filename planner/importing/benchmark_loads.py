"""The load that a run of a load generator was under: what was reached, not what was asked for."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.units import MS_PER_S
from fleetplan.planner.importing.records import RejectedRowError, number

BINDING_CAP_RATIO: Final = 0.95
"""Requests in flight that a rate asks for over the cap on them, from which on the cap sets the load."""

LEAST_FILLED_RATIO: Final = 0.5
"""Mean requests in flight over the cap on them, below which a run never filled its cap: it had fewer requests
than two for each place, which all came at once."""

MOST_FAILED_SHARE: Final = 0.01
"""Share of requests that may fail. What failed left its place to others and is in no mean, so that the load
is off by as much; two runs of one load differ by 1 % as well."""

RANDOM_ARRIVALS: Final = frozenset({"poisson", "gamma"})
"""Patterns of arrivals that are Poisson's, if the shape of the gamma distribution is 1. Sources: AIPerf,
Arrival Patterns; GuideLLM, scheduler/strategies.py. The constant rate of inference-perf has random gaps."""


def reached_load(
    cap: float | None, asked: object, reached: float | None, request_ms: float
) -> tuple[float | None, float | None]:
    """Return concurrency or rate [1/s] of a run: the rate that was reached, unless a cap binds.

    Parameters
    ----------
    cap : float or None
        Most requests in flight.
    asked : object
        Rate that was asked for, as the file has it; "inf" or None where the cap alone sets the load. [1/s]
    reached : float or None
        Rate that was reached; None where the file does not say. [1/s]
    request_ms : float
        Mean time of a request; 0 if unknown. [ms]

    Raises
    ------
    RejectedRowError
        There was no steady load.
    """
    if asked is None or str(asked) in {"inf", "Infinity"}:
        if cap is None and asked is not None:
            raise RejectedRowError("all requests at once (request_rate inf, no cap): no steady load")
        _check_filled(cap, reached, request_ms)
        return cap, None
    rate = number(asked, "request_rate")
    # By the rate that was asked for: what a cap holds back never reaches it.
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
            f"{in_flight:.3g} requests were in flight in the mean under a cap of {cap:g}: no steady load"
        )


def request_ms(ttft_ms: float | None, tpot_ms: float | None, output_tokens: float) -> float:
    """Return the mean time of a request; 0 where the file does not say both of its parts. [ms]"""
    if ttft_ms is None or tpot_ms is None:
        return 0.0
    return ttft_ms + tpot_ms * max(0.0, output_tokens - 1)


def check_poisson(shape: object, what: str) -> None:
    """Reject a run whose requests come in bursts, or evenly, where open loops are those of Poisson arrivals.

    Parameters
    ----------
    shape : object
        Shape of the gamma distribution of the times between requests, as the file has it; 1 is Poisson's.
    what : str
        What the file calls it.
    """
    if shape is not None and number(shape, what) != 1.0:
        raise RejectedRowError(f"{what} {shape}: requests do not come as independent users send them")


def check_uneven(arrivals: object, what: str, rate: float | None) -> None:
    """Reject an open loop whose requests come evenly, or as a schedule has them.

    Under a cap that binds, how requests come changes nothing.

    Parameters
    ----------
    arrivals : object
        What the file calls the pattern; None where it does not say.
    what : str
        What the file calls that setting.
    rate : float or None
        Rate of the open loop; None of a closed one. [1/s]
    """
    if rate is not None and arrivals is not None and str(arrivals) not in RANDOM_ARRIVALS:
        raise RejectedRowError(
            f"{what} {arrivals}: requests do not come as independent users send them (Poisson arrivals)"
        )


def check_failures(failed: float | None, answered: float) -> None:
    """Reject a run in which more requests failed than its means can leave out.

    Parameters
    ----------
    failed : float or None
        Requests that failed; None where the file does not say.
    answered : float
        Requests that did not.
    """
    if failed and failed > MOST_FAILED_SHARE * (failed + answered):
        raise RejectedRowError(
            f"{failed:g} of {failed + answered:g} requests failed, {MOST_FAILED_SHARE:.0%} may: "
            "the load of the others is not known"
        )
