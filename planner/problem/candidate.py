"""A serving configuration that a plan may run, and what tells it from others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.perfmodel.queueing import CapacityLine


class Phase(StrEnum):
    """Which part of a request a replica serves."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"


LATENCY_TOLERANCE_MS: Final = 1e-6
"""What rounding may make of a latency that meets its limit exactly. [ms]"""

Slot = tuple[int, int]
"""(candidate index, pool index)"""

ConfigurationKey = tuple[str, str, str, str]
"""Service, phase, hardware, configuration."""


@dataclass(frozen=True, slots=True)
class ProvenanceShares:
    """Which share of a candidate's latency rests on which kind of number; the shares add to one."""

    measured: float = 0.0
    interpolated: float = 0.0
    extrapolated: float = 0.0
    roofline: float = 0.0
    given: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One serving configuration of a service on one hardware that meets the SLO and fits memory.

    Attributes
    ----------
    service, hardware, config : str
        What runs where; `config` is the label of the configuration.
    phase : Phase
        Part of a request that a replica serves.
    accelerators : int
        Accelerators of one replica.
    requests_per_s : tuple[float, ...]
        What one replica sustains within the SLO when it serves one class alone, in the order of the
        service's classes; 0 where it cannot serve the class. [requests/s]
    ttft_ms, tpot_ms : tuple[float | None, ...]
        Latency by class; None where the phase has none or nothing is known.
    power_kw : float or None
        IT power of one replica at full load; None where nothing is known. [kW]
    provenance : ProvenanceShares
        How the rates were obtained.
    variant : str
        Name of the service's variant that it runs; empty where the service has none.
    kv_gb : tuple[float | None, ...]
        KV cache that a request of a class brings from prefill to decode; empty or None where nothing is
        known. [GB]
    pooling : tuple[CapacityLine, ...]
        Where latencies are limited under load: a pool carries what the best of these lines says. Without any
        it carries the rates of all its replicas.
    batch : tuple[int or None, ...]
        Sequences of a rank and micro-batch by class; empty or None where nothing is known.
    configuration : Configuration or None
        What `config` is the label of; None for the names of engine tables.
    uncapped_kw : float or None
        `power_kw` without the power cap of the hardware; None where it has none. [kW]
    reach_ms : float or None
        Time of the longest way to another region over which its limits on TTFT under load hold; None where
        none holds under load. [ms]
    """

    service: str
    phase: Phase
    hardware: str
    config: str
    accelerators: int
    requests_per_s: tuple[float, ...]
    ttft_ms: tuple[float | None, ...]
    tpot_ms: tuple[float | None, ...]
    power_kw: float | None
    provenance: ProvenanceShares
    variant: str = ""
    kv_gb: tuple[float | None, ...] = ()
    pooling: tuple[CapacityLine, ...] = ()
    batch: tuple[int | None, ...] = ()
    configuration: Configuration | None = None
    uncapped_kw: float | None = None
    reach_ms: float | None = None

    @property
    def charged_kw(self) -> float | None:
        """IT power at full load that energy is charged for; a power cap does not lower it. [kW]"""
        return self.power_kw if self.uncapped_kw is None else self.uncapped_kw

    def running(self, configuration: Configuration) -> Candidate:
        """Return a candidate with these figures and another configuration."""
        return replace(
            self,
            configuration=configuration,
            config=configuration.label,
            variant=configuration.variant,
        )

    @property
    def key(self) -> ConfigurationKey:
        """Service, phase, hardware and configuration, as a plan names them."""
        return self.service, self.phase.value, self.hardware, self.config

    def carried(self, replicas: int) -> float:
        """Load that a pool carries, in replicas that serve `requests_per_s`."""
        return max((line.at(replicas) for line in self.pooling), default=float(replicas))

    def spare_ms(self, k: int, limit_ms: float | None) -> float:
        """Time that it leaves for the way to another region, or of a KV cache. [ms]

        Parameters
        ----------
        k : int
            The class that it serves.
        limit_ms : float or None
            Limit on the TTFT of the service, less the time outside inference; None where it has none. [ms]

        Returns
        -------
        float
            Infinite where nothing limits TTFT.
        """
        reach_ms = math.inf if self.reach_ms is None else self.reach_ms
        ttft_ms = self.ttft_ms[k]
        if limit_ms is not None and ttft_ms is not None:
            reach_ms = min(reach_ms, limit_ms - ttft_ms)
        return reach_ms + LATENCY_TOLERANCE_MS

    @property
    def label(self) -> str:
        """Name of the candidate in the solver and in messages."""
        return f"{self.service},{self.phase},{self.hardware},{self.config}"
