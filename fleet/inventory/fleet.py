"""A planning problem: a fleet, its services and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleetplan.fleet.inventory.demand import DemandScenario, Slice
from fleetplan.fleet.inventory.periods import Calendar
from fleetplan.fleet.inventory.policy import Budget, Finance, Policy
from fleetplan.fleet.inventory.service import Service
from fleetplan.fleet.inventory.supply import Hardware, KvLink, Offer, Pool, Region


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Fleet:
    """A complete planning problem.

    Attributes
    ----------
    name : str
        The name in the fleet file, or the file's name without its suffix.
    path : Path
        The fleet file; relative paths within it are relative to its folder.
    periods : tuple[str, ...]
        Quarters or months in order; `now` for a plan of one unnamed period.
    regions, pools, offers, services : tuple
        Regions, pools, offers and services, in the order of the file.
    hardware : Mapping[str, Hardware]
        Every kind that a pool, an offer or an engine table names.
    policy : Policy
        Rules for every service and pool.
    budget : Budget
        Spending limits.
    objective : str
        Objective: tco, served, energy, carbon or accelerators.
    warnings : tuple[str, ...]
        Keys without effect, and assumptions.
    input_hashes : Mapping[str, str]
        SHA-256 of every file read, by path relative to the fleet file.
    calibration : Path or None
        Calibration of the performance model by the user's measurements.
    finance : Finance
        Write-off, discount rate, taxes and currency.
    slices : tuple[Slice, ...]
        Slices of the day in order; empty without slices.
    extended_by : int
        Periods of the extension, which repeat the last stated one.
    demand_scenarios : tuple[DemandScenario, ...]
        Demand scenarios; empty if demand is certain.
    demand_objective : str
        expected-cost or least-regret, over the demand scenarios.
    kv_links : tuple[KvLink, ...]
        Networks whose capacity for KV caches is limited.
    scenarios, assignments : tuple[str, ...]
        Changes to the file, in order: names of its scenarios, then `key.path=value`.
    """

    name: str
    path: Path
    periods: tuple[str, ...]
    regions: tuple[Region, ...]
    hardware: Mapping[str, Hardware]
    pools: tuple[Pool, ...]
    offers: tuple[Offer, ...]
    services: tuple[Service, ...]
    policy: Policy
    budget: Budget
    objective: str
    warnings: tuple[str, ...]
    input_hashes: Mapping[str, str]
    calibration: Path | None = None
    finance: Finance = field(default_factory=Finance)
    slices: tuple[Slice, ...] = ()
    demand_scenarios: tuple[DemandScenario, ...] = ()
    demand_objective: str = "expected-cost"
    kv_links: tuple[KvLink, ...] = ()
    scenarios: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    extended_by: int = 0

    @property
    def n_stated(self) -> int:
        """Number of periods that the file states; later ones are the extension of the horizon."""
        return len(self.periods) - self.extended_by

    @property
    def calendar(self) -> Calendar:
        """Length and names of its periods."""
        return self.finance.calendar
