"""Formats of results of load generators, and the reader of each.

What is read, with its units as documented (November 2026):

* vllm: `vllm bench serve --save-result`, latencies in ms; the rate that was reached, or
  the cap on concurrency (`max_concurrency`) where it binds.
* sglang: JSON lines of `python -m sglang.benchmark.serving --output-file` (formerly bench_serving), as
  vllm, with what the server says of itself.
* aiperf: `profile_export_aiperf.json` (NVIDIA AIPerf 0.13), every metric with its unit.
* guidellm: JSON of `guidellm run`, a list of benchmarks with `*_ms` metrics of successful requests. TPOT is
  its inter-token latency: its own time per output token holds the first one.
* inference-perf: `stage_N_lifecycle_metrics.json` (kubernetes-sigs/inference-perf 0.7), latencies in seconds.
* mlperf: `mlperf_log_summary.txt` of LoadGen 6.0, latencies in ns, runs with latencies of tokens; prompts are
  those of the task's data set, which the file does not state.
* inferencex: rows of InferenceX (formerly InferenceMAX), latencies in seconds, throughput by GPU; nominal
  lengths, of which requests take 0.8 to 1, so that the mean is nine tenths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fleetplan.fleet.units import MS_PER_NS, MS_PER_S
from fleetplan.planner.importing.benchmark_loads import check_failures, reached_load
from fleetplan.planner.importing.benchmark_rows import BenchmarkRow, MeasuredDeployment
from fleetplan.planner.importing.records import (
    Record,
    RejectedRowError,
    at,
    count,
    mapping,
    milliseconds,
    number,
    optional_number,
)

INFERENCEX_MEAN_LENGTH_RATIO: Final = 0.9
"""Mean over nominal length of InferenceX's random requests: uniform from 0.8 (its benchmark scripts,
`--random-range-ratio 0.8`; measured throughput implies 0.901 at the median of its rows)."""


def _vllm(row: Record) -> BenchmarkRow:
    if any(name.startswith("spec_decode") for name in row):
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    if row.get("ramp_up_strategy") is not None:
        raise RejectedRowError(f"ramp_up_strategy {row['ramp_up_strategy']}: the rate rises over the run")
    completed, failed = count(row.get("completed"), "completed"), optional_number(row.get("failed"), "failed")
    if failed is None and row.get("num_prompts") is not None:
        failed = max(0.0, number(row["num_prompts"], "num_prompts") - completed)
    check_failures(failed, completed)
    return _totals(row, MeasuredDeployment(model=_text(row.get("model_id"))))


def _sglang(row: Record) -> BenchmarkRow:
    if row.get("accept_length") is not None:
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    if str(row.get("request_rate")) == "trace":
        raise RejectedRowError("requests came as a trace has them: no steady load")
    server = row.get("server_info")
    said: Record = server if isinstance(server, Mapping) else {}
    if isinstance(said.get("decode"), list):
        raise RejectedRowError("disaggregated: its two phases are no one layout")
    errors = row.get("errors")
    if isinstance(errors, list):
        # A list of every request, with an empty text where it was answered; only --output-details writes it.
        check_failures(sum(1 for each in errors if each), number(row.get("completed"), "completed"))
    return _totals(row, _sglang_deployment(said))


def _sglang_deployment(server: Record) -> MeasuredDeployment:
    """What a server says of itself; SGLang's tp_size counts the ranks of attention data parallelism."""

    def degree(name: str) -> int | None:
        return None if server.get(name) is None else count(server.get(name), name)

    tp, dp = degree("tp_size"), degree("dp_size")
    if dp is not None and dp > 1:
        if not server.get("enable_dp_attention"):
            raise RejectedRowError(f"{dp} replicas behind a router (dp_size): the load of one is not said")
        if tp is None or tp % dp:
            raise RejectedRowError(f"dp_size {dp} does not divide tp_size {tp}")
        tp //= dp
    return MeasuredDeployment(
        model=_text(server.get("model_path")),
        framework="sglang",
        framework_version=_text(server.get("version")),
        tp=tp,
        pp=degree("pp_size"),
        dp=dp,
        ep=degree("ep_size"),
    )


