"""The table of cases that `predict` reads: defaults, and a reason for every row that cannot be predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.fleet.document.headers import header_issues
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.tables import MODES, numbers_of
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.predict.case_files import ROW_PROBLEM
from fleetplan.perfmodel.predict.degrees import Degrees, PoolCase
from fleetplan.perfmodel.predict.technique_columns import (
    TechniqueColumns,
    misspelt_columns,
    parse_technique_columns,
)

FRAMEWORKS: Final = ("vllm", "sglang", "trtllm")
DISAGGREGATED: Final = "disaggregated"
"""The mode in which the columns of parallelism are those of decode, and `POOL_COLUMNS` say the rest."""

POOL_COLUMNS: Final = (
    "prefill_tp",
    "prefill_pp",
    "prefill_dp",
    "prefill_ep",
    "prefill_moe_tp",
    "prefill_replicas",
    "decode_replicas",
    "streamed_tokens",
)
DEFAULT_FRAMEWORK: Final = "vllm"

REQUIRED_COLUMNS: Final = ("case_id", "model", "hardware", "weights", "mode", "tp", "input_tokens")
OPTIONAL_COLUMNS: Final = (
    "backend",
    "kv",
    "pp",
    "ep",
    "dp",
    "moe_tp",
    "cp",
    "output_tokens",
    "prefix_tokens",
    "batch",
    "concurrency",
    "requests_per_s",
    "n_accelerators",
    "n_requests",
    *POOL_COLUMNS,
)

_LOAD_COLUMN: Final = {
    "prefill": "batch",
    "decode": "batch",
    "static": "batch",
    "closed_loop": "concurrency",
    "burst": "concurrency",
    "open_loop": "requests_per_s",
    "offline": "n_requests",
    DISAGGREGATED: "concurrency",
}
_NEEDS_OUTPUT: Final = ("static", "closed_loop", "burst", "open_loop", "offline", DISAGGREGATED)
_OTHER_SPELLINGS: Final = {
    "tensorrt-llm": "trtllm",
    "trt-llm": "trtllm",
    "tensorrt_llm": "trtllm",
    # FP16 has the width and the matrix peak of BF16.
    "fp16": "bf16",
    "float16": "bf16",
    "bfloat16": "bf16",
    "nvfp4": "fp4",
}

LARGEST_COUNT: Final = 100_000_000
"""Largest token count, batch or degree that is taken at its word; products stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class Cases:
    """The rows of a table of cases, each array of shape (n_rows,).

    Attributes
    ----------
    case_id : pandas.Series
        As given.
    model, hardware, backend, weights, kv, mode : NDArray
        Names; defaults are filled in, spellings unified.
    degrees : tuple[Degrees, ...]
        Parallelism.
    input_tokens, output_tokens, prefix_tokens : IntArray
        0 if left out. [tokens]
    load : FloatArray
        Batch, concurrency, rate or number of requests, by mode.
    n_accelerators : IntArray
        0 if left out: one replica.
    n_requests : IntArray
        Requests that a closed loop sends in all; 0 if left out: TTFT of the long run.
    pools : tuple[PoolCase, ...]
        Pools of disaggregated rows; unused otherwise.
    techniques : TechniqueColumns
        Techniques.
    reason : NDArray
        Reason why a row cannot be predicted; '' if it can.
    """

    case_id: pd.Series
    model: NDArray[np.object_]
    hardware: NDArray[np.object_]
    backend: NDArray[np.object_]
    weights: NDArray[np.object_]
    kv: NDArray[np.object_]
    mode: NDArray[np.object_]
    degrees: tuple[Degrees, ...]
    input_tokens: IntArray
    output_tokens: IntArray
    prefix_tokens: IntArray
    load: FloatArray
    n_accelerators: IntArray
    n_requests: IntArray
    pools: tuple[PoolCase, ...]
    techniques: TechniqueColumns
    reason: NDArray[np.object_]


