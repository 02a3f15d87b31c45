"""The pools of a period in terms of nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan, PoolUse


@dataclass(frozen=True, slots=True)
class StandingPool:
    """A pool in one period.

    Attributes
    ----------
    name, region, hardware : str
        Names in the plan.
    part : str
        Catalogue hardware, in hosts of any size; `hardware` for user-defined hardware.
    vendor : str
        Empty for hardware that only engine tables know.
    accelerators : int
        Maximum number over the moments of the period.
    accelerators_per_node : int
        Accelerators of a node: a host, or for a pool of single accelerators a host of the same kind.
    kinds : frozenset[str]
        Kinds of offers that supply it: buy, rent, reserve, spot; empty for a pool of the fleet file.
    owned : bool
        Whether it is written off rather than rented.
    power_cap_w : float or None
        Power cap of a card; None without a cap. [W]
    """

    name: str
    region: str
    hardware: str
    part: str
    vendor: str
    accelerators: int
    accelerators_per_node: int
    kinds: frozenset[str]
    owned: bool
    power_cap_w: float | None = None

    @property
    def nodes(self) -> int:
        """Nodes that hold all of its accelerators."""
        return math.ceil(self.accelerators / self.accelerators_per_node)

    @property
    def resource(self) -> str:
        """Resource of the device plug-in; empty if unknown."""
        return tools().resources.get(self.vendor, "")

    @property
    def label(self) -> str:
        """Value of the node label, and name in Kubernetes."""
        return dns_name(self.name)


@dataclass(frozen=True, slots=True)
class NotProvided:
    """A pool or service that a format cannot express, with the reason."""

    label: str
    reason: str


def standing_pools(plan: Plan, period: str | None) -> tuple[StandingPool, ...]:
    """Return the non-empty pools of a period (None for the first)."""
    period = period or plan.periods[0]
    uses: dict[str, list[PoolUse]] = defaultdict(list)
    for use in plan.pools:
        if use.period == period and use.accelerators:
            uses[use.pool].append(use)
    kinds: dict[str, set[str]] = defaultdict(set)
    for row in plan.purchases:
        kinds[row.pool].add(row.kind)
    lines = () if plan.inputs is None else plan.inputs.cost_lines
    owned = {line.pool for line in lines if line.kind == "depreciation"}
    hardware = {} if plan.inputs is None else {each.name: each for each in plan.inputs.hardware}
    found = []
    for name, moments in uses.items():
        kind = hardware.get(moments[0].hardware)
        found.append(
            StandingPool(
                name=name,
                region=moments[0].region,
                hardware=moments[0].hardware,
                part=moments[0].hardware if kind is None or kind.part is None else kind.part,
                vendor="" if kind is None or kind.vendor is None else kind.vendor,
                accelerators=max(use.accelerators for use in moments),
                accelerators_per_node=1 if kind is None else kind.accelerators_per_host,
                kinds=frozenset(kinds[name]),
                owned=name in owned,
                power_cap_w=None if kind is None else kind.power_cap_w,
            )
        )
    return tuple(found)
