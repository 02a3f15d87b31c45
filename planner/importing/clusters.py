"""Nodes of Kubernetes as pools of a fleet file.

What is read, as documented (November 2026), of `kubectl get nodes -o json`: capacity of the device plugins,
and where there is none (drivers of Dynamic Resource Allocation, a plugin that found nothing) the number of
cards by GPU feature discovery; the kind from labels of GPU feature discovery, AMD's node labeller or GKE, or
from the instance type; the region from topology.kubernetes.io/region.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from fleetplan.fleet.catalog.hardware_names import instance_type, other_part, part_called
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.planner.importing.fragments import (
    ImportedSupply,
    SupplyFragment,
    check_characters,
    plain_name,
)
from fleetplan.planner.importing.records import Record, RejectedRowError, at, count, known_hardware

RESOURCES: Final = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "google.com/tpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915",
)
"""What device plugins call accelerators, in the order in which they are looked for."""

KIND_LABELS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "amd.com/gpu.device-id",
    "beta.amd.com/gpu.device-id",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
)
INSTANCE_LABEL: Final = "node.kubernetes.io/instance-type"
REGION_LABEL: Final = "topology.kubernetes.io/region"

SHARED_RESOURCE: Final = "nvidia.com/gpu.shared"
"""What NVIDIA's device plugin calls shares of cards where it is told to rename them (renameByDefault)."""
_SHARED: Final = "-SHARED"
"""GPU feature discovery's mark of a card whose time is shared: its capacity counts shares."""
_CARDS_LABEL: Final = "nvidia.com/gpu.count"
_GKE_SHARES_LABEL: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"
"""Shares of each card where GKE shares its time: the capacity counts shares."""
_GKE_PART_LABEL: Final = "cloud.google.com/gke-gpu-partition-size"
_AMD_PARTITION_LABELS: Final = ("amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition")
_WHOLE_AMD: Final = "spx"
"""AMD's partition mode of whole cards; in the others (dpx, qpx, cpx) the capacity counts parts."""
_PARTS: Final = re.compile(r"nvidia\.com/mig-|amd\.com/(?:dpx|qpx|cpx)_")
"""Resources that are parts of a card: MIG of the strategy mixed, partitions of the strategy mixed."""
_WHOLE_PARTITIONS: Final = re.compile(r"amd\.com/spx_")


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """What a cluster does not say of its nodes.

    Attributes
    ----------
    as_of : str
        Day of the file.
    region : str or None
        Of all nodes, instead of what they say.
    hardware : str or None
        Of accelerators whose kind the nodes do not say.
    capex_usd_per_host, rent_usd_per_accelerator_hour : float or None
        What they cost, if either is known. [USD, USD/h]
    """

    as_of: str
    region: str | None = None
    hardware: str | None = None
    capex_usd_per_host: float | None = None
    rent_usd_per_accelerator_hour: float | None = None

    def cost(self) -> dict[str, object]:
        """Return the cost of a pool; nothing where it is not known."""
        if self.capex_usd_per_host is not None:
            return {"owned": {"capex_usd_per_host": self.capex_usd_per_host, "price_as_of": self.as_of}}
        if self.rent_usd_per_accelerator_hour is not None:
            rent = self.rent_usd_per_accelerator_hour
            return {"rented": {"usd_per_accelerator_hour": rent, "price_as_of": self.as_of}}
        return {}


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node with accelerators.

    Attributes
    ----------
    hardware : str
        By the catalogue's name.
    accelerators : int
        Whole cards.
    region : str or None
        None where nothing says.
    in_service : bool
        Whether it runs what it is given.
    """

    hardware: str
    accelerators: int
    region: str | None
    in_service: bool


def kubernetes_pools(document: object, path: str, options: PoolOptions) -> ImportedSupply:
    """Return the pools of a cluster's nodes, one for each region and kind of host.

    Parameters
    ----------
    document : object
        What `kubectl get nodes -o json` wrote.
    path : str
        What to call it in errors.
    options : PoolOptions
        What it does not say.

    Raises
    ------
    InputError
        It is not a list of nodes.
    """
    read: Record = document if isinstance(document, Mapping) else {}
    # `kubectl get node NAME` writes the node alone, and `jq .items[]` nodes one after another.
    items = [read] if read.get("kind") == "Node" else read.get("items", document)
    if not isinstance(items, list) or not any(
        at(each, "kind") in ("Node", None) for each in records_of(items)
    ):
        hint = "what `kubectl get nodes -o json` writes has `items` of kind Node"
        raise InputError([Issue(path, 1, 1, "", "is not a list of nodes", hint)])
    fragment = SupplyFragment(path)
    nodes = []
    for position, item in enumerate(items):
        record: Record = item if isinstance(item, Mapping) else {}
        place = str(at(record, "metadata", "name") or f"node {position + 1}")
        try:
            nodes.append(_kubernetes_node(record, options))
        except RejectedRowError as reason:
            fragment.reject(place, str(reason))
    return pools_of(fragment, nodes, "kubectl get nodes", options)


def records_of(items: list[object]) -> Iterator[Record]:
    """Yield the objects of a list."""
    return (each for each in items if isinstance(each, Mapping))


def _kubernetes_node(item: Record, options: PoolOptions) -> ClusterNode:
    labels, capacity = at(item, "metadata", "labels"), at(item, "status", "capacity")
    said: Record = labels if isinstance(labels, Mapping) else {}
    held: Record = capacity if isinstance(capacity, Mapping) else {}
    resource, amount = _cards(held, said)
    number = count(amount, resource)
    instance = instance_type(str(said.get(INSTANCE_LABEL, "")))
    kinds = [str(said[name]) for name in KIND_LABELS if name in said]
    _refuse_parts(said, kinds)
    kind = _kind([each.removesuffix(_SHARED) for each in kinds])
    if any(each.endswith(_SHARED) for each in kinds) or resource == SHARED_RESOURCE:
        number = count(said.get(_CARDS_LABEL), _CARDS_LABEL)
    elif _GKE_SHARES_LABEL in said:
        number //= count(said[_GKE_SHARES_LABEL], _GKE_SHARES_LABEL)
    if kind is not None:
        hardware = known_hardware(kind)
    elif instance is not None:
        # Neuron counts cores or devices; the instance type has a known number of chips.
        hardware, number = instance.hardware, instance.accelerators
    else:
        hardware = without_kind(options, f"{number} {resource} without a label that says which")
    region = options.region or said.get(REGION_LABEL)
    if region is not None:
        check_characters([("region", str(region))])
    ready = any(
        at(each, "type") == "Ready" and at(each, "status") == "True"
        for each in records_of(list_of(at(item, "status", "conditions")))
    )
    cordoned = bool(at(item, "spec", "unschedulable"))
    # A device plugin that found none of the cards; with Dynamic Resource Allocation there is no plugin.
    idle = resource == _CARDS_LABEL and any(name in held for name in RESOURCES)
    in_service = ready and not cordoned and not idle
    return ClusterNode(hardware, number, None if region is None else str(region), in_service)


def _cards(held: Record, said: Record) -> tuple[str, object]:
    """What counts whole accelerators of a node, and their number: a resource, or a label without one."""
    has = [name for name, number in held.items() if str(number) != "0"]
    for name in (*RESOURCES, SHARED_RESOURCE):
        if name in has:
            return name, held[name]
    for name in has:
        if _WHOLE_PARTITIONS.match(name):
            return name, held[name]
    parts = next((name for name in has if _PARTS.match(name)), None)
    if parts is not None:
        raise RejectedRowError(f"{parts}: parts of a card are no accelerators of the catalogue")
    if str(said.get(_CARDS_LABEL, "0")) != "0":
        return _CARDS_LABEL, said[_CARDS_LABEL]
    raise RejectedRowError("has no accelerators")


def _kind(kinds: list[str]) -> str | None:
    """The label that tells a node's accelerators: the first that is known, and otherwise the first.

    A product has more names than a device id.
    """
    told = (each for each in kinds if part_called(each) is not None or other_part(each) is not None)
    return next(told, next(iter(kinds), None))


def _refuse_parts(said: Record, kinds: list[str]) -> None:
    """Refuse nodes whose capacity counts parts of cards: MIG, or partitions of AMD's cards."""
    partition = next((str(said[name]) for name in _AMD_PARTITION_LABELS if name in said), _WHOLE_AMD)
    what = next((f"{each}: parts of a card (MIG)" for each in kinds if "-MIG-" in each), None)
    if _GKE_PART_LABEL in said:
        what = f"{said[_GKE_PART_LABEL]}: parts of a card (MIG)"
    elif not partition.lower().startswith(_WHOLE_AMD):
        what = f"{partition}: parts of a card"
    if what is not None:
        raise RejectedRowError(f"{what} are no accelerators of the catalogue")


