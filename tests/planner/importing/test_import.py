"""`plan import`: units, and a reason for every row that is not taken."""

from __future__ import annotations

import gzip
import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.planner.command_line import run

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.calibrate import calibrate
from fleetplan.planner.commands.importing import FORMATS
from fleetplan.planner.importing.benchmark_formats import READERS
from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import ImportedBenchmarks, import_benchmarks
from fleetplan.planner.importing.records import read_json, read_summary
from fleetplan.planner.importing.supply_tables import import_inventory, import_prices
from fleetplan.scenarios.load import load_fleet

GIVEN = MeasuredDeployment(
    hardware="H100-SXM", framework_version="0.24.0", weights="bf16", kv="bf16", tp=1, model="llama3.1-8b"
)

WRITTEN = Path(__file__).parent / "written"
"""Files that tools wrote themselves, in runs against a server of a test."""

VLLM = {
    "date": "20261101-101500", "model_id": "llama3.1-8b", "num_prompts": 100, "request_rate": "inf",
    "max_concurrency": 16, "completed": 100, "total_input_tokens": 102_400, "total_output_tokens": 12_800,
    "mean_ttft_ms": 95.5, "mean_tpot_ms": 11.25, "median_ttft_ms": 80.0,
}  # fmt: skip

AIPERF = {
    "input_config": {
        "endpoint": {"model_names": ["llama3.1-8b"]},
        "loadgen": {"concurrency": 16},
    },
    "input_sequence_length": {"unit": "tokens", "avg": 1024.2},
    "output_sequence_length": {"unit": "tokens", "avg": 127.8},
    "time_to_first_token": {"unit": "ms", "avg": 95.5, "p50": 80.0},
    "inter_token_latency": {"unit": "ms", "avg": 11.25},
}

GUIDELLM = {
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 16}},
            "metrics": {
                "prompt_token_count": {"successful": {"mean": 1024.0}},
                "output_token_count": {"successful": {"mean": 128.0}},
                "time_to_first_token_ms": {"successful": {"mean": 95.5}},
                "inter_token_latency_ms": {"successful": {"mean": 11.25}},
            },
        },
        {"config": {"strategy": {"type_": "throughput"}}, "metrics": {}},
    ]
}

INFERENCEX = [
    {
        "hw": "h200", "model": "llama3.1-8b", "framework": "vllm", "precision": "fp8", "tp": 2, "ep": 1,
        "dp_attention": "false", "conc": 16, "isl": 1024, "osl": 128, "mean_ttft": 0.0955,
        "mean_tpot": 0.01125, "tput_per_gpu": 1234.5,
    },
    {"hw": "h200", "disagg": True},
    {"hw": "h200", "spec_decoding": "mtp"},
    {"hw": "h2000", "framework": "vllm", "precision": "fp8", "tp": 1, "conc": 1, "isl": 10, "osl": 10,
     "mean_tpot": 0.01},
]  # fmt: skip


@pytest.mark.parametrize("run", ["open", "closed"])
def test_stages_that_inference_perf_wrote_are_runs_under_their_load(run: str) -> None:
    # 50 requests at 10 a second, and 40 by four at a time: prompts of 64, 20 tokens, the first after 20 ms,
    # the others every 2 ms, on a machine with other work.
    document = json.loads((WRITTEN / f"inference-perf-0.7.0-{run}.json").read_text("utf-8"))
    (row,) = import_benchmarks("inference-perf", document, GIVEN).rows
    assert (row["input_tokens"], row["output_tokens"]) == (64, 20)
    load, latency = document["load_summary"], document["successes"]["latency"]
    if run == "open":
        assert row["requests_per_s"] == load["achieved_rate"] == pytest.approx(10, rel=0.1)
        assert row["mode"] == "open_loop"
    else:
        assert (row["mode"], row["concurrency"]) == ("closed_loop", 4)
    assert row["ttft_ms"] == 1000 * latency["time_to_first_token"]["mean"] >= 20
    assert row["tpot_ms"] == 1000 * latency["time_per_output_token"]["mean"] >= 2


MLPERF = WRITTEN / "mlperf-loadgen-6.0.17-server.txt"


def test_a_summary_that_loadgen_wrote_is_a_run_at_the_rate_that_was_reached() -> None:
    # The system under test answered first after 20 ms, then 19 more tokens every 2 ms; 700 queries.
    document = read_summary(MLPERF)
    (row,) = import_benchmarks("mlperf", document, GIVEN, 294.4).rows
    assert (row["mode"], row["requests_per_s"], row["concurrency"]) == ("open_loop", 145.0, None)
    assert (row["input_tokens"], row["output_tokens"]) == (294, 20)
    assert row["ttft_ms"] == pytest.approx(20, rel=0.1)
    assert row["tpot_ms"] == pytest.approx(2, rel=0.05)
    alone = {**document, "Scenario": "SingleStream"}
    (row,) = import_benchmarks("mlperf", alone, GIVEN, 294.4).rows
    assert (row["mode"], row["concurrency"]) == ("closed_loop", 1.0)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("Scenario", "Offline", "no steady load"),
        ("Mode", "AccuracyOnly", "those of PerformanceOnly"),
        ("Result is", "INVALID", "calls the result INVALID"),
        ("Mean First Token latency (ns)", None, "Mean First Token latency is missing"),
    ],
)
def test_summaries_without_latencies_under_a_steady_load_are_left_out(
    field: str, value: str | None, said: str
) -> None:
    found = import_benchmarks("mlperf", {**read_summary(MLPERF), field: value}, GIVEN, 294.4)
    assert found.rows == ()
    assert said in found.rejected[0].reason
    (without,) = import_benchmarks("mlperf", read_summary(MLPERF), GIVEN).rejected
    assert "give --input-tokens" in without.reason


