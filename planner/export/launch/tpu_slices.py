"""TPU slices in Google Kubernetes Engine: slices of multi-host replicas, and node labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from fleetplan.fleet.catalog.hardware_names import instances_of
from fleetplan.planner.export.launch.pools import StandingPool
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class TpuSlice:
    """Linked chips: a machine, or several machines that start and stop together.

    Attributes
    ----------
    topology : str
        Topology, such as 2x4.
    machine : str
        Machine type of its nodes.
    nodes : int
        Number of nodes.
    """

    topology: str
    machine: str
    nodes: int


@dataclass(frozen=True, slots=True)
class PoolSlices:
    """The slices of a pool.

    Attributes
    ----------
    several : Mapping[TpuSlice, int]
        Multi-host slices and their counts.
    single : TpuSlice
        Slice of a single node, for all other replicas.
    singles : int
        Number of single-node slices in the rest of the pool.
    refused : str
        Why the slices cannot be created; empty if they can.
    """

    several: Mapping[TpuSlice, int]
    single: TpuSlice
    singles: int
    refused: str = ""

    @property
    def topologies(self) -> tuple[str, ...]:
        """Topologies in the node labels of the pool."""
        found = [each.topology for each in self.several]
        return tuple(dict.fromkeys([*found, self.single.topology] if self.singles else found))


def pool_slices(plan: Plan, pool: StandingPool, period: str) -> PoolSlices | None:
    """Return the slices of a pool in its busiest moment of a period; None if it has no GKE TPUs.

    The busiest moment is that in which multi-host replicas occupy most of the pool.
    """
    single = _single(pool)
    if single is None:
        return None
    moments: dict[tuple[str | None, str | None], Counter[int]] = defaultdict(Counter)
    for row in plan.placements:
        if (row.period, row.pool) == (period, pool.name) and row.replicas:
            chips = row.accelerators // row.replicas
            if chips > pool.accelerators_per_node:
                moments[row.slice, row.scenario][chips] += row.replicas
    busiest = max(moments.values(), key=_chips, default=Counter[int]())
    several, refused = {}, ""
    for chips, replicas in sorted(busiest.items()):
        found = _several(pool.part, chips)
        if isinstance(found, str):
            refused = found
        else:
            several[found] = replicas
    rest = max(0, pool.accelerators - _chips(busiest))
    return PoolSlices(several, single, -(-rest // pool.accelerators_per_node), refused)


def node_labels(pool: StandingPool, slices: PoolSlices) -> dict[str, str]:
    """Return the labels that GKE gives all nodes of a pool, for the selector of a pod."""
    rules = tools().gke_tpu
    found = {rules.accelerator_label: rules.parts[pool.part].accelerator}
    if len(slices.topologies) == 1:
        found[rules.topology_label] = slices.topologies[0]
    return found


def _chips(replicas: Counter[int]) -> int:
    return sum(chips * count for chips, count in replicas.items())


def _single(pool: StandingPool) -> TpuSlice | None:
    part = tools().gke_tpu.parts.get(pool.part)
    topology = None if part is None else part.topologies.get(pool.accelerators_per_node)
    types = instances_of(pool.part, "gcp", pool.accelerators_per_node)
    return None if topology is None or not types else TpuSlice(topology, types[0].name, 1)


def _several(hardware: str, chips: int) -> TpuSlice | str:
    """Return the slice of a number of chips on several machines, or why there is none."""
    rules = tools().gke_tpu
    part = rules.parts[hardware]
    topology = part.topologies.get(chips)
    (machine, *_) = instances_of(hardware, "gcp", rules.machine_chips)
    if topology is None:
        return f"a replica needs a slice of {chips} {hardware}, which GKE does not have"
    if part.workload_policy:
        return f"slices of {hardware} over several hosts need a workload policy, which Config Connector lacks"
    return TpuSlice(topology, machine.name, chips // rules.machine_chips)
