"""Techniques change candidates, and variants compete under the service's quality floor."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.planner.candidates import CandidateSet, build_candidates
from fleetplan.planner.problem import Phase
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
pools: [{{name: p, hardware: MI300X, hosts: 2, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - name: chat
    model: llama3-8b
    workload: {{input_tokens: 2000, output_tokens: 100}}
    slo: {{ttft_ms: 2000, tpot_ms: 50}}
    demand: 5
    {more}
"""
VARIANTS = """runtimes: [aggregated]
    quality_floor: {floor}
    variants:
      - {{name: full, quality: 1.0}}
      - {{name: compressed, quality: 0.9, input_tokens_ratio: 0.5}}
      - {{name: quantised, precision: {{weights: fp8, kv: fp8}}, quality: 0.8}}"""


def candidates(folder: Path, more: str = "") -> CandidateSet:
    path = folder / "fleet.yaml"
    path.write_text(FLEET.format(more=more), encoding="utf-8")
    return build_candidates(load_fleet(str(path)), lambda _: None)


def best(found: CandidateSet, phase: Phase, prefix: str = "") -> float:
    return max(
        each.requests_per_s[0] / each.accelerators
        for each in found.candidates
        if each.phase is phase and each.config.startswith(prefix)
    )


@pytest.mark.parametrize(
    ("switch", "phase", "sign"),
    [
        ("speculative: {draft_tokens: 3, acceptance_ratio: 0.8, draft_cost_ratio: 0.0}", Phase.DECODE, 1),
        ("samples_per_prompt: 4", Phase.DECODE, -1),
        ("offload: {kv_ratio: 0.9, gb_per_s: 450}", Phase.DECODE, -1),
        ("offload: {weights_ratio: 0.9, gb_per_s: 10}", Phase.PREFILL, -1),
        ("chunk_tokens: 256", Phase.PREFILL, -1),
        ("sampling: top-p", Phase.DECODE, -1),
    ],
)
def test_a_switch_changes_the_candidates(tmp_path: Path, switch: str, phase: Phase, sign: int) -> None:
    plain = best(candidates(tmp_path), phase)
    switched = best(candidates(tmp_path, f"techniques: {{{switch}}}"), phase)
    assert (switched - plain) * sign > 0


def test_admissible_variants_compete_and_configurations_name_them(tmp_path: Path) -> None:
    found = candidates(tmp_path, VARIANTS.format(floor=0.85))
    assert {each.config.split("/")[0] for each in found.candidates} <= {"full", "compressed"}
    assert best(found, Phase.AGGREGATED, "compressed/") > 0
    (rejections,) = found.rejections
    assert rejections.counts["variant below the quality floor"] == 1


def test_a_lower_floor_admits_what_serves_more(tmp_path: Path) -> None:
    rates = [
        best(candidates(tmp_path, VARIANTS.format(floor=floor)), Phase.AGGREGATED)
        for floor in (1.0, 0.9, 0.8)
    ]
    assert rates[0] < rates[1]
    assert rates[1] <= rates[2]


def test_a_technique_that_the_model_cannot_use_is_refused(tmp_path: Path) -> None:
    more = "techniques: {experts: {busiest_expert_ratio: 0.01}}"
    path = tmp_path / "fleet.yaml"
    text = FLEET.format(more=more).replace("llama3-8b", "mistralai/Mixtral-8x7B-v0.1")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"services\.chat\.techniques: busiest_expert_ratio: 0\.01 is outside"
    ):
        build_candidates(load_fleet(str(path)), lambda _: None)


def test_a_model_that_is_not_understood_is_placed_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "nobody_knows"}', encoding="utf-8")
    path = tmp_path / "fleet.yaml"
    text = FLEET.format(more="headroom: 0.1").replace("llama3-8b", "./config.json")
    path.write_text(text, encoding="utf-8")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "config.json" in each)
    with pytest.raises(InputError) as raised:
        build_candidates(load_fleet(str(path)), lambda _: None)
    (issue,) = raised.value.issues
    assert issue.line == line
    assert "services.chat.model" in str(issue)
