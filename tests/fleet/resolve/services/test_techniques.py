"""Techniques and model variants in the fleet file."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import (
    ExpertRouting,
    KvTier,
    KvTransfer,
    ModelVariant,
    Offload,
    PersistentKv,
    Service,
    SpeculativeDecoding,
    Techniques,
)
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
pools: [{{name: p, hardware: H200-SXM, hosts: 2, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - name: chat
    {kind}
    workload: {{input_tokens: 1000, output_tokens: 100, context_tokens: 8000}}
    demand: 5
    {more}
"""
MODEL = "model: llama3-8b"

EVERYTHING = """techniques:
      chunk_tokens: 2048
      samples_per_prompt: 4
      shared_prefix_tokens: 6000
      speculative: {draft_tokens: 3, acceptance_ratio: 0.7, draft_cost_ratio: 0.05, \
draft_gib_per_accelerator: 1.5}
      persistent_kv:
        hit_ratio: 0.6
        sessions_per_accelerator: 50
        tiers: [{tier: hbm, gib_per_accelerator: 10}, {tier: dram, gib_per_accelerator: 100, gb_per_s: 55}]
      offload: {weights_ratio: 0.5, kv_ratio: 0.25, gb_per_s: 450}
      experts: {activation: log-linear, log_linear_intercept: 1.0, log_linear_slope: 12.5, \
busiest_expert_ratio: 0.07, placement: random}
      kv_transfer: {overlap: true, gb_per_s: 25}
      sampling: top-p"""

PARAMETERS = "log_linear_intercept and log_linear_slope are for activation: log-linear"

