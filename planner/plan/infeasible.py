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
    """Accelerators that would serve it, by hardware that its regions have or are offered; empty where no
    configuration meets the SLO."""
    power_short_kw: float | None = None
    """Least facility power that would run them, with PUE; None where power is not what is missing. [kW]"""
    reason: str

    @property
    def what_is_missing(self) -> str:
        """Say how much is unserved, of how much, and for what reason."""
        rates = f"{figure(self.unmet_requests_per_s)} of {figure(self.demand_requests_per_s)} requests/s"
        return f"{rates} unserved; missing: {self.reason}"

    @property
    def would_take(self) -> str:
        """Say what would serve it: power if that is short, else accelerators; empty if nothing would."""
        if self.power_short_kw is not None:
            return f"{self.power_short_kw:.4g} kW"
        options = [f"{count:,} {name}" for name, count in self.accelerators_short.items()]
        if not options:
            return ""
        single = list(self.accelerators_short.values()) == [1]
        return f"{' or '.join(options)} {'accelerator' if single else 'accelerators'}"


class GivenWay(Record):
    """How far one requirement gives way."""

    requirement: str
    change: str
    """What it becomes, with the amount."""
    least: bool
    """Whether any less was proven not to be enough, the others alike."""


class StatedWayOut(Record):
    """Requirements that give way together, after which there is a plan."""

    gives: tuple[GivenWay, ...]
    objective_usd: float
    """TCO of the plan that there is then. [USD]"""
    bound_usd: float
    """No such plan costs less. [USD]"""


class Conflict(Record):
    """Why a fleet has no plan."""

    requirements: tuple[str, ...]
    """Together they have none."""
    minimal: bool
    """Whether without any one of them the others have one."""
    ways_out: tuple[StatedWayOut, ...]
    """Each was solved; the cheapest plan first."""
    complete: bool
    """Whether the time was enough to look at everything."""

    @property
    def other_conflicts(self) -> bool:
        """Whether giving up one of the requirements was seen not to be enough."""
        return bool(self.ways_out) and all(len(way.gives) > 1 for way in self.ways_out)


class Infeasible(Record):
    """plan.json of a fleet that cannot be served."""

    format_version: str = FORMAT_VERSION
    fleet: str
    status: str = "infeasible"
    shortages: tuple[Shortage, ...]
    """Empty where the limits leave no plan even if no demand is served, if `shortages_complete`."""
    shortages_complete: bool = True
    """False where the time was too short to find what stays unserved at best: what is listed is short, and
    more may be."""
    shortages_least: bool = True
    """Whether it is proven that no plan leaves less unserved in all."""
    rejections: tuple[Rejections, ...]
    provenance: PlanProvenance
    solve: Solve
    conflict: Conflict | None = None
    """None where the time was too short to find it."""

    @property
    def more_short(self) -> str:
        """Say what the shortages do not show or do not prove; empty where they show and prove all."""
        if not self.shortages_complete:
            which = "what else" if self.shortages else "what"
            return f"the time was too short to find {which} is short: raise --time-limit"
        if not self.shortages_least:
            return "the time was too short to prove that no plan leaves less unserved: raise --time-limit"
        if not self.shortages:
            return "the limits leave no plan even if no demand is served: check budgets and power"
        return ""
