"""Change values in the text of a YAML file and keep everything else, comments included."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import yaml

from fleetplan.fleet.document.document import KeyPath
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.document.three_way import by_name, same_written

_ALIAS: Final = re.compile(r"\s*\*[^\s,\]}]+")
_LONGEST_LINE: Final = 100
"""Longest mapping that is written in one line. [characters]"""


class YamlText:
    """A YAML file as text whose values can be replaced one by one.

    Parameters
    ----------
    text : str
        A valid file: one mapping.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(root, yaml.MappingNode):
            raise ValueError("not a mapping")
        self._root = root
        self._changes: dict[tuple[int, int], str] = {}

    def has(self, key_path: KeyPath) -> bool:
        """Return whether a path exists; items of a list are selected by name or position."""
        return self._node(key_path) is not None

    def put(self, key_path: KeyPath, value: object, comment: Sequence[str] = ()) -> None:
        """Set a key to a value, replacing an existing one.

        Parameters
        ----------
        key_path : KeyPath
            The key; its mapping must exist.
        value : object
            New value: scalars, lists and mappings.
        comment : Sequence[str]
            Comment lines: before a value of several lines, after a value of one line.

        Raises
        ------
        KeyError
            There is no such mapping.
        """
        *above, key = key_path
        parent = self._node(tuple(above))
        if not isinstance(parent, yaml.MappingNode):
            raise KeyError(".".join(str(part) for part in key_path))
        written = next(((name, node) for name, node in parent.value if name.value == str(key)), None)
        flow = bool(parent.flow_style)
        if written is None:
            self._insert(parent, f"{_flow(key)}:{_value(value, self._indent(parent), comment, flow=flow)}")
            return
        name, node = written
        start = self._text.index(":", name.end_mark.index) + 1
        new = _value(value, name.start_mark.column, comment, flow=flow)
        self._changes[start, self._end(node, start)] = new

    def append(self, key_path: KeyPath, items: Sequence[Mapping[str, object]]) -> None:
        """Append items to a list, creating it if necessary.

        Raises
        ------
        KeyError
            The mapping of the list does not exist.
        """
        node = self._node(key_path)
        if not isinstance(node, yaml.SequenceNode):
            self.put(key_path, list(items))
            return
        lines = [_flow(item) for item in items]
        if node.flow_style:
            place = node.end_mark.index - 1
            joined = ", ".join(lines)
            self._changes[place, place] = f", {joined}" if node.value else joined
        else:
            indent = " " * node.start_mark.column
            place = self._line_end(self._end(node, 0))
            self._changes[place, place] = "".join(f"\n{indent}- {line}" for line in lines)

    def keep_items(self, key_path: KeyPath, items: Sequence[Mapping[str, object]]) -> None:
        """Remove all but some named items from a list that has no other changes.

        Raises
        ------
        KeyError
            The mapping of the list does not exist.
        """
        node = self._node(key_path)
        if not items or not isinstance(node, yaml.SequenceNode) or not _is_block(node):
            self.put(key_path, list(items))
            return
        kept = [_item(node, str(each["name"])) for each in items]
        for item in node.value:
            if all(item is not each for each in kept):
                self._remove_lines(item)

    def become(self, value: Mapping[str, object], now: Mapping[str, object]) -> None:
        """Set the value of the whole file; unchanged parts keep their text.

        Parameters
        ----------
        value : Mapping[str, object]
            New value of the file, as plain data.
        now : Mapping[str, object]
            Current value of the file.
        """
        if _is_block(self._root):
            self._become(self._root, (), value, now)
        else:
            self._changes[self._root.start_mark.index, self._root.end_mark.index] = _flow(value)

    def _become(
        self, node: yaml.MappingNode, here: KeyPath, value: Mapping[str, object], now: Mapping[str, object]
    ) -> None:
        for key in now:
            if key not in value:
                self._remove_entry(node, key)
        for key, new in value.items():
            if key in now and same_written(now[key], new):
                continue
            below, path = self._node((*here, key)), (*here, key)
            old = now.get(key)
            if isinstance(new, Mapping) and isinstance(old, Mapping) and _is_block(below) and new:
                assert isinstance(below, yaml.MappingNode)
                self._become(below, path, new, old)
            elif isinstance(below, yaml.SequenceNode) and _is_block(below) and by_name(new) and by_name(old):
                self._become_items(below, path, by_name(new) or {}, by_name(old) or {})
            else:
                self.put(path, new)

    def _become_items(
        self, node: yaml.SequenceNode, here: KeyPath, value: Mapping[str, object], now: Mapping[str, object]
    ) -> None:
        for name, item in zip(now, node.value, strict=True):
            new, old = value.get(name), now[name]
            if same_written(new, old):
                continue
            # Its first key is on the line of the dash, so the item without it is written again.
            if (
                isinstance(new, Mapping)
                and isinstance(old, Mapping)
                and isinstance(item, yaml.MappingNode)
                and _is_block(item)
                and item.value[0][0].value in new
            ):
                self._become(item, (*here, name), new, old)
                continue
            if new is None:
                self._remove_lines(item)
            else:
                self._changes[item.start_mark.index, self._end(item, 0)] = _flow(new)
        added = [item for name, item in value.items() if name not in now and isinstance(item, Mapping)]
        if added:
            self.append(here, added)

    def _remove_entry(self, node: yaml.MappingNode, key: str) -> None:
        """Remove a key and its lines from a block mapping with other keys."""
        name, written = next(each for each in node.value if each[0].value == key)
        start = self._text.rfind("\n", 0, name.start_mark.index) + 1
        self._changes[start, self._line_end(self._end(written, name.end_mark.index)) + 1] = ""

    def _remove_lines(self, item: yaml.Node) -> None:
        """Remove an item from a block list."""
        start = self._text.rfind("\n", 0, item.start_mark.index) + 1
        self._changes[start, self._line_end(self._end(item, 0)) + 1] = ""

    def changed(self) -> str:
        """Return the text with all changes."""
        text = self._text
        for (start, end), new in sorted(self._changes.items(), reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _node(self, key_path: KeyPath) -> yaml.Node | None:
        node: yaml.Node | None = self._root
        for key in key_path:
            if isinstance(node, yaml.MappingNode):
                node = next((value for name, value in node.value if name.value == str(key)), None)
            elif isinstance(node, yaml.SequenceNode):
                node = _item(node, key)
            else:
                return None
        return node

    def _end(self, node: yaml.Node, after: int) -> int:
        """Return the end of a value; for an alias, whose node is that of its anchor, the end of the alias."""
        alias = _ALIAS.match(self._text, after) if after else None
        if alias is not None:
            return alias.end()
        last = node
        while isinstance(last, yaml.CollectionNode) and not last.flow_style and last.value:
            last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
        if last.start_mark.index < node.start_mark.index:
            # It ends in an alias, which has only its own mark.
            return len(self._text[: node.end_mark.index].rstrip())
        return max(after, len(self._text[: last.end_mark.index].rstrip()))

    def _insert(self, parent: yaml.MappingNode, entry: str) -> None:
        if parent.flow_style:
            place = parent.end_mark.index - 1
            before = self._changes.get((place, place), "")
            self._changes[place, place] = f"{before}, {entry}" if parent.value or before else entry
        else:
            place = self._line_end(self._end(parent, 0))
            indent = " " * self._indent(parent)
            before = self._changes.get((place, place), "")
            self._changes[place, place] = f"{before}\n{indent}{entry}"

    def _indent(self, node: yaml.MappingNode) -> int:
        return int(node.value[0][0].start_mark.column) if node.value else 0

    def _line_end(self, place: int) -> int:
        found = self._text.find("\n", place)
        return len(self._text) if found < 0 else found


def _is_block(node: yaml.Node | None) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style and bool(node.value)


def _item(node: yaml.SequenceNode, key: str | int) -> yaml.Node | None:
    if isinstance(key, int):
        return node.value[key] if key < len(node.value) else None
    for item in node.value:
        if isinstance(item, yaml.MappingNode) and any(
            name.value == "name" and value.value == key for name, value in item.value
        ):
            return item
    return None


def _value(value: object, indent: int, comment: Sequence[str], *, flow: bool) -> str:
    """Return the text of a value after the colon of its key, which is at an indent."""
    line = _flow(value)
    if flow:
        return f" {line}"
    after = f"    # {' '.join(comment)}" if comment else ""
    if not isinstance(value, Mapping | list) or not value:
        return f" {line}{after}"
    if isinstance(value, Mapping) and len(line) + len(after) + indent <= _LONGEST_LINE:
        return f" {line}{after}"
    pad = " " * (indent + 2)
    lines = [f"\n{pad}# {each}" for each in comment]
    if isinstance(value, list):
        lines += [f"\n{pad}- {_flow(item)}" for item in value]
    else:
        lines += [
            f"\n{pad}{_flow(key)}:{_value(each, indent + 2, (), flow=False)}" for key, each in value.items()
        ]
    return "".join(lines)


def _flow(value: object) -> str:
    """Return a value in one line."""
    text = yaml_text(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...").strip()
