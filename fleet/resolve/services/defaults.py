"""Apply the block `service_defaults` to each service before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.fleet.document import Document, Entry, Node

_BLOCK: Final = "service_defaults"
_OF_DEMAND: Final = frozenset({"demand_by_slice", "growth"})
_OF_MODELS: Final = frozenset({"precision"})


def with_service_defaults(document: Document) -> Document:
    """Return the document with the keys of `service_defaults` in every service that omits them.

    A value keeps its place, so that a mistake in it points to the defaults.
    """
    defaults = document.root.child(_BLOCK)
    services = document.root.child("services")
    if defaults is None or services is None or not defaults.entries or not services.items:
        return document
    slices = _slice_names(document)
    items = tuple(_completed(item, defaults.entries, slices) for item in services.items)
    below = document.root.entries["services"]
    filled = Entry(below.key_place, Node.of_items(items, services.place))
    root = Node.of_entries({**document.root.entries, "services": filled}, document.root.place)
    return replace(document, root=root)


def _completed(item: Node, defaults: Mapping[str, Entry], slices: frozenset[str]) -> Node:
    stated = item.entries
    if not stated:
        return item
    left_out = set(stated)
    if "demand" not in stated:
        left_out |= _OF_DEMAND
    elif slices & _keys(stated["demand"].node):
        left_out.add("demand_by_slice")
    if "model" not in stated:
        left_out |= _OF_MODELS
    added = {key: entry for key, entry in defaults.items() if key not in left_out}
    return Node.of_entries({**stated, **added}, item.place)


def _slice_names(document: Document) -> frozenset[str]:
    written = document.node(("horizon", "slices"))
    return frozenset(item.name for item in (() if written is None else written.items) if item.name)


def _keys(node: Node) -> frozenset[str]:
    """Return the keys of a nested mapping, on every level."""
    return frozenset(node.entries).union(*(_keys(entry.node) for entry in node.entries.values()))
