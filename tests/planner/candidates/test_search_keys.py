"""Configurations in the search: by default, and by the keys of a service."""

from pathlib import Path

import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.landscape import RequestShape, SearchSpace, search_layouts
from fleetplan.perfmodel.landscape.search_space import fitted
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.candidates import NO_FRAMEWORK, build_candidates
from fleetplan.planner.export.launch.commands import launch
from fleetplan.planner.export.launch.deployments import deployments
from fleetplan.planner.export.launch.replica import Launch
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Phase
from fleetplan.planner.search import SearchLimits
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
offers: [{{name: o, hardware: {hardware}, per: host, rent_usd_per_accelerator_hour: 2.0}}]
services:
  - name: documents
    model: {model}
    precision: {{weights: fp8, kv: fp8}}
    workload: {{input_tokens: {tokens}, output_tokens: 500}}
    slo: {{ttft_ms: {ttft_ms}, tpot_ms: 60}}
    demand: 1
    {more}
"""


def fleet_file(
    folder: Path,
    model: str = "llama3-8b",
    tokens: int = 2000,
    ttft_ms: int = 12_000,
    hardware: str = "MI300X",
    more: str = "",
) -> str:
    path = folder / "fleet.yaml"
    values = {"model": model, "tokens": tokens, "ttft_ms": ttft_ms, "hardware": hardware, "more": more}
    path.write_text(FLEET.format(**values), encoding="utf-8")
    return str(path)


def layouts(folder: Path, **changes: object) -> set[Parallelism]:
    found = build_candidates(load_fleet(fleet_file(folder, **changes)), lambda _: None)  # type: ignore[arg-type]
    return {each.configuration.layout for each in found.candidates if each.configuration is not None}


def searched(model: str, hardware: str, tokens: int) -> tuple[Parallelism, ...]:
    part = accelerators()[hardware]
    evaluator = build_evaluator(model, part, "vllm", Precision("fp8", "fp8"), Path())
    space = fitted(SearchSpace(), evaluator, [RequestShape(tokens, 100)])
    return search_layouts(evaluator.architecture, part, space)


@pytest.mark.parametrize(
    ("model", "hardware", "tokens", "largest", "widest_experts", "contexts"),
    [
        # Two hosts of 8 hold 8 billion weights many times over.
        ("llama3-8b", "H100-SXM", 2000, 16, 1, {1}),
        ("llama3-8b", "H100-SXM", 32_768, 16, 8, {1, 2, 3, 4, 6, 8}),
        # 377 GiB of weights: five and a half parts hold them, four times as many are searched.
        ("llama3-405b", "H100-SXM", 2000, 32, 1, {1}),
        ("llama3-405b", "H100-SXM", 131_072, 32, 8, {1, 2, 3, 4, 6, 8}),
        ("gpt-oss-20b", "H100-SXM", 2000, 16, 16, {1}),
        ("deepseek-v3", "H200-SXM", 2000, 256, 256, {1}),
        ("Qwen/Qwen3-235B-A22B", "H200-SXM", 2000, 128, 128, {1}),
        ("llama3-70b", "GB200-NVL72", 2000, 72, 1, {1}),
    ],
)
def test_what_is_searched_grows_with_the_model_and_its_prompts(
    model: str, hardware: str, tokens: int, largest: int, widest_experts: int, contexts: set[int]
) -> None:
    found = searched(model, hardware, tokens)
    assert max(each.accelerators for each in found) == largest
    assert max(each.ep for each in found) == widest_experts
    assert {each.cp for each in found} == contexts


def test_long_pipelines_are_searched_where_weights_need_them() -> None:
    assert {each.pp for each in searched("llama3-405b", "L40S", 2000)} == {1, 2, 4, 8, 16, 32, 64}
    assert max(each.pp for each in searched("llama3-8b", "L40S", 2000)) == 16


def test_the_keys_of_a_service(tmp_path: Path) -> None:
    plain = layouts(tmp_path)
    assert not {each for each in plain if each.dp > 1 or each.cp > 1}
    one = layouts(tmp_path, more="search: {max_accelerators: 1}")
    assert {each.accelerators for each in one} == {1}
    deep = layouts(tmp_path, more="search: {pipeline_stages: [4], max_accelerators: 8}")
    assert {each.pp for each in deep} == {4}
    spread = layouts(tmp_path, more="search: {context_ranks: [2], max_accelerators: 4, layouts: any}")
    assert {each.cp for each in spread} == {2}


def test_layouts_of_a_framework_of_one_s_own(tmp_path: Path) -> None:
    for more, excluded in (("", True), ("search: {layouts: any}", False), ("framework: sglang", False)):
        found = build_candidates(load_fleet(fleet_file(tmp_path, more=more)), lambda _: None)
        assert ("framework: attention dp" in found.rejections[0].counts) is excluded


@pytest.mark.skipif(data_folder() is None, reason="the measured tables are not installed")
@pytest.mark.parametrize(("framework", "most_usd"), [("sglang", 1.2e6), ("vllm", 1.25e6)])
def test_long_prompts_of_a_large_model_are_served_by_chunks_in_a_pipeline(
    tmp_path: Path, framework: str, most_usd: float
) -> None:
    # Neither framework splits the context of grouped queries; both let chunks of a prompt follow each other
    # through the stages.
    path = fleet_file(tmp_path, "llama3-405b", 131_072, hardware="H100-SXM", more=f"framework: {framework}")
    fleet = load_fleet(path)
    found = build_candidates(fleet, lambda _: None)
    assert found.rejections[0].counts["framework: cp of prompts"] > 0
    outcome = plan_fleet(fleet, SearchLimits(time_limit_s=60.0, workers=1)).outcome
    assert isinstance(outcome, Plan)
    prefill = [row for row in outcome.placements if row.phase == "prefill"]
    assert {(row.config.startswith("PP"), "CP" in row.config) for row in prefill} == {(True, False)}
    assert outcome.objective_usd < most_usd
    assert all(row.ttft_ms is not None and row.ttft_ms <= 12_000 for row in prefill)
    chosen, left_out = deployments(outcome, None)
    assert not left_out
    option = {"vllm": "--max-num-batched-tokens 8192", "sglang": "--chunked-prefill-size 8192"}[framework]
    for each in chosen:
        if each.placement.phase == "prefill":
            started = launch(each, framework)
            assert isinstance(started, Launch)
            assert option in started.text


@pytest.mark.skipif(data_folder() is None, reason="the measured tables are not installed")
def test_chunks_that_wait_for_each_other_do_not_meet_the_same_target(tmp_path: Path) -> None:
    path = fleet_file(tmp_path, "llama3-405b", 131_072, hardware="H100-SXM", more="framework: trtllm")
    found = build_candidates(load_fleet(path), lambda _: None)
    assert not [each for each in found.candidates if each.phase == Phase.PREFILL]
    assert found.rejections[0].counts["ttft"] > 0


def test_a_framework_has_no_candidates_on_parts_that_it_does_not_run_on(tmp_path: Path) -> None:
    path = fleet_file(tmp_path, hardware="MI300X", more="framework: trtllm")
    found = build_candidates(load_fleet(path), lambda _: None)
    assert found.candidates == ()
    assert found.rejections[0].by_hardware == {"MI300X": {NO_FRAMEWORK: 1}}
