"""Limits under load of a service: kinds of requests, front end, headroom, latency limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import LatencyLimit, RequestClass, Service, Traffic
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving import FRONT_ENDS, FrontEnd, RequestKind


def request_kind(request_class: RequestClass, traffic: Traffic | None) -> RequestKind:
    """Return the lengths of a class for the performance model."""
    if request_class.input_tokens is None or request_class.output_tokens is None:
        raise ValueError(f"class {request_class.name!r} has no lengths")
    cached = 0
    if request_class.context_tokens is not None:
        cached = request_class.context_tokens - request_class.input_tokens
    lengths = None if traffic is None else traffic.lengths_of(request_class.name)
    return RequestKind(request_class.input_tokens, request_class.output_tokens, cached, lengths)


def front_end_of(service: Service) -> FrontEnd:
    """Return the front-end time of requests: the service's own figure, or the framework's."""
    stated = service.outside_ms.front_end_ms
    return FRONT_ENDS[service.framework] if stated is None else FrontEnd(stated)


HEADROOM_WINDOW_S: Final = 300.0
"""Time over which limits must be met, whatever requests arrive. [s] Source: percentiles of serving systems
are watched over minutes; five are a common window of alerts."""

HEADROOM_DEVIATIONS: Final = 2.33
"""Standard deviations of a window's work kept free: 99 of 100 windows have less."""


def derived_headroom(requests_per_s: float, burstiness: float, work_variation: float) -> float:
    """Return the capacity above demand for the variation of requests and their lengths in a window.

    Parameters
    ----------
    requests_per_s : float
        Mean rate. [1/s]
    burstiness : float
        Squared coefficient of variation of interarrival times.
    work_variation : float
        Squared coefficient of variation of a request's work.
    """
    requests = requests_per_s * HEADROOM_WINDOW_S
    return HEADROOM_DEVIATIONS * float(np.sqrt((burstiness + work_variation) / requests))


@dataclass(frozen=True, slots=True)
class LoadQuestion:
    """Latency limits under load for one class of a service on one hardware.

    Attributes
    ----------
    service : Service
        Service with limits under load.
    traffic : Traffic
        Its traffic.
    kind : RequestKind
        Lengths of the class.
    demand_per_s : tuple[float, float]
        Smallest and largest demand of the class over regions and periods, headroom included. [1/s]
    """

    service: Service
    traffic: Traffic
    kind: RequestKind
    demand_per_s: tuple[float, float]

    def carried_ratio(self, work_variation: FloatArray | float) -> FloatArray:
        """Return the share of a pool's load that demand may use; the rest is the derived headroom."""
        smallest = min(self._rates_by_cell(), default=0.0)
        if not self.traffic.derives_headroom or smallest <= 0:
            return np.ones(np.shape(work_variation))
        headroom = [
            derived_headroom(smallest, self.traffic.burstiness, float(variation))
            for variation in np.atleast_1d(work_variation)
        ]
        return (1 / (1 + np.array(headroom))).reshape(np.shape(work_variation))

    def _rates_by_cell(self) -> list[float]:
        """Return the demand of all classes by region and period, where there is any. [1/s]"""
        found: dict[tuple[str, str], float] = {}
        for (region, period, _), rate in self.service.demand.peak.items():
            found[region, period] = found.get((region, period), 0.0) + rate
        return [rate for rate in found.values() if rate > 0]

    @property
    def inner_ttft(self) -> tuple[LatencyLimit, ...]:
        """Return the TTFT limits, less time outside inference and in the front end."""
        front_end = front_end_of(self.service)
        prompt_ms = float(front_end.prompt_ms(np.array(self.kind.input_tokens)))
        outside_ms = self.service.outside_ms.total_ms + front_end.request_ms + prompt_ms
        return tuple(replace(each, limit_ms=each.limit_ms - outside_ms) for each in self.traffic.ttft)


def load_question(service: Service, request_class: RequestClass) -> LoadQuestion | None:
    """Return the limits under load of a class; None without any."""
    if service.traffic is None or not service.traffic.limits_load:
        return None
    rates = [
        rate * service.planned_ratio
        for (_, _, name), rate in service.demand.peak.items()
        if name == request_class.name and rate > 0
    ]
    demand = (min(rates), max(rates)) if rates else (0.0, 0.0)
    return LoadQuestion(service, service.traffic, request_kind(request_class, service.traffic), demand)