def test_what_is_no_summary_of_loadgen_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing: here\n", encoding="utf-8")
    with pytest.raises(InputError, match="no line with the scenario"):
        read_summary(tmp_path / "a.txt")


@pytest.mark.parametrize(("form", "document"), [("vllm", VLLM), ("aiperf", AIPERF), ("guidellm", GUIDELLM)])
def test_every_format_says_the_same_of_the_same_run(form: str, document: object) -> None:
    (row,) = import_benchmarks(form, document, GIVEN).rows
    assert row["mode"] == "closed_loop"
    assert (row["input_tokens"], row["output_tokens"], row["concurrency"]) == (1024, 128, 16)
    assert (row["ttft_ms"], row["tpot_ms"]) == (95.5, 11.25)
    assert (row["hardware"], row["framework"], row["tp"]) == ("H100-SXM", "vllm", 1)


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
    assert "no one layout" in reasons[0]
    assert "acceptance" in reasons[1]
    assert "h2000" in reasons[2]


def test_attention_data_parallelism_of_inferencex_takes_the_ranks_of_tp() -> None:
    row = {**INFERENCEX[0], "dp_attention": "true", "tp": 8, "ep": 8}
    (found,) = import_benchmarks("inferencex", [row], GIVEN_VERSION).rows
    assert (found["tp"], found["dp"], found["ep"]) == (1, 8, 8)


GIVEN_VERSION = MeasuredDeployment(framework_version="0.24.0")


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
    assert ["no one layout" in each.reason for each in found.rejected] == [True]


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
    ("form", "change", "reason"),
    [
        ("vllm", {"max_concurrency": None}, "no steady load"),
        ("vllm", {"completed": 0}, "completed is 0"),
        ("vllm", {"spec_decode_acceptance_rate": 71.0}, "speculative decoding"),
        ("vllm", {"model_id": "other"}, "not the 'llama3.1-8b' of the command line"),
        ("vllm", {"mean_tpot_ms": "nan"}, "mean_tpot_ms"),
        ("vllm", {"mean_tpot_ms": None, "mean_ttft_ms": None}, "neither TTFT nor TPOT"),
        ("aiperf", {"time_to_first_token": {"unit": "furlongs", "avg": 1.0}}, "furlongs"),
        ("aiperf", {"output_sequence_length": {"unit": "tokens", "avg": 0.2}}, "output tokens"),
    ],
)
def test_a_row_that_cannot_be_taken_has_its_reason(form: str, change: dict[str, object], reason: str) -> None:
    document = {**(VLLM if form == "vllm" else AIPERF), **change}
    found = import_benchmarks(form, document, GIVEN)
    assert found.rows == ()
    (rejected,) = found.rejected
    assert reason in rejected.reason


def test_units_of_aiperf_are_read_and_an_open_loop_has_a_rate() -> None:
    seconds = {**AIPERF, "time_to_first_token": {"unit": "sec", "avg": 0.0955},
               "inter_token_latency": {"unit": "us", "avg": 11_250.0}}  # fmt: skip
    (row,) = import_benchmarks("aiperf", seconds, GIVEN).rows
    assert (row["ttft_ms"], row["tpot_ms"]) == pytest.approx((95.5, 11.25))
    paced = {**VLLM, "request_rate": 4.5, "max_concurrency": None}
    (row,) = import_benchmarks("vllm", paced, GIVEN).rows
    assert (row["mode"], row["requests_per_s"], row["concurrency"]) == ("open_loop", 4.5, None)


def test_a_file_that_vllm_wrote_has_the_rate_that_was_reached() -> None:
    # vllm 0.33.0, `vllm bench serve --request-rate 20 --max-concurrency 4` against a server of a test.
    document = json.loads((WRITTEN / "vllm-0.33.0-bench-serve.json").read_text("utf-8"))
    (row,) = import_benchmarks("vllm", document, replace(GIVEN, model=None)).rows
    assert (row["input_tokens"], row["output_tokens"]) == (32, 8)
    assert (row["mode"], row["concurrency"]) == ("open_loop", None)
    assert row["requests_per_s"] == pytest.approx(24 / document["duration"])
    assert (row["ttft_ms"], row["tpot_ms"]) == (document["mean_ttft_ms"], document["mean_tpot_ms"])


@pytest.mark.parametrize(
    ("run", "mode", "concurrency"), [("closed", "closed_loop", 4), ("open", "open_loop", None)]
)
def test_a_file_that_sglang_wrote_is_read(run: str, mode: str, concurrency: int | None) -> None:
    # sglang 0.5.23, `python -m sglang.benchmark.serving --max-concurrency 4` and `--request-rate 20`: 24
    # requests of 32 and 8 tokens to a server of a test, which says of itself its version and tp_size.
    path = WRITTEN / f"sglang-0.5.23-serving-{run}.jsonl"
    document = read_json(path)
    assert isinstance(document, dict)
    given = MeasuredDeployment(hardware="h100", weights="bf16", model="llama3.1-8b")
    (row,) = import_benchmarks("sglang", document, given).rows
    assert (row["framework"], row["framework_version"], row["tp"]) == ("sglang", "0.5.23", 1)
    assert (row["input_tokens"], row["output_tokens"]) == (768 / 24, 192 / 24)
    assert (row["mode"], row["concurrency"]) == (mode, concurrency)
    assert row["requests_per_s"] == (None if concurrency else pytest.approx(24 / document["duration"]))
    assert (row["ttft_ms"], row["tpot_ms"]) == (document["mean_ttft_ms"], document["mean_tpot_ms"])