VARIANTS = """runtimes: [aggregated]
    quality_floor: 0.8
    variants:
      - {name: full, quality: 1.0}
      - {name: quantised, precision: {weights: fp8, kv: fp8}, quality: 0.9}
      - {name: small, model: llama3-70b, quality: 0.5, input_tokens_ratio: 0.5}"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def service(more: str, kind: str = MODEL) -> Service:
    Path("fleet.yaml").write_text(FLEET.format(kind=kind, more=more), encoding="utf-8")
    return load_fleet("fleet.yaml").services[0]


def refused(more: str, kind: str = MODEL) -> str:
    with pytest.raises(InputError) as caught:
        service(more, kind)
    return "\n".join(str(issue) for issue in caught.value.issues)


def test_everything_is_off_by_default() -> None:
    plain = service("")
    assert (plain.techniques, plain.variants, plain.quality_floor) == (Techniques(), (), None)


def test_every_switch_arrives() -> None:
    assert service(EVERYTHING).techniques == Techniques(
        chunk_tokens=2048,
        samples_per_prompt=4,
        shared_prefix_tokens=6000,
        speculative=SpeculativeDecoding(3, 0.7, 0.05, 1.5),
        persistent_kv=PersistentKv(0.6, 50, (KvTier("hbm", 10, None), KvTier("dram", 100, 55))),
        offload=Offload(0.5, 0.25, 450),
        experts=ExpertRouting("log-linear", 1.0, 12.5, 0.07, "random"),
        kv_transfer=KvTransfer(overlap=True, gb_per_s=25),
        sampling="top-p",
    )


def test_one_token_of_the_model_s_own_module_has_published_figures() -> None:
    drafts = service("techniques: {speculative: {draft_tokens: 1, method: mtp}}").techniques.speculative
    # DeepSeek-V3: 85 to 90 % accepted; 0.58 + 0.10 + 0.93 of 37 billion parameters are read for it.
    assert drafts == SpeculativeDecoding(1, 0.85, 0.044, method="mtp")
    assert drafts.draft_cost_ratio == pytest.approx((0.58 + 0.10 + 0.93) / 37, abs=5e-4)
    own = "techniques: {speculative: {draft_tokens: 1, method: mtp, acceptance_ratio: 0.6}}"
    assert service(own).techniques.speculative == SpeculativeDecoding(1, 0.6, 0.044, method="mtp")


def test_variants_inherit_what_they_leave_out() -> None:
    found = service(VARIANTS)
    assert found.quality_floor == 0.8
    assert [variant.name for variant in found.variants] == ["full", "quantised", "small"]
    full, quantised, distilled = found.variants
    assert found.model == full.model == quantised.model
    assert full == ModelVariant("full", full.model, "bf16", "bf16", 1.0, 1.0)
    assert (quantised.weights, quantised.kv, quantised.quality) == ("fp8", "fp8", 0.9)
    assert distilled.model != full.model
    assert distilled.input_tokens_ratio == 0.5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("techniques: {chunk_token: 5}", "did you mean 'chunk_tokens'"),
        ("techniques: {chunk_tokens: 0}", "chunk_tokens"),
        ("techniques: {speculative: {draft_tokens: 3}}", "acceptance_ratio"),
        ("techniques: {speculative: {draft_tokens: 1}}", "needs acceptance_ratio and draft_cost_ratio"),
        (
            "techniques: {speculative: {draft_tokens: 2, method: mtp, acceptance_ratio: 0.8}}",
            "needs draft_cost_ratio; only one token of the method mtp has published figures",
        ),
        (
            "techniques: {speculative: {draft_tokens: 3, acceptance_ratio: 2, draft_cost_ratio: 0}}",
            "acceptance_ratio",
        ),
        ("techniques: {shared_prefix_tokens: 7001}", "7001 exceeds the 7000 cached tokens of class 'all'"),
        (
            "techniques: {experts: {activation: log-linear}}",
            PARAMETERS,
        ),
        ("techniques: {experts: {log_linear_slope: 3}}", PARAMETERS),
        ("techniques: {experts: {activation: even}}", "uniform"),
        ("techniques: {sampling: nucleus}", "greedy"),
        ("techniques: {offload: {weights_ratio: 0.5}}", "gb_per_s"),
        ("techniques: {offload: {gb_per_s: 5}}", "needs weights_ratio or kv_ratio above 0"),
        ("techniques: {experts: {placement: sorted}}", "no effect without busiest_expert_ratio"),
        (
            "runtimes: [aggregated]\n    techniques: {kv_transfer: {overlap: true}}",
            "kv_transfer: has no effect: the service is not disaggregated",
        ),
        (
            "techniques: {persistent_kv: {hit_ratio: 0.5, sessions_per_accelerator: 5, "
            "tiers: [{tier: dram, gib_per_accelerator: 5}]}}",
            "the tier dram needs gb_per_s",
        ),
        (
            "techniques: {persistent_kv: {hit_ratio: 0.5, sessions_per_accelerator: 5, "
            "tiers: [{tier: hbm, gib_per_accelerator: 5, gb_per_s: 5}]}}",
            "the tier hbm has no gb_per_s",
        ),
        (
            "techniques: {persistent_kv: {hit_ratio: 0.5, sessions_per_accelerator: 5, "
            "tiers: [{tier: hbm, gib_per_accelerator: 5}, {tier: hbm, gib_per_accelerator: 5}]}}",
            "names a tier twice",
        ),
        ("quality_floor: 0.5", "needs variants"),
        ("variants: []", "variants"),
        ("runtimes: [aggregated]\n    variants: [{name: a}]", "quality"),
        (
            "runtimes: [aggregated]\n    variants: [{name: a, quality: 1}, {name: a, quality: 1}]",
            "'a' is the name of two variants",
        ),
        (
            "quality_floor: 2\n    variants: [{name: a, quality: 1}]",
            "no variant reaches 2; the best has 1",
        ),
        (
            "quality_floor: {average: 2}\n    variants: [{name: a, quality: 1}]",
            "no variant reaches an average of 2; the best has 1",
        ),
        ("variants: [{name: a, model: lama3-8b, quality: 1}]", "there is no model 'lama3-8b'"),
    ],
)
def test_mistakes_are_refused_with_their_place(more: str, message: str) -> None:
    found = refused(more)
    assert message in found
    assert found.startswith("fleet.yaml:")


def test_sessions_need_something_to_keep() -> None:
    Path("fleet.yaml").write_text(
        FLEET.format(
            kind=MODEL,
            more="techniques: {persistent_kv: {hit_ratio: 0.5, sessions_per_accelerator: 5, "
            "tiers: [{tier: hbm, gib_per_accelerator: 5}]}}",
        ).replace(", context_tokens: 8000", ""),
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="class 'all' has no cached tokens to keep"):
        load_fleet("fleet.yaml")


def test_engine_tables_have_no_techniques() -> None:
    Path("rates.csv").write_text(
        "phase,hardware,config,accelerators_per_replica,requests_per_s\naggregated,H200-SXM,x,8,5\n",
        encoding="utf-8",
    )
    found = refused("techniques: {chunk_tokens: 512}", "engines: rates.csv")
    assert "applies to models; the rates of an engine table already include techniques" in found


def test_variants_may_be_disaggregated_and_have_floors_of_two_kinds() -> None:
    two = "variants: [{name: a, quality: 1}, {name: b, quality: 0.5}]"
    plain = service(f"quality_floor: 0.4\n    {two}")
    assert plain.runtimes == ("disaggregated", "aggregated")
    assert (plain.quality_floor, plain.average_quality_floor) == (0.4, None)
    both = service(f"quality_floor: {{each_request: 0.4, average: 0.8}}\n    {two}")
    assert (both.quality_floor, both.average_quality_floor) == (0.4, 0.8)


@pytest.mark.parametrize(
    ("framework", "tokens", "stated", "chunk"),
    [
        ("vllm", 32_768, "", 8192),
        ("sglang", 100_000, "", 8192),
        ("vllm", 32_767, "", None),
        ("vllm", 100_000, "techniques: {chunk_tokens: 200000}", 200_000),
        # Its chunks wait for each other.
        ("trtllm", 100_000, "", None),
    ],
)
def test_long_prompts_are_cut_where_chunks_follow_each_other_through_a_pipeline(
    tmp_path: Path, framework: str, tokens: int, stated: str, chunk: int | None
) -> None:
    path = tmp_path / "fleet.yaml"
    text = FLEET.format(kind=f"{MODEL}, framework: {framework}".replace(", ", "\n    "), more=stated)
    path.write_text(
        text.replace("input_tokens: 1000", f"input_tokens: {tokens}").replace(
            "context_tokens: 8000", f"context_tokens: {tokens}"
        ),
        encoding="utf-8",
    )
    (service,) = load_fleet(path).services
    assert service.techniques.chunk_tokens == chunk
