"""Formats of load generator results, and their readers.

Supported formats, with their documented units (November 2026):

* vllm: `vllm bench serve --save-result`, latencies in ms; the load is the rate reached, or the
  concurrency cap (`max_concurrency`) if it is binding.
* sglang: JSON lines of `python -m sglang.benchmark.serving --output-file` (formerly bench_serving), as
  vllm, plus the deployment that the server reports.
* aiperf: `profile_export_aiperf.json` (NVIDIA AIPerf 0.13) and `profile_export_genai_perf.json` of its
  predecessor GenAI-Perf (0.0.16), every metric with its unit.
* guidellm: JSON of `guidellm run`, a list of benchmarks with `*_ms` metrics of successful requests. TPOT is
  its inter-token latency, because its time per output token includes the first token.
* inference-perf: `stage_N_lifecycle_metrics.json` (kubernetes-sigs/inference-perf 0.7), latencies in seconds.
* mlperf: `mlperf_log_summary.txt` of LoadGen 6.0, latencies in ns, runs with token latencies; prompts
  are those of the task's data set, whose lengths the file does not state.
* inferencex: rows of InferenceX (formerly InferenceMAX) from its runs or its site, latencies in seconds,
  nominal lengths; requests have 0.8 to 1 times these lengths, 0.9 on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fleetplan.fleet.units import MS_PER_NS, MS_PER_S
from fleetplan.planner.importing.bench_serve import sglang_run, vllm_run
from fleetplan.planner.importing.benchmark_loads import (
    check_failures,
    check_poisson,
    check_uneven,
    reached_load,
    request_ms,
)
from fleetplan.planner.importing.benchmark_rows import BenchmarkRow, MeasuredDeployment
from fleetplan.planner.importing.inferencex import inferencex_run
from fleetplan.planner.importing.records import (
    Record,
    RejectedRowError,
    at,
    mapping,
    milliseconds,
    number,
    optional_number,
    text_or_none,
)

PIECES_TOLERANCE: Final = 0.25
"""Tolerance on the token time that inference-perf states, relative to the one derived from answer lengths:
means of quotients and quotients of means differ if lengths vary.
"""

FEWEST_TOKENS: Final = 4.0
"""Minimum mean answer from which the token time can be derived from the total time. [tokens]"""


def _aiperf(row: Record) -> BenchmarkRow:
    def metric(name: str) -> Record:
        return mapping(row.get(name), name)

    def time_ms(name: str) -> float:
        return milliseconds(metric(name).get("avg"), metric(name).get("unit"), name)

    # AIPerf 0.1 has its metrics one level deeper.
    row = {**row, **mapping(row.get("records") or {}, "records")}
    if any("spec_decode" in name for name in row):
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    answered = optional_number(at(row, "request_count", "avg"), "request_count") or 0.0
    failed = optional_number(at(row, "error_request_count", "avg"), "error_request_count") or 0.0
    model, cap, asked, arrivals = _aiperf_input(row, answered + failed)
    check_failures(failed, answered)
    ttft, tpot = time_ms("time_to_first_token"), time_ms("inter_token_latency")
    output = number(metric("output_sequence_length").get("avg"), "output_sequence_length")
    reached = optional_number(at(row, "request_throughput", "avg"), "request_throughput")
    concurrency, rate = reached_load(cap, asked, reached, request_ms(ttft, tpot, output))
    check_uneven(arrivals, "arrivals", rate)
    return BenchmarkRow(
        MeasuredDeployment(model=model),
        number(metric("input_sequence_length").get("avg"), "input_sequence_length"),
        output,
        concurrency,
        rate,
        ttft,
        tpot,
    )


def _aiperf_input(row: Record, requests: float) -> tuple[str | None, float | None, object, object]:
    """Return the model, the concurrency cap, the requested rate and the arrival pattern.

    AIPerf lists phases from 0.10 on; older versions have one load generator.
    """
    phases = at(row, "input_config", "phases")
    if isinstance(phases, list):
        entries = [each for each in phases if isinstance(each, Mapping)]
        measured = [each for each in entries if _kind(each) == "profiling"]
        if len(measured) != 1:
            raise RejectedRowError(f"{len(measured)} phases are measured, but latencies belong to one")
        load: Record = measured[0]
        # Each phase has a file of its own, which does not name its phase.
        if load.get("requests") != requests and any(
            _kind(each) == "warmup" and each.get("requests") == requests for each in entries
        ):
            raise RejectedRowError(f"its {requests:g} requests belong to the warm-up")
        models = at(row, "input_config", "models", "items")
        names = [at(mapping(each, "a model"), "name") for each in models] if isinstance(models, list) else []
    else:
        load, names = _older_input(row)
    asked, arrivals = load.get("rate"), load.get("type")
    _check_steady(load)
    if arrivals == _AS_RECORDED:
        raise RejectedRowError("requests follow a trace: no steady load")
    name = text_or_none(names[0]) if names else None
    return name, optional_number(load.get("concurrency"), "concurrency"), asked, arrivals


def _kind(phase: Record) -> object:
    """Return the kind of a phase; AIPerf before 0.13 does not state it but excludes warm-ups from results."""
    return phase.get("kind") or ("warmup" if phase.get("exclude_from_results") else "profiling")


def _older_input(row: Record) -> tuple[Record, list[object]]:
    """Return load and models of AIPerf before 0.10 and of GenAI-Perf, which has the same metrics."""
    found = mapping(at(row, "input_config") or {}, "input_config")
    # GenAI-Perf 0.0.16 names the varied setting; versions before 0.0.11 list their options side by side.
    load = at(found, "loadgen")
    if not load:
        # Perf Analyzer, which it runs, sends requests at equal intervals by default (its docs/cli.md,
        # --request-distribution), and the file does not record the setting.
        varied = mapping(at(found, "perf_analyzer", "stimulus") or found, "stimulus")
        load = {"arrival_pattern": "constant", **varied}
    models = at(found, "endpoint", "model_names") or found.get("model_names") or found.get("model")
    # It writes unset values as an empty text.
    said = {name: value for name, value in mapping(load, "loadgen").items() if value != ""}
    phase = {ours: said[theirs] for theirs, ours in _OLDER_NAMES.items() if theirs in said}
    if said.get("user_centric_rate"):
        phase |= {"type": "user_centric", "rate": said["user_centric_rate"]}
    if at(found, "input", "fixed_schedule"):
        phase["type"] = _AS_RECORDED
    return phase, models if isinstance(models, list) else []


_AS_RECORDED: Final = "fixed_schedule"
"""AIPerf's name of arrivals from a trace."""

