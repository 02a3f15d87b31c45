"""Results of load generators as measurements that `plan calibrate` and `plan predict` read.

What is read of each format, with its units as documented (November 2026):

* vllm: `vllm bench serve --save-result`, latencies in ms; the rate that was reached, or
  the cap on concurrency (`max_concurrency`) where it binds.
* aiperf: `profile_export_aiperf.json` (NVIDIA AIPerf 0.13), every metric with its unit.
* guidellm: `benchmarks.json`, a list of benchmarks with `*_ms` metrics of successful requests.
* inferencex: rows of InferenceX (formerly InferenceMAX), latencies in seconds, throughput by GPU; nominal
  lengths, of which requests take 0.8 to 1, so that the mean is nine tenths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Final

from fleetplan.fleet.errors import brief, names_hint
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.predict import DEFAULT_FRAMEWORK, FRAMEWORKS
from fleetplan.planner.importing.records import (
    Record,
    Rejected,
    RejectedRowError,
    at,
    count,
    known_hardware,
    mapping,
    milliseconds,
    number,
    optional_number,
    rows_of,
)

INFERENCEX_MEAN_LENGTH_RATIO: Final = 0.9
"""Mean over nominal length of InferenceX's random requests: uniform from 0.8 (its benchmark scripts,
`--random-range-ratio 0.8`; measured throughput implies 0.901 at the median of its rows)."""


BINDING_CAP_RATIO: Final = 0.95
"""Mean requests in flight over the cap on them, from which on the cap sets the load and no rate does."""


@dataclass(frozen=True, slots=True)
class MeasuredDeployment:
    """Deployment that was measured; None for what the files do not say.

    Attributes
    ----------
    model, hardware, framework, framework_version, weights, kv : str or None
        Names.
    tp, pp, dp, ep : int or None
        Degrees.
    """

    model: str | None = None
    hardware: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    weights: str | None = None
    kv: str | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One run, with lengths that are means. [tokens, ms, 1/s]"""

    deployment: MeasuredDeployment
    input_tokens: float
    output_tokens: float
    concurrency: float | None
    requests_per_s: float | None
    ttft_ms: float | None
    tpot_ms: float | None


@dataclass(frozen=True, slots=True)
class ImportedBenchmarks:
    """Imported rows for `plan calibrate`, and the results that were rejected."""

    rows: tuple[Mapping[str, object], ...]
    rejected: tuple[Rejected, ...]


def import_benchmarks(form: str, document: object, given: MeasuredDeployment) -> ImportedBenchmarks:
    """Return the measurements of a document.

    Parameters
    ----------
    form : str
        A name of `READERS`.
    document : object
        What the file holds.
    given : MeasuredDeployment
        What the file does not say. A row that says otherwise is not taken.
    """
    rows, rejected = [], []
    lists, read = READERS[form]
    for position, row in enumerate(rows_of(document, lists)):
        place = f"row {position + 1}"
        try:
            found = read(mapping(row, "an object"))
            rows.append(_case(replace(found, deployment=_joined(found.deployment, given)), place))
        except RejectedRowError as reason:
            rejected.append(Rejected(place, brief(str(reason))))
    return ImportedBenchmarks(tuple(rows), tuple(rejected))


def _joined(stated: MeasuredDeployment, given: MeasuredDeployment) -> MeasuredDeployment:
    """Fill what the row does not state from the options."""
    both: dict[str, object] = {}
    for each in fields(MeasuredDeployment):
        own, other = getattr(stated, each.name), getattr(given, each.name)
        if own is not None and other is not None and str(own).lower() != str(other).lower():
            raise RejectedRowError(f"{each.name} is {own!r}, not the {other!r} of the command line")
        both[each.name] = other if own is None else own
    return MeasuredDeployment(**both)  # type: ignore[arg-type]


def _case(found: BenchmarkRow, place: str) -> dict[str, object]:
    """The row of a table, after checks that need the catalogue."""
    deployment = found.deployment
    for name in ("model", "hardware", "weights", "tp", "framework_version"):
        if getattr(deployment, name) is None:
            raise RejectedRowError(f"{name} is not said: give it on the command line")
    framework = deployment.framework or DEFAULT_FRAMEWORK
    if framework not in FRAMEWORKS:
        raise RejectedRowError(f"framework {framework!r}: {names_hint(framework, FRAMEWORKS)}")
    if found.concurrency is None and found.requests_per_s is None:
        raise RejectedRowError("neither concurrency nor a request rate is said: the load is not known")
    if found.ttft_ms is None and found.tpot_ms is None:
        raise RejectedRowError("neither TTFT nor TPOT is said")
    closed = found.concurrency is not None
    return {
        "case_id": place,
        **asdict(replace(deployment, framework=framework, hardware=known_hardware(str(deployment.hardware)))),
        "mode": "closed_loop" if closed else "open_loop",
        "input_tokens": _tokens(found.input_tokens, "input tokens"),
        "output_tokens": _tokens(found.output_tokens, "output tokens"),
        "concurrency": found.concurrency if closed else None,
        "requests_per_s": None if closed else found.requests_per_s,
        "ttft_ms": found.ttft_ms,
        "tpot_ms": found.tpot_ms,
    }


def _tokens(mean: float, what: str) -> int:
    if round(mean) < 1:
        raise RejectedRowError(f"{what} are {mean:g} in the mean")
    return round(mean)


