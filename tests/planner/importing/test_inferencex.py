"""`plan import benchmark inferencex`: rows of its database, and unsupported layouts."""

from __future__ import annotations

import pytest
from tests.planner.importing.benchmark_results import GIVEN_VERSION, INFERENCEX

from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import import_benchmarks


def test_inferencex_is_in_seconds_with_nominal_lengths() -> None:
    found = import_benchmarks(
        "inferencex", INFERENCEX, MeasuredDeployment(framework_version="0.24.0", model="llama3.1-8b")
    )
    (row,) = found.rows
    assert (row["ttft_ms"], row["tpot_ms"]) == pytest.approx((95.5, 11.25))
    assert (row["input_tokens"], row["output_tokens"]) == (922, 115)
    assert (row["hardware"], row["tp"], row["dp"], row["weights"]) == ("H200-SXM", 2, 1, "fp8")
    reasons = [each.reason for each in found.rejected]
    assert [each.place for each in found.rejected] == ["row 2", "row 3", "row 4"]
    assert "not have a single layout" in reasons[0]
    assert "acceptance" in reasons[1]
    assert "h2000" in reasons[2]


def test_attention_data_parallelism_of_inferencex_takes_the_ranks_of_tp() -> None:
    row = {**INFERENCEX[0], "dp_attention": "true", "tp": 8, "ep": 8}
    (found,) = import_benchmarks("inferencex", [row], GIVEN_VERSION).rows
    assert (found["tp"], found["dp"], found["ep"]) == (1, 8, 8)


def test_results_of_inferencex_have_the_names_of_their_clusters() -> None:
    """What a run writes (process_result.py) has the label of its runner."""
    for name, hardware in (("cluster:b300-nv", "B300-SXM"), ("cluster:mi355x-amds", "MI355X")):
        row = {**INFERENCEX[0], "hw": name, "is_multinode": False, "disagg": False, "spec_decoding": "none"}
        (found,) = import_benchmarks("inferencex", [row], GIVEN_VERSION).rows
        assert found["hardware"] == hardware


def test_answers_of_the_site_of_inferencex_are_rows() -> None:
    """The answer about one run has its rows under a key beside those of evaluations; flags may be text."""
    row = {
        "hardware": "h200", "framework": "vllm", "model": "llama3.1-8b", "precision": "fp8",
        "spec_method": "none", "disagg": "False", "is_multinode": "false", "prefill_tp": 2, "prefill_ep": 1,
        "prefill_dp_attention": False, "decode_tp": 2, "decode_ep": 1, "decode_dp_attention": False,
        "num_prefill_gpu": 2, "num_decode_gpu": 2, "isl": 1024, "osl": 128, "conc": 16,
        "image": "vllm/vllm-openai:v0.24.0", "metrics": {"mean_ttft": 0.0955, "mean_tpot": 0.01125},
        "date": "2026-08-03", "run_url": None,
    }  # fmt: skip
    answer = {"runInfo": {"id": 1}, "benchmarks": [row, {**row, "disagg": "true"}], "evaluations": []}
    found = import_benchmarks("inferencex", answer, GIVEN_VERSION)
    (taken,) = found.rows
    assert (taken["hardware"], taken["tp"], taken["dp"], taken["ep"]) == ("H200-SXM", 2, 1, 1)
    assert (taken["concurrency"], taken["ttft_ms"], taken["tpot_ms"]) == (16, 95.5, 11.25)
    assert ["not have a single layout" in each.reason for each in found.rejected] == [True]


def test_cores_of_a_tpu_are_no_chips() -> None:
    """Frameworks see two devices a chip of TPU-7x: degrees count those, `num_gpus` counts chips."""
    row = {**INFERENCEX[0], "hw": "tpuv7", "tp": 8}
    for chips in ({}, {"num_gpus": 4}, {"num_gpus": "4", "dp": 1}):
        (found,) = import_benchmarks("inferencex", [{**row, **chips}], GIVEN_VERSION).rows
        assert (found["hardware"], found["tp"], found["dp"]) == ("TPU-7x", 4, 1)
    for change, reason in (
        ({"tp": 1, "dp": 8, "num_gpus": 4}, "half a chip"),
        ({"tp": 8, "num_gpus": 8}, "8 accelerators"),
    ):
        (rejected,) = import_benchmarks("inferencex", [{**row, **change}], GIVEN_VERSION).rejected
        assert reason in rejected.reason


@pytest.mark.parametrize(
    ("stated", "layout"),
    [
        # Decode splits contexts over ranks of tensor parallelism, prefill over ranks of its own.
        ({"tp": 8, "dcp": 4}, {"tp": 2, "cp": 4, "pp": 1}),
        ({"tp": 4, "pcp_size": 2}, {"tp": 4, "cp": 2, "pp": 1}),
        ({"tp": 4, "metrics": {"decode_pp": 2}}, {"tp": 4, "cp": 1, "pp": 2}),
        ({"tp": 4, "pp": 2}, {"tp": 4, "cp": 1, "pp": 2}),
        ({"tp": 1, "dp": 8, "num_gpus": 8}, {"tp": 1, "dp": 8}),
        ({"tp": 8, "dp_attention": "True", "dp": 4}, {"tp": 2, "dp": 4}),
    ],
)
def test_degrees_of_inferencex(stated: dict[str, object], layout: dict[str, int]) -> None:
    row = {**INFERENCEX[0], **stated}
    if "metrics" in row:
        row["metrics"] = {**INFERENCEX[0], **row["metrics"]}
    (found,) = import_benchmarks("inferencex", [row], GIVEN_VERSION).rows
    assert {name: found[name] for name in layout} == layout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tp": 8, "dcp": 2, "pcp": 2}, "in prefill"),
        ({"tp": 3, "dcp": 2}, "does not divide"),
        ({"tp": 8, "dp_attention": "true", "pcp": 2}, "attention data parallelism with split contexts"),
        ({"scenario_type": "agentic-coding"}, "trace of agents"),
        ({"kv_offloading": "dram"}, "offloaded"),
        ({"benchmark_type": "agentic_traces"}, "trace of agents"),
        ({"tp": 4, "num_gpus": 8}, "8 accelerators"),
        ({"tp": 8, "dp_attention": "true", "dp": 3}, "does not divide"),
    ],
)
def test_rows_of_inferencex_that_are_no_layout_of_ours(change: dict[str, object], reason: str) -> None:
    (rejected,) = import_benchmarks("inferencex", [{**INFERENCEX[0], **change}], GIVEN_VERSION).rejected
    assert reason in rejected.reason
