"""Shortages of an infeasible fleet, and the changes that would make it feasible."""

from __future__ import annotations

from pydantic import Field

from fleetplan.fleet.figures import figure
from fleetplan.planner.plan.document import FORMAT_VERSION
from fleetplan.planner.plan.provenance import PlanProvenance, Rejections, Solve
from fleetplan.planner.plan.record import AtMoment, Record


class Shortage(AtMoment):
    """Shortage of an infeasible fleet."""

    region: str
    service: str
    request_class: str
    unmet_requests_per_s: float
    demand_requests_per_s: float
    accelerators_short: dict[str, int] = Field(default_factory=dict)
    """Accelerators that would serve the shortage, by hardware in or on offer for its regions; empty if no
    configuration meets the SLO.
    """
    power_short_kw: float | None = None
    """Least facility power that would run them, including PUE; None if power is not short. [kW]"""
    reason: str

    @property
    def what_is_missing(self) -> str:
        """Unserved rate, total rate and reason in words."""
        rates = f"{figure(self.unmet_requests_per_s)} of {figure(self.demand_requests_per_s)} requests/s"
        return f"{rates} unserved; missing: {self.reason}"

    @property
    def would_take(self) -> str:
        """Capacity that would serve it: power if that is short, else accelerators; empty if nothing would."""
        if self.power_short_kw is not None:
            return f"{self.power_short_kw:.4g} kW"
        options = [f"{count:,} {name}" for name, count in self.accelerators_short.items()]
        if not options:
            return ""
        single = list(self.accelerators_short.values()) == [1]
        return f"{' or '.join(options)} {'accelerator' if single else 'accelerators'}"


class ConcessionRow(Record):
    """Relaxation of one requirement."""

    requirement: str
    change: str
    """New value, with the amount of the change."""
    least: bool
    """Whether any smaller change is proven not to be enough while the others stay the same."""


class StatedWayOut(Record):
    """Requirements that make a plan feasible when relaxed together."""

    gives: tuple[ConcessionRow, ...]
    objective_usd: float
    """TCO of the plan after the relaxation. [USD]"""
    bound_usd: float
    """Lower bound on its cost. [USD]"""


class Conflict(Record):
    """Conflict that makes a fleet infeasible."""

    requirements: tuple[str, ...]
    """Requirements that are infeasible together."""
    minimal: bool
    """Whether the others are feasible without any one of them."""
    ways_out: tuple[StatedWayOut, ...]
    """Solved resolutions, the cheapest plan first."""
    complete: bool
    """Whether the time was enough to examine everything."""

    @property
    def other_conflicts(self) -> bool:
        """Return whether dropping a single requirement was not enough in any resolution."""
        return bool(self.ways_out) and all(len(way.gives) > 1 for way in self.ways_out)


class Infeasible(Record):
    """plan.json of an infeasible fleet."""

    format_version: str = FORMAT_VERSION
    fleet: str
    status: str = "infeasible"
    shortages: tuple[Shortage, ...]
    """Shortages; if complete and empty, the limits are infeasible even without any demand."""
    shortages_complete: bool = True
    """False if the time was too short to find the least unserved demand: the list is correct, but there may
    be more.
    """
    shortages_least: bool = True
    """Whether it is proven that no plan leaves less demand unserved in total."""
    rejections: tuple[Rejections, ...]
    provenance: PlanProvenance
    solve: Solve
    conflict: Conflict | None = None
    """None if the time was too short to find it."""

    @property
    def more_short(self) -> str:
        """Limitation of the list of shortages in words; empty if it is complete and proven."""
        if not self.shortages_complete:
            which = "more shortages" if self.shortages else "the shortages"
            return f"the time was too short to find {which}: raise --time-limit"
        if not self.shortages_least:
            return "the time was too short to prove that the unserved demand is minimal: raise --time-limit"
        if not self.shortages:
            return "the limits leave no plan even if no demand is served: check budgets and power"
        return ""