def test_what_a_server_of_sglang_says_of_itself_is_its_layout() -> None:
    server = {"model_path": "llama3.1-8b", "version": "0.5.23", "tp_size": 8, "dp_size": 8, "ep_size": 8,
              "pp_size": 1, "enable_dp_attention": True}  # fmt: skip
    given = MeasuredDeployment(hardware="H100-SXM", weights="fp8")
    (row,) = import_benchmarks("sglang", {**VLLM, "server_info": server}, given).rows
    assert (row["tp"], row["dp"], row["ep"], row["pp"]) == (1, 8, 8, 1)
    for change, reason in (
        ({"enable_dp_attention": False}, "behind a router"),
        ({"tp_size": 6}, "does not divide"),
        ({"decode": [{}]}, "disaggregated"),
    ):
        document = {**VLLM, "server_info": {**server, **change}}
        (rejected,) = import_benchmarks("sglang", document, given).rejected
        assert reason in rejected.reason
    (rejected,) = import_benchmarks("sglang", {**VLLM, "accept_length": 2.3}, given).rejected
    assert "speculative" in rejected.reason


def test_attention_ranks_of_newer_servers_of_sglang_are_no_replicas() -> None:
    # Started with --attn-dp-size 8, or with the older pair of options, which SGLang 0.5.23 turns into that.
    server = {"model_path": "llama3.1-8b", "version": "0.5.23", "tp_size": 8, "dp_size": 1, "attn_dp_size": 8,
              "ep_size": 8, "pp_size": 1, "attn_cp_size": 1, "enable_dp_attention": True,
              "kv_cache_dtype": "fp8_e4m3", "speculative_algorithm": None}  # fmt: skip
    given = MeasuredDeployment(hardware="H100-SXM", weights="fp8")

    def imported(**changes: object) -> ImportedBenchmarks:
        return import_benchmarks("sglang", {**VLLM, "server_info": {**server, **changes}}, given)

    (row,) = imported().rows
    assert (row["tp"], row["dp"], row["ep"], row["cp"], row["kv"]) == (1, 8, 8, 1, "fp8")
    (row,) = imported(attn_dp_size=2, attn_cp_size=2).rows
    assert (row["tp"], row["dp"], row["cp"]) == (2, 2, 2)
    (row,) = imported(kv_cache_dtype="auto").rows
    assert row["kv"] is None
    for change, reason in (
        ({"dp_size": 2}, "2 replicas behind a router"),
        ({"attn_dp_size": 3}, "tp_size 8 does not divide into 3"),
        ({"speculative_algorithm": "EAGLE3"}, "speculative decoding (EAGLE3)"),
    ):
        (rejected,) = imported(**change).rejected
        assert reason in rejected.reason


def test_a_run_whose_requests_come_in_bursts_is_no_open_loop_of_users() -> None:
    paced = {**VLLM, "max_concurrency": None, "request_rate": 5.0, "request_throughput": 4.9}
    (row,) = import_benchmarks("vllm", {**paced, "burstiness": 1.0}, GIVEN).rows
    assert row["mode"] == "open_loop"
    (rejected,) = import_benchmarks("vllm", {**paced, "burstiness": 0.2}, GIVEN).rejected
    assert "burstiness 0.2" in rejected.reason
    # With no rate the option has no effect.
    assert import_benchmarks("vllm", {**VLLM, "burstiness": 0.2}, GIVEN).rows


@pytest.mark.parametrize(
    "phase",
    [
        {"rate_ramp": {"duration": 60.0}},
        {"rate_series": [{"rate": 1.0, "duration": 60.0}]},
        {"concurrency_ramp": {"duration": 60.0}},
        {"adaptive_scale": True},
        {"type": "gamma", "smoothness": 0.3},
        {"concurrency": 4, "prefill_concurrency": 1},
    ],
)
def test_a_phase_of_aiperf_whose_load_changes_is_left_out(phase: dict[str, object]) -> None:
    document = read_json(WRITTEN / "aiperf-0.13.0-open.json")
    assert isinstance(document, dict)
    given = replace(GIVEN, model=None)
    assert import_benchmarks("aiperf", document, given).rows
    config = dict(document["input_config"])
    (measured,) = [each for each in config["phases"] if each.get("kind") == "profiling"]
    config["phases"] = [measured | phase]
    (rejected,) = import_benchmarks("aiperf", {**document, "input_config": config}, given).rejected
    assert next(reversed(phase)) in rejected.reason


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ({"type": "constant"}, "arrivals constant"),
        ({"type": "user_centric"}, "arrivals user_centric"),
        ({"type": "poisson"}, None),
        ({"type": "gamma", "smoothness": 1.0}, None),
        # A cap that binds is the load, however requests come.
        ({"type": "constant", "concurrency": 1, "rate": 1000.0}, None),
    ],
)
def test_a_run_of_aiperf_whose_requests_come_evenly_is_no_open_loop(
    load: dict[str, object], reason: str | None
) -> None:
    document = read_json(WRITTEN / "aiperf-0.13.0-open.json")
    assert isinstance(document, dict)
    config = dict(document["input_config"])
    (measured,) = [each for each in config["phases"] if each.get("kind") == "profiling"]
    config["phases"] = [measured | load]
    found = import_benchmarks("aiperf", {**document, "input_config": config}, replace(GIVEN, model=None))
    assert [reason in each.reason for each in found.rejected if reason] == [True] * bool(reason)
    assert len(found.rows) == (reason is None)