def parse_cases(frame: pd.DataFrame, path: str) -> Cases:
    """Check a table of cases and fill in its defaults.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns of `REQUIRED_COLUMNS` and any of `OPTIONAL_COLUMNS` and of the technique columns
        (`fleetplan.perfmodel.predict.technique_columns.COLUMNS`); others are carried by nobody and ignored.
        Empty cells take the default: degrees of 1, no prefix, one replica, vLLM; the KV cache is FP8 for
        FP8 and FP4 weights under TensorRT-LLM and BF16 elsewhere, as the frameworks do.
    path : str
        Name of the table in errors.

    Raises
    ------
    InputError
        Required columns are missing, or technique columns misspelt.
    """
    _check_columns(frame, path)
    reasons = _Reasons(len(frame))
    for row, problem in enumerate(_text(frame, ROW_PROBLEM)):
        if problem:
            reasons.texts[row] = problem
    mode = _names(frame, "mode", "")
    backend = _names(frame, "backend", DEFAULT_FRAMEWORK)
    weights = _names(frame, "weights", "")
    reasons.unknown("mode", mode, MODES)
    reasons.unknown("backend", backend, FRAMEWORKS)
    reasons.unknown("weights", weights, ("bf16", "fp8", "fp8-ffn", "int8", "int4", "fp4", "mxfp4"))
    kv = _names(frame, "kv", "")
    narrow = (backend == "trtllm") & np.isin(weights.astype(str), ("fp8", "fp8-ffn", "fp4"))
    kv = np.where(kv == "", np.where(narrow, "fp8", "bf16"), kv)
    reasons.unknown("kv", kv, ("bf16", "fp8"))
    input_tokens = _whole(frame, "input_tokens", None, 1, reasons)
    output_tokens = _whole(frame, "output_tokens", 0, 0, reasons)
    needs_output = np.isin(mode.astype(str), _NEEDS_OUTPUT) & (output_tokens < 1)
    reasons.add(needs_output, "output_tokens: at least 1 is needed in this mode")
    techniques = parse_technique_columns(frame, mode)
    for code, setting in enumerate(techniques.distinct):
        if setting.problem:
            reasons.add(techniques.codes == code, setting.problem)
    return Cases(
        case_id=frame["case_id"],
        model=_text(frame, "model"),
        hardware=_text(frame, "hardware"),
        backend=backend,
        weights=weights,
        kv=kv,
        mode=mode,
        degrees=_degrees(frame, reasons),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        prefix_tokens=_whole(frame, "prefix_tokens", 0, 0, reasons),
        load=_load(frame, mode, reasons),
        n_accelerators=_whole(frame, "n_accelerators", 0, 1, reasons),
        n_requests=_whole(frame, "n_requests", 0, 1, reasons),
        pools=_pools(frame, mode, reasons),
        techniques=techniques,
        reason=reasons.texts,
    )


class _Reasons:
    """Collects all problems, row by row."""

    def __init__(self, n_rows: int) -> None:
        self.texts: NDArray[np.object_] = np.full(n_rows, "", dtype=object)

    def add(self, rows: NDArray[np.bool_], text: str) -> None:
        for row in np.flatnonzero(rows):
            self.texts[row] = f"{self.texts[row]}; {text}" if self.texts[row] else text

    def unknown(self, column: str, values: NDArray[np.object_], allowed: tuple[str, ...]) -> None:
        for value in set(values.tolist()) - set(allowed):
            what = f"{column}: {value!r} is not known" if value else f"{column}: missing"
            self.add(values == value, f"{what}; {names_hint(value, allowed)}")


def _check_columns(frame: pd.DataFrame, path: str) -> None:
    given = [str(column) for column in frame.columns]
    issues = header_issues(path, given, REQUIRED_COLUMNS, OPTIONAL_COLUMNS)
    others = set(given).difference(REQUIRED_COLUMNS, OPTIONAL_COLUMNS)
    for column, meant in misspelt_columns(sorted(others)).items():
        issues.append(Issue(path, 1, 1, column, "unknown column", f"did you mean {meant!r}?"))
    if issues:
        raise InputError(issues)


def _text(frame: pd.DataFrame, column: str) -> NDArray[np.object_]:
    if column not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    values = frame[column]
    texts = [
        "" if missing else str(value).strip() for value, missing in zip(values, values.isna(), strict=True)
    ]
    return np.array(texts, dtype=object).reshape(len(frame))


def _names(frame: pd.DataFrame, column: str, default: str) -> NDArray[np.object_]:
    texts = [text.lower() or default for text in _text(frame, column)]
    names = [_OTHER_SPELLINGS.get(text, text) for text in texts]
    return np.array(names, dtype=object).reshape(len(frame))


