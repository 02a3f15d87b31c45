"""Read results of the serving benchmarks of vLLM and SGLang, whose files have the same totals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fleetplan.planner.importing.benchmark_loads import (
    check_failures,
    check_poisson,
    reached_load,
    request_ms,
)
from fleetplan.planner.importing.benchmark_rows import BenchmarkRow, MeasuredDeployment
from fleetplan.planner.importing.records import (
    Record,
    RejectedRowError,
    count,
    number,
    optional_number,
    text_or_none,
)

_CACHE_TYPES: Final = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bf16": "bf16", "bfloat16": "bf16"}
"""Our names of SGLang's cache data types; it also has others, and "auto" follows the model."""


def vllm_run(row: Record) -> BenchmarkRow:
    """Return a run of `vllm bench serve`."""
    if any(name.startswith("spec_decode") for name in row):
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    if row.get("ramp_up_strategy") is not None:
        raise RejectedRowError(f"ramp_up_strategy {row['ramp_up_strategy']}: the rate rises over the run")
    if str(row.get("request_rate")) not in {"inf", "None"}:
        check_poisson(row.get("burstiness"), "burstiness")
    completed, failed = count(row.get("completed"), "completed"), optional_number(row.get("failed"), "failed")
    if failed is None and row.get("num_prompts") is not None:
        failed = max(0.0, number(row["num_prompts"], "num_prompts") - completed)
    check_failures(failed, completed)
    return _totals(row, MeasuredDeployment(model=text_or_none(row.get("model_id"))))


def sglang_run(row: Record) -> BenchmarkRow:
    """Return a run of SGLang's serving benchmark, with the deployment that its server reports."""
    if row.get("accept_length") is not None:
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    if str(row.get("request_rate")) == "trace":
        raise RejectedRowError("requests follow a trace: no steady load")
    server = row.get("server_info")
    said: Record = server if isinstance(server, Mapping) else {}
    if isinstance(said.get("decode"), list):
        raise RejectedRowError("disaggregated: its two phases do not have a single layout")
    if said.get("speculative_algorithm") is not None:
        raise RejectedRowError(
            f"speculative decoding ({said['speculative_algorithm']}): its acceptance is not stated"
        )
    errors = row.get("errors")
    if isinstance(errors, list):
        # List of error texts, empty for answered requests; only written with --output-details.
        check_failures(sum(1 for each in errors if each), number(row.get("completed"), "completed"))
    return _totals(row, _sglang_deployment(said))


def _sglang_deployment(server: Record) -> MeasuredDeployment:
    """Return the deployment that a server reports; SGLang's tp_size counts all ranks of a stage.

    From 0.5.23 on, `attn_dp_size` counts ranks of attention data parallelism and `dp_size` counts replicas.
    Before, `enable_dp_attention` decides which of the two `dp_size` is
    (sglang/srt/arg_groups/parallel_hook.py).
    """

    def degree(name: str) -> int | None:
        return None if server.get(name) is None else count(server.get(name), name)

    tp, dp, cp = degree("tp_size"), degree("dp_size"), degree("attn_cp_size")
    ranks = degree("attn_dp_size")
    if ranks is not None and ranks > 1:
        replicas, dp = dp or 1, ranks
    else:
        replicas = 1 if server.get("enable_dp_attention") else dp or 1
    if replicas > 1:
        raise RejectedRowError(
            f"{replicas} replicas behind a router (dp_size): the load of one is not stated"
        )
    shared = (dp or 1) * (cp or 1)
    if shared > 1:
        if tp is None or tp % shared:
            raise RejectedRowError(f"tp_size {tp} does not divide into {shared} groups of attention ranks")
        tp //= shared
    return MeasuredDeployment(
        model=text_or_none(server.get("model_path")),
        framework="sglang",
        framework_version=text_or_none(server.get("version")),
        tp=tp,
        pp=degree("pp_size"),
        dp=dp,
        ep=degree("ep_size"),
        cp=cp,
        kv=_CACHE_TYPES.get(str(server.get("kv_cache_dtype"))),
    )


def _totals(row: Record, deployment: MeasuredDeployment) -> BenchmarkRow:
    """Return a run with token counts over all requests."""
    completed = count(row.get("completed"), "completed")
    ttft = optional_number(row.get("mean_ttft_ms"), "mean_ttft_ms")
    tpot = optional_number(row.get("mean_tpot_ms"), "mean_tpot_ms")
    output = number(row.get("total_output_tokens"), "total_output_tokens") / completed
    concurrency, rate = reached_load(
        optional_number(row.get("max_concurrency"), "max_concurrency"),
        row.get("request_rate"),
        # Older versions record the requested load instead of the reached one.
        optional_number(row.get("request_throughput"), "request_throughput"),
        request_ms(ttft, tpot, output),
    )
    return BenchmarkRow(
        deployment,
        number(row.get("total_input_tokens"), "total_input_tokens") / completed,
        output,
        concurrency,
        rate,
        ttft,
        tpot,
    )
