"""Validate objects of Kubernetes controllers by their schemas and by further checks of the controllers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.export.launch.tools import tools
from tests.interop import judge
from tests.interop.documents import read_all_yaml

HERE = Path(__file__).parent


@cache
def _table() -> Mapping[str, Any]:
    found: dict[str, Any] = read_yaml((HERE / "objects.yaml").read_text(encoding="utf-8"))
    return found


def apis() -> Mapping[str, str]:
    """The API of each kind, as the export's table has it."""
    rules = tools()
    kueue = dict.fromkeys(("ResourceFlavor", "ClusterQueue", "LocalQueue"), rules.kueue.api)
    return kueue | {
        "NodePool": rules.karpenter.api,
        "ContainerNodePool": rules.config_connector.api,
        "LeaderWorkerSet": rules.lws.api,
        "DynamoGraphDeployment": rules.dynamo.api,
    }


def refusals(texts: Mapping[str, str], crds: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield where and why a cluster refuses objects.

    Parameters
    ----------
    texts : Mapping[str, str]
        YAML by file name; all of one cluster, as names are held to be unique.
    crds : Path or None
        A folder of CustomResourceDefinitions to hold them to besides.
    """
    whole = {} if crds is None else definitions(crds)
    objects = [(name, each) for name, text in texts.items() for each in read_all_yaml(text)]
    for name, each in objects:
        place = f"{name} {each['kind']}/{each['metadata']['name']}"
        schema = {
            "definitions": _table()["definitions"],
            "type": "object",
            "required": ["apiVersion", "kind", "metadata", "spec"],
            "additionalProperties": False,
            "properties": {
                "apiVersion": {"const": apis()[each["kind"]]},
                "kind": {"type": "string"},
                "metadata": {"$ref": "#/definitions/metadata"},
                "spec": _table()["kinds"][each["kind"]],
            },
        }
        checks = [schema]
        # A folder need not hold the definitions of every controller.
        if (definition := whole.get((each["kind"], each["apiVersion"]))) is not None:
            checks.append(definition)
        for check in checks:
            for error in jsonschema.Draft202012Validator(check).iter_errors(each):
                yield place, f"{error.json_path}: {error.message}"
        yield from ((place, why) for why in _semantics(each))
    taken = Counter((each["kind"], each["metadata"]["name"]) for _, each in objects)
    for (kind, name), times in taken.items():
        if times > 1:
            yield f"{kind}/{name}", f"{times} objects of one name"
    yield from _references([each for _, each in objects])


def chart_refusals(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield where and why the chart of llm-d refuses values, or mixes up pods of releases."""
    table = _table()
    schema = {"definitions": table["definitions"], **table["charts"]["llm-d-modelservice"]}
    selectors: dict[tuple[object, ...], str] = {}
    for name, text in texts.items():
        values = read_yaml(text)
        for error in jsonschema.Draft202012Validator(schema).iter_errors(values):
            yield name, f"{error.json_path}: {error.message}"
        for role in ("prefill", "decode"):
            if values[role]["create"]:
                # The chart's Deployments select by these labels and the role alone.
                selector = (role, *sorted(values["modelArtifacts"]["labels"].items()))
                if selector in selectors:
                    yield name, f"selects the pods of {selectors[selector]} too"
                selectors[selector] = name


@cache
def definitions(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Schemas of CustomResourceDefinitions by kind and API, closed to keys that they do not name."""
    return {key: _closed(schema) for key, schema in versions(folder).items()}


@cache
def versions(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Schemas of CustomResourceDefinitions by kind and API, as they are."""
    found = {}
    for file in sorted(folder.glob("*.yaml")):
        for each in read_all_yaml(file.read_text(encoding="utf-8")):
            spec = each["spec"]
            for version in spec["versions"]:
                api = f"{spec['group']}/{version['name']}"
                schema = version["schema"]["openAPIV3Schema"]
                schema["properties"]["metadata"] = {"type": "object"}
                found[spec["names"]["kind"], api] = schema
    return found


def _closed(schema: Any) -> Any:
    """An OpenAPI schema as a JSON schema that admits no other keys."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not key.startswith("x-")}
    if isinstance(kept.get("properties"), dict):
        kept["properties"] = {key: _closed(value) for key, value in kept["properties"].items()}
        if "additionalProperties" not in kept and not schema.get("x-kubernetes-preserve-unknown-fields"):
            kept["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _closed(kept[key])
    return kept


def _semantics(each: Mapping[str, Any]) -> Iterator[str]:
    """Yield faults that controllers find and schemas do not."""
    spec = each["spec"]
    if each["kind"] == "DynamoGraphDeployment":
        names = [component["name"].lower() for component in spec["components"]]
        if len(names) != len(set(names)):
            yield "two components of one name"
        for name, reasons in judge.graph_refusals(each).items():
            yield from (f"{name}: {why}" for why in reasons)
    if each["kind"] == "ClusterQueue":
        covered = [name for group in spec["resourceGroups"] for name in group["coveredResources"]]
        if len(covered) != len(set(covered)):
            yield "a resource stands in two groups"
        flavors = [flavor["name"] for group in spec["resourceGroups"] for flavor in group["flavors"]]
        if len(flavors) != len(set(flavors)):
            yield "a flavor stands in two groups"
        for group in spec["resourceGroups"]:
            for flavor in group["flavors"]:
                if [one["name"] for one in flavor["resources"]] != group["coveredResources"]:
                    yield f"{flavor['name']} has other resources than its group covers"
    if each["kind"] == "NodePool":
        yield from _restricted_keys(spec["template"])


def _restricted_keys(template: Mapping[str, Any]) -> Iterator[str]:
    """Labels and requirements that Karpenter sets itself."""
    labels = [*template["metadata"]["labels"]]
    for key in [*labels, *(each["key"] for each in template["spec"]["requirements"])]:
        own = key.split("/")[0].endswith("karpenter.sh") and key != "karpenter.sh/capacity-type"
        if own or key == "kubernetes.io/hostname":
            yield f"{key} is restricted"


def _references(objects: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Queues that name what is not there."""
    names: dict[str, set[str]] = {}
    for each in objects:
        names.setdefault(each["kind"], set()).add(each["metadata"]["name"])
    for each in objects:
        place = f"{each['kind']}/{each['metadata']['name']}"
        if each["kind"] == "LocalQueue" and each["spec"]["clusterQueue"] not in names["ClusterQueue"]:
            yield place, f"there is no ClusterQueue {each['spec']['clusterQueue']}"
        if each["kind"] == "ClusterQueue":
            for group in each["spec"]["resourceGroups"]:
                for flavor in group["flavors"]:
                    if flavor["name"] not in names["ResourceFlavor"]:
                        yield place, f"there is no ResourceFlavor {flavor['name']}"
