"""Read strict YAML: the program gets what a reader sees, and every mistake has a place.

Differences from plain YAML 1.1, all of them traps of configuration files: a key given twice is an error;
only `true` and `false` are booleans (`yes`, `no`, `on`, `off` are text); `1e3` is a number; `12:30`, dates
and `2027Q1` are text; numbers are finite; tags are refused; aliases may not blow up into a huge tree.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from fleetplan.fleet.document.composer import compose
from fleetplan.fleet.document.document import Document, Entry, Node, SourcePlace, merge
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import read_bytes, unicode_of

# A fleet of 300 services, 100 pools and 8 quarters takes about 1 MiB; a larger file is an accident.
MAX_BYTES: Final = 32 * 1024 * 1024


_OTHER_FILES: Final = (
    (
        {"format_version", "fleet"},
        "the plan.json of a solve",
        "name the fleet file that was solved; plan explain, verify, report and diff read plans",
    ),
    ({"model_type", "hidden_size"}, "the config.json of a model", "name it as the `model` of a service"),
    ({"$defs", "properties"}, "a JSON Schema", "plan new FILE writes a fleet file to start from"),
)
"""Other kinds of files that users pass instead of a fleet file, by keys that all of them have."""


def read_document(path: Path | str) -> Document:
    """Read the YAML file at `path` and merge its imports.

    `imports: [other.yaml]` names files relative to the importing one, which takes precedence: mappings are
    merged key by key, lists of named items by name.

    Raises
    ------
    InputError
        With all issues of all files.
    """
    reader = _SourceReader()
    root = reader.read(Path(path), ())
    if reader.issues or root is None:
        raise InputError(reader.issues)
    return Document(Path(path), root, reader.hashes)


def read_fragment(text: str, label: str) -> Node:
    """Return a value written in YAML's one-line form, as in `--set key=value`.

    Parameters
    ----------
    text : str
        The value.
    label : str
        Name of its place in error messages.

    Raises
    ------
    InputError
        Where it is not a YAML value.
    """
    issues: list[Issue] = []
    node = compose(text, label, issues)
    if issues:
        # Lines and columns within an argument do not help a user.
        raise InputError(replace(issue, line=0, column=0) for issue in issues)
    whole = SourcePlace(label)
    return _relocated(node, whole) if node is not None else Node(None, whole)


def _relocated(node: Node, place: SourcePlace) -> Node:
    """Return the tree with the same place for all nodes."""
    if isinstance(node.value, Mapping):
        entries = {key: Entry(place, _relocated(entry.node, place)) for key, entry in node.value.items()}
        return Node.of_entries(entries, place)
    if isinstance(node.value, tuple):
        return Node.of_items((_relocated(item, place) for item in node.value), place)
    return Node(node.value, place, written=node.written)


class _SourceReader:
    """Reads a file and its imports, gathering issues instead of stopping at the first."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.hashes: dict[str, str] = {}

    def read(
        self, path: Path, importers: tuple[Path, ...], named_at: SourcePlace | None = None
    ) -> Node | None:
        name = str(path)
        text = self._text(path, named_at)
        if text is None:
            return None
        before = len(self.issues)
        root = compose(text, name, self.issues)
        if len(self.issues) > before:
            return None
        if root is None or root.value is None:
            hint = "a fleet file starts with `version: 1`"
            self.issues.append(Issue(name, 1, 1, "", "the file is empty", hint))
            return None
        if not isinstance(root.value, Mapping):
            place = root.place
            message = f"must be a mapping of keys to values, not {_kind(root)}"
            self.issues.append(Issue(name, place.line, place.column, "", message))
            return None
        for keys, what, hint in _OTHER_FILES:
            if keys <= root.entries.keys():
                self.issues.append(Issue(name, 1, 1, "", f"is {what}, not a fleet file", hint))
                return None
        return self._with_imports(path, root, (*importers, path))

    def _text(self, path: Path, named_at: SourcePlace | None) -> str | None:
        name = str(path)
        # A missing import is reported at the place that names it.
        where = named_at or SourcePlace(name, 1, 1)
        try:
            data = read_bytes(path, MAX_BYTES)
        except OSError as error:
            self.issues.append(Issue(where.file, where.line, where.column, "", _os_message(name, error)))
            return None
        self.hashes[name] = hashlib.sha256(data).hexdigest()
        return self._decoded(name, data)

    def _decoded(self, name: str, data: bytes) -> str | None:
        if (encoding := unicode_of(data)) is not None:
            self.issues.append(Issue(name, 1, 1, "", f"this is {encoding} text", "save the file as UTF-8"))
            return None
        if b"\0" in data:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            self.issues.append(Issue(name, line, 1, "", "this is a binary file, not YAML text"))
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line_start = data.rfind(b"\n", 0, error.start) + 1
            line = data.count(b"\n", 0, error.start) + 1
            message = f"not UTF-8 text: byte 0x{data[error.start]:02x} cannot be read"
            self.issues.append(
                Issue(name, line, error.start - line_start + 1, "", message, "save the file as UTF-8")
            )
            return None

    def _with_imports(self, path: Path, root: Node, chain: tuple[Path, ...]) -> Node:
        entry = root.entries.get("imports")
        if entry is None:
            return root
        own = Node.of_entries({k: v for k, v in root.entries.items() if k != "imports"}, root.place)
        named = entry.node.items
        if not isinstance(entry.node.value, tuple) or any(not isinstance(n.value, str) for n in named):
            place = entry.node.place
            message = f"must be a list of file names, not {_kind(entry.node)}"
            self.issues.append(
                Issue(place.file, place.line, place.column, "imports", message, "such as [prices.yaml]")
            )
            return own
        merged: Node | None = None
        for node in named:
            imported = self._imported(path.parent / str(node.value), node.place, chain)
            if imported is not None:
                merged = imported if merged is None else merge(merged, imported)
        return own if merged is None else merge(merged, own)

    def _imported(self, path: Path, place: SourcePlace, chain: tuple[Path, ...]) -> Node | None:
        # A loop of links has no target; reading it reports the error.
        resolved = [os.path.realpath(earlier) for earlier in chain]
        if os.path.realpath(path) in resolved:
            cycle = [*chain[resolved.index(os.path.realpath(path)) :], path]
            message = f"files import each other: {' -> '.join(p.name for p in cycle)}"
            self.issues.append(
                Issue(place.file, place.line, place.column, "imports", message, "remove one of these imports")
            )
            return None
        return self.read(path, chain, place)


def _os_message(name: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no file {name}"
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder, not a file"
    return f"{name} cannot be read: {error.strerror}"


def _kind(node: Node) -> str:
    if isinstance(node.value, Mapping):
        return "a mapping"
    if isinstance(node.value, tuple):
        return "a list"
    return "nothing" if node.value is None else repr(node.value)
