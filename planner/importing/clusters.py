"""Convert Kubernetes nodes to pools of a fleet file.

Input is the output of `kubectl get nodes -o json` (November 2026). The capacity comes from device plugins, or
without them (drivers of Dynamic Resource Allocation, a plugin that found nothing) from the number of cards in
GPU feature discovery. The kind comes from labels of GPU feature discovery, AMD's node labeller or GKE, or
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
"""Resource names of device plugins, in order of precedence."""

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
"""Name of shared cards in NVIDIA's device plugin if it renames them (renameByDefault)."""
_SHARED: Final = "-SHARED"
"""Suffix of GPU feature discovery for time-shared cards, whose capacity counts shares."""
_CARDS_LABEL: Final = "nvidia.com/gpu.count"
_GKE_SHARES_LABEL: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"
"""Shares of each card in GKE time-sharing, whose capacity counts shares."""
_GKE_PART_LABEL: Final = "cloud.google.com/gke-gpu-partition-size"
_AMD_PARTITION_LABELS: Final = ("amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition")
_WHOLE_AMD: Final = "spx"
"""AMD's partition mode for whole cards; in other modes (dpx, qpx, cpx) the capacity counts parts."""
_PARTS: Final = re.compile(r"nvidia\.com/mig-|amd\.com/(?:dpx|qpx|cpx)_")
"""Resources that are parts of a card: MIG or partitions with the strategy mixed."""
_WHOLE_PARTITIONS: Final = re.compile(r"amd\.com/spx_")


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Values that a cluster does not state about its nodes.

    Attributes
    ----------
    as_of : str
        Date of the file.
    region : str or None
        Region of all nodes, overriding their labels.
    hardware : str or None
        Hardware of nodes that do not state it.
    capex_usd_per_host, rent_usd_per_accelerator_hour : float or None
        Price of hosts or rent of accelerators, if known. [USD, USD/h]
    """

    as_of: str
    region: str | None = None
    hardware: str | None = None
    capex_usd_per_host: float | None = None
    rent_usd_per_accelerator_hour: float | None = None

    def cost(self) -> dict[str, object]:
        """Return the cost of a pool, or an empty mapping if it is unknown."""
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
        Name in the catalogue.
    accelerators : int
        Number of whole cards.
    region : str or None
        None if not stated.
    in_service : bool
        Whether it accepts and runs work.
    """

    hardware: str
    accelerators: int
    region: str | None
    in_service: bool


def kubernetes_pools(document: object, path: str, options: PoolOptions) -> ImportedSupply:
    """Return the pools of a cluster's nodes, one per region and kind of host.

    Parameters
    ----------
    document : object
        Output of `kubectl get nodes -o json`.
    path : str
        Name of the file in errors.
    options : PoolOptions
        Values that the document does not state.

    Raises
    ------
    InputError
        The document is not a list of nodes.
    """
    read: Record = document if isinstance(document, Mapping) else {}
    # `kubectl get node NAME` writes a single node, and `jq .items[]` a sequence of nodes.
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
        hardware = without_kind(options, f"{number} {resource} without a label for their kind")
    region = options.region or said.get(REGION_LABEL)
    if region is not None:
        check_characters([("region", str(region))])
    ready = any(
        at(each, "type") == "Ready" and at(each, "status") == "True"
        for each in records_of(list_of(at(item, "status", "conditions")))
    )
    cordoned = bool(at(item, "spec", "unschedulable"))
    # The device plugin found no cards; with Dynamic Resource Allocation there is no plugin.
    idle = resource == _CARDS_LABEL and any(name in held for name in RESOURCES)
    in_service = ready and not cordoned and not idle
    return ClusterNode(hardware, number, None if region is None else str(region), in_service)


def _cards(held: Record, said: Record) -> tuple[str, object]:
    """Return the resource or label that counts whole accelerators of a node, and their number."""
    has = [name for name, number in held.items() if str(number) != "0"]
    for name in (*RESOURCES, SHARED_RESOURCE):
        if name in has:
            return name, held[name]
    for name in has:
        if _WHOLE_PARTITIONS.match(name):
            return name, held[name]
    parts = next((name for name in has if _PARTS.match(name)), None)
    if parts is not None:
        raise RejectedRowError(f"{parts}: parts of a card are not accelerators in the catalogue")
    if str(said.get(_CARDS_LABEL, "0")) != "0":
        return _CARDS_LABEL, said[_CARDS_LABEL]
    raise RejectedRowError("has no accelerators")


def _kind(kinds: list[str]) -> str | None:
    """Return the label with the kind of accelerators: the first known one, else the first.

    A product has more names than a device id.
    """
    told = (each for each in kinds if part_called(each) is not None or other_part(each) is not None)
    return next(told, next(iter(kinds), None))


def _refuse_parts(said: Record, kinds: list[str]) -> None:
    """Reject nodes whose capacity counts parts of cards: MIG, or partitions of AMD's cards."""
    partition = next((str(said[name]) for name in _AMD_PARTITION_LABELS if name in said), _WHOLE_AMD)
    what = next((f"{each}: parts of a card (MIG)" for each in kinds if "-MIG-" in each), None)
    if _GKE_PART_LABEL in said:
        what = f"{said[_GKE_PART_LABEL]}: parts of a card (MIG)"
    elif not partition.lower().startswith(_WHOLE_AMD):
        what = f"{partition}: parts of a card"
    if what is not None:
        raise RejectedRowError(f"{what} are not accelerators in the catalogue")


def list_of(value: object) -> list[object]:
    """Return a value that is a list, or an empty list."""
    return value if isinstance(value, list) else []


def without_kind(options: PoolOptions, what: str) -> str:
    """Return the hardware of nodes that do not state theirs.

    Raises
    ------
    RejectedRowError
        Neither the node nor an option states the hardware.
    """
    if options.hardware is None:
        raise RejectedRowError(f"{what}: give --hardware")
    return known_hardware(options.hardware)


def pools_of(
    fragment: SupplyFragment, nodes: list[ClusterNode], command: str, options: PoolOptions
) -> ImportedSupply:
    """Return the pools of nodes, one per region and kind of host.

    Parameters
    ----------
    fragment : SupplyFragment
        Receives the pools and the rejected nodes.
    nodes : list[ClusterNode]
        Accepted nodes.
    command : str
        Command that listed them.
    options : PoolOptions
        Values that the nodes do not state.
    """
    alike = Counter((each.region, each.hardware, each.accelerators) for each in nodes)
    out = sum(not each.in_service for each in nodes)
    fragment.says.append(
        f"{command}, {options.as_of}: {counted(len(nodes), 'node')} with accelerators, {out} of "
        f"them out of service "
        "(included, because they exist and cost money)."
    )
    if not options.cost():
        fragment.says.append("Fill in the cost of each pool, `owned` or `rented`.")
    elif len(kinds := {(each.hardware, each.accelerators) for each in nodes}) > 1:
        fragment.notes.append(
            f"one price for {counted(len(kinds), 'kind')} of hosts: change it for those with another price"
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
