"""What a scenario has to lay on a fleet file to make another one of it: the reverse of `expand`."""

from __future__ import annotations

from collections.abc import Mapping

from fleetplan.fleet.document import Node


def difference(before: Node, after: Node) -> dict[str, object]:
    """Return the least mapping that makes one tree of another when it is laid on it.

    Parameters
    ----------
    before, after : Node
        Mappings. What `before` has and `after` has not stays: a scenario takes nothing away.
    """
    return {
        key: _laid_on(None if (old := before.child(key)) is None else old, entry.node)
        for key, entry in after.entries.items()
        if (found := before.child(key)) is None or not _same(found.plain(), entry.node.plain())
    }


def _laid_on(before: Node | None, after: Node) -> object:
    if before is None:
        return after.plain()
    if isinstance(before.value, Mapping) and isinstance(after.value, Mapping):
        return difference(before, after)
    old = {item.name: item for item in before.items}
    names = [item.name for item in after.items]
    if not old or None in {*old, *names} or names[: len(old)] != list(old) or len(set(names)) != len(names):
        return after.plain()
    return [
        {"name": item.name, **difference(old[item.name], item)} if item.name in old else item.plain()
        for item in after.items
        if item.name not in old or not _same(old[item.name].plain(), item.plain())
    ]


def _same(one: object, other: object) -> bool:
    """Whether two plain values are the same in a file, where true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
