"""A YAML file as a tree in which every value and every key has its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from fleetplan.fleet.errors import Issue

Scalar: TypeAlias = str | int | float | bool | None
# Keys of mappings and positions in lists, from the root.
KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Place of a value or key.

    Attributes
    ----------
    file : str
        File as the user named it, or the command-line option.
    line, column : int
        Counted from 1; 0 for the whole file or option.
    """

    file: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a mapping: the place of its key, and its value."""

    key_place: SourcePlace
    node: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A value: a scalar, a list or a mapping.

    Attributes
    ----------
    value : Scalar or tuple[Node, ...] or Mapping[str, Entry]
        The value.
    place : SourcePlace
        Place of its start.
    size : int
        Number of nodes of the tree with all aliases expanded.
    written : str
        Text of a number whose point may be meant as a thousands separator, such as 900.000; else empty.
    """

    value: Scalar | tuple[Node, ...] | Mapping[str, Entry]
    place: SourcePlace
    size: int = field(default=1, compare=False)
    written: str = field(default="", compare=False)

    @classmethod
    def of_items(cls, items: Iterable[Node], place: SourcePlace) -> Node:
        """Return a list node."""
        held = tuple(items)
        return cls(held, place, 1 + sum(item.size for item in held))

    @classmethod
    def of_entries(cls, entries: Mapping[str, Entry], place: SourcePlace) -> Node:
        """Return a mapping node."""
        return cls(entries, place, 1 + sum(entry.node.size for entry in entries.values()))

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The keys of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, Mapping) else {}

    @property
    def items(self) -> tuple[Node, ...]:
        """The items of a list; empty for anything else."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def name(self) -> str | None:
        """Return the text of the key `name` of a mapping; None if it is missing or not text."""
        entry = self.entries.get("name")
        return entry.node.value if entry is not None and isinstance(entry.node.value, str) else None

    def child(self, key: str | int) -> Node | None:
        """Return the value of a key or the item at a position; None if there is none."""
        if isinstance(key, int):
            return self.items[key] if 0 <= key < len(self.items) else None
        entry = self.entries.get(key)
        return None if entry is None else entry.node

    def plain(self) -> object:
        """Return the tree as dict, list and scalars."""
        if isinstance(self.value, Mapping):
            return {key: entry.node.plain() for key, entry in self.value.items()}
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        return self.value


@dataclass(frozen=True, slots=True)
class Document:
    """A fleet file with everything it imports.

    Attributes
    ----------
    path : Path
        The requested file.
    root : Node
        The merged tree; always a mapping.
    hashes : Mapping[str, str]
        SHA-256 of every file read, by name.
    """

    path: Path
    root: Node
    hashes: Mapping[str, str]

    def node(self, key_path: KeyPath) -> Node | None:
        """Return the node at a path, or None."""
        found: Node | None = self.root
        for key in key_path:
            if found is None:
                return None
            found = found.child(key)
        return found

    def place(self, key_path: KeyPath) -> SourcePlace:
        """Return the place of the value at a path, or of the nearest enclosing value."""
        node = self.root
        for key in key_path:
            below = node.child(key)
            if below is None:
                break
            node = below
        return node.place

    def key_place(self, key_path: KeyPath) -> SourcePlace:
        """Return the place of the last key of a path, or that of `place`."""
        if key_path:
            parent = self.node(key_path[:-1])
            if parent is not None and isinstance(key_path[-1], str) and key_path[-1] in parent.entries:
                return parent.entries[key_path[-1]].key_place
        return self.place(key_path)

    def label(self, key_path: KeyPath) -> str:
        """Return a path as users write it: `services.chat.slo.ttft_ms`, list items by their name."""
        parts: list[str] = []
        node: Node | None = self.root
        for key in key_path:
            node = node.child(key) if node is not None else None
            if isinstance(key, str):
                parts.append(f".{key}" if parts else key)
            elif node is not None and node.name and node.name.isprintable():
                parts.append(f".{node.name}")
            else:
                parts.append(f"[{key}]")
        return "".join(parts)

    def issue(self, key_path: KeyPath, message: str, hint: str = "", *, at_key: bool = False) -> Issue:
        """Return an issue at a path of this document, placed at its value or at its key."""
        place = self.key_place(key_path) if at_key else self.place(key_path)
        return Issue(place.file, place.line, place.column, self.label(key_path), message, hint)


def merge(base: Node, over: Node) -> Node:
    """Merge `over` over `base`: mappings by key, lists of named items by name; other values are replaced."""
    if isinstance(base.value, Mapping) and isinstance(over.value, Mapping):
        entries = dict(base.value)
        for key, entry in over.value.items():
            below = entries.get(key)
            entries[key] = entry if below is None else Entry(entry.key_place, merge(below.node, entry.node))
        return Node.of_entries(entries, over.place)
    if _is_named_list(base) and _is_named_list(over):
        changes = {item.name: item for item in over.items}
        merged = [
            merge(item, changes.pop(item.name)) if item.name in changes else item for item in base.items
        ]
        added = [item for item in over.items if item.name in changes]
        return Node.of_items([*merged, *added], over.place)
    return over


def _is_named_list(node: Node) -> bool:
    # A list that names an item twice is a separate error, which merging must not hide.
    names = [item.name for item in node.items]
    return bool(names) and None not in names and len(set(names)) == len(names)
