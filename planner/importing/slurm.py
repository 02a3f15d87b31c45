"""Convert Slurm nodes to pools of a fleet file.

Supported inputs (November 2026): `sinfo --json` (Slurm 22.05 and newer) and `scontrol show nodes --json`,
with kind and number of the GRES `gpu`, and states by their JSON names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.importing.clusters import (
    ClusterNode,
    PoolOptions,
    list_of,
    pools_of,
    records_of,
    without_kind,
)
from fleetplan.planner.importing.fragments import ImportedSupply, SupplyFragment
from fleetplan.planner.importing.records import Record, RejectedRowError, at, count, known_hardware

_GRES: Final = re.compile(r"(?:^|,)gpu(?::(?P<kind>[^:,()]+))?:(?P<count>\d+)(?:\([^)]*\))?(?=,|$)")
_PART: Final = re.compile(r"(?:^|_)\d+g\.\d+gb", re.IGNORECASE)
"""Suffix of the kind of a MIG part of a card with AutoDetect=nvml: nvidia_h100_1g.10gb."""
_SEVERAL_NODES: Final = re.compile(r"[\[\]]")
"""Characters in names of several nodes, such as gpu[01-04]."""
_NOT_THERE: Final[Mapping[str, frozenset[str]]] = {
    "does not exist yet: it is in the state FUTURE": frozenset({"FUTURE"}),
    "is a powered-down cloud machine": frozenset({"CLOUD", "POWERED_DOWN"}),
}
"""Nodes in Slurm that cost nothing, by sets of states."""
_OUT_OF_SERVICE: Final = frozenset(
    ("DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "INVALID_REG", "MAINT", "MAINTENANCE")
) | {"NOT_RESPONDING"}
"""States in `sinfo --json` and, for maintenance, in its tables."""


def slurm_pools(document: object, path: str, options: PoolOptions) -> ImportedSupply:
    """Return the pools of a cluster's nodes, one per kind of host.

    Parameters
    ----------
    document : object
        Output of `sinfo --json`.
    path : str
        Name of the file in errors.
    options : PoolOptions
        Values that the document does not state.

    Raises
    ------
    InputError
        The document is not a list of nodes.
    """
    record: Record = document if isinstance(document, Mapping) else {}
    nodes, rows = record.get("nodes"), record.get("sinfo")
    if not isinstance(nodes, list) and not isinstance(rows, list):
        hint = "what `sinfo --json` writes has `sinfo` or, up to Slurm 22.05, `nodes`"
        raise InputError([Issue(path, 1, 1, "", "is not a list of nodes", hint)])
    fragment = SupplyFragment(path)
    found: dict[str, ClusterNode] = {}
    named = _nodes_of(records_of(list_of(nodes))) if isinstance(nodes, list) else _sinfo_nodes(list_of(rows))
    for name, gres, states in named:
        # A node appears in the row of each of its partitions.
        if name in found:
            continue
        try:
            if _SEVERAL_NODES.search(name):
                raise RejectedRowError("represents several nodes: `sinfo --json` lists each of them")
            found[name] = _slurm_node(gres, states, options)
        except RejectedRowError as reason:
            fragment.reject(name, str(reason))
    return pools_of(fragment, list(found.values()), "sinfo", options)


def _nodes_of(nodes: Iterator[Record]) -> Iterator[tuple[str, str, set[str]]]:
    """Yield name, GRES and states of each node in `nodes`."""
    for position, each in enumerate(nodes):
        yield str(each.get("name") or f"node {position + 1}"), str(each.get("gres") or ""), _states(each)


def _sinfo_nodes(rows: list[object]) -> Iterator[tuple[str, str, set[str]]]:
    """Yield the same from `sinfo`, whose rows contain several equal nodes."""
    for position, row in enumerate(records_of(rows)):
        node, names = at(row, "node"), list_of(at(row, "nodes", "nodes"))
        states = _states(node) if isinstance(node, Mapping) else set()
        for name in names or [f"[row {position + 1}]"] * bool(at(row, "nodes", "total")):
            yield str(name), str(at(row, "gres", "total") or ""), states


def _states(node: Record) -> set[str]:
    value = node.get("state")
    words = value if isinstance(value, list) else str(value or "").split("+")
    flags = list_of(node.get("state_flags"))
    return {str(word).upper() for word in (*words, *flags)}


def _slurm_node(gres: str, states: set[str], options: PoolOptions) -> ClusterNode:
    if absent := next((why for why, marks in _NOT_THERE.items() if marks <= states), None):
        raise RejectedRowError(absent)
    kinds = [each for each in _GRES.finditer(gres) if each["count"].strip("0")]
    if not kinds:
        strange = re.search(r"(?:^|,)gpu:(?!0)", gres) is not None
        raise RejectedRowError(f"gres {gres!r} is not supported" if strange else "has no accelerators")
    if len({each["kind"] for each in kinds}) > 1:
        raise RejectedRowError(f"has accelerators of several kinds: {gres}")
    number, kind = sum(count(each["count"], "gres") for each in kinds), kinds[0]["kind"]
    if kind is not None and _PART.search(kind):
        raise RejectedRowError(f"{kind}: parts of a card (MIG) are not accelerators in the catalogue")
    hardware = without_kind(options, f"gres {gres} names no kind") if kind is None else known_hardware(kind)
    return ClusterNode(hardware, number, options.region, not states & _OUT_OF_SERVICE)