def _vllm(row: Record) -> BenchmarkRow:
    completed = count(row.get("completed"), "completed")
    if any(name.startswith("spec_decode") for name in row):
        raise RejectedRowError("speculative decoding: the acceptance of the deployment is not that of a plan")
    ttft = optional_number(row.get("mean_ttft_ms"), "mean_ttft_ms")
    tpot = optional_number(row.get("mean_tpot_ms"), "mean_tpot_ms")
    output = number(row.get("total_output_tokens"), "total_output_tokens") / completed
    concurrency, rate = _load(
        optional_number(row.get("max_concurrency"), "max_concurrency"),
        row.get("request_rate"),
        # Older versions wrote what was asked alone, not what was reached.
        optional_number(row.get("request_throughput"), "request_throughput"),
        (ttft or 0.0) + (tpot or 0.0) * max(0.0, output - 1),
    )
    return BenchmarkRow(
        MeasuredDeployment(model=_text(row.get("model_id"))),
        number(row.get("total_input_tokens"), "total_input_tokens") / completed,
        output,
        concurrency,
        rate,
        ttft,
        tpot,
    )


def _load(
    cap: float | None, asked: object, reached: float | None, request_ms: float
) -> tuple[float | None, float | None]:
    """Concurrency or rate of a run: the rate that was reached, unless a cap on requests in flight binds."""
    if asked is None or str(asked) == "inf":
        if cap is None and asked is not None:
            raise RejectedRowError("all requests at once (request_rate inf, no cap): no steady load")
        return cap, None
    rate = number(asked, "request_rate") if reached is None else reached
    binds = cap is not None and rate * request_ms / MS_PER_S >= BINDING_CAP_RATIO * cap
    return (cap, None) if binds else (None, rate)


def _aiperf(row: Record) -> BenchmarkRow:
    def metric(name: str) -> Record:
        return mapping(row.get(name), name)

    def time_ms(name: str) -> float:
        return milliseconds(metric(name).get("avg"), metric(name).get("unit"), name)

    model, cap, asked = _aiperf_input(row)
    ttft, tpot = time_ms("time_to_first_token"), time_ms("inter_token_latency")
    output = number(metric("output_sequence_length").get("avg"), "output_sequence_length")
    reached = optional_number(at(row, "request_throughput", "avg"), "request_throughput")
    concurrency, rate = _load(cap, asked, reached, ttft + tpot * max(0.0, output - 1))
    return BenchmarkRow(
        MeasuredDeployment(model=model),
        number(metric("input_sequence_length").get("avg"), "input_sequence_length"),
        output,
        concurrency,
        rate,
        ttft,
        tpot,
    )


def _aiperf_input(row: Record) -> tuple[str | None, float | None, object]:
    """Model, cap on concurrency and asked rate; AIPerf 0.13 lists phases, older versions a load generator."""
    phases = at(row, "input_config", "phases")
    if isinstance(phases, list):
        entries = [each for each in phases if isinstance(each, Mapping)]
        measured = [each for each in entries if each.get("kind") == "profiling"]
        if len(measured) != 1:
            raise RejectedRowError(f"{len(measured)} phases are measured, and latencies are those of one")
        load: Record = measured[0]
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

    streams = 1.0 if kind == "synchronous" else optional_number(strategy.get("streams"), "streams")
    return BenchmarkRow(
        MeasuredDeployment(),
        mean("prompt_token_count"),
        mean("output_token_count"),
        streams,
        optional_number(strategy.get("rate"), "rate"),
        mean("time_to_first_token_ms"),
        mean("inter_token_latency_ms"),
    )


_INFERENCEX_FRAMEWORKS: Final = {"trt": "trtllm"}
"""Frameworks that InferenceX names otherwise."""


def _inferencex(row: Record) -> BenchmarkRow:
    if row.get("disagg") or row.get("is_multinode"):
        raise RejectedRowError("disaggregated or multi-node: its two phases are no one layout")
    if str(row.get("spec_method") or row.get("spec_decoding") or "none") not in {"none", "False"}:
        raise RejectedRowError("speculative decoding: the acceptance is not said")
    figures = mapping(row.get("metrics", row), "metrics")
    tp = count(row.get("tp", row.get("decode_tp")), "tp")
    ep = count(row.get("ep", row.get("decode_ep", 1)) or 1, "ep")
    attention = str(row.get("dp_attention", row.get("decode_dp_attention", False))).lower() == "true"
    deployment = MeasuredDeployment(
        model=_text(row.get("model")),
        hardware=_text(row.get("hw", row.get("hardware"))),
        framework=_INFERENCEX_FRAMEWORKS.get(str(row.get("framework")), _text(row.get("framework"))),
        weights=_text(row.get("precision")),
        tp=1 if attention else tp,
        dp=tp if attention else 1,
        ep=ep,
        pp=1,
    )

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


def _text(value: object) -> str | None:
    return None if value is None else str(value)


READERS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Record], BenchmarkRow]]]] = {
    "vllm": ((), _vllm),
    "aiperf": ((), _aiperf),
    "guidellm": (("benchmarks",), _guidellm),
    "inferencex": (("rows", "results"), _inferencex),
}
"""Formats of `plan import benchmark`: where their rows stand, and what reads one."""
