"""Limits of frameworks: the search excludes layouts with the reason, and predict refuses them."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from tests.parts import first_of
from tests.perfmodel.fakes import accelerator, dense_model, mixture_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.landscape import (
    FRAMEWORK_LAYOUTS,
    REASON_TEXTS,
    REASONS,
    LatencyTarget,
    LayoutSetting,
    RequestShape,
    SearchSpace,
    configuration_problem,
    framework_problem,
    service_landscape,
    stages_problem,
)
from fleetplan.perfmodel.landscape.framework_parts import runs_on
from fleetplan.perfmodel.landscape.frameworks import framework_reason
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.predict import predict

DENSE, MIXTURE = dense_model(), mixture_model()
LATENT = load_architecture("deepseek-ai/DeepSeek-V3", Path())
SPARSE = load_architecture("deepseek-ai/DeepSeek-V3.2", Path())
DENSE_LATENT = replace(LATENT, groups=LATENT.groups[:1])
"""Its first layers, which have no experts."""


@pytest.mark.parametrize(
    ("framework", "model", "label", "phase", "reason"),
    [
        # Four whole copies under vLLM; SGLang shares the feed-forward part out.
        ("vllm", DENSE, "DP4-TP4", "decode", "framework: attention dp"),
        ("trtllm", DENSE, "DP4-TP4", "aggregated", "framework: attention dp"),
        ("sglang", DENSE, "DP4-TP4", "decode", ""),
        ("vllm", MIXTURE, "DP4-TP4", "decode", ""),
        ("trtllm", MIXTURE, "DP4-TP4", "decode", ""),
        ("trtllm", MIXTURE, "TP2DP4-TP8", "decode", "framework: dp beside tp"),
        ("vllm", MIXTURE, "TP2DP4-TP8", "decode", ""),
        ("vllm", MIXTURE, "TP8-TP2EP4", "prefill", "framework: expert groups"),
        ("vllm", MIXTURE, "TP8-EP8", "prefill", ""),
        ("trtllm", MIXTURE, "TP8-TP2EP4", "prefill", ""),
        ("vllm", DENSE, "TP4CP2-TP4EP2", "prefill", "framework: cp of prompts"),
        ("vllm", MIXTURE, "TP4CP2-TP8", "prefill", "framework: cp of prompts"),
        ("vllm", LATENT, "TP4CP2-TP8", "prefill", ""),
        ("vllm", LATENT, "TP4CP2-TP1EP8", "prefill", ""),
        ("vllm", DENSE, "TP4CP2-TP8", "decode", "framework: cp of generation"),
        ("vllm", MIXTURE, "CP2-TP2", "decode", "framework: cp of generation"),
        ("vllm", DENSE_LATENT, "TP4CP2-TP4EP2", "prefill", ""),
        ("vllm", DENSE_LATENT, "TP4CP2-TP8", "prefill", "framework: cp and feed-forward"),
        ("vllm", LATENT, "CP8-TP8", "decode", ""),
        ("vllm", LATENT, "TP4CP2-TP8", "decode", "framework: cp beside tp"),
        ("vllm", DENSE, "TP4CP2-TP4EP2", "aggregated", "framework: cp of both phases"),
        ("sglang", DENSE, "TP4CP2-TP8", "prefill", "framework: cp of prompts"),
        ("sglang", MIXTURE, "TP4CP2-TP8", "prefill", ""),
        ("sglang", LATENT, "TP4CP2-TP8", "prefill", "framework: cp of prompts alone"),
        ("sglang", LATENT, "CP8-TP8", "prefill", "framework: cp of prompts alone"),
        ("sglang", LATENT, "CP8-EP8", "prefill", ""),
        ("sglang", LATENT, "DP2CP4-EP8", "prefill", ""),
        ("sglang", LATENT, "TP4CP2-TP8", "decode", ""),
        ("sglang", SPARSE, "TP4CP2-TP8", "decode", "framework: cp of generation"),
        ("trtllm", SPARSE, "TP4CP2-TP8", "decode", ""),
        ("sglang", MIXTURE, "TP4CP2-TP8", "decode", "framework: cp of generation"),
        ("trtllm", DENSE, "TP4CP2-TP8", "prefill", "framework: cp of prompts"),
        ("trtllm", LATENT, "TP4CP2-TP8", "decode", ""),
        ("", DENSE, "DP4-TP4", "decode", ""),
        ("vllm", DENSE, "PP2-TP8", "aggregated", ""),
        ("vllm", LATENT, "PP2-CP4-TP4", "decode", "framework: cp beside stages"),
        ("sglang", LATENT, "PP2-CP4-TP4", "decode", ""),
    ],
)
def test_layouts_by_framework(
    framework: str, model: ModelArchitecture, label: str, phase: str, reason: str
) -> None:
    layout = parse_parallelism(label)
    assert framework_reason(framework, model, layout, phase) == reason
    text = framework_problem(framework, model, layout, phase)
    assert bool(text) == bool(reason)
    if reason:
        known = FRAMEWORK_LAYOUTS[framework]
        assert text.startswith(f"{framework} {known.version} cannot run {layout.label} for {phase}: ")
        assert REASON_TEXTS[reason] in text
        assert configuration_problem(model, layout, accelerator(), phase, framework) == text


@pytest.mark.parametrize(
    ("framework", "vendor", "prompt_stages", "reason"),
    [
        # Mooncake hands caches over between any numbers of stages; vLLM's image for AMD lacks it.
        ("vllm", "NVIDIA", {1, 2, 4}, ""),
        ("vllm", "AMD", {2}, "framework: stages on this part"),
        ("vllm", None, {1}, ""),
        ("vllm", "anonymised", {1}, ""),
        ("sglang", "NVIDIA", {1, 2}, "framework: stages of generation"),
        ("sglang", "AMD", {2}, ""),
        # What prefill replicas there are is not known: nothing speaks against it.
        ("sglang", "NVIDIA", set(), ""),
        ("trtllm", "NVIDIA", {1, 4}, ""),
        ("", "AMD", {1}, ""),
    ],
)
def test_stages_of_generation_by_framework(
    framework: str, vendor: str | None, prompt_stages: set[int], reason: str
) -> None:
    layout, setting = parse_parallelism("PP2-TP8"), LayoutSetting(vendor, frozenset(prompt_stages))
    assert framework_reason(framework, DENSE, layout, "decode", setting) == reason
    for phase in ("prefill", "aggregated"):
        assert not framework_reason(framework, DENSE, layout, phase, setting)
    if framework:
        text = stages_problem(framework, layout, "decode", setting)
        assert text == framework_problem(framework, DENSE, layout, "decode", setting)
        assert bool(text) == bool(reason)
        assert not stages_problem(framework, parse_parallelism("TP8"), "decode", setting)


def test_stages_of_generation_are_searched_with_those_of_prompts() -> None:
    evaluator = build_evaluator(
        "llama3-8b", accelerators()["H100-SXM"], "sglang", Precision("fp8", "fp8"), Path()
    )
    for stages, reason in (((1, 2), "framework: stages of generation"), ((2,), "")):
        space = SearchSpace(max_accelerators=4, pipeline_stages=stages, decode_batches=(4,))
        table = service_landscape(evaluator, RequestShape(2000, 100), LatencyTarget(), space, "sglang").table
        decode = table[(table["phase"] == "decode") & (table["pp"] == 2)]
        assert set(decode["excluded"]) == {reason}
        assert set(table[table["phase"] != "decode"]["excluded"]) == {""}


def test_every_reason_has_a_text_and_every_limit_a_source() -> None:
    assert set(REASONS) == {"", *REASON_TEXTS}
    for known in FRAMEWORK_LAYOUTS.values():
        assert known.generation_cp_beside_tp or "generation_cp_beside_tp" in known.source
        assert known.cp_beside_stages or "cp_beside_stages" in known.source
        assert known.generation_stages == "any" or "generation_stages" in known.source
        assert known.generation_stage_vendors is None or "generation_stage_vendors" in known.source
        limited = {"attention_dp", "prompt_cp", "generation_cp"}
        assert limited <= set(known.source)
        assert known.dp_beside_tp or "dp_beside_tp" in known.source
        assert known.expert_groups == "any" or "expert_groups" in known.source


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("model", first_of(("Qwen/Qwen3-30B-A3B", "llama3-8b"), 1))
def test_predict_refuses_what_the_landscape_refuses_and_nothing_else(framework: str, model: str) -> None:
    part = accelerators()["MI300X"]
    evaluator = build_evaluator(model, part, framework, Precision("fp8", "fp8"), Path())
    space = SearchSpace(
        max_accelerators=16, prefill_batches=(1,), decode_batches=(4,), context_ranks=(1, 2), expert_ranks=0
    )
    request = RequestShape(2000, 100)
    table = service_landscape(evaluator, request, LatencyTarget(), space, framework).table
    modes = {"prefill": "prefill", "decode": "decode", "aggregated": "closed_loop"}
    cases = pd.DataFrame(
        {
            "case_id": table.index,
            "model": model,
            "hardware": "MI300X",
            "backend": framework,
            "weights": "fp8",
            "kv": "fp8",
            "mode": table["phase"].map(modes),
            **{name: table[name] for name in ("pp", "tp", "cp", "dp", "ep", "batch")},
            "concurrency": table["batch"] * table["dp"] * table["pp"],
            "input_tokens": 2000,
            "output_tokens": 100,
        }
    )
    predicted = predict(cases, Path())
    # A prediction is of one configuration: which prefill replicas there are beside it is not known.
    elsewhere = {"framework: stages of generation"}
    refused = table["excluded"].isin([reason for reason in REASONS[1:] if "memory" not in reason])
    refused &= ~table["excluded"].isin(elsewhere)
    assert refused.any()
    assert (predicted["status"] == "rejected").tolist() == refused.tolist()
    reasons = predicted.loc[refused, "reason"].tolist()
    for short, said in zip(table.loc[refused, "excluded"], reasons, strict=True):
        assert REASON_TEXTS[short] in said or said.startswith("pp ")


def test_degrees_that_no_search_tries_are_refused_by_both() -> None:
    models = product((DENSE, MIXTURE), ("PP8-TP2", "PP3-TP2"))
    said = [
        configuration_problem(model, parse_parallelism(label), accelerator(), "decode", "")
        for model, label in models
    ]
    assert said[0] == said[2] == "pp 8 is more than the 4 layers"
    assert said[1] == said[3] == "pp 3 does not divide 4 layers evenly: stages of 2"


def test_a_framework_of_one_vendor_runs_on_no_others_parts() -> None:
    assert runs_on("trtllm", "NVIDIA")
    assert not runs_on("trtllm", "AMD")
    assert runs_on("vllm", "AMD")
    # Parts with figures of their own may be anyone's.
    assert runs_on("trtllm", "own")
    assert runs_on("trtllm", None)
