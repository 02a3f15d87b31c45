"""`plan import benchmark`: units and names of each format, and a reason for every rejected row."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.planner.importing.benchmark_results import AIPERF, GIVEN, GUIDELLM, VLLM, WRITTEN, paced_by_poisson

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.calibrate import calibrate
from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import ImportedBenchmarks, import_benchmarks
from fleetplan.planner.importing.records import read_json, read_summary


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
        ("Mode", "AccuracyOnly", "only PerformanceOnly"),
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


def test_a_model_of_aiperf_that_is_no_object_is_a_reason() -> None:
    document = read_json(WRITTEN / "aiperf-0.13.0-closed.json")
    assert isinstance(document, dict)
    config = {**document["input_config"], "models": {"items": [None]}}
    (rejected,) = import_benchmarks("aiperf", {**document, "input_config": config}, GIVEN).rejected
    assert "a model is missing" in rejected.reason


def test_a_name_of_the_server_stands_for_the_model() -> None:
    served = {**VLLM, "model_id": "chat"}
    (rejected,) = import_benchmarks("vllm", served, GIVEN).rejected
    assert "--served-as chat" in rejected.reason
    (row,) = import_benchmarks("vllm", served, GIVEN, served_as="chat").rows
    assert row["model"] == "llama3.1-8b"
    (rejected,) = import_benchmarks("vllm", {**VLLM, "model_id": "other"}, GIVEN, served_as="chat").rejected
    assert "'other'" in rejected.reason


def test_the_first_version_of_aiperf_has_its_metrics_under_records() -> None:
    metrics = {name: value for name, value in AIPERF.items() if name != "input_config"}
    document = {"records": metrics, "input_config": AIPERF["input_config"]}
    assert import_benchmarks("aiperf", document, GIVEN) == import_benchmarks("aiperf", AIPERF, GIVEN)


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


def test_what_is_imported_calibrates() -> None:
    rows = import_benchmarks("vllm", VLLM, GIVEN).rows
    text = pd.DataFrame([dict(row) for row in rows]).to_csv(index=False)
    frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    fit = calibrate(frame, Path(), "bench.csv")
    assert fit.n_used == 1
    assert fit.refused == ()


def test_a_summary_of_mlperf_may_be_packed_and_a_damaged_file_is_told_in_words(tmp_path: Path) -> None:
    packed = tmp_path / "mlperf_log_summary.txt.gz"
    packed.write_bytes(gzip.compress(MLPERF.read_bytes()))
    assert read_summary(packed) == read_summary(MLPERF)
    packed.write_bytes(packed.read_bytes()[:-20])
    for read in (read_summary, read_json):
        with pytest.raises(InputError) as found:
            read(packed)
        (issue,) = found.value.issues
        assert issue.message.startswith("cannot be read: it is cut short or damaged (")
        assert str(packed) not in issue.message
