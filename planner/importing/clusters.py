"""Nodes of Kubernetes and Slurm as pools of a fleet file.

What is read, as documented (November 2026):

* `kubectl get nodes -o json`: capacity of the device plugins; the kind from labels of GPU feature discovery,
  AMD's node labeller or GKE, or from the instance type; the region from topology.kubernetes.io/region.
* `sinfo --json` (Slurm 22.05 and newer) and `scontrol show nodes --json`: kind and number of the GRES `gpu`.
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
_GRES: Final = re.compile(r"(?:^|,)gpu(?::(?P<kind>[^:,()]+))?:(?P<count>\d+)(?:\([^)]*\))?(?=,|$)")
_SEVERAL_NODES: Final = re.compile(r"[\[\]]")
"""What names of several nodes have, such as gpu[01-04]."""
_NOT_THERE: Final[Mapping[str, frozenset[str]]] = {
    "is for later: it is in the state FUTURE": frozenset({"FUTURE"}),
    "is a machine of a cloud that is switched off": frozenset({"CLOUD", "POWERED_DOWN"}),
}
"""Nodes that Slurm knows and nobody pays for, by states that they have together."""
_OUT_OF_SERVICE: Final = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "MAINT", "NOT_RESPONDING"}


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
class _Node:
    """A node with accelerators."""

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
    # `kubectl get node NAME` writes the node alone.
    items = [read] if read.get("kind") == "Node" else read.get("items")
    if not isinstance(items, list) or not any(at(each, "kind") in ("Node", None) for each in _records(items)):
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
    return _pools(fragment, nodes, "kubectl get nodes", options)


def _records(items: list[object]) -> Iterator[Record]:
    return (each for each in items if isinstance(each, Mapping))


def _kubernetes_node(item: Record, options: PoolOptions) -> _Node:
    labels, capacity = at(item, "metadata", "labels"), at(item, "status", "capacity")
    said: Record = labels if isinstance(labels, Mapping) else {}
    held: Record = capacity if isinstance(capacity, Mapping) else {}
    resource = _resource(held)
    number = count(held[resource], resource)
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
        hardware = _without_kind(options, f"{number} {resource} without a label that says which")
    region = options.region or said.get(REGION_LABEL)
    if region is not None:
        check_characters([("region", str(region))])
    ready = any(
        at(each, "type") == "Ready" and at(each, "status") == "True"
        for each in _records(_list(at(item, "status", "conditions")))
    )
    cordoned = bool(at(item, "spec", "unschedulable"))
    return _Node(hardware, number, None if region is None else str(region), ready and not cordoned)


def _resource(held: Record) -> str:
    """The resource that stands for whole accelerators of a node."""
    has = [name for name, number in held.items() if str(number) != "0"]
    for name in (*RESOURCES, SHARED_RESOURCE):
        if name in has:
            return name
    for name in has:
        if _WHOLE_PARTITIONS.match(name):
            return name
    parts = next((name for name in has if _PARTS.match(name)), None)
    if parts is not None:
        raise RejectedRowError(f"{parts}: parts of a card are no accelerators of the catalogue")
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


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _without_kind(options: PoolOptions, what: str) -> str:
    if options.hardware is None:
        raise RejectedRowError(f"{what}: give --hardware")
    return known_hardware(options.hardware)


def slurm_pools(document: object, path: str, options: PoolOptions) -> ImportedSupply:
    """Return the pools of a cluster's nodes; as `kubernetes_pools`, from `sinfo --json`."""
    record: Record = document if isinstance(document, Mapping) else {}
    nodes, rows = record.get("nodes"), record.get("sinfo")
    if not isinstance(nodes, list) and not isinstance(rows, list):
        hint = "what `sinfo --json` writes has `sinfo` or, up to Slurm 22.05, `nodes`"
        raise InputError([Issue(path, 1, 1, "", "is not a list of nodes", hint)])
    fragment = SupplyFragment(path)
    found: dict[str, _Node] = {}
    named = _nodes_of(_records(_list(nodes))) if isinstance(nodes, list) else _sinfo_nodes(_list(rows))
    for name, gres, states in named:
        # A node stands in the row of each of its partitions.
        if name in found:
            continue
        try:
            if _SEVERAL_NODES.search(name):
                raise RejectedRowError("stands for several nodes: `sinfo --json` lists each of them")
            found[name] = _slurm_node(gres, states, options)
        except RejectedRowError as reason:
            fragment.reject(name, str(reason))
    return _pools(fragment, list(found.values()), "sinfo", options)


def _nodes_of(nodes: Iterator[Record]) -> Iterator[tuple[str, str, set[str]]]:
    """Name, GRES and states of each node of `nodes`."""
    for position, each in enumerate(nodes):
        yield str(each.get("name") or f"node {position + 1}"), str(each.get("gres") or ""), _states(each)


def _sinfo_nodes(rows: list[object]) -> Iterator[tuple[str, str, set[str]]]:
    """The same of `sinfo`, whose rows hold several nodes that are alike."""
    for position, row in enumerate(_records(rows)):
        node, names = at(row, "node"), _list(at(row, "nodes", "nodes"))
        states = _states(node) if isinstance(node, Mapping) else set()
        for name in names or [f"[row {position + 1}]"] * bool(at(row, "nodes", "total")):
            yield str(name), str(at(row, "gres", "total") or ""), states


def _states(node: Record) -> set[str]:
    value = node.get("state")
    words = value if isinstance(value, list) else str(value or "").split("+")
    flags = _list(node.get("state_flags"))
    return {str(word).upper() for word in (*words, *flags)}


def _slurm_node(gres: str, states: set[str], options: PoolOptions) -> _Node:
    if absent := next((why for why, marks in _NOT_THERE.items() if marks <= states), None):
        raise RejectedRowError(absent)
    kinds = [each for each in _GRES.finditer(gres) if each["count"].strip("0")]
    if not kinds:
        strange = re.search(r"(?:^|,)gpu:(?!0)", gres) is not None
        raise RejectedRowError(f"gres {gres!r} is not understood" if strange else "has no accelerators")
    if len({each["kind"] for each in kinds}) > 1:
        raise RejectedRowError(f"has accelerators of several kinds: {gres}")
    number, kind = sum(count(each["count"], "gres") for each in kinds), kinds[0]["kind"]
    hardware = _without_kind(options, f"gres {gres} names no kind") if kind is None else known_hardware(kind)
    return _Node(hardware, number, options.region, not states & _OUT_OF_SERVICE)


def _pools(
    fragment: SupplyFragment, nodes: list[_Node], command: str, options: PoolOptions
) -> ImportedSupply:
    alike = Counter((each.region, each.hardware, each.accelerators) for each in nodes)
    out = sum(not each.in_service for each in nodes)
    fragment.says.append(
        f"{command}, {options.as_of}: {counted(len(nodes), 'node')} with accelerators, {out} of "
        f"them out of service "
        "(counted: they exist and cost)."
    )
    if not options.cost():
        fragment.says.append("What each pool costs, `owned` or `rented`, is yours to fill in.")
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
