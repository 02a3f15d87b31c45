"""The planning problem: candidates, supply pools and demand, as the model and the verifier share them.

Nothing here knows a solver. `build_problem` turns a resolved fleet and its candidates into sets and data;
floats stay floats (planner/scaling.py alone makes integers of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleetplan.fleet.inventory import Fleet, Hardware, Region, Service
from fleetplan.planner.supply import SupplyPool, supply_pools


class Phase(StrEnum):
    """Which part of a request a replica serves."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"


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

    @property
    def key(self) -> ConfigurationKey:
        """Service, phase, hardware and configuration, as a plan names them."""
        return self.service, self.phase.value, self.hardware, self.config

    @property
    def label(self) -> str:
        """Name of the candidate in the solver and in messages."""
        return f"{self.service},{self.phase},{self.hardware},{self.config}"


@dataclass(frozen=True, slots=True)
class Cell:
    """Demand of one service in one region and period.

    Attributes
    ----------
    service, region : str
        Whose demand and where.
    period : int
        Index into the periods.
    requests_per_s : tuple[float, ...]
        Peak demand by class, without headroom. [requests/s]
    """

    service: str
    region: str
    period: int
    requests_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that a plan is decided on and checked against."""

    fleet: Fleet
    services: Mapping[str, Service]
    regions: Mapping[str, Region]
    hardware: Mapping[str, Hardware]
    periods: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    pools: tuple[SupplyPool, ...]
    cells: tuple[Cell, ...]
    running_before: Mapping[tuple[int, int], int] | None = None
    """Replicas of the plan in force by (candidate index, pool index); None where there is no such plan."""

    @property
    def counts_changes(self) -> bool:
        """Whether it matters which replicas are newly started."""
        if self.running_before is not None:
            return True
        return len(self.periods) > 1 and self.fleet.policy.transition_usd_per_accelerator > 0

    def pools_for(self, candidate: Candidate, region: str) -> list[int]:
        """Indices of the pools of a region that can host a candidate."""
        if not self.services[candidate.service].may_run_in(region):
            return []
        return [
            index
            for index, pool in enumerate(self.pools)
            if pool.region == region and pool.hardware == candidate.hardware
        ]

    def candidates_of(self, service: str) -> list[int]:
        """Indices of the candidates of a service."""
        return [index for index, candidate in enumerate(self.candidates) if candidate.service == service]


def build_problem(fleet: Fleet, candidates: Sequence[Candidate]) -> Problem:
    """Sets and data of the planning problem.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    candidates : Sequence[Candidate]
        Feasible configurations of all services.

    Returns
    -------
    Problem
        Candidates without a pool that could host them are kept; they simply get no variable.
    """
    services = {service.name: service for service in fleet.services}
    cells = []
    for service in fleet.services:
        for region in fleet.regions:
            for index, period in enumerate(fleet.periods):
                rates = tuple(
                    service.demand_requests_per_s.get((region.name, period, request_class.name), 0.0)
                    for request_class in service.classes
                )
                if any(rate > 0 for rate in rates):
                    cells.append(Cell(service.name, region.name, index, rates))
    return Problem(
        fleet=fleet,
        services=services,
        regions={region.name: region for region in fleet.regions},
        hardware=fleet.hardware,
        periods=fleet.periods,
        candidates=tuple(candidates),
        pools=tuple(supply_pools(fleet)),
        cells=tuple(cells),
    )
