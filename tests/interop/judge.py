"""Compare commands and manifests with the plan, and apply webhooks and charts to manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fleetplan.planner.plan import Placement

STORED_IN_NAME: Final = {
    "fp8": "fp8",
    "fp4": "fp4",
    "mxfp4": "mxfp4|gpt-oss",
    "int4": "int4|awq|gptq|w4a16",
    "int8": "int8|w8a8",
}
"""What the name of a checkpoint says of its weights."""

DNS_LABEL: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")

NAME_LETTERS: Final = 45
"""Letters that Grove leaves to names (ai-dynamo/dynamo, MaxCombinedGroveResourceNameLength)."""

OWN_ADDRESS: Final = "VLLM_NIXL_SIDE_CHANNEL_HOST"
"""Where vLLM's connector of caches is reached; localhost unless told (vllm 0.33.0, vllm/envs.py)."""

SHORTEST_GRAPH: Final = 8
"""Letters to which the operator of Dynamo shortens the name of a graph at most (PCSNameForDGD)."""


def differences(wanted: Mapping[str, Any], seen: Mapping[str, Any], framework: str) -> Iterator[str]:
    """Yield the differences between what is started and what was planned."""
    names = ["accelerators", "pp", "dp", "experts", "hosts", "drafted"]
    # A decode server of SGLang receives whole caches and keeps none of its own for later requests.
    if framework != "sglang" or wanted["phase"] != "decode":
        names.append("prefix_caching")
    for name in names:
        if seen[name] != wanted[name]:
            yield f"{name}: {wanted[name]} planned, {seen[name]} started"
    if seen["checkpoint"] != wanted["checkpoint"]:
        yield f"checkpoint: {wanted['checkpoint']} named, {seen['checkpoint']} started"
    yield from _types(wanted, seen)
    sequences = wanted["sequences"]
    if sequences is not None and framework == "sglang":
        sequences *= wanted["dp"]
    if sequences is not None and seen["sequences"] != sequences:
        yield f"sequences: {sequences} planned, {seen['sequences']} started"
    if seen["longest"] is None or seen["longest"] < wanted["mean"]:
        yield f"sequences of {seen['longest']} tokens at most, {wanted['mean']} is the mean"
    if framework == "vllm":
        yield from _vllm(wanted, seen)
    else:
        phase = "null" if wanted["phase"] == "aggregated" else wanted["phase"]
        if seen["phase"] != phase:
            yield f"phase: {phase} planned, {seen['phase']} started"
        prompts = wanted["phase"] == "prefill"
        shared = (wanted["cp"], 1) if prompts else (1, wanted["cp"])
        if (seen["prompt_ranks"], seen["cache_ranks"]) != shared:
            yield f"contexts over {wanted['cp']} ranks planned, started otherwise"
        if seen["tokens"] != (wanted["chunk"] or -1):
            yield f"chunks of {wanted['chunk']} planned, {seen['tokens']} started"