@pytest.mark.parametrize(
    ("name", "pattern"), [("arrival_pattern", "constant"), ("request_rate_mode", "poisson")]
)
def test_older_files_of_aiperf_say_how_requests_come(name: str, pattern: str) -> None:
    config = {"endpoint": {"model_names": ["llama3.1-8b"]}, "loadgen": {"request_rate": 2.0, name: pattern}}
    found = import_benchmarks("aiperf", {**AIPERF, "input_config": config}, GIVEN)
    assert len(found.rows) == (pattern == "poisson")


def test_a_model_of_aiperf_that_is_no_object_is_a_reason() -> None:
    document = read_json(WRITTEN / "aiperf-0.13.0-closed.json")
    assert isinstance(document, dict)
    config = {**document["input_config"], "models": {"items": [None]}}
    (rejected,) = import_benchmarks("aiperf", {**document, "input_config": config}, GIVEN).rejected
    assert "a model is missing" in rejected.reason


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ({"arrival_pattern": "gamma", "arrival_smoothness": 0.3}, "smoothness 0.3"),
        ({"request_rate_ramp_duration": 30.0}, "rate_ramp"),
        ({"concurrency": 16, "concurrency_ramp_duration": 30.0}, "concurrency_ramp"),
        ({"concurrency": 16, "prefill_concurrency": 2}, "prefill_concurrency 2"),
        ({"user_centric_rate": 2.0, "num_users": 8}, "arrivals user_centric"),
        ({"arrival_pattern": "gamma", "arrival_smoothness": 1.0}, None),
        # What is the default is not written, and the default is Poisson's.
        ({}, None),
    ],
)
def test_files_of_aiperf_before_phases_say_whether_the_load_is_steady(
    load: dict[str, object], reason: str | None
) -> None:
    # Options as aiperf/common/config/loadgen_config.py of 0.5 and 0.8 has them.
    config = {"endpoint": {"model_names": ["llama3.1-8b"]}, "loadgen": {"request_rate": 2.0, **load}}
    found = import_benchmarks("aiperf", {**AIPERF, "input_config": config}, GIVEN)
    assert [reason in each.reason for each in found.rejected if reason] == [True] * bool(reason)
    assert len(found.rows) == (reason is None)


@pytest.mark.parametrize(
    "load", [{"type": "poisson", "rate": 2.0}, {"type": "concurrency", "concurrency": 16}]
)
def test_phases_of_aiperf_0_10_state_what_is_left_out_and_not_their_kind(load: dict[str, object]) -> None:
    # As 0.10.0 wrote them (schema 1.3) for `--warmup-request-count 16`.
    phases = [
        {"name": "warmup", "exclude_from_results": True, "requests": 16, **load},
        {"name": "profiling", "requests": 96, **load},
    ]
    config = {"models": {"items": [{"name": "llama3.1-8b"}]}, "phases": phases}
    (row,) = import_benchmarks("aiperf", {**AIPERF, "input_config": config}, GIVEN).rows
    assert row["concurrency"] == load.get("concurrency")
    warmed = {**AIPERF, "request_count": {"unit": "requests", "avg": 16.0}, "input_config": config}
    (rejected,) = import_benchmarks("aiperf", warmed, GIVEN).rejected
    assert "those of the warm-up" in rejected.reason


def test_a_name_of_the_server_stands_for_the_model() -> None:
    served = {**VLLM, "model_id": "chat"}
    (rejected,) = import_benchmarks("vllm", served, GIVEN).rejected
    assert "--served-as chat" in rejected.reason
    (row,) = import_benchmarks("vllm", served, GIVEN, served_as="chat").rows
    assert row["model"] == "llama3.1-8b"
    (rejected,) = import_benchmarks("vllm", {**VLLM, "model_id": "other"}, GIVEN, served_as="chat").rejected
    assert "'other'" in rejected.reason


@pytest.mark.parametrize(
    "config",
    [
        {"loadgen": {"concurrency": 16}, "input": {"fixed_schedule": True}},
        {"phases": [{"kind": "profiling", "type": "fixed_schedule", "concurrency": 16}]},
    ],
)
def test_a_trace_that_aiperf_plays_back_is_no_closed_loop(config: dict[str, object]) -> None:
    (rejected,) = import_benchmarks("aiperf", {**AIPERF, "input_config": config}, GIVEN).rejected
    assert "as a trace has them" in rejected.reason


def test_the_first_version_of_aiperf_has_its_metrics_under_records() -> None:
    metrics = {name: value for name, value in AIPERF.items() if name != "input_config"}
    document = {"records": metrics, "input_config": AIPERF["input_config"]}
    assert import_benchmarks("aiperf", document, GIVEN) == import_benchmarks("aiperf", AIPERF, GIVEN)


def paced_by_poisson(document: dict[str, Any]) -> dict[str, Any]:
    """A file of GuideLLM whose run was paced evenly, as if it had been by Poisson arrivals."""
    strategy = document["benchmarks"][0]["config"]["strategy"]
    assert strategy["type_"] == "constant"
    strategy |= {"type_": "poisson", "random_seed": 42}
    return document


