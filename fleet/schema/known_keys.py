"""Find the keys that a fleet file may have at each path, from its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, TypeAlias

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.schema.fleet import FleetSpec

_Json: TypeAlias = Mapping[str, object]

_DEEPEST: Final = 6
"""Largest depth of a key; some values nest without limit, such as demand by region, period and class."""

_LEAST_ENDING: Final = 10
"""Minimum common ending of a key and its suggestion; shorter endings are too vague. [letters]"""

_MOST_PLACES: Final = 2
"""Largest number of places that a message names."""


def allowed_keys(location: KeyPath) -> list[str]:
    """Return the keys that the file may have at a path."""
    schema = _schema()
    found: list[_Json] = [schema]
    for key in location:
        found = [below for here in found for below in _below(schema, here, key)]
    properties = [_mapping(_resolved(schema, here).get("properties")) for here in found]
    return [name for each in properties for name in each]


def places_of(key: str, location: KeyPath) -> list[str]:
    """Return other places of a key, as paths of keys without the names of items.

    Parameters
    ----------
    key : str
        The key, such as `currency`, or `rent_usd_per_accelerator_hour`, which a pool calls
        `rented.usd_per_accelerator_hour`.
    location : KeyPath
        Its wrong place.

    Returns
    -------
    list[str]
        Places within blocks, at the smallest depth, those of the same block first; none if more than two are
        at that depth.
    """
    block = str(location[0]) if location else ""
    by_rank: dict[tuple[bool, int], list[str]] = {}
    for path in _paths():
        here = path[0] == block
        meant = here and len(path[-1]) >= _LEAST_ENDING and key.endswith(path[-1])
        if len(path) > 1 and (path[-1] == key or meant):
            by_rank.setdefault((not here, len(path)), []).append(".".join(path))
    first = by_rank[min(by_rank)] if by_rank else []
    return first if len(first) <= _MOST_PLACES else []


@cache
def _schema() -> _Json:
    return FleetSpec.model_json_schema()


@cache
def _paths() -> tuple[tuple[str, ...], ...]:
    """Yield all keys of a fleet file with their parents."""
    schema = _schema()
    return tuple(dict.fromkeys(_paths_below(schema, schema, (), _DEEPEST)))


def _paths_below(
    schema: _Json, here: _Json, above: tuple[str, ...], levels: int
) -> Iterator[tuple[str, ...]]:
    if levels == 0:
        return
    for option in _options(_resolved(schema, here)):
        block = _resolved(schema, option)
        for name, below in _mapping(block.get("properties")).items():
            yield (*above, name)
            yield from _paths_below(schema, _mapping(below), (*above, name), levels - 1)
        for item in (_mapping(block.get("items")), *_items_of_names(block)):
            yield from _paths_below(schema, item, above, levels - 1)


def _below(schema: _Json, here: _Json, key: str | int) -> list[_Json]:
    alternatives = [_resolved(schema, option) for option in _options(_resolved(schema, here))]
    if isinstance(key, int):
        return [_mapping(option["items"]) for option in alternatives if "items" in option]
    found = []
    for option in alternatives:
        properties = _mapping(option.get("properties"))
        if key in properties:
            found.append(_mapping(properties[key]))
        else:
            found += _items_of_names(option)
    return [flat for below in found for flat in _options(_resolved(schema, below))]


def _items_of_names(block: _Json) -> list[_Json]:
    """Return the schemas of a mapping's values under the user's names."""
    items = [block.get("additionalProperties"), *_mapping(block.get("patternProperties")).values()]
    return [item for item in map(_mapping, items) if item]


def _options(here: _Json) -> list[_Json]:
    for key in ("anyOf", "oneOf"):
        options = here.get(key)
        if isinstance(options, list):
            return options
    return [here]


def _resolved(schema: _Json, here: _Json) -> _Json:
    reference = here.get("$ref")
    if not isinstance(reference, str):
        return here
    return _mapping(_mapping(schema["$defs"])[reference.rpartition("/")[2]])


def _mapping(value: object) -> _Json:
    return value if isinstance(value, dict) else {}
