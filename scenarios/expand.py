"""Scenarios, overrides and `--set` assignments laid on a fleet file before it is read.

    overrides:
      cheap-h200: {offers: [{name: h200-rent, rent_usd_per_accelerator_hour: 1.8}]}
      tight-slo:  {services: [{name: chat, slo: {ttft_ms: 200}}]}
    scenarios:
      squeeze: [cheap-h200, tight-slo]
      growth:  {services: [{name: chat, demand: 1200}]}

A scenario is a list of names of overrides, laid on in order, or a mapping itself. Mappings are merged key by
key and lists of named items by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetplan.fleet.document import Document, Entry, KeyPath, Node, SourcePlace, merge, read_fragment
from fleetplan.fleet.errors import InputError, Issue, names_hint

_SCENARIOS: Final = "scenarios"
_OVERRIDES: Final = "overrides"


def expand(document: Document, scenarios: Sequence[str], assignments: Sequence[str]) -> Document:
    """Return the document with scenarios, then assignments, laid on it in order.

    Parameters
    ----------
    document : Document
        A fleet file with its imports.
    scenarios : Sequence[str]
        Names from its block `scenarios`.
    assignments : Sequence[str]
        `key.path=value`, list items by their name: `services.chat.slo.ttft_ms=300`. The value is YAML.

    Raises
    ------
    InputError
        With every scenario, override, path or value that cannot be used.
    """
    issues: list[Issue] = []
    root = document.root
    for name in scenarios:
        for change in _changes(document, name, issues):
            root = merge(root, change)
    for assignment in assignments:
        try:
            root = _assigned(root, assignment)
        except InputError as error:
            issues.extend(error.issues)
    if issues:
        raise InputError(dict.fromkeys(issues))
    return replace(document, root=root)


def _changes(document: Document, name: str, issues: list[Issue]) -> list[Node]:
    """Return what a scenario lays on the file, in order."""
    block = document.root.child(_SCENARIOS)
    known = () if block is None else tuple(block.entries)
    scenario = document.node((_SCENARIOS, name))
    if scenario is None:
        place = document.key_place((_SCENARIOS,))
        hint = names_hint(name, known)
        message = f"there is no scenario {name!r}"
        issues.append(Issue(place.file, place.line, place.column, _SCENARIOS, message, hint))
        return []
    if isinstance(scenario.value, Mapping):
        return [scenario]
    if not isinstance(scenario.value, tuple):
        message = "must be a list of names of overrides, or a mapping"
        issues.append(document.issue((_SCENARIOS, name), message))
        return []
    found = [_override(document, (_SCENARIOS, name, i), issues) for i in range(len(scenario.items))]
    return [node for node in found if node is not None]


def _override(document: Document, key_path: KeyPath, issues: list[Issue]) -> Node | None:
    named = document.node(key_path)
    name = str(named.value) if named is not None else ""
    override = document.node((_OVERRIDES, name))
    if override is None:
        block = document.root.child(_OVERRIDES)
        hint = names_hint(name, () if block is None else tuple(block.entries))
        issues.append(document.issue(key_path, f"there is no override {name!r}", hint))
        return None
    if not isinstance(override.value, Mapping):
        issues.append(document.issue((_OVERRIDES, name), "must be a mapping"))
        return None
    return override


def _assigned(root: Node, assignment: str) -> Node:
    label = f"--set {assignment}"
    path, equals, text = assignment.partition("=")
    if not equals or not path.strip():
        message = "must be key.path=value"
        raise InputError([Issue(label, 0, 0, "", message, "such as services.chat.slo.ttft_ms=300")])
    value = read_fragment(text.strip(), label)
    return _replaced(root, path.strip().split("."), [], value, SourcePlace(label))


def _replaced(node: Node, parts: Sequence[str], done: Sequence[str], value: Node, place: SourcePlace) -> Node:
    """Return the tree with the value at a path, which starts with `done` above this node."""
    if not parts:
        return value
    if node.items:
        return _item_replaced(node, parts, done, value, place)
    if not isinstance(node.value, Mapping):
        what = f"{'.'.join(done)} is {node.value!r} and has no keys"
        hint = f"set {'.'.join(done)} itself, such as {'.'.join(done)}={{{parts[0]}: ...}}"
        raise InputError([Issue(place.file, 0, 0, ".".join([*done, *parts]), what, hint)])
    key, rest = _longest(parts, tuple(node.entries))
    below = node.entries.get(key)
    if below is None:
        # A key that the file leaves out is fine where the format has it; reading the fleet checks that.
        child = _nested(rest, value, place)
        return Node.of_entries({**node.entries, key: Entry(place, child)}, node.place)
    child = _replaced(below.node, rest, [*done, key], value, place)
    return Node.of_entries({**node.entries, key: Entry(below.key_place, child)}, node.place)


def _item_replaced(
    node: Node, parts: Sequence[str], done: Sequence[str], value: Node, place: SourcePlace
) -> Node:
    names = [item.name for item in node.items]
    known = [name for name in names if name is not None]
    name, rest = _longest(parts, known)
    if name in names:
        position = names.index(name)
    elif name.isdecimal() and int(name) < len(names):
        position = int(name)
    else:
        what = f"{'.'.join(done)} has no item {name!r}"
        raise InputError([Issue(place.file, 0, 0, ".".join([*done, *parts]), what, names_hint(name, known))])
    items = list(node.items)
    items[position] = _replaced(items[position], rest, [*done, name], value, place)
    return Node.of_items(items, node.place)


def _longest(parts: Sequence[str], known: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the longest known name that the parts start with, and the rest: names may hold dots."""
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in known:
            return name, parts[count:]
    return parts[0], parts[1:]


def _nested(parts: Sequence[str], value: Node, place: SourcePlace) -> Node:
    for key in reversed(parts):
        value = Node.of_entries({key: Entry(place, value)}, place)
    return value
