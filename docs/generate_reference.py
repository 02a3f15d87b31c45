"""Write docs/fleet-yaml.md from the schema of the fleet file: python docs/generate_reference.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from fleetplan.fleet.schema import FleetSpec
from fleetplan.fleet.schema.values import LARGEST_COUNT, LARGEST_NUMBER
from fleetplan.fleet.tables import TABLES

TARGET: Final = Path(__file__).with_name("fleet-yaml.md")

# A JSON Schema is nested plain data, and this script is the only reader of it.
Schema = Mapping[str, Any]

HEAD: Final = """\
# fleet.yaml, version 1

`docs/generate_reference.py` generates this page from the schema of the reader; do not edit it.

The file is strict YAML: unknown and duplicate keys are errors, only `true` and `false` are booleans, and
periods such as `2027Q1` are text. The reader reports all mistakes at once, with file, line and column.
`imports: [other.yaml]` merges this file over others: mappings key by key, lists of named items by name.

* **Bold** keys are required.
* Names contain no blanks, commas, brackets or bars. The name of the plan may be any text.
* State a value once if it is the same in every region, period or class. In a fleet of several regions, demand
  names its region. A mapping by period names every period, unless the key states otherwise.
* Without a stated range, numbers are at most 1e12 and whole numbers at most 1e9. Demand, and the rates of
  engine tables, are 0 or between 1e-6 and 1e9 requests/s. An offer without a maximum brings at most 1,000,000
  units in a period.
* Costs are computed in steps of 1e-6 USD. If the costs of a fleet could add up to more than 4.6e12 USD, the
  reader reports an error that names the line of the largest cost.
"""

# Stated once, above.
GENERAL_MAXIMA: Final = (LARGEST_NUMBER, LARGEST_COUNT)

TABLE_HEAD: Final = "| key | value | meaning |\n|---|---|---|\n"

# Words for the types of JSON; anything else keeps its name.
TYPE_NAMES: Final = {"integer": "whole number", "string": "text", "boolean": "true or false"}

ENGINES_HEAD: Final = """
## Engine tables

The CSV file that `services.engines` names has one row per phase, hardware, configuration and request class:

| column | unit | meaning |
|---|---|---|
"""


def reference() -> str:
    """The whole document."""
    schema = FleetSpec.model_json_schema()
    definitions: Mapping[str, Schema] = schema["$defs"]
    parts = [HEAD, *_section("The file", schema, definitions)]
    done: set[str] = set()
    for title, name in _blocks(schema, definitions, ""):
        if name not in done:
            done.add(name)
            parts += _section(f"`{title}`", definitions[name], definitions)
    parts.append(ENGINES_HEAD)
    for column in TABLES["engines"]:
        name = f"**{column.name}**" if column.required else column.name
        parts.append(f"| {name} | {column.unit} | {column.meaning} |\n")
    return "".join(parts)


def _blocks(schema: Schema, definitions: Mapping[str, Schema], above: str) -> Iterator[tuple[str, str]]:
    """Every nested block with its path, parents first."""
    for key, value in schema.get("properties", {}).items():
        for name in _references(value):
            if definitions[name].get("type") == "object":
                yield f"{above}{key}", name
                yield from _blocks(definitions[name], definitions, f"{above}{key}.")


def _references(value: Schema) -> Iterator[str]:
    if "$ref" in value:
        yield value["$ref"].rsplit("/", maxsplit=1)[-1]
    for key in ("anyOf", "oneOf", "allOf"):
        for part in value.get(key, ()):
            yield from _references(part)
    for part in _below(value):
        yield from _references(part)


def _below(value: Schema) -> Iterator[Schema]:
    """What the items of a list or the values of a mapping look like."""
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), Mapping):
            yield value[key]
    # Keys with rules of their own, such as names without blanks, stand apart in JSON Schema.
    yield from value.get("patternProperties", {}).values()


def _section(title: str, schema: Schema, definitions: Mapping[str, Schema]) -> Iterator[str]:
    required = schema.get("required", ())
    yield f"\n## {title}\n\n{_line(schema.get('description', ''))}\n\n{TABLE_HEAD}"
    for key, value in schema["properties"].items():
        name = f"**{key}**" if key in required else key
        # A key without a description of its own is a block that describes itself.
        meaning = value.get("description") or next(
            (definitions[block].get("description", "") for block in _references(value)), ""
        )
        yield f"| {name} | {_value(value)} | {_line(meaning)} |\n"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _value(value: Schema) -> str:
    """What may stand there, and the default."""
    default = value.get("default")
    shown = default not in (None, {}, []) and not isinstance(default, dict | list)
    return _type(value) + (f" = {default}" if shown else "")


def _type(value: Schema) -> str:
    parts = value.get("anyOf", value.get("oneOf"))
    below = [_type(part) for part in _below(value)]
    if "enum" in value:
        found = r" \| ".join(str(each) for each in value["enum"])
    elif "const" in value:
        found = str(value["const"])
    elif "$ref" in value:
        found = "block"
    elif parts is not None:
        found = " or ".join(dict.fromkeys(_type(part) for part in parts if part.get("type") != "null"))
    elif value.get("type") == "array":
        found = f"list of {below[0]}"
    elif value.get("type") == "object":
        found = f"mapping to {below[0]}" if below else "mapping"
    else:
        name = str(value.get("type", "any"))
        found = TYPE_NAMES.get(name, name) + _range(value)
    return found


def _range(value: Schema) -> str:
    """What numbers are allowed, in words; empty for anything else."""
    least, above = value.get("minimum"), value.get("exclusiveMinimum")
    most, below = value.get("maximum"), value.get("exclusiveMaximum")
    words = [
        *([f"from {least:g}"] if least is not None else []),
        *([f"above {above:g}"] if above is not None else []),
        *([f"to {most:g}"] if most is not None and most not in GENERAL_MAXIMA else []),
        *([f"below {below:g}"] if below is not None else []),
    ]
    return f" {' '.join(words)}" if words else ""


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"written to {TARGET}\n")
