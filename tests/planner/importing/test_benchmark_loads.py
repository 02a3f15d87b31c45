"""`plan import benchmark`: the load of a run, and runs rejected for their load."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.importing.benchmark_results import AIPERF, GIVEN, GUIDELLM, VLLM, WRITTEN, paced_by_poisson

from fleetplan.planner.importing.benchmark_formats import READERS
from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import import_benchmarks
from fleetplan.planner.importing.records import read_json


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
    assert "belong to the warm-up" in rejected.reason


@pytest.mark.parametrize(
    "config",
    [
        {"loadgen": {"concurrency": 16}, "input": {"fixed_schedule": True}},
        {"phases": [{"kind": "profiling", "type": "fixed_schedule", "concurrency": 16}]},
    ],
)
def test_a_trace_that_aiperf_plays_back_is_no_closed_loop(config: dict[str, object]) -> None:
    (rejected,) = import_benchmarks("aiperf", {**AIPERF, "input_config": config}, GIVEN).rejected
    assert "follow a trace" in rejected.reason


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
        ("aiperf-0.13.0-warm", "belong to the warm-up"),
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
