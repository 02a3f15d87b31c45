"""Rules in CEL of CustomResourceDefinitions, with the values that they are said of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.interop.documents import read_all_yaml
from tests.interop.objects import versions


def rules_of(texts: Mapping[str, str], crds: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each rule that applies to new objects, with the rule and its value.

    Parameters
    ----------
    texts : Mapping[str, str]
        YAML by file name.
    crds : Path
        A folder of CustomResourceDefinitions.
    """
    known = versions(crds)
    for name, text in texts.items():
        for each in read_all_yaml(text):
            schema = known.get((each["kind"], each["apiVersion"]), {})
            place = f"{name} {each['kind']}/{each['metadata']['name']}"
            for path, case in _rules(schema, defaulted(schema, each), ""):
                yield f"{place} {path or '.'}", case


def defaulted(schema: Mapping[str, Any], value: Any) -> Any:
    """A value with the defaults of its schema, which a server fills in before it asks the rules."""
    if isinstance(value, Mapping):
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        whole = {key: part["default"] for key, part in properties.items() if "default" in part} | dict(value)
        below = others if isinstance(others, Mapping) else {}
        return {key: defaulted(properties.get(key, below), part) for key, part in whole.items()}
    if isinstance(value, list):
        return [defaulted(schema.get("items") or {}, each) for each in value]
    return value


def _rules(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in schema.get("x-kubernetes-validations") or ():
        # What compares with the object before is asked of changes alone.
        if "oldSelf" not in each["rule"]:
            yield path, {"rule": each["rule"], "self": value, "message": each.get("message", each["rule"])}
    if isinstance(value, Mapping):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, part in value.items():
            below = properties.get(key, others)
            if isinstance(below, Mapping):
                yield from _rules(below, part, f"{path}.{key}")
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for position, part in enumerate(value):
            yield from _rules(schema["items"], part, f"{path}[{position}]")
