"""Cloud node pools for rented capacity: Karpenter on AWS, Config Connector on Google Cloud."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from fleetplan.fleet.catalog.hardware_names import InstanceType, gke_accelerator, instances_of
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.export.launch.nodes import POOL_LABEL, documents
from fleetplan.planner.export.launch.pools import NotProvided, StandingPool, standing_pools
from fleetplan.planner.export.launch.technique_notes import power_cap_note
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.export.launch.tpu_slices import PoolSlices, TpuSlice, node_labels, pool_slices
from fleetplan.planner.plan import Plan

GCP_LOCATION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+(?P<zone>-[a-z])?")
"""A region or zone of Google Cloud, such as us-east4 and us-east4-b."""

CAPACITY_TYPES: Final[Mapping[frozenset[str], tuple[str, ...]]] = {
    frozenset({"spot"}): ("spot",),
    frozenset({"reserve"}): ("reserved",),
}
"""Karpenter capacity types by kinds of offers of a pool; other pools use reserved nodes if available."""

ANY_TYPE: Final = ("reserved", "on-demand")


def karpenter_pools(plan: Plan, period: str | None) -> tuple[dict[str, str], tuple[NotProvided, ...]]:
    """Return a NodePool for each rented pool available on AWS, by file name, and the omitted pools."""
    rules = tools().karpenter
    return _by_region(
        plan,
        period,
        "aws",
        lambda pool, types: ([_karpenter(pool, types)], []),
        f"Karpenter {rules.version}",
        ["the EC2NodeClass named default chooses images, subnets and capacity reservations"],
    )


def _karpenter(pool: StandingPool, types: tuple[InstanceType, ...]) -> dict[str, object]:
    requirements = [
        _requirement("node.kubernetes.io/instance-type", [each.name for each in types]),
        _requirement("karpenter.sh/capacity-type", CAPACITY_TYPES.get(pool.kinds, ANY_TYPE)),
    ]
    return {
        "apiVersion": tools().karpenter.api,
        "kind": "NodePool",
        "metadata": {"name": pool.label},
        "spec": {
            "template": {
                "metadata": {"labels": {POOL_LABEL: pool.label}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "default",
                    },
                    "requirements": requirements,
                },
            },
            # Do not move a server with a loaded model to consolidate nodes.
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1h"},
            "limits": {pool.resource: str(pool.nodes * types[0].accelerators)},
        },
    }


def _requirement(key: str, values: Iterable[str]) -> dict[str, object]:
    return {"key": key, "operator": "In", "values": list(values)}


def gke_pools(
    plan: Plan, period: str | None, locations: Mapping[str, str]
) -> tuple[dict[str, str], tuple[NotProvided, ...]]:
    """Return a ContainerNodePool for each rented pool available on Google Cloud, and the omitted pools.

    Parameters
    ----------
    plan : Plan
        Plan with the pools.
    period : str or None
        Period; None for the first.
    locations : Mapping[str, str]
        Region or zone of Google Cloud by region of the plan; not needed for regions named like one.

    Raises
    ------
    InputError
        A location is missing.
    """

    def node_pool(pool: StandingPool, types: tuple[InstanceType, ...]) -> _Written:
        location = locations.get(pool.region, pool.region)
        if GCP_LOCATION.fullmatch(location) is None:
            # Quoted for a shell, because names may contain special characters.
            hint = f"add --location {shlex.quote(f'{pool.region}=us-east4')}"
            text = f"{location!r} is not a region or zone of Google Cloud"
            raise InputError([Issue("command line", 0, 0, "--location", text, hint)])
        slices = pool_slices(plan, pool, period or plan.periods[0])
        if slices is not None:
            return _tpus(pool, slices, location)
        accelerator = gke_accelerator(pool.part)
        # GPUs are named in addition to the machine type, which fully specifies other accelerators.
        named = accelerator is not None and pool.vendor == "NVIDIA"
        cards = [{"type": accelerator, "count": types[0].accelerators}] if named else None
        return [_gke(pool, types[0].name, pool.nodes, location, cards)], []

    rules = tools().config_connector
    notes = [
        "clusterRef is the ContainerCluster with the name of the region",
        "in a region, nodeCount would apply to each zone, so the autoscaler sets the total instead",
    ]
    return _by_region(plan, period, "gcp", node_pool, f"Config Connector {rules.version}", notes)


def _gke(
    pool: StandingPool,
    machine: str,
    nodes: int,
    location: str,
    cards: Sequence[Mapping[str, object]] | None = None,
) -> dict[str, object]:
    config: dict[str, object] = {
        "machineType": machine,
        "labels": {POOL_LABEL: pool.label},
        "spot": pool.kinds == {"spot"},
    }
    if cards is not None:
        config["guestAccelerator"] = [*cards]
    return {
        "apiVersion": tools().config_connector.api,
        "kind": "ContainerNodePool",
        "metadata": {"name": pool.label},
        "spec": {
            "clusterRef": {"name": dns_name(pool.region)},
            "location": location,
            **_node_counts(nodes, location),
            "nodeConfig": config,
        },
    }


def _tpus(pool: StandingPool, slices: PoolSlices, location: str) -> _Written:
    """Return the node pools of TPUs: one for all single-host slices, one for each multi-host slice."""
    if slices.refused:
        return slices.refused
    if slices.several and not _in_a_zone(location):
        return (
            f"a slice of several hosts must be in one zone, and {location} is a region: "
            f"--location {pool.region}={location}-b"
        )
    found = []
    if slices.singles:
        found.append(_gke(pool, slices.single.machine, slices.singles, location))
    for each, replicas in slices.several.items():
        found += [_slice(pool, each, number, location) for number in range(1, replicas + 1)]
    labels = ", ".join(f"{name}: {value}" for name, value in node_labels(pool, slices).items())
    notes = [f"{pool.label}: pods select {labels}, which GKE labels the nodes with"]
    if len(slices.topologies) > 1:
        topologies = ", ".join(slices.topologies)
        notes.append(f"{pool.label}: {tools().gke_tpu.topology_label} is {topologies}, one a node pool")
    return found, notes


def _slice(pool: StandingPool, each: TpuSlice, number: int, location: str) -> dict[str, object]:
    """Return the node pool of a multi-host slice, whose hosts start together."""
    written = _gke(pool, each.machine, each.nodes, location)
    name = dns_name(f"{pool.label}-{each.topology}-{number}")
    placement = {"type": "COMPACT", "tpuTopology": each.topology}
    spec = cast(dict[str, object], written["spec"])
    return written | {"metadata": {"name": name}, "spec": spec | {"placementPolicy": placement}}


def _in_a_zone(location: str) -> bool:
    place = GCP_LOCATION.fullmatch(location)
    return place is not None and bool(place["zone"])


def _node_counts(nodes: int, location: str) -> dict[str, object]:
    """Return the settings for a total node count, which GKE counts by zone except in the autoscaler."""
    if _in_a_zone(location):
        return {"nodeCount": nodes}
    held = {"totalMinNodeCount": nodes, "totalMaxNodeCount": nodes, "locationPolicy": "ANY"}
    return {"initialNodeCount": 0, "autoscaling": held}


def _machines(pool: StandingPool, cloud: str) -> tuple[InstanceType, ...]:
    """Return the machines of a node's size; for a pool smaller than a node, of the pool's size if any."""
    # For TPUs, slices determine the machine.
    is_smaller = pool.nodes == 1 and pool.vendor != "Google"
    smaller = _sold(pool, cloud, pool.accelerators) if is_smaller else ()
    return smaller or _sold(pool, cloud, pool.accelerators_per_node)


def _sold(pool: StandingPool, cloud: str, accelerators_each: int) -> tuple[InstanceType, ...]:
    """Return the machines with a number of accelerators that the cloud sells on the pool's terms."""
    found = instances_of(pool.part, cloud, accelerators_each)
    return tuple(each for each in found if pool.kinds == {"spot"} or not each.spot_only)


