"""Tables that cross module boundaries: every column with its type, unit and meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    import pandas as pd

_AnswerT = TypeVar("_AnswerT")

# Kinds of columns, and the numpy kinds that store them.
_KINDS: Final[Mapping[str, str]] = {"text": "OUTS", "count": "iu", "number": "f", "flag": "b"}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
        Name in the header.
    kind : str
        Type: text, count (whole numbers), number (floats) or flag.
    unit : str
        Unit; empty for a name, a count or a ratio.
    meaning : str
        Line for the documentation.
    required : bool
        Whether the table must have it.
    may_be_missing : bool
        Whether single values may be missing.
    allowed : tuple[str, ...]
        Allowed values; empty for any.
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

SINGLE_CLASS: Final = "all"
"""Class of a row that applies to every class, and of a service without classes."""

_ENGINES: Final = (
    TableColumn("phase", "text", "", "phase of the replica: aggregated, prefill or decode", allowed=PHASES),
    TableColumn("hardware", "text", "", "a part of the catalogue or of the block `hardware`"),
    TableColumn("accelerators_per_replica", "count", "", "accelerators of one replica"),
    TableColumn("config", "text", "", "label of the configuration"),
    TableColumn(
        "class",
        "text",
        "",
        f"request class; `{SINGLE_CLASS}`, the default without this column, applies to every class",
        required=False,
    ),
    TableColumn(
        "requests_per_s",
        "number",
        "1/s",
        "rate that one replica sustains within the SLO if it serves this class alone",
    ),
    TableColumn("ttft_ms", "number", "ms", "mean time to first token", required=False, may_be_missing=True),
    TableColumn("tpot_ms", "number", "ms", "mean time per output token", required=False, may_be_missing=True),
    TableColumn(
        "power_kw",
        "number",
        "kW",
        "IT power of one replica at full load",
        required=False,
        may_be_missing=True,
    ),
    TableColumn(
        "kv_gb_per_request",
        "number",
        "GB",
        "KV cache of a request that travels from prefill to decode; required if kv_links limit it",
        required=False,
        may_be_missing=True,
    ),
)

_OPERATOR_TABLE: Final = (
    TableColumn(
        "operator", "text", "", "operator, such as gemm or prefill_attention; it determines the dimensions"
    ),
    TableColumn(
        "dtype", "text", "", "data type of the weights; of the KV cache for attention; bf16 for collectives"
    ),
    TableColumn("latency_us", "number", "us", "time of one execution on one accelerator"),
    TableColumn(
        "hardware", "text", "", "hardware; the importer rejects rows of other hardware", required=False
    ),
    TableColumn("framework", "text", "", "trtllm, sglang or vllm; empty for any framework", required=False),
    TableColumn("version", "text", "", "version of the framework, for information", required=False),
    TableColumn(
        "power_w", "number", "W", "board power, for information", required=False, may_be_missing=True
    ),
    TableColumn(
        "source", "text", "", "author and method of the measurement, for information", required=False
    ),
    TableColumn("m", "count", "", "rows of the product: tokens", required=False),
    TableColumn("n", "count", "", "columns of the product", required=False),
    TableColumn("k", "count", "", "inner dimension of the product", required=False),
    TableColumn("groups", "count", "", "products of a batched GEMM", required=False),
    TableColumn("batch", "count", "", "sequences", required=False),
    TableColumn("new_tokens", "count", "", "prompt tokens of a sequence", required=False),
    TableColumn("context_tokens", "count", "", "cached tokens of a sequence", required=False),
    TableColumn("heads", "count", "", "query heads of one accelerator", required=False),
    TableColumn("kv_heads", "count", "", "key-value heads of one accelerator", required=False),
    TableColumn("head_dim", "count", "", "width of a head", required=False),
    TableColumn("window", "count", "", "attention window in tokens, 0 without one", required=False),
    TableColumn("index_heads", "count", "", "heads that score blocks of tokens", required=False),
    TableColumn("index_head_dim", "count", "", "width of an index head", required=False),
    TableColumn("block_tokens", "count", "", "tokens of a block", required=False),
    TableColumn("blocks", "count", "", "blocks that a query attends to", required=False),
    TableColumn("query_rank", "count", "", "width of the latent vector of queries", required=False),
    TableColumn("output_rank", "count", "", "width of a group of outputs before they join", required=False),
    TableColumn("ratio", "count", "", "tokens of a compressed entry of the cache", required=False),
    TableColumn("kv_bits", "count", "bit", "width of an element of the cache", required=False),
    TableColumn("streams", "count", "", "residual streams", required=False),
    TableColumn("side", "count", "", "1 before a block, 2 after it", required=False),
    TableColumn("key_head_dim", "count", "", "width of a key of latent attention", required=False),
    TableColumn("value_head_dim", "count", "", "width of a value", required=False),
    TableColumn("kv_rank", "count", "", "width of the latent vector", required=False),
    TableColumn("rope_head_dim", "count", "", "width of the rotary part of a key", required=False),
    TableColumn("key_heads", "count", "", "key heads of a linear recurrence", required=False),
    TableColumn("value_heads", "count", "", "value heads of a linear recurrence", required=False),
    TableColumn("taps", "count", "", "tokens of the convolution before a recurrence", required=False),
    TableColumn(
        "tokens",
        "count",
        "",
        "tokens that a group of experts processes, or that a rank sends",
        required=False,
    ),
    TableColumn("ep", "count", "", "ranks that receive dispatched tokens", required=False),
    TableColumn("low_latency", "count", "", "1 for a step without prompts, else 0", required=False),
    TableColumn("hidden", "count", "", "width of the model", required=False),
    TableColumn("intermediate", "count", "", "width of an expert", required=False),
    TableColumn("top_k", "count", "", "experts of a token", required=False),
    TableColumn("experts", "count", "", "experts of a layer", required=False),
    TableColumn("moe_tp", "count", "", "accelerators that share an expert", required=False),
    TableColumn("moe_ep", "count", "", "accelerators that the experts are spread over", required=False),
    TableColumn("message_bytes", "count", "B", "the full tensor of a collective", required=False),
    TableColumn("ranks", "count", "", "accelerators of a collective", required=False),
    TableColumn("traffic_bytes", "count", "B", "bytes that small kernels read and write", required=False),
    TableColumn("repeats", "count", "", "executions behind the time, for information", required=False),
    TableColumn("clock_mhz", "number", "MHz", "clock, for information", required=False, may_be_missing=True),
    TableColumn(
        "temperature_c", "number", "C", "temperature, for information", required=False, may_be_missing=True
    ),
    TableColumn(
        "control_ratio",
        "number",
        "",
        "slowdown of the machine, for information",
        required=False,
        may_be_missing=True,
    ),
)

TABLES: Final[Mapping[str, tuple[TableColumn, ...]]] = {
    "engines": _ENGINES,
    "operator_table": _OPERATOR_TABLE,
}


def numbers_of(values: pd.Series) -> pd.Series:
    """Convert values to floats; NaN for text and for numbers that no float can represent."""
    import pandas as pd  # noqa: PLC0415

    try:
        found = pd.to_numeric(values, errors="coerce").to_numpy(dtype="float64", na_value=math.nan)
    except OverflowError:
        # A whole number of more than 308 digits, which pandas accepts but cannot convert.
        return pd.Series([_float(value) for value in values], index=values.index, dtype="float64")
    return pd.Series(found, index=values.index)


def _float(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return math.nan


def once_per_table(answer: Callable[[pd.DataFrame], _AnswerT]) -> Callable[[pd.DataFrame], _AnswerT]:
    """Memoise a function of a table, however many services name the table.

    Parameters
    ----------
    answer : callable
        Function of a table. Tables are identified by identity and kept with their results; neither may
        change.
    """
    known: dict[int, tuple[pd.DataFrame, _AnswerT]] = {}

    def answered(table: pd.DataFrame) -> _AnswerT:
        # Keep the table: another table could reuse the identity of a deleted one.
        if id(table) not in known:
            known[id(table)] = table, answer(table)
        return known[id(table)][1]

    return answered


def check(frame: pd.DataFrame, table_name: str) -> None:
    """Check that a frame is the named table; further columns are allowed.

    Raises
    ------
    ValueError
        Lists all differences: a bug of the program, not a mistake of its user.
    """
    faults = [fault for column in TABLES[table_name] for fault in _faults(frame, column)]
    if faults:
        raise ValueError(f"not a table of {table_name}: {'; '.join(faults)}")


def _faults(frame: pd.DataFrame, column: TableColumn) -> list[str]:
    if column.name not in frame.columns:
        return [f"the column {column.name} is missing"] if column.required else []
    values = frame[column.name]
    faults = []
    # pandas' text type also has the kind "O"; an empty frame has no meaningful kind.
    if len(values) and values.dtype.kind not in _KINDS[column.kind]:
        faults.append(f"{column.name} holds {values.dtype}, not {column.kind}")
    if not column.may_be_missing and bool(values.isna().any()):
        faults.append(f"{column.name} has missing values")
    if column.allowed:
        other = sorted(set(values.dropna().astype(str)) - set(column.allowed))
        if other:
            faults.append(f"{column.name} holds {', '.join(other)}; allowed: {', '.join(column.allowed)}")
    return faults
