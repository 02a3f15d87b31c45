"""Export the schema of the fleet file as JSON Schema draft 7, for editors and CI tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, TypeAlias, cast

from pydantic import JsonValue

from fleetplan.fleet.schema.fleet import FleetSpec
from fleetplan.fleet.schema.quantities import QUANTITY_PATTERN, SCALED_PATTERN

_Node: TypeAlias = dict[str, JsonValue]

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
FILE_NAME: Final = "fleet.schema.json"

_DEFINITIONS: Final = "#/definitions/"
# Keywords whose values are schemas by name, and lists of schemas.
_BY_NAME: Final = ("properties", "patternProperties", "definitions")
_LISTS: Final = ("anyOf", "oneOf", "allOf")
# Overrides and importing files contain a part of a file: the same keys, none of them required.
_CHANGES: Final = "Changes"
_FLEET: Final = "FleetSpec"

# A schema cannot tell the levels of nested demand apart by their keys; it can check that they end in numbers.
_DEMAND: Final[_Node] = {
    "description": "Requests per second at peak, or a mapping to them.",
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": f"{QUANTITY_PATTERN}|{SCALED_PATTERN}"},
        {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": f"{_DEFINITIONS}Demand"}},
    ],
}
_IMPORTS: Final[_Node] = {
    "description": "Files, relative to this one, on which this file is laid: mappings are merged key by key, "
    "lists of named items by name.",
    "type": "array",
    "items": {"type": "string", "minLength": 1},
}


@cache
def schema_text() -> str:
    """Return the JSON Schema (draft 7) of fleet files, as the text of a file.

    Docstrings of the models describe the keys, with units in brackets. The schema knows keys, types and
    ranges; only `plan check` checks that names exist and that keys fit together.
    """
    return json.dumps(_fleet_schema(), indent=2, ensure_ascii=False) + "\n"


def _fleet_schema() -> _Node:
    generated = cast(_Node, FleetSpec.model_json_schema(ref_template=_DEFINITIONS + "{model}"))
    blocks = _mapping(generated.pop("$defs"))
    blocks[_FLEET] = generated
    definitions: _Node = {name: _draft_7(_mapping(block)) for name, block in blocks.items()}
    _describe_demand(_mapping(definitions["ServiceSpec"]))
    _describe_changes(_mapping(definitions[_FLEET]))
    changes: _Node = {
        name + _CHANGES: _as_changes(_mapping(block), definitions) for name, block in definitions.items()
    }
    return {
        "$schema": DIALECT,
        "title": "fleetplan fleet file, version 1",
        "description": "The fleet, what can be added to it, and the services that it is to serve.",
        "type": "object",
        "if": {"required": ["imports"]},
        "then": {"$ref": f"{_DEFINITIONS}{_FLEET}{_CHANGES}"},
        "else": {"$ref": f"{_DEFINITIONS}{_FLEET}"},
        "definitions": {**definitions, **changes, "Demand": _DEMAND},
    }


def _draft_7(node: _Node) -> _Node:
    """Convert a schema to draft 7 and remove titles and defaults that repeat the key or its absence."""
    found = _walked(node, _draft_7)
    found.pop("title", None)
    if isinstance(found.get("default"), dict | list | None):
        found.pop("default", None)
    if "description" in found:
        found["description"] = " ".join(str(found["description"]).split())
    if "patternProperties" in found:
        found["additionalProperties"] = False
    if "$ref" in found and len(found) > 1:
        # Draft 7 ignores keywords beside a reference.
        found["allOf"] = [{"$ref": found.pop("$ref")}]
    return _nullable(found)


def _nullable(node: _Node) -> _Node:
    """Rewrite `anyOf: [X, null]` as a nullable X, so that editors explain a wrong value."""
    options = node.get("anyOf")
    if not isinstance(options, list) or options[1:] != [{"type": "null"}]:
        return node
    option = _mapping(options[0])
    if not isinstance(option.get("type"), str) or "enum" in option or "const" in option:
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**option, **rest, "type": [option["type"], "null"]}


def _describe_demand(service: _Node) -> None:
    demand = _mapping(_mapping(service["properties"])["demand"])
    del demand["anyOf"]
    demand["allOf"] = [{"$ref": f"{_DEFINITIONS}Demand"}]


def _describe_changes(fleet: _Node) -> None:
    """Describe imports, scenarios and overrides, which the models leave unchecked."""
    keys = _mapping(fleet["properties"])
    change: _Node = {"$ref": f"{_DEFINITIONS}{_FLEET}{_CHANGES}"}
    names: _Node = {"type": "array", "items": {"type": "string"}}
    _mapping(keys["overrides"])["additionalProperties"] = change
    _mapping(keys["scenarios"])["additionalProperties"] = {"anyOf": [names, change]}
    keys["imports"] = _IMPORTS


def _as_changes(node: _Node, definitions: Mapping[str, JsonValue]) -> _Node:
    """Return a block without required keys."""
    found = _walked(node, lambda below: _as_changes(below, definitions))
    found.pop("required", None)
    name = str(found.get("$ref", "")).removeprefix(_DEFINITIONS)
    if name in definitions:
        found["$ref"] = f"{_DEFINITIONS}{name}{_CHANGES}"
    return found


def _walked(node: _Node, change: Callable[[_Node], _Node]) -> _Node:
    """Return a schema with `change` applied to every schema directly inside it."""
    found: _Node = {}
    for key, value in node.items():
        if key in _BY_NAME:
            found[key] = {name: change(_mapping(below)) for name, below in _mapping(value).items()}
        elif key in _LISTS and isinstance(value, list):
            found[key] = [change(_mapping(below)) for below in value]
        elif isinstance(value, dict) and key != "default":
            found[key] = change(value)
        else:
            found[key] = value
    return found


def _mapping(value: JsonValue) -> _Node:
    assert isinstance(value, dict), "a schema is a mapping"
    return value