_Written = tuple[list[dict[str, object]], list[str]] | str
"""Objects of a pool with notes, or the reason for an omission."""

_Writer = Callable[[StandingPool, tuple[InstanceType, ...]], _Written]


def _by_region(
    plan: Plan, period: str | None, cloud: str, write: _Writer, tool: str, notes: list[str]
) -> tuple[dict[str, str], tuple[NotProvided, ...]]:
    """Return a file per region with the node pools of a cloud, and the omitted pools."""
    objects: dict[str, list[dict[str, object]]] = defaultdict(list)
    stated_of: dict[str, list[str]] = defaultdict(list)
    left_out = []
    for pool in standing_pools(plan, period):
        types = _machines(pool, cloud)
        if pool.owned:
            left_out.append(NotProvided(pool.name, f"its hosts are owned, and {tool} starts rented ones"))
        elif not types:
            each = f"{pool.accelerators_per_node} {pool.part}"
            left_out.append(NotProvided(pool.name, f"no instance type of {cloud} with {each} is known"))
        elif not pool.resource:
            left_out.append(NotProvided(pool.name, f"no device plug-in of {pool.vendor} is known"))
        elif isinstance(written := write(pool, types), str):
            left_out.append(NotProvided(pool.name, written))
        else:
            objects[pool.region] += written[0]
            stated = f"{pool.label}: {pool.accelerators} {pool.hardware} on {counted(pool.nodes, 'node')}"
            beyond = pool.nodes * types[0].accelerators - pool.accelerators
            if beyond:
                stated += f", which {'has' if pool.nodes == 1 else 'have'} {beyond} more"
            others = [machine.name for machine in types[1:]]
            stated_of[pool.region].append(stated + (f"; also {', '.join(others)}" if others else ""))
            stated_of[pool.region] += written[1]
            if pool.power_cap_w is not None:
                stated_of[pool.region].append(
                    f"{pool.label}: {power_cap_note(pool.vendor, pool.power_cap_w)}"
                )
    title = f"{tool}: {{}}, {period or plan.periods[0]}"
    form = {"aws": "karpenter", "gcp": "gke"}[cloud]
    texts = {
        f"{dns_name(region)}.{form}.yaml": documents(title.format(region), [*stated_of[region], *notes], own)
        for region, own in objects.items()
    }
    return texts, tuple(left_out)
