"""Random services with a model: its shape, workload, techniques, variants and limits under load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fuzz.fleets.engine_tables import full_workload
from tests.fuzz.fleets.made import Made

DENSE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 4096, "vocab_size": 32000,
}  # fmt: skip
MIXTURE = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 1024,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128,
    "intermediate_size": 2048, "num_local_experts": 4, "num_experts_per_tok": 2, "hidden_act": "silu",
    "vocab_size": 32000,
}  # fmt: skip
SEEING = {
    "model_type": "gemma3",
    "text_config": DENSE | {"model_type": "gemma3_text", "head_dim": 128},
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 256, "intermediate_size": 512,
        "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 224, "patch_size": 14,
    },
    "mm_tokens_per_image": 256,
}  # fmt: skip
SHAPES = {"dense.json": DENSE, "mixture.json": MIXTURE, "seeing.json": SEEING}
"""Models with few degrees of parallelism that make sense: a landscape takes hundredths of a second."""

WEIGHTS = ("bf16", "fp8", "int8", "int4", "fp4", "fp8-ffn")
PERCENTILES = (50, 90, 95, 99)

UNDER_LOAD = 0.12
"""Chance of limits that hold under load: a service with one takes a second rather than hundredths."""


def fill_model(made: Made, node: dict[str, Any], classes: tuple[str, ...]) -> None:
    """Give a service a model, and everything that goes with one."""
    shape = made.dice.choice(tuple(SHAPES))
    made.tables[shape] = json.dumps(SHAPES[shape])
    node["model"] = shape
    if made.wants("services.precision"):
        node["precision"] = _precision(made, "services.precision")
    if made.wants("services.checkpoint", 0.5):
        node["checkpoint"] = "fuzz/service"
    if made.wants("services.variants", made.density / 2):
        _variants(made, node)
    node["workload"] = full_workload(made, classes)
    techniques = dict(_techniques(made, node, mixture=shape == "mixture.json" and not _is_dense(node)))
    if made.wants("services.framework"):
        # What drawing tokens costs is known of two frameworks alone.
        drawn = techniques.get("sampling") == "top-p"
        node["framework"] = made.dice.choice(("sglang", "vllm") if drawn else ("trtllm", "sglang", "vllm"))
    if techniques:
        node["techniques"] = techniques
    if made.wants("services.search"):
        node["search"] = _search(made)
    _limits(made, node)


def _search(made: Made) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if made.wants("services.search.layouts", 0.5):
        node["layouts"] = made.dice.choice(("framework", "any"))
    if made.wants("services.search.max_accelerators", 0.5):
        node["max_accelerators"] = made.dice.choice((1, 2, 4))
    for key in ("pipeline_stages", "context_ranks"):
        if made.wants(f"services.search.{key}", 0.5):
            node[key] = made.dice.choice(([1], [1, 2]))
    return node or {"max_accelerators": 2}


def _is_dense(node: dict[str, Any]) -> bool:
    """Return whether a variant has no experts; the reader then refuses keys of routing."""
    return any(variant.get("model") == "dense.json" for variant in node.get("variants", ()))


def _precision(made: Made, above: str) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if made.wants(f"{above}.weights", 0.7):
        node["weights"] = made.dice.choice(WEIGHTS)
    if not node or made.wants(f"{above}.kv", 0.5):
        node["kv"] = made.dice.choice(("bf16", "fp8"))
    return node


def _variants(made: Made, node: dict[str, Any]) -> None:
    best = made.figure(0.7, 1.0)
    node["variants"] = []
    for name in ("whole", "small")[: made.dice.choice((1, 2))]:
        variant: dict[str, Any] = {"name": name, "quality": best if name == "whole" else best - 0.2}
        if made.wants("services.variants.model"):
            variant["model"] = "dense.json"
            made.tables["dense.json"] = json.dumps(DENSE)
        if made.wants("services.variants.precision"):
            variant["precision"] = _precision(made, "services.variants.precision")
        if made.wants("services.variants.checkpoint", 0.5):
            variant["checkpoint"] = f"fuzz/{name}"
        if made.wants("services.variants.input_tokens_ratio"):
            variant["input_tokens_ratio"] = made.figure(0.5, 1.0)
        node["variants"].append(variant)
    if made.wants("services.quality_floor", 0.7):
        floor = {
            key: round(best - made.dice.choice((0.0, 0.1, 0.3)), 2)
            for key in ("each_request", "average")
            if made.wants(f"services.quality_floor.{key}", 0.5)
        }
        node["quality_floor"] = floor or round(best - 0.3, 2)


def _techniques(made: Made, node: dict[str, Any], *, mixture: bool) -> Iterator[tuple[str, Any]]:
    cached = _cached_tokens(node)
    if made.wants("services.techniques.chunk_tokens"):
        yield "chunk_tokens", made.dice.choice((128, 512))
    if made.wants("services.techniques.samples_per_prompt"):
        yield "samples_per_prompt", made.dice.choice((1, 2, 4))
    if cached and made.wants("services.techniques.shared_prefix_tokens", max(made.density, 0.4)):
        yield "shared_prefix_tokens", made.dice.choice((0, cached // 2, cached))
    if made.wants("services.techniques.speculative"):
        yield "speculative", _speculative(made)
    if cached and made.wants("services.techniques.persistent_kv", max(made.density, 0.4)):
        yield "persistent_kv", _persistent(made)
    if made.wants("services.techniques.offload"):
        node_ratios = {"weights_ratio": made.figure(0.05, 0.5)} if made.chance(0.6) else {}
        if not node_ratios or made.chance(0.5):
            node_ratios["kv_ratio"] = made.figure(0.05, 0.5)
        yield "offload", {**node_ratios, "gb_per_s": made.figure(20, 400, 0)}
    if mixture and made.wants("services.techniques.experts", max(made.density, 0.4)):
        yield "experts", _experts(made)
    if mixture and made.wants("services.techniques.expert_overlap"):
        yield "expert_overlap", made.dice.choice(("none", "two-batch", "single-batch"))
    if made.wants("services.techniques.kv_transfer"):
        transfer: dict[str, Any] = {"gb_per_s": made.figure(5, 100, 0)} if made.chance(0.6) else {}
        if not transfer or made.chance(0.5):
            transfer["overlap"] = True
        yield "kv_transfer", transfer
    # Every variant takes the images too.
    sees = node["model"] == "seeing.json" and not _is_dense(node)
    if sees and made.wants("services.techniques.image_token_ratio", max(made.density, 0.5)):
        yield "image_token_ratio", made.figure(0.0, 0.9)
    if made.wants("services.techniques.sampling"):
        yield "sampling", made.dice.choice(("greedy", "top-p"))


def _cached_tokens(node: dict[str, Any]) -> int:
    """Fewest cached tokens of a class."""
    workload = node["workload"]
    shapes = workload["classes"].values() if "classes" in workload else (workload,)
    return min(
        each["context_tokens"] - each["input_tokens"]
        if {"context_tokens", "input_tokens"} <= set(each)
        else 0
        for each in shapes
    )


def _speculative(made: Made) -> dict[str, Any]:
    node: dict[str, Any] = {
        "draft_tokens": made.dice.choice((1, 3, 5)),
        "acceptance_ratio": made.figure(0.4, 0.9),
        "draft_cost_ratio": made.figure(0.0, 0.2),
    }
    if made.chance(0.5):
        node["draft_gib_per_accelerator"] = made.figure(0.1, 2)
    if made.wants("services.techniques.speculative.method", 0.7):
        node["method"] = made.dice.choice(("draft-model", "eagle", "eagle3", "mtp"))
        if node["method"] != "mtp":
            node["draft_model"] = "fuzz/draft"
    return node


def _persistent(made: Made) -> dict[str, Any]:
    tiers: list[dict[str, Any]] = []
    for tier, speed in (("hbm", None), ("dram", 50), ("flash", 5)):
        if made.chance(0.5) or (tier == "flash" and not tiers):
            each: dict[str, Any] = {"tier": tier, "gib_per_accelerator": made.figure(0.5, 4)}
            tiers.append(each if speed is None else each | {"gb_per_s": speed})
    return {
        "hit_ratio": made.figure(0.1, 0.9),
        "sessions_per_accelerator": made.figure(10, 200, 0),
        "tiers": tiers,
    }


def _experts(made: Made) -> dict[str, Any]:
    node: dict[str, Any] = {"activation": made.dice.choice(("uniform", "balanced", "log-linear"))}
    if node["activation"] == "log-linear":
        node |= {"log_linear_intercept": made.figure(1, 2), "log_linear_slope": made.figure(0.2, 1.5)}
    if made.wants("services.techniques.experts.balance", 0.5):
        node["balance"] = made.dice.choice(("auto", "eplb", "none", "perfect"))
    balance = node.get("balance", "auto")
    if balance in ("auto", "eplb") and made.wants("services.techniques.experts.redundant_experts", 0.5):
        node["redundant_experts"] = made.dice.choice((0, 1, 2))
    if balance in ("auto", "none") and made.wants("services.techniques.experts.busiest_expert_ratio", 0.6):
        node["busiest_expert_ratio"] = made.figure(0.26, 0.48)
        if made.wants("services.techniques.experts.placement", 0.7):
            node["placement"] = made.dice.choice(("mixed", "random", "sorted"))
    return node


def _limits(made: Made, node: dict[str, Any]) -> None:
    slo: dict[str, Any] = {}
    if made.wants("services.slo.ttft_ms", 0.6):
        slo["ttft_ms"] = made.figure(300, 2000, 0)
    if made.wants("services.slo.tpot_ms", 0.6):
        slo["tpot_ms"] = made.figure(10, 100, 0)
    if made.wants("services.traffic", UNDER_LOAD):
        # Such services are few: they have most of what goes with them.
        made.density = max(made.density, 0.6)
        node["traffic"] = {"burstiness": made.figure(0.5, 4)} if made.chance(0.8) else {}
        figures = made.dice.choice((("tpot",), ("ttft", "tpot"), ("ttft",)))
        for figure, low, high in (("ttft", 500, 4000), ("tpot", 20, 150)):
            for percentile in PERCENTILES if figure in figures else ():
                if made.wants(f"services.slo.{figure}_p{percentile}_ms", 0.75):
                    slo[f"{figure}_p{percentile}_ms"] = made.figure(low, high, 0)
        if {"ttft_ms", "tpot_ms"} & set(slo) and made.wants("services.slo.goodput_ratio", 0.7):
            slo["goodput_ratio"] = made.figure(0.8, 0.99)
    if slo:
        node["slo"] = slo