def _types(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    weights, online, named = wanted["weights"], seen["weights"], seen["checkpoint"].lower()
    stored = str(wanted["stored"]).startswith(weights)
    quantised = stored or re.search(STORED_IN_NAME.get(weights, "$^"), named) is not None
    right = online is None if weights == "bf16" else quantised or (online or "").startswith(weights)
    if not right:
        yield f"weights in {weights} planned, {online} of {named} started"
    if (wanted["kv"] == "fp8") != str(seen["kv"]).startswith("fp8"):
        yield f"cache in {wanted['kv']} planned, {seen['kv']} started"


def _vllm(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    if seen["transfer"] != (wanted["phase"] != "aggregated"):
        yield f"phase {wanted['phase']} planned, started with a transfer of caches: {seen['transfer']}"
    if wanted["phase"] == "decode":
        return
    chunk = wanted["chunk"]
    if seen["chunked"] != (chunk is not None):
        yield f"chunks of {chunk} planned, chunked prefill started: {seen['chunked']}"
    elif chunk is not None and not chunk <= seen["tokens"] <= chunk + (wanted["sequences"] or 0):
        yield f"chunks of {chunk} planned, steps of {seen['tokens']} started"


def graph_refusals(graph: Mapping[str, Any]) -> dict[str, list[str]]:
    """Why the operator of Dynamo refuses components, by their names."""
    components = graph["spec"]["components"]
    taken = {each["name"]: _letters(each) for each in components}
    name = graph["metadata"]["name"]
    # The operator shortens the graph's name to what the longest component leaves, not below eight letters.
    shortened = min(len(name), max(SHORTEST_GRAPH, NAME_LETTERS - max(taken.values())))
    found: dict[str, list[str]] = {each["name"]: [] for each in components}
    for each in components:
        if len(name) + taken[each["name"]] > NAME_LETTERS or shortened + taken[each["name"]] > NAME_LETTERS:
            found[each["name"]].append(
                f"{len(name)} + {taken[each['name']]} letters of names, {NAME_LETTERS} admitted"
            )
        if not DNS_LABEL.fullmatch(each["name"]) or not DNS_LABEL.fullmatch(name):
            found[each["name"]].append("no DNS label")
    return found


def address_differences(container: Mapping[str, Any]) -> Iterator[str]:
    """Yield servers whose KV cache address is not that of their pod."""
    text = " ".join(container.get("args", ()))
    # Mooncake takes the address of its host without being told.
    if "--kv-transfer-config" not in text or "MooncakeConnector" in text:
        return
    variables = {each["name"]: each.get("valueFrom") for each in container.get("env", ())}
    if variables.get(OWN_ADDRESS) != {"fieldRef": {"fieldPath": "status.podIP"}}:
        yield f"{OWN_ADDRESS} is not the address of the pod: the other phase asks localhost for caches"


def _letters(component: Mapping[str, Any]) -> int:
    letters = len(component["name"])
    return 2 * letters + len("-ldr") if component.get("multinode", {}).get("nodeCount", 1) > 1 else letters


def component_differences(component: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between the pods of a component and the planned replica."""
    container = component["podTemplate"]["spec"]["containers"][0]
    hosts = component.get("multinode", {}).get("nodeCount", 1)
    accelerators = hosts * int(container["resources"]["limits"]["nvidia.com/gpu"])
    if (hosts, accelerators) != (wanted["hosts"], wanted["accelerators"]):
        planned = f"{wanted['accelerators']} accelerators on {wanted['hosts']} hosts planned"
        yield f"{planned}, {accelerators} on {hosts}"


def set_differences(
    spec: Mapping[str, Any], container: Mapping[str, Any], wanted: Mapping[str, Any], row: Placement
) -> Iterator[str]:
    """Yield the differences between a LeaderWorkerSet and the planned replicas."""
    size = spec["leaderWorkerTemplate"]["size"]
    (accelerators,) = (int(each) * size for each in container["resources"]["limits"].values())
    if (size, accelerators) != (wanted["hosts"], wanted["accelerators"]):
        planned = f"{wanted['accelerators']} accelerators on {wanted['hosts']} hosts planned"
        yield f"{planned}, {accelerators} on {size}"
    if spec["replicas"] != row.replicas:
        yield f"{row.replicas} replicas planned, {spec['replicas']} started"


def chart_differences(values: Mapping[str, Any], wanted: Mapping[str, Any], vendor: str) -> Iterator[str]:
    """Yield differences of the rendered chart of llm-d (v0.4.12, templates/_helpers.tpl) from the plan."""
    role = "prefill" if wanted["phase"] == "prefill" else "decode"
    part = values[role]
    degrees = part["parallelism"]
    # values.yaml of the chart sets each degree to 1, dataLocal too: it never follows from data and workers.
    workers = degrees.get("workers", 1)
    pod = degrees.get("dataLocal", 1) * degrees.get("tensor", 1)
    if pod * workers != wanted["accelerators"] or workers != wanted["hosts"]:
        planned = f"{wanted['accelerators']} accelerators on {wanted['hosts']} hosts planned"
        yield f"{planned}, pods of {pod} on {workers}"
    if values["multinode"] != (wanted["hosts"] > 1):
        yield f"several hosts: {wanted['hosts'] > 1} planned, {values['multinode']} started"
    image = part["containers"][0]["image"]
    family = {"NVIDIA": "llm-d(-cuda)?:", "AMD": "llm-d-rocm:", "Intel": "llm-d-hpu:"}.get(vendor, "$^")
    if re.search(family, image) is None:
        yield f"{image} on accelerators of {vendor}"
    proxied = wanted["phase"] == "decode"
    text = " ".join(part["containers"][0]["args"])
    port = re.search(r"--port '?(\d+)", text)
    listening = int(port.group(1)) if port else 8000
    if listening != (8200 if proxied else 8000):
        yield f"listens on {listening}, {8200 if proxied else 8000} is routed to"