def list_of(value: object) -> list[object]:
    """Return a value that is a list; an empty one for any other."""
    return value if isinstance(value, list) else []


def without_kind(options: PoolOptions, what: str) -> str:
    """Return the hardware of nodes that do not say theirs.

    Raises
    ------
    RejectedRowError
        Nobody says it.
    """
    if options.hardware is None:
        raise RejectedRowError(f"{what}: give --hardware")
    return known_hardware(options.hardware)


def pools_of(
    fragment: SupplyFragment, nodes: list[ClusterNode], command: str, options: PoolOptions
) -> ImportedSupply:
    """Return the pools of nodes: one for each region and kind of host.

    Parameters
    ----------
    fragment : SupplyFragment
        Knows the nodes that are none.
    nodes : list[ClusterNode]
        The others.
    command : str
        What listed them.
    options : PoolOptions
        What they do not say.
    """
    alike = Counter((each.region, each.hardware, each.accelerators) for each in nodes)
    out = sum(not each.in_service for each in nodes)
    fragment.says.append(
        f"{command}, {options.as_of}: {counted(len(nodes), 'node')} with accelerators, {out} of "
        f"them out of service "
        "(counted: they exist and cost)."
    )
    if not options.cost():
        fragment.says.append("What each pool costs, `owned` or `rented`, is yours to fill in.")
    elif len(kinds := {(each.hardware, each.accelerators) for each in nodes}) > 1:
        fragment.notes.append(
            f"one price for {counted(len(kinds), 'kind')} of hosts: change it where it is not theirs"
        )
    for (region, hardware, accelerators_each), hosts in sorted(alike.items(), key=str):
        place = f"{counted(hosts, 'node')} with {accelerators_each} {hardware}"
        read = partial(_pool, fragment, (region, hardware, accelerators_each), hosts, options)
        fragment.take("pools", place, read, hosts)
    return fragment.done()


def _pool(
    fragment: SupplyFragment, alike: tuple[str | None, str, int], hosts: int, options: PoolOptions
) -> dict[str, object]:
    region, hardware, accelerators_each = alike
    kind = fragment.host_kind(hardware, accelerators_each)
    place = {} if region is None else {"region": region}
    return {
        "name": plain_name(region or "", kind),
        **place,
        "hardware": kind,
        "hosts": hosts,
        **options.cost(),
    }