def test_a_run_of_guidellm_that_rises_to_its_load_is_left_out() -> None:
    document = read_json(WRITTEN / "guidellm-0.8.1-open.json")
    assert isinstance(document, dict)
    given = replace(GIVEN, model=None)
    (rejected,) = import_benchmarks("guidellm", document, given).rejected
    assert "strategy constant" in rejected.reason
    paced_by_poisson(document)
    assert import_benchmarks("guidellm", document, given).rows
    document["benchmarks"][0]["config"]["strategy"]["rampup_duration"] = 30.0
    (rejected,) = import_benchmarks("guidellm", document, given).rejected
    assert "rampup_duration 30.0" in rejected.reason


def test_failures_in_files_of_guidellm_before_0_4_count() -> None:
    # Keys as guidellm/benchmark/benchmark.py of 0.2 and 0.3 has them.
    strategy = {"type_": "concurrent", "streams": 16}
    older = {**GUIDELLM["benchmarks"][0], "config": {}, "args": {"strategy": strategy}}
    older["worker"] = {"backend_model": "llama3.1-8b"}
    totals = {"successful": 90, "errored": 10, "incomplete": 0, "total": 100}
    given = replace(GIVEN, model=None)
    (row,) = import_benchmarks("guidellm", {"benchmarks": [older]}, given).rows
    assert (row["mode"], row["concurrency"], row["model"]) == ("closed_loop", 16, "llama3.1-8b")
    failing = {**older, "request_totals": totals}
    (rejected,) = import_benchmarks("guidellm", {"benchmarks": [failing]}, given).rejected
    assert "10 of 100 requests failed" in rejected.reason


@pytest.mark.parametrize(
    "config",
    [
        {"model_names": ["llama3.1-8b"], "perf_analyzer": {"stimulus": {"concurrency": 16}}},
        {"model": ["llama3.1-8b"], "concurrency": 16, "request_rate": ""},
    ],
)
def test_what_genai_perf_wrote_is_read_as_its_successors(config: dict[str, object]) -> None:
    # Keys as genai_perf/export_data/json_exporter.py writes them: an option that is not set is an empty text.
    (row,) = import_benchmarks("aiperf", {**AIPERF, "input_config": config}, GIVEN).rows
    assert (row["mode"], row["concurrency"], row["model"]) == ("closed_loop", 16, "llama3.1-8b")
    paced = {"model_names": ["llama3.1-8b"], "perf_analyzer": {"stimulus": {"request_rate": 2.0}}}
    # Perf Analyzer's --request-distribution is constant unless told.
    (rejected,) = import_benchmarks("aiperf", {**AIPERF, "input_config": paced}, GIVEN).rejected
    assert "arrivals constant" in rejected.reason


@pytest.mark.parametrize(
    ("run", "mode", "concurrency"), [("closed", "closed_loop", 2), ("open", "open_loop", None)]
)
def test_a_file_that_guidellm_wrote_is_read(run: str, mode: str, concurrency: int | None) -> None:
    # guidellm 0.8.1, `guidellm run --profile kind=concurrent,streams=2` and `kind=constant,rate=10`, 16
    # requests to a server of a test that counts 7 tokens a prompt. Requests and statistics that nobody reads
    # were left out.
    document = json.loads((WRITTEN / f"guidellm-0.8.1-{run}.json").read_text("utf-8"))
    if run == "open":
        paced_by_poisson(document)
    (row,) = import_benchmarks("guidellm", document, replace(GIVEN, model=None)).rows
    metrics = document["benchmarks"][0]["metrics"]
    assert (row["model"], row["input_tokens"], row["output_tokens"]) == ("mock", 7, 8)
    assert (row["mode"], row["concurrency"]) == (mode, concurrency)
    reached = metrics["requests_per_second"]["successful"]["mean"]
    assert row["requests_per_s"] == (None if concurrency else reached)
    assert row["ttft_ms"] == metrics["time_to_first_token_ms"]["successful"]["mean"]
    assert row["tpot_ms"] == metrics["inter_token_latency_ms"]["successful"]["mean"]


INFERENCE_PERF = {
    "load_summary": {"count": 100, "send_duration": 20.0, "requested_rate": 6.0, "achieved_rate": 5.0},
    "successes": {
        "count": 100,
        "latency": {"time_to_first_token": {"mean": 0.0955}, "time_per_output_token": {"mean": 0.01125},
                    "inter_token_latency": {"mean": 0.0112}},
        "prompt_tokens": {"mean": 1024.2, "total": 102_420},
        "output_tokens": {"mean": 127.8, "total": 12_780},
    },
    "failures": {"count": 0},
}  # fmt: skip
"""By the report of inference-perf 0.7.0 (reportgen/base.py), which needs Python 3.12 to run."""


def test_stages_of_inference_perf_are_in_seconds_with_the_rate_that_was_reached() -> None:
    (row,) = import_benchmarks("inference-perf", INFERENCE_PERF, GIVEN).rows
    assert (row["input_tokens"], row["output_tokens"]) == (1024, 128)
    assert (row["mode"], row["requests_per_s"]) == ("open_loop", 5.0)
    assert (row["ttft_ms"], row["tpot_ms"]) == pytest.approx((95.5, 11.25))
    load = {**INFERENCE_PERF["load_summary"], "concurrency": 8}
    (row,) = import_benchmarks("inference-perf", {**INFERENCE_PERF, "load_summary": load}, GIVEN).rows
    assert (row["mode"], row["concurrency"], row["requests_per_s"]) == ("closed_loop", 8, None)
    whole = {**INFERENCE_PERF, "load_summary": {"count": 100}}
    (rejected,) = import_benchmarks("inference-perf", whole, GIVEN).rejected
    assert "a summary mixes stages" in rejected.reason