_OLDER_NAMES: Final = {
    "concurrency": "concurrency",
    "request_rate": "rate",
    "request_rate_mode": "type",
    "arrival_pattern": "type",
    "arrival_smoothness": "smoothness",
    "request_rate_ramp_duration": "rate_ramp",
    "concurrency_ramp_duration": "concurrency_ramp",
    "prefill_concurrency": "prefill_concurrency",
}
"""Options of the load generator of AIPerf before 0.10, and the equivalent keys of a phase."""


def _check_steady(phase: Record) -> None:
    for name in ("rate_ramp", "concurrency_ramp", "rate_series", "adaptive_scale"):
        if phase.get(name):
            raise RejectedRowError(f"{name}: the load changes over the run")
    if phase.get("prefill_concurrency"):
        raise RejectedRowError(
            f"prefill_concurrency {phase['prefill_concurrency']}: requests wait at the client, "
            "so their times do not reflect the load"
        )
    if phase.get("type") == "gamma":
        check_poisson(phase.get("smoothness"), "smoothness")


def _guidellm(row: Record) -> BenchmarkRow:
    strategy = mapping(at(row, "config", "strategy") or at(row, "args", "strategy"), "strategy")
    kind = str(strategy.get("type_"))
    if kind == "throughput":
        raise RejectedRowError("strategy throughput: all requests at once, no steady load")
    if strategy.get("rampup_duration"):
        raise RejectedRowError(
            f"rampup_duration {strategy['rampup_duration']}: the load changes over the run"
        )

    def mean(name: str) -> float:
        return number(at(row, "metrics", name, "successful", "mean"), name)

    # Before 0.4, they are next to the metrics.
    totals = mapping(
        at(row, "metrics", "request_totals") or row.get("request_totals") or {}, "request_totals"
    )
    check_failures(
        optional_number(totals.get("errored"), "errored"),
        optional_number(totals.get("successful"), "successful") or 0.0,
    )
    ttft, tpot, output = (
        mean(name) for name in ("time_to_first_token_ms", "inter_token_latency_ms", "output_token_count")
    )
    paced = strategy.get("rate") is not None
    # A paced run has a cap too: the client's limit, unless one was given.
    cap = (
        1.0
        if kind == "synchronous"
        else optional_number(strategy.get("max_concurrency" if paced else "streams"), "streams")
    )
    reached = optional_number(at(row, "metrics", "requests_per_second", "successful", "mean"), "requests")
    concurrency, rate = reached_load(cap, strategy.get("rate"), reached, request_ms(ttft, tpot, output))
    check_uneven(kind, "strategy", rate)
    return BenchmarkRow(
        MeasuredDeployment(
            model=text_or_none(at(row, "config", "backend", "model") or at(row, "worker", "backend_model"))
        ),
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
        """Return the first existing key; older versions call token counts lengths."""
        values = [at(done, name, "mean") for name in names]
        return number(next((each for each in values if each is not None), None), names[0])

    def seconds_as_ms(name: str) -> float | None:
        value = optional_number(at(done, "latency", name, "mean"), name)
        return None if value is None else value * MS_PER_S

    failed = optional_number(at(row, "failures", "count"), "failures")
    check_failures(failed, optional_number(done.get("count"), "count") or 0.0)
    cap = optional_number(load.get("concurrency"), "concurrency")
    # With fixed concurrency, the requested rate is one of the tool's own.
    reached = at(done, "throughput", "requests_per_sec") if cap is not None else load.get("achieved_rate")
    concurrency, rate = reached_load(
        cap,
        None if cap is not None else number(load.get("requested_rate"), "requested_rate"),
        optional_number(reached, "achieved_rate"),
        seconds_as_ms("request_latency") or 0.0,
    )
    output, first_ms = mean("output_tokens", "output_len"), seconds_as_ms("time_to_first_token")
    whole_ms, token_ms = seconds_as_ms("request_latency"), seconds_as_ms("time_per_output_token")
    return BenchmarkRow(
        MeasuredDeployment(),
        mean("prompt_tokens", "prompt_len"),
        output,
        concurrency,
        rate,
        first_ms,
        token_ms
        if first_ms is None or whole_ms is None
        else _by_token(token_ms, whole_ms - first_ms, output),
    )


def _by_token(stated_ms: float | None, after_first_ms: float, output_tokens: float) -> float | None:
    """Return the token time after the first [ms]: as stated, unless it contradicts the total answer time.

    Versions of 2025 counted every piece of a stream twice (the files of the tool's own demonstrations at
    KubeCon 2025), which halves the stated value; a piece of speculative decoding holds several tokens, which
    multiplies it.
    """
    if stated_ms is None or output_tokens < FEWEST_TOKENS:
        return stated_ms
    by_length = after_first_ms / (output_tokens - 1.0)
    return stated_ms if abs(stated_ms - by_length) <= PIECES_TOLERANCE * by_length else by_length


def _mlperf(row: Record) -> BenchmarkRow:
    scenario = row.get("Scenario")
    if row.get("Mode") != "PerformanceOnly":
        raise RejectedRowError(f"mode {row.get('Mode')}: only PerformanceOnly has latencies")
    if scenario not in {"Server", "Interactive", "SingleStream"}:
        raise RejectedRowError(
            f"scenario {scenario}: no steady load; only Server and SingleStream are accepted"
        )
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


READERS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Record], BenchmarkRow]]]] = {
    "vllm": ((), vllm_run),
    "sglang": ((), sglang_run),
    "aiperf": ((), _aiperf),
    "guidellm": (("benchmarks",), _guidellm),
    "inference-perf": ((), _inference_perf),
    "mlperf": ((), _mlperf),
    "inferencex": (("rows", "results", "benchmarks"), inferencex_run),
}
"""Formats of `plan import benchmark`: keys of their rows, and the reader of a row."""
