"""Results of one run in the format of each benchmark tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment

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


def paced_by_poisson(document: dict[str, Any]) -> dict[str, Any]:
    """A file of GuideLLM whose run was paced evenly, as if it had been by Poisson arrivals."""
    strategy = document["benchmarks"][0]["config"]["strategy"]
    assert strategy["type_"] == "constant"
    strategy |= {"type_": "poisson", "random_seed": 42}
    return document


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


GIVEN_VERSION = MeasuredDeployment(framework_version="0.24.0")