@pytest.mark.parametrize(
    ("stated_ms", "read_ms"),
    [
        # 127 tokens of 10 ms each after the first, with what lengths that differ make of the mean.
        (10.0, 10.0),
        (11.5, 11.5),
        # Every piece of the stream was counted twice, half of them at no time: versions of 2025.
        (4.98, 10.0),
        # Speculative decoding: three tokens in a piece.
        (29.0, 10.0),
    ],
)
def test_the_time_of_a_token_is_the_one_that_the_time_of_the_answer_leaves(
    stated_ms: float, read_ms: float
) -> None:
    latency = {
        "request_latency": {"mean": 0.05 + 127 * 0.010},
        "time_to_first_token": {"mean": 0.05},
        "time_per_output_token": {"mean": stated_ms / 1000},
    }
    lengths = {"prompt_len": {"mean": 201.0}, "output_len": {"mean": 128.0}}
    document = {**INFERENCE_PERF, "successes": {"count": 100, "latency": latency, **lengths}}
    (row,) = import_benchmarks("inference-perf", document, GIVEN).rows
    assert (row["ttft_ms"], row["tpot_ms"]) == pytest.approx((50.0, read_ms))


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


@pytest.mark.parametrize(
    ("run", "mode", "concurrency"), [("closed", "closed_loop", 2), ("open", "open_loop", None)]
)
def test_a_file_that_aiperf_wrote_is_read(run: str, mode: str, concurrency: int | None) -> None:
    # aiperf 0.13.0, `aiperf profile --concurrency 2` and `--request-rate 10`, against a server of a test.
    document = json.loads((WRITTEN / f"aiperf-0.13.0-{run}.json").read_text("utf-8"))
    (row,) = import_benchmarks("aiperf", document, replace(GIVEN, model=None)).rows
    assert (row["model"], row["input_tokens"], row["output_tokens"]) == ("mock", 32, 8)
    assert (row["mode"], row["concurrency"]) == (mode, concurrency)
    reached = None if concurrency else document["request_throughput"]["avg"]
    assert row["requests_per_s"] == reached
    assert row["ttft_ms"] == document["time_to_first_token"]["avg"]
    assert row["tpot_ms"] == document["inter_token_latency"]["avg"]


SPECULATIVE, FAILED, UNFILLED = "speculative decoding", "8 of 40 requests failed", "no steady load"


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("vllm-0.33.0-capped", "closed_loop"),
        ("vllm-0.33.0-failing", FAILED),
        ("vllm-0.33.0-drafted", SPECULATIVE),
        ("vllm-0.33.0-unfilled", UNFILLED),
        ("sglang-0.5.23-capped", "closed_loop"),
        ("sglang-0.5.23-failing", FAILED),
        ("sglang-0.5.23-drafted", SPECULATIVE),
        ("aiperf-0.13.0-capped", "closed_loop"),
        ("aiperf-0.13.0-failing", FAILED),
        ("aiperf-0.13.0-drafted", SPECULATIVE),
        ("aiperf-0.13.0-warm", "those of the warm-up"),
        ("guidellm-0.8.1-capped", "closed_loop"),
        ("guidellm-0.8.1-failing", FAILED),
        ("inference-perf-0.7.0-failing", FAILED),
        ("inference-perf-0.7.0-unfilled", UNFILLED),
    ],
)
def test_files_that_tools_wrote_have_the_load_that_was_reached(name: str, read: str) -> None:
    # Runs of `make interop-benchmarks` on its server: 60 requests a second asked for with four at a time
    # (which are 28 a second at most), every fifth request refused, four tokens a step, 20 requests for 40
    # places; and the file of AIPerf's warm-up. Single requests and percentiles were left out.
    tool = next(each for each in READERS if name.startswith(each))
    given = MeasuredDeployment("mock", "H100-SXM", weights="bf16", kv="bf16", tp=1)
    if tool != "sglang":
        given = replace(given, framework="vllm", framework_version="0.24.0")
    found = import_benchmarks(tool, read_json(WRITTEN / f"{name}.json"), given)
    if read == "closed_loop":
        (row,) = found.rows
        assert (row["mode"], row["concurrency"], row["requests_per_s"]) == (read, 4, None)
    else:
        (rejected,) = found.rejected
        assert read in rejected.reason


def test_few_failures_are_within_what_runs_differ_by() -> None:
    (row,) = import_benchmarks("vllm", {**VLLM, "completed": 99, "failed": 1}, GIVEN).rows
    assert row["concurrency"] == 16
    (rejected,) = import_benchmarks("vllm", {**VLLM, "completed": 98}, GIVEN).rejected
    assert "2 of 100 requests failed" in rejected.reason


