"""The tables that cross module boundaries: every column with its type, unit and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

# What a column may hold, and the numpy kinds that hold it.
_KINDS: Final[Mapping[str, str]] = {"text": "OUTS", "count": "iu", "number": "f", "flag": "b"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        As it stands in the header.
    kind : str
        text, count (whole numbers), number (floats) or flag.
    unit : str
        Unit; empty for a name, a count or a ratio.
    meaning : str
        One line for the documentation.
    required : bool
        Whether the table must have it.
    may_be_missing : bool
        Whether single values may be missing.
    allowed : tuple[str, ...]
        The only values there are; empty where any will do.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    required: bool = True
    may_be_missing: bool = False
    allowed: tuple[str, ...] = ()


PHASES: Final = ("aggregated", "prefill", "decode")
MODES: Final = (
    "prefill",
    "decode",
    "static",
    "closed_loop",
    "burst",
    "open_loop",
    "offline",
    "disaggregated",
)
SOURCES: Final = ("measured", "interpolated", "extrapolated", "roofline")

_ENGINES: Final = (
    Column("phase", "text", "", "what the replica does", allowed=PHASES),
    Column("hardware", "text", "", "a part of the catalogue or of the block `hardware`"),
    Column("accelerators_per_replica", "count", "", "accelerators of one replica"),
    Column("config", "text", "", "label of the configuration"),
    Column("class", "text", "", "request class; `all` where the file has no such column", required=False),
    Column(
        "requests_per_s", "number", "1/s", "what one replica sustains within the SLO serving this class alone"
    ),
    Column("ttft_ms", "number", "ms", "mean time to first token", required=False, may_be_missing=True),
    Column("tpot_ms", "number", "ms", "mean time per output token", required=False, may_be_missing=True),
    Column(
        "power_kw",
        "number",
        "kW",
        "IT power of one replica at full load",
        required=False,
        may_be_missing=True,
    ),
    Column(
        "kv_gb_per_request",
        "number",
        "GB",
        "KV cache that a request brings from prefill to decode; needed where kv_links count it",
        required=False,
        may_be_missing=True,
    ),
)

_CANDIDATES: Final = (
    Column("service", "text", "", "the service it serves"),
    Column("phase", "text", "", "what the replica does", allowed=PHASES),
    Column("hardware", "text", "", "where it runs"),
    Column("config", "text", "", "label of the configuration"),
    Column("accelerators_per_replica", "count", "", "accelerators of one replica"),
    Column("class", "text", "", "request class"),
    Column("requests_per_s", "number", "1/s", "what one replica sustains serving this class alone"),
    Column("ttft_ms", "number", "ms", "mean time to first token", may_be_missing=True),
    Column("tpot_ms", "number", "ms", "mean time per output token", may_be_missing=True),
    Column("power_kw", "number", "kW", "IT power of one replica at full load", may_be_missing=True),
)

_TECHNIQUES: Final = tuple(
    Column(name, kind, unit, meaning, required=False, may_be_missing=True)
    for name, kind, unit, meaning in (
        ("chunk_tokens", "number", "", "most prompt tokens of an iteration"),
        ("samples_per_prompt", "number", "", "generations that share one prefill"),
        ("shared_prefix_tokens", "number", "", "part of prefix_tokens that all requests share"),
        ("draft_tokens", "number", "", "tokens that a draft proposes a step"),
        ("acceptance_ratio", "number", "", "chance that a proposed token is accepted"),
        ("draft_cost_ratio", "number", "", "time of a proposed token over the step"),
        ("session_hit_ratio", "number", "", "requests whose prefix is kept outside HBM"),
        ("session_gb_per_s", "number", "GB/s", "speed of loading it, an accelerator"),
        ("offload_weights_ratio", "number", "", "share of the weights outside HBM"),
        ("offload_kv_ratio", "number", "", "share of the running cache outside HBM"),
        ("offload_gb_per_s", "number", "GB/s", "link to what is outside HBM"),
        ("expert_activation", "text", "", "experts reached: uniform, balanced, log-linear"),
        ("log_linear_intercept", "number", "", "experts reached by one token"),
        ("log_linear_slope", "number", "", "experts more for e times the tokens"),
        ("busiest_expert_ratio", "number", "", "routed tokens of the busiest expert"),
        ("expert_placement", "text", "", "on ranks: mixed, random, sorted"),
        ("expert_balance", "text", "", "over expert ranks: auto (eplb between hosts), eplb, none, perfect"),
        ("redundant_experts", "number", "", "copies that eplb places; one for eight experts"),
        ("expert_overlap", "text", "", "what tokens' travel hides behind: none, two-batch, single-batch"),
        ("image_token_ratio", "number", "", "share of the new prompt tokens that are images"),
        ("sampling", "text", "", "how tokens are chosen: greedy, top-p"),
        ("power_cap_w", "number", "W", "power cap of a card"),
        ("max_sequences", "number", "", "most requests in the batch of a rank"),
        ("max_batched_tokens", "number", "", "most tokens of an iteration"),
        ("iterations_ahead", "number", "", "iterations made up before the running one has ended"),
        ("polled_iterations", "number", "", "iterations from one look at new requests to the next"),
        ("gathering_iterations", "number", "", "iterations for which a prompt waits for others"),
        ("front_end_ms", "number", "ms", "time of a request outside the engine"),
        ("front_end_token_us", "number", "us", "time of a prompt token outside the engine"),
        ("length_variation", "number", "", "squared coefficient of variation of lengths, offline"),
        ("software_date", "text", "", "year and month of the framework (YYYY-MM)"),
        ("activation_scales", "text", "", "of products in FP8: static, or dynamic (trtllm)"),
    )
)

_PREDICT_INPUT: Final = (
    Column("case_id", "text", "", "identifies the row"),
    Column("model", "text", "", "an id of the model catalogue"),
    Column("hardware", "text", "", "a part of the catalogue"),
    Column("backend", "text", "", "framework whose tables are read", required=False, may_be_missing=True),
    Column("weights", "text", "", "data type of the weights"),
    Column("kv", "text", "", "data type of the KV cache", required=False, may_be_missing=True),
    Column("mode", "text", "", "what is predicted", allowed=MODES),
    Column("tp", "count", "", "tensor parallelism"),
    Column("pp", "count", "", "pipeline parallelism"),
    Column("ep", "count", "", "expert parallelism"),
    Column("dp", "count", "", "attention data parallelism"),
    Column("input_tokens", "count", "", "new prompt tokens; the context of a decode step"),
    Column("output_tokens", "count", "", "generated tokens"),
    Column("prefix_tokens", "count", "", "cached prompt tokens", required=False),
    Column("batch", "count", "", "sequences in a step", required=False),
    Column("concurrency", "count", "", "requests in flight", required=False),
    Column("requests_per_s", "number", "1/s", "arrival rate", required=False, may_be_missing=True),
    Column("n_accelerators", "count", "", "accelerators of all replicas", required=False),
    Column("n_requests", "count", "", "requests that are sent in all", required=False),
    Column("prefill_tp", "count", "", "disaggregated: tensor parallelism of prefill", required=False),
    Column("prefill_pp", "count", "", "disaggregated: pipeline parallelism of prefill", required=False),
    Column("prefill_dp", "count", "", "disaggregated: attention data parallelism of prefill", required=False),
    Column("prefill_ep", "count", "", "disaggregated: expert parallelism of prefill", required=False),
    Column("prefill_moe_tp", "count", "", "disaggregated: split of a prefill expert", required=False),
    Column("prefill_replicas", "count", "", "disaggregated: replicas that prefill", required=False),
    Column("decode_replicas", "count", "", "disaggregated: replicas that generate", required=False),
    Column("streamed_tokens", "count", "", "disaggregated: tokens that are sent at a time", required=False),
    Column("moe_tp", "count", "", "tensor parallelism of the experts", required=False),
    Column("cp", "count", "", "context parallelism", required=False),
    *_TECHNIQUES,
)

_PREDICT_OUTPUT: Final = (
    Column("case_id", "text", "", "identifies the row"),
    Column("status", "text", "", "whether there is a prediction", allowed=("ok", "rejected")),
    Column("reason", "text", "", "why there is none", may_be_missing=True),
    Column("ttft_ms", "number", "ms", "mean time to first token", may_be_missing=True),
    Column("tpot_ms", "number", "ms", "mean time per output token", may_be_missing=True),
    Column("latency_ms", "number", "ms", "time of the step or the request", may_be_missing=True),
    Column("requests_per_s", "number", "1/s", "served requests", may_be_missing=True),
    Column("output_tokens_per_s_per_accelerator", "number", "1/s", "generated tokens", may_be_missing=True),
    Column("memory_gib_per_accelerator", "number", "GiB", "weights, KV cache, buffers", may_be_missing=True),
    Column("fits", "flag", "", "whether memory suffices"),
    Column("source", "text", "", "how the number was obtained", may_be_missing=True),
    Column("bottleneck", "text", "", "the operator that takes longest", may_be_missing=True),
)

_PLACEMENTS: Final = (
    Column("period", "text", "", "period of the horizon"),
    Column("region", "text", "", "where"),
    Column("pool", "text", "", "pool that holds the replicas"),
    Column("service", "text", "", "the service served"),
    Column("phase", "text", "", "what the replicas do", allowed=PHASES),
    Column("config", "text", "", "label of the configuration"),
    Column("replicas", "count", "", "how many"),
    Column("accelerators", "count", "", "accelerators of all replicas"),
    Column("requests_per_s", "number", "1/s", "load served"),
    Column("utilisation", "number", "", "load over capacity, 0 to 1"),
    Column("ttft_ms", "number", "ms", "mean time to first token", may_be_missing=True),
    Column("tpot_ms", "number", "ms", "mean time per output token", may_be_missing=True),
    Column("usd", "number", "USD", "cost of the period"),
)

_OPERATOR_TABLE: Final = (
    Column("operator", "text", "", "what ran: gemm, prefill_attention and so on; it decides the dimensions"),
    Column("dtype", "text", "", "of the weights; of the KV cache for attention; bf16 for collectives"),
    Column("latency_us", "number", "us", "time of one execution on one accelerator"),
    Column("hardware", "text", "", "the part; other parts' rows are refused", required=False),
    Column("framework", "text", "", "trtllm, sglang or vllm; any where it is empty", required=False),
    Column("version", "text", "", "of the framework, for the record", required=False),
    Column("power_w", "number", "W", "board power, for the record", required=False, may_be_missing=True),
    Column("source", "text", "", "who measured it and how, for the record", required=False),
    Column("m", "count", "", "rows of the product: tokens", required=False),
    Column("n", "count", "", "columns of the product", required=False),
    Column("k", "count", "", "inner dimension of the product", required=False),
    Column("groups", "count", "", "products of a batched GEMM", required=False),
    Column("batch", "count", "", "sequences", required=False),
    Column("new_tokens", "count", "", "prompt tokens of a sequence", required=False),
    Column("context_tokens", "count", "", "cached tokens of a sequence", required=False),
    Column("heads", "count", "", "query heads of one accelerator", required=False),
    Column("kv_heads", "count", "", "key-value heads of one accelerator", required=False),
    Column("head_dim", "count", "", "width of a head", required=False),
    Column("window", "count", "", "attention window in tokens, 0 without one", required=False),
    Column("key_head_dim", "count", "", "width of a key of latent attention", required=False),
    Column("value_head_dim", "count", "", "width of a value", required=False),
    Column("kv_rank", "count", "", "width of the latent vector", required=False),
    Column("rope_head_dim", "count", "", "width of the rotary part of a key", required=False),
    Column("key_heads", "count", "", "key heads of a linear recurrence", required=False),
    Column("value_heads", "count", "", "value heads of a linear recurrence", required=False),
    Column("taps", "count", "", "tokens of the convolution before a recurrence", required=False),
    Column("tokens", "count", "", "tokens that a group of experts sees, or a rank sends", required=False),
    Column("ep", "count", "", "ranks that tokens are dispatched to", required=False),
    Column("low_latency", "count", "", "1 for a step without prompts, else 0", required=False),
    Column("hidden", "count", "", "width of the model", required=False),
    Column("intermediate", "count", "", "width of an expert", required=False),
    Column("top_k", "count", "", "experts of a token", required=False),
    Column("experts", "count", "", "experts of a layer", required=False),
    Column("moe_tp", "count", "", "accelerators that share an expert", required=False),
    Column("moe_ep", "count", "", "accelerators that the experts are spread over", required=False),
    Column("message_bytes", "count", "B", "the full tensor of a collective", required=False),
    Column("ranks", "count", "", "accelerators of a collective", required=False),
    Column("traffic_bytes", "count", "B", "read and written by small kernels", required=False),
    Column("repeats", "count", "", "executions behind the time, for the record", required=False),
    Column("clock_mhz", "number", "MHz", "for the record", required=False, may_be_missing=True),
    Column("temperature_c", "number", "C", "for the record", required=False, may_be_missing=True),
    Column(
        "control_ratio",
        "number",
        "",
        "slowness of the machine, for the record",
        required=False,
        may_be_missing=True,
    ),
)

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "engines": _ENGINES,
    "candidates": _CANDIDATES,
    "predict_input": _PREDICT_INPUT,
    "predict_output": _PREDICT_OUTPUT,
    "placements": _PLACEMENTS,
    "operator_table": _OPERATOR_TABLE,
}


def check(frame: pd.DataFrame, table_name: str) -> None:
    """Check that a frame is the table it is passed as; columns beyond those of the table are allowed.

    Raises
    ------
    ValueError
        With everything that differs: a mistake of the program, not of its user.
    """
    faults = [fault for column in TABLES[table_name] for fault in _faults(frame, column)]
    if faults:
        raise ValueError(f"not a table of {table_name}: {'; '.join(faults)}")


def _faults(frame: pd.DataFrame, column: Column) -> list[str]:
    if column.name not in frame.columns:
        return [f"the column {column.name} is missing"] if column.required else []
    values = frame[column.name]
    faults = []
    # pandas' own text type has the kind "O" as well; an empty frame has no kind to speak of.
    if len(values) and values.dtype.kind not in _KINDS[column.kind]:
        faults.append(f"{column.name} holds {values.dtype}, not {column.kind}")
    if not column.may_be_missing and bool(values.isna().any()):
        faults.append(f"{column.name} has missing values")
    if column.allowed:
        other = sorted(set(values.dropna().astype(str)) - set(column.allowed))
        if other:
            faults.append(f"{column.name} holds {', '.join(other)}; allowed: {', '.join(column.allowed)}")
    return faults