def _numbers(frame: pd.DataFrame, column: str, reasons: _Reasons) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the values as floats, NaN if left out or wrong, and which rows are left out."""
    if column not in frame.columns:
        n_rows = len(frame)
        return np.full(n_rows, np.nan), np.ones(n_rows, dtype=np.bool_)
    texts = _text(frame, column)
    missing: NDArray[np.bool_] = texts == ""
    numbers = numbers_of(pd.Series(texts, dtype=object)).to_numpy(dtype=np.float64)
    wrong = ~missing & ~np.isfinite(numbers)
    for value in set(texts[wrong].tolist()):
        reasons.add(texts == value, f"{column}: {value!r} is not a finite number")
    return np.where(wrong, np.nan, numbers), missing


def _whole(frame: pd.DataFrame, column: str, default: int | None, least: int, reasons: _Reasons) -> IntArray:
    numbers, missing = _numbers(frame, column, reasons)
    if default is None:
        reasons.add(missing, f"{column}: missing")
    given = np.isfinite(numbers)
    wrong = given & ((numbers != np.round(numbers)) | (numbers < least) | (numbers > LARGEST_COUNT))
    for value in set(numbers[wrong].tolist()):
        text = f"{column}: {value:g} is not a whole number from {least} to {LARGEST_COUNT}"
        reasons.add(numbers == value, text)
    fallback = 1 if default is None else default
    return np.where(given & ~wrong, numbers, fallback).astype(np.int64)


def _load(frame: pd.DataFrame, mode: NDArray[np.object_], reasons: _Reasons) -> FloatArray:
    load = np.ones(len(frame))
    for column in ("batch", "concurrency", "n_requests"):
        rows = np.array([_LOAD_COLUMN.get(each) == column for each in mode], dtype=np.bool_)
        if rows.any():
            selected = _Reasons(len(frame))
            values = _whole(frame, column, None, 1, selected)
            for text in set(selected.texts[rows].tolist()) - {""}:
                reasons.add(rows & (selected.texts == text), text)
            load = np.where(rows, values, load)
    rows = np.array([each == "open_loop" for each in mode], dtype=np.bool_)
    if rows.any():
        selected = _Reasons(len(frame))
        rates, missing = _numbers(frame, "requests_per_s", selected)
        selected.add(missing, "requests_per_s: missing")
        selected.add(np.isfinite(rates) & (rates <= 0), "requests_per_s: must be above 0")
        for text in set(selected.texts[rows].tolist()) - {""}:
            reasons.add(rows & (selected.texts == text), text)
        load = np.where(rows & (rates > 0), rates, load)
    return load


def _pools(frame: pd.DataFrame, mode: NDArray[np.object_], reasons: _Reasons) -> tuple[PoolCase, ...]:
    elsewhere = mode != DISAGGREGATED
    for column in POOL_COLUMNS:
        given: NDArray[np.bool_] = _text(frame, column) != ""
        for each in set(mode[given & elsewhere].tolist()) & set(MODES):
            reasons.add(given & (mode == each), f"{column}: has no effect in {each} mode")
    counts = [_whole(frame, column, 1, 1, reasons) for column in POOL_COLUMNS[-3:]]
    return tuple(
        PoolCase(degrees, *row)
        for degrees, row in zip(
            _degrees(frame, reasons, "prefill_"), np.stack(counts, axis=1).tolist(), strict=True
        )
    )


def _degrees(frame: pd.DataFrame, reasons: _Reasons, prefix: str = "") -> tuple[Degrees, ...]:
    columns = [
        _whole(frame, f"{prefix}pp", 1, 1, reasons),
        _whole(frame, f"{prefix}tp", 1 if prefix else None, 1, reasons),
        _whole(frame, f"{prefix}dp", 1, 1, reasons),
        _whole(frame, f"{prefix}ep", 1, 1, reasons),
        _whole(frame, f"{prefix}moe_tp", 0, 1, reasons),
        _whole(frame, f"{prefix}cp", 1, 1, reasons),
    ]
    return tuple(Degrees(*row) for row in np.stack(columns, axis=1).tolist())