def test_a_rate_that_rises_over_the_run_is_no_load() -> None:
    ramp = {"request_rate": 4.5, "ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 9}
    (rejected,) = import_benchmarks("vllm", {**VLLM, **ramp}, GIVEN).rejected
    assert "ramp_up_strategy linear" in rejected.reason


def test_a_cap_that_binds_makes_a_closed_loop_of_a_rate() -> None:
    # 16 requests in flight at 95.5 ms + 127 x 11.25 ms each are 10.5 requests/s at most.
    # A run that is short reaches less: its first and last requests had fewer beside them.
    for reached in (10.4, 8.4):
        capped = {**VLLM, "request_rate": 50.0, "request_throughput": reached}
        (row,) = import_benchmarks("vllm", capped, GIVEN).rows
        assert (row["mode"], row["concurrency"], row["requests_per_s"]) == ("closed_loop", 16, None)
    loose = {**VLLM, "request_rate": 5.0, "request_throughput": 4.8}
    (row,) = import_benchmarks("vllm", loose, GIVEN).rows
    assert (row["mode"], row["concurrency"], row["requests_per_s"]) == ("open_loop", None, 4.8)


def test_what_is_imported_calibrates() -> None:
    rows = import_benchmarks("vllm", VLLM, GIVEN).rows
    text = pd.DataFrame([dict(row) for row in rows]).to_csv(index=False)
    frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    fit = calibrate(frame, Path(), "bench.csv")
    assert fit.n_used == 1
    assert fit.refused == ()


INVENTORY = """name,region,hardware,hosts,capex_usd_per_host,in_service,rent_usd_per_host_month,price_as_of
old,east,H100-SXM,4,297000,2025Q1,,2026-08
hired,east,H200-SXM,2,,,11680,2026-09
wrong,east,H300,2,,,11680,
both,east,H100-SXM,2,297000,,11680,
half,east,H100-SXM,2.5,297000,,,
old,east,H100-SXM,1,297000,,,
"""

PRICE_HEAD = (
    "name,hardware,regions,per,capex_usd_per_host,rent_usd_per_accelerator_hour,rent_usd_per_host_hour,"
    "max_hosts,max_accelerators,lead_time_quarters"
)

PRICES = f"""{PRICE_HEAD}
buy,B200-SXM,east; west,host,446000,,,10,,1
rent,H100-SXM,east,accelerator,,1.99,,,64,
byhost,H200-SXM,east,,,,16.4,4,,
none,H200-SXM,east,,,,,,,
odd,H200-SXM,east,rack,,2,,,,
"""


def written(text: str, folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_inventory_becomes_pools_with_rents_by_accelerator_and_hour(tmp_path: Path) -> None:
    found = import_inventory(written(INVENTORY, tmp_path))
    pools = {pool["name"]: pool for pool in read_yaml(found.text)["pools"]}
    assert set(pools) == {"old", "hired"}
    assert pools["old"]["owned"] == {
        "capex_usd_per_host": 297000.0, "in_service": "2025Q1", "price_as_of": "2026-08",
    }  # fmt: skip
    # 11,680 USD a month for eight accelerators and 730 hours.
    assert pools["hired"]["rented"]["usd_per_accelerator_hour"] == 2.0
    assert [each.place for each in found.rejected] == ["line 4", "line 5", "line 6", "line 7"]
    reasons = " ".join(each.reason for each in found.rejected)
    for said in ("H300", "bought or rented", "2.5", "already"):
        assert said in reasons


def test_prices_become_offers(tmp_path: Path) -> None:
    found = import_prices(written(PRICES, tmp_path))
    offers = {offer["name"]: offer for offer in read_yaml(found.text)["offers"]}
    assert offers["buy"] == {
        "name": "buy", "hardware": "B200-SXM", "regions": ["east", "west"], "per": "host",
        "capex_usd_per_host": 446000.0, "lead_time_quarters": 1, "max_hosts": 10,
    }  # fmt: skip
    assert offers["rent"]["max_accelerators"] == 64
    assert offers["byhost"]["rent_usd_per_accelerator_hour"] == 2.05
    assert [each.place for each in found.rejected] == ["line 5", "line 6"]


def test_rows_that_a_fleet_file_would_not_take_are_rejected_with_their_reason(tmp_path: Path) -> None:
    text = (
        "name,hardware,hosts,capex_usd_per_host,in_service,price_as_of\n"
        "a,H200-SXM,1,100,2025Q9,\n"
        "b,H200-SXM,1,100,,2026-02-31\n"
        "c c,H200-SXM,1,100,,\n"
        "d\x1b[31m,H200-SXM,1,100,,\n"
        "good,H200-SXM,1,100,2025Q3,2026-02-28\n"
    )
    found = import_inventory(written(text, tmp_path))
    assert [pool["name"] for pool in read_yaml(found.text)["pools"]] == ["good"]
    assert [each.reason for each in found.rejected] == [
        "owned.in_service: must be a quarter such as 2025Q3 or FY26-Q2, or a month such as 2025-07, "
        "not '2025Q9'",
        "owned.price_as_of: there is no such day",
        "name: is not a name: 'c c'; names hold no blanks, commas, brackets or bars",
        "name holds the character U+001B, which steers a terminal",
    ]
    prices = "name,hardware,per,capex_usd_per_host,price_as_of\nb,H200-SXM,host,5,2026-13\n"
    assert [each.reason for each in import_prices(written(prices, tmp_path)).rejected] == [
        "price_as_of: there is no such day"
    ]


@pytest.mark.parametrize("other", ["200000,5", "1.200.000", "200.000,50"])
def test_points_between_thousands_are_no_decimals(tmp_path: Path, other: str) -> None:
    rows = f'a,H100-SXM,1,300.000\nb,H100-SXM,1,"{other}"\n'
    path = written("name,hardware,hosts,capex_usd_per_host\n" + rows, tmp_path)
    with pytest.raises(InputError, match=r"3:1: capex_usd_per_host: .* has a decimal comma"):
        import_inventory(path)


def test_columns_that_nothing_reads_are_named_and_refuse_no_file(tmp_path: Path) -> None:
    """An export of a CMDB was refused for its column `serial`."""
    text = "name,hardware,hosts,serial,capex_usd_per_host,cost centre,\na,H200-SXM,1,S\x1b[1m77,100,4711,\n"
    found = import_inventory(written(text, tmp_path))
    assert [pool["name"] for pool in read_yaml(found.text)["pools"]] == ["a"]
    assert (found.taken, found.rejected) == (1, ())
    assert found.notes == ("columns that are not read: 'serial', 'cost centre'",)
    assert f"# {found.notes[0]}" in found.text
    with pytest.raises(InputError, match="did you mean 'capex_usd_per_host'"):
        import_inventory(written("name,hardware,hosts,capex_usd_host\na,H200-SXM,1,1\n", tmp_path))


def test_a_misspelt_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'hardware'"):
        import_inventory(written("name,hardwear,hosts\na,b,1\n", tmp_path))


def test_what_is_imported_is_part_of_a_fleet(tmp_path: Path) -> None:
    (tmp_path / "inventory.csv").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "prices.csv").write_text(PRICES, encoding="utf-8")
    for what, out in (("inventory", "pools.yaml"), ("prices", "offers.yaml")):
        assert run("import", what, str(tmp_path / f"{what}.csv"), "--out", str(tmp_path / out)) == 0
    service = {
        "name": "chat", "model": "llama3.1-8b", "workload": {"input_tokens": 100, "output_tokens": 50},
        "slo": {"tpot_ms": 30}, "demand": {"east": 5},
    }  # fmt: skip
    fleet = {
        "imports": ["pools.yaml", "offers.yaml"], "version": 1, "horizon": {"periods": ["2027Q1", "2027Q2"]},
        "regions": {"east": {}, "west": {}}, "services": [service],
    }  # fmt: skip
    (tmp_path / "fleet.yaml").write_text(yaml_text(fleet), encoding="utf-8")
    built = load_fleet(tmp_path / "fleet.yaml")
    assert [pool.name for pool in built.pools] == ["old", "hired"]
    assert [offer.name for offer in built.offers] == ["buy", "rent", "byhost"]


def test_the_command_says_what_it_took_and_what_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "result.json", tmp_path / "bench.csv"
    path.write_text(json.dumps(GUIDELLM), encoding="utf-8")
    options = ["--model", "llama3.1-8b", "--hardware", "h100", "--tp", "1", "--weights", "bf16"]
    options += ["--framework-version", "0.24.0", "--out", str(out)]
    assert run("import", "benchmark", "guidellm", str(path), *options) == 0
    said = capsys.readouterr().err
    assert "1 row taken, 1 not" in said
    assert "row 2: skipped: strategy throughput" in said
    assert pd.read_csv(out)["hardware"].tolist() == ["H100-SXM"]
    assert run("import", "benchmark", "guidelm", str(path), *options) == 2
    assert "did you mean 'guidellm'" in capsys.readouterr().err
    path.write_text("{", encoding="utf-8")
    assert run("import", "benchmark", "vllm", str(path), *options) == 2


def test_a_model_is_described_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", "model", "llama3.1-8b") == 0
    assert "32 layers, dense" in capsys.readouterr().out
    assert run("import", "model", str(tmp_path / "nothing.json")) == 2
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "zebra"}), encoding="utf-8")
    assert run("import", "model", str(tmp_path)) == 2
    assert "zebra" in capsys.readouterr().err


