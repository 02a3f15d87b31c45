"""One planning question: a fleet, its services and its rules."""

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
    """One planning question in full.

    Attributes
    ----------
    name : str
        The name in the fleet file, or the file's name without its suffix.
    path : Path
        The fleet file; relative paths within it are relative to its folder.
    periods : tuple[str, ...]
        Quarters or months in order; `now` for a plan of one unnamed period.
    regions, pools, offers, services : tuple
        In the order of the file.
    hardware : Mapping[str, Hardware]
        Every kind that a pool, an offer or an engine table names.
    policy : Policy
        Rules for every service and pool.
    budget : Budget
        Spending limits.
    objective : str
        What comes first: tco, served, energy, carbon or accelerators.
    warnings : tuple[str, ...]
        What was read but has no effect yet, and what was assumed.
    input_hashes : Mapping[str, str]
        SHA-256 of every file that was read, by its path relative to the fleet file.
    calibration : Path or None
        Calibration of the performance model by measurements of one's own.
    finance : Finance
        How prices become cost.
    slices : tuple[Slice, ...]
        Parts of the day in their order; empty where the day is whole.
    extended_by : int
        Periods at the end that repeat the last one that the file states.
    demand_scenarios : tuple[DemandScenario, ...]
        Ways in which demand may turn out; empty where it is certain.
    demand_objective : str
        expected-cost or least-regret, over the demand scenarios.
    kv_links : tuple[KvLink, ...]
        Networks whose capacity for KV caches is limited.
    scenarios, assignments : tuple[str, ...]
        What was laid on the file, in order: names of its scenarios, then `key.path=value`.
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
        """How many periods the file states; those after them are the extension of the horizon."""
        return len(self.periods) - self.extended_by

    @property
    def calendar(self) -> Calendar:
        """How long its periods are, and how they are named."""
        return self.finance.calendar
