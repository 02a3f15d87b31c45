"""Warn of numbers whose point may be meant as a thousands separator: 900.000 is 900 in YAML."""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.fleet.document import KeyPath, Node
from fleetplan.fleet.document.number_hints import without_thousands
from fleetplan.fleet.resolve.context import Context

_OF_RATES = frozenset({"hour", "kwh", "kw", "gb", "unit"})
"""Words in keys of prices that are a few dollars, where three decimals are usual."""


def warn_of_thousands(context: Context) -> None:
    """Warn of numbers with three decimals that are zeros, or of an amount of money, which has cents."""
    for key_path, node in _grouped(context.document.root, ()):
        if node.written.endswith("000") or any(_is_amount(key) for key in key_path):
            context.warn(key_path, f"{node.written} is {node.value:g}; {without_thousands(node.written)}")


def _grouped(node: Node, key_path: KeyPath) -> Iterator[tuple[KeyPath, Node]]:
    if node.written:
        yield key_path, node
    for key, entry in node.entries.items():
        yield from _grouped(entry.node, (*key_path, key))
    for position, item in enumerate(node.items):
        yield from _grouped(item, (*key_path, position))


def _is_amount(key: str | int) -> bool:
    words = str(key).split("_")
    return "usd" in words and not _OF_RATES.intersection(words)