def test_a_model_that_is_no_ordinary_file_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    places = {tmp_path / "pipe": "it is a pipe", tmp_path / "folder": "it is a folder"}
    for place, words in (places | {Path("/dev/zero"): "it is a device"}).items():
        assert run("import", "model", str(place)) == 2
        assert f"{place}: cannot be read: {words}" in capsys.readouterr().err


def test_the_command_line_names_the_formats_that_there_are() -> None:
    assert tuple(READERS) == FORMATS


def test_machines_of_an_inventory_have_their_own_size(tmp_path: Path) -> None:
    rows = ("p5.48xlarge,55.04", "g6e.12xlarge,10.48", "g6e.xlarge,1.861", "L40S,16.0")
    lines = [f"n{number},east,{row.replace(',', ',2,')}" for number, row in enumerate(rows)]
    path = tmp_path / "inventory.csv"
    path.write_text(
        "\n".join(["name,region,hardware,hosts,rent_usd_per_host_hour", *lines]), encoding="utf-8"
    )
    document = read_yaml(import_inventory(path).text)
    found = [(each["hardware"], each["rented"]["usd_per_accelerator_hour"]) for each in document["pools"]]
    assert found == [("H100-SXM", 6.88), ("L40S-x4", 2.62), ("L40S-x1", 1.861), ("L40S", 2.0)]
    assert document["hardware"]["L40S-x1"] == {"like": "L40S", "accelerators_per_host": 1}


def test_an_inventory_may_be_packed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "inventory.csv", tmp_path / "inventory.csv.gz"
    plain.write_text(INVENTORY, encoding="utf-8")
    packed.write_bytes(gzip.compress(INVENTORY.encode()))
    # But for the name of the file.
    assert import_inventory(packed).text.split("\n", 1)[1] == import_inventory(plain).text.split("\n", 1)[1]