def _totals(row: Record, deployment: MeasuredDeployment) -> BenchmarkRow:
    """A run whose tokens are counted over all requests."""
    completed = count(row.get("completed"), "completed")
    ttft = optional_number(row.get("mean_ttft_ms"), "mean_ttft_ms")
    tpot = optional_number(row.get("mean_tpot_ms"), "mean_tpot_ms")
    output = number(row.get("total_output_tokens"), "total_output_tokens") / completed
    concurrency, rate = reached_load(
        optional_number(row.get("max_concurrency"), "max_concurrency"),
        row.get("request_rate"),
        # Older versions wrote what was asked alone, not what was reached.
        optional_number(row.get("request_throughput"), "request_throughput"),
        _request_ms(ttft, tpot, output),
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


def _request_ms(ttft_ms: float | None, tpot_ms: float | None, output_tokens: float) -> float:
    """Mean time of a request; 0 where the file does not say both of its parts. [ms]"""
    if ttft_ms is None or tpot_ms is None:
        return 0.0
    return ttft_ms + tpot_ms * max(0.0, output_tokens - 1)


def _aiperf(row: Record) -> BenchmarkRow:
    def metric(name: str) -> Record:
        return mapping(row.get(name), name)

    def time_ms(name: str) -> float:
        return milliseconds(metric(name).get("avg"), metric(name).get("unit"), name)

    if any("spec_decode" in name for name in row):
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    answered = optional_number(at(row, "request_count", "avg"), "request_count") or 0.0
    failed = optional_number(at(row, "error_request_count", "avg"), "error_request_count") or 0.0
    model, cap, asked = _aiperf_input(row, answered + failed)
    check_failures(failed, answered)
    ttft, tpot = time_ms("time_to_first_token"), time_ms("inter_token_latency")
    output = number(metric("output_sequence_length").get("avg"), "output_sequence_length")
    reached = optional_number(at(row, "request_throughput", "avg"), "request_throughput")
    concurrency, rate = reached_load(cap, asked, reached, _request_ms(ttft, tpot, output))
    return BenchmarkRow(
        MeasuredDeployment(model=model),
        number(metric("input_sequence_length").get("avg"), "input_sequence_length"),
        output,
        concurrency,
        rate,
        ttft,
        tpot,
    )


def _aiperf_input(row: Record, requests: float) -> tuple[str | None, float | None, object]:
    """Model, cap on concurrency and asked rate; AIPerf 0.13 lists phases, older versions a load generator."""
    phases = at(row, "input_config", "phases")
    if isinstance(phases, list):
        entries = [each for each in phases if isinstance(each, Mapping)]
        measured = [each for each in entries if each.get("kind") == "profiling"]
        if len(measured) != 1:
            raise RejectedRowError(f"{len(measured)} phases are measured, and latencies are those of one")
        load: Record = measured[0]
        # Each phase has a file of its own, and none says which phase it is of.
        if load.get("requests") != requests and any(
            each.get("kind") == "warmup" and each.get("requests") == requests for each in entries
        ):
            raise RejectedRowError(f"its {requests:g} requests are those of the warm-up")
        models = at(row, "input_config", "models", "items")
        names = [each.get("name") for each in models] if isinstance(models, list) else []
        asked = load.get("rate")
    else:
        load = mapping(at(row, "input_config", "loadgen") or {}, "loadgen")
        models = at(row, "input_config", "endpoint", "model_names")
        names, asked = models if isinstance(models, list) else [], load.get("request_rate")
    name = _text(names[0]) if names else None
    return name, optional_number(load.get("concurrency"), "concurrency"), asked


def _guidellm(row: Record) -> BenchmarkRow:
    strategy = mapping(at(row, "config", "strategy") or at(row, "args", "strategy"), "strategy")
    kind = str(strategy.get("type_"))
    if kind == "throughput":
        raise RejectedRowError("strategy throughput: all requests at once, no steady load")

    def mean(name: str) -> float:
        return number(at(row, "metrics", name, "successful", "mean"), name)

    totals = mapping(at(row, "metrics", "request_totals") or {}, "request_totals")
    check_failures(
        optional_number(totals.get("errored"), "errored"),
        optional_number(totals.get("successful"), "successful") or 0.0,
    )
    ttft, tpot, output = (
        mean(name) for name in ("time_to_first_token_ms", "inter_token_latency_ms", "output_token_count")
    )
    paced = strategy.get("rate") is not None
    # A paced run has a cap too, of what the client can hold unless one was given.
    cap = (
        1.0
        if kind == "synchronous"
        else optional_number(strategy.get("max_concurrency" if paced else "streams"), "streams")
    )
    reached = optional_number(at(row, "metrics", "requests_per_second", "successful", "mean"), "requests")
    concurrency, rate = reached_load(cap, strategy.get("rate"), reached, _request_ms(ttft, tpot, output))
    return BenchmarkRow(
        MeasuredDeployment(model=_text(at(row, "config", "backend", "model"))),
        mean("prompt_token_count"),
        output,
        concurrency,
        rate,
        ttft,
        tpot,
    )


def _inference_perf(row: Record) -> BenchmarkRow:
    load, done = mapping(row.get("load_summary"), "load_summary"), mapping(row.get("successes"), "successes")
    if load.get("requested_rate") is None and load.get("concurrency") is None:
        raise RejectedRowError("no requested_rate: a summary mixes stages; give the stages' own files")

    def mean(*names: str) -> float:
        """The first that is there: older versions call counts of tokens lengths."""
        values = [at(done, name, "mean") for name in names]
        return number(next((each for each in values if each is not None), None), names[0])

    def seconds_as_ms(name: str) -> float | None:
        value = optional_number(at(done, "latency", name, "mean"), name)
        return None if value is None else value * MS_PER_S

    failed = optional_number(at(row, "failures", "count"), "failures")
    check_failures(failed, optional_number(done.get("count"), "count") or 0.0)
    cap = optional_number(load.get("concurrency"), "concurrency")
    # With a number of requests at a time, the rate that is asked for is one of the tool's own.
    reached = at(done, "throughput", "requests_per_sec") if cap is not None else load.get("achieved_rate")
    concurrency, rate = reached_load(
        cap,
        None if cap is not None else number(load.get("requested_rate"), "requested_rate"),
        optional_number(reached, "achieved_rate"),
        seconds_as_ms("request_latency") or 0.0,
    )
    return BenchmarkRow(
        MeasuredDeployment(),
        mean("prompt_tokens", "prompt_len"),
        mean("output_tokens", "output_len"),
        concurrency,
        rate,
        seconds_as_ms("time_to_first_token"),
        seconds_as_ms("time_per_output_token"),
    )


_INFERENCEX_FRAMEWORKS: Final = {"trt": "trtllm"}
"""Frameworks that InferenceX names otherwise."""


def _inferencex(row: Record) -> BenchmarkRow:
    if row.get("disagg") or row.get("is_multinode"):
        raise RejectedRowError("disaggregated or multi-node: its two phases are no one layout")
    if str(row.get("spec_method") or row.get("spec_decoding") or "none") not in {"none", "False"}:
        raise RejectedRowError("speculative decoding: the acceptance is not said")
    if str(row.get("scenario_type") or "").startswith("agentic"):
        raise RejectedRowError("a replayed trace of agents: its requests have no common length")
    if str(row.get("kv_offloading") or row.get("offload_mode") or "none") not in {"none", "off"}:
        raise RejectedRowError("KV caches are offloaded: their hits are not said")
    figures = mapping(row.get("metrics", row), "metrics")

    def degree(name: str, default: object = 1) -> int:
        places = [(part, key) for part in (row, figures) for key in (name, f"{name}_size", f"decode_{name}")]
        return count(next((part[key] for part, key in places if part.get(key)), default), name)

    tp, ep, dcp, pcp = degree("tp", None), degree("ep"), degree("dcp"), degree("pcp")
    if dcp > 1 and pcp > 1:
        raise RejectedRowError(f"contexts are split in prefill ({pcp}) and in decode ({dcp}) otherwise")
    if tp % dcp:
        raise RejectedRowError(f"decode context parallelism {dcp} does not divide tp {tp}")
    attention = str(row.get("dp_attention", row.get("decode_dp_attention", False))).lower() == "true"
    deployment = MeasuredDeployment(
        model=_text(row.get("model")),
        hardware=_text(row.get("hw", row.get("hardware"))),
        framework=_INFERENCEX_FRAMEWORKS.get(str(row.get("framework")), _text(row.get("framework"))),
        weights=_text(row.get("precision")),
        # Decode context parallelism splits the ranks of tensor parallelism, that of prefill adds ranks.
        tp=1 if attention else tp // dcp,
        dp=tp if attention else 1,
        ep=ep,
        pp=degree("pp"),
        cp=max(dcp, pcp),
    )
    if attention and deployment.cp != 1:
        raise RejectedRowError("attention data parallelism with split contexts: no layout of the planner")

    def seconds_as_ms(name: str) -> float | None:
        value = optional_number(figures.get(name), name)
        return None if value is None else value * MS_PER_S

    return BenchmarkRow(
        deployment,
        INFERENCEX_MEAN_LENGTH_RATIO * count(row.get("isl"), "isl"),
        INFERENCEX_MEAN_LENGTH_RATIO * count(row.get("osl"), "osl"),
        number(row.get("conc"), "conc"),
        None,
        seconds_as_ms("mean_ttft"),
        seconds_as_ms("mean_tpot"),
    )


def _mlperf(row: Record) -> BenchmarkRow:
    scenario = row.get("Scenario")
    if row.get("Mode") != "PerformanceOnly":
        raise RejectedRowError(f"mode {row.get('Mode')}: latencies are those of PerformanceOnly")
    if scenario not in {"Server", "Interactive", "SingleStream"}:
        raise RejectedRowError(f"scenario {scenario}: no steady load; Server and SingleStream are taken")
    if row.get("Result is") != "VALID":
        raise RejectedRowError(f"LoadGen calls the result {row.get('Result is')}")

    def time_ms(name: str) -> float:
        return number(row.get(f"{name} (ns)"), name) * MS_PER_NS

    ttft, tpot = time_ms("Mean First Token latency"), time_ms("Mean Time per Output Token")
    rate = number(row.get("Completed samples per second"), "Completed samples per second")
    return BenchmarkRow(
        MeasuredDeployment(),
        None,
        number(row.get("Completed tokens per second"), "Completed tokens per second") / rate if rate else 0.0,
        1.0 if scenario == "SingleStream" else None,
        None if scenario == "SingleStream" else rate,
        ttft,
        tpot,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


READERS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Record], BenchmarkRow]]]] = {
    "vllm": ((), _vllm),
    "sglang": ((), _sglang),
    "aiperf": ((), _aiperf),
    "guidellm": (("benchmarks",), _guidellm),
    "inference-perf": ((), _inference_perf),
    "mlperf": ((), _mlperf),
    "inferencex": (("rows", "results"), _inferencex),
}
"""Formats of `plan import benchmark`: where their rows stand, and what reads one."""
