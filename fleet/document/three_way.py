"""Merge two changed versions of a file: mappings by key, lists by the names of items, others whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleetplan.fleet.document.document import KeyPath

_GONE: Final = object()
"""Text for a missing value in messages."""


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """A place that both versions changed differently.

    Attributes
    ----------
    key_path : KeyPath
        Keys, and names of items in lists.
    base, mine, theirs : object
        Values of the three versions; `is_gone` marks a missing one.
    """

    key_path: KeyPath
    base: object
    mine: object
    theirs: object


@dataclass(slots=True)
class MergedFile:
    """Result of a merge.

    Attributes
    ----------
    value : object
        The merged tree; at a conflict, with the value of the preferred version.
    taken : list[tuple[KeyPath, object, object]]
        Changes of the other version only: path, value before and after.
    conflicts : list[MergeConflict]
        Conflicting changes.
    """

    value: object = None
    taken: list[tuple[KeyPath, object, object]] = field(default_factory=list)
    conflicts: list[MergeConflict] = field(default_factory=list)


def is_gone(value: object) -> bool:
    """Return whether a value means that nothing is written."""
    return value is _GONE


def merged(base: object, mine: object, theirs: object, *, prefer_theirs: bool = False) -> MergedFile:
    """Merge two versions of a file with a common ancestor.

    Parameters
    ----------
    base : object
        The ancestor, as plain mappings, lists and scalars.
    mine, theirs : object
        The two versions.
    prefer_theirs : bool
        Version whose value is used at a conflict.
    """
    into = MergedFile()
    into.value = _merged(base, mine, theirs, (), into, prefer_theirs)
    return into


def by_name(value: object) -> dict[str, object] | None:
    """Return the items of a list by their unique names; None if an item has none."""
    if not isinstance(value, list) or not value:
        return None
    names = [item.get("name") if isinstance(item, Mapping) else None for item in value]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    return {str(name): item for name, item in zip(names, value, strict=True)}


def _merged(
    base: object, mine: object, theirs: object, here: KeyPath, into: MergedFile, prefer_theirs: bool
) -> object:
    if same_written(mine, theirs) or same_written(base, theirs):
        return mine
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        return _by_key(base if isinstance(base, Mapping) else {}, mine, theirs, here, into, prefer_theirs)
    named = by_name(mine), by_name(theirs)
    if named[0] is not None and named[1] is not None:
        items = _by_key(by_name(base) or {}, named[0], named[1], here, into, prefer_theirs)
        return list(items.values())
    if same_written(base, mine):
        into.taken.append((here, mine, theirs))
        return theirs
    into.conflicts.append(MergeConflict(here, base, mine, theirs))
    return theirs if prefer_theirs else mine


def _by_key(
    base: Mapping[str, object],
    mine: Mapping[str, object],
    theirs: Mapping[str, object],
    here: KeyPath,
    into: MergedFile,
    prefer_theirs: bool,
) -> dict[str, object]:
    found = {}
    for key in (*mine, *(key for key in theirs if key not in mine)):
        versions = [each.get(key, _GONE) for each in (base, mine, theirs)]
        value = _merged(versions[0], versions[1], versions[2], (*here, key), into, prefer_theirs)
        if value is not _GONE:
            found[key] = value
    return found


def same_written(one: object, other: object) -> bool:
    """Return whether two values have the same text: true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_written(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_written, one, other))
    return one is other or (type(one) is type(other) and one == other)
