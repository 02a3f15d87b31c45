"""Serving configuration that a plan may run, and its identifying key."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.perfmodel.queueing import CapacityLine


class Phase(StrEnum):
    """Phase of a request that a replica serves."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"


LATENCY_TOLERANCE_MS: Final = 1e-6
"""Rounding tolerance of a latency that meets its limit exactly. [ms]"""

Slot = tuple[int, int]
"""(candidate index, pool index)"""

ConfigurationKey = tuple[str, str, str, str]
"""Service, phase, hardware, configuration."""


@dataclass(frozen=True, slots=True)
class ProvenanceShares:
    """Shares of a candidate's latency by source of the number; they add up to one."""

    measured: float = 0.0
    interpolated: float = 0.0
    extrapolated: float = 0.0
    roofline: float = 0.0
    given: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """Serving configuration of a service on one hardware that meets the SLO and fits memory.

    Attributes
    ----------
    service, hardware, config : str
        Service, hardware, and label of the configuration.
    phase : Phase
        Phase of a request that a replica serves.
    accelerators : int
        Accelerators of one replica.
    requests_per_s : tuple[float, ...]
        Rate that one replica sustains within the SLO if it serves one class alone, in the order of the
        service's classes; 0 if it cannot serve the class. [requests/s]
    ttft_ms, tpot_ms : tuple[float | None, ...]
        Latency by class; None if unknown or not part of the phase.
    power_kw : float or None
        IT power of one replica at full load; None if unknown. [kW]
    provenance : ProvenanceShares
        Sources of the rates.
    variant : str
        Name of the service's variant; empty if it has none.
    kv_gb : tuple[float | None, ...]
        KV cache of a request that passes from prefill to decode, by class; empty or None if unknown. [GB]
    pooling : tuple[CapacityLine, ...]
        Lines of load that a pool carries under latency limits, of which the best applies; without lines it
        carries the rates of all its replicas.
    batch : tuple[int or None, ...]
        Sequences per rank and micro-batch, by class; empty or None if unknown.
    configuration : Configuration or None
        Configuration with the label `config`; None for names in engine tables.
    uncapped_kw : float or None
        `power_kw` without the hardware's power cap; None without a cap. [kW]
    reach_ms : float or None
        Longest round trip to another region at which its TTFT limits under load are met; None without such
        limits. [ms]
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
        """Return the IT power at full load charged for energy; a power cap does not reduce it. [kW]"""
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
        """Return service, phase, hardware and configuration, as a plan names them."""
        return self.service, self.phase.value, self.hardware, self.config

    def carried(self, replicas: int) -> float:
        """Return the load that a pool carries, in replicas at `requests_per_s`."""
        return max((line.at(replicas) for line in self.pooling), default=float(replicas))

    def spare_ms(self, k: int, limit_ms: float | None) -> float:
        """Return the time left for the way to another region, or for a KV cache. [ms]

        Parameters
        ----------
        k : int
            Index of the class.
        limit_ms : float or None
            TTFT limit of the service, less the time outside inference; None without a limit. [ms]

        Returns
        -------
        float
            Infinite if TTFT is unlimited.
        """
        reach_ms = math.inf if self.reach_ms is None else self.reach_ms
        ttft_ms = self.ttft_ms[k]
        if limit_ms is not None and ttft_ms is not None:
            reach_ms = min(reach_ms, limit_ms - ttft_ms)
        return reach_ms + LATENCY_TOLERANCE_MS

    @property
    def label(self) -> str:
        """Return the candidate's name in solvers and messages."""
        return f"{self.service},{self.phase},{self.hardware},{self.config}"
