"""Importer of the measured tables of expert dispatch and combine (DeepEP and NVLink kernels).

Times are MICROSECONDS in the tables of DeepEP and of `moe_a2a`, also in the column named `latency`, and
milliseconds in `trtllm_alltoall`. Dispatch sends FP8 where a table does not say otherwise (DeepEP quantises
on the way out), or NVFP4, combine BF16; other formats are left out. `num_token(s)` are those of one rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import FloatArray, OperatorKind
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows

if TYPE_CHECKING:
    import pandas as pd

_PHASES: Final = {"dispatch": OperatorKind.EXPERT_DISPATCH, "combine": OperatorKind.EXPERT_COMBINE}
_SENT_AS: Final = {
    ("dispatch", "fp4"): ("nvfp4",),
    ("dispatch", "fp8"): ("fp8", "default"),
    ("dispatch", "bf16"): ("bfloat16",),
    ("combine", "bf16"): ("bfloat16", "default"),
}
_USUAL: Final = {OperatorKind.EXPERT_DISPATCH: "fp8", OperatorKind.EXPERT_COMBINE: "bf16"}

HOST_ACCELERATORS: Final = 8
GRACE_HOST_ACCELERATORS: Final = 4
"""Accelerators of one node of the DeepEP tables, which count nodes alone. Source: `num_gpus_per_node` of
systems/*.yaml of aiconfigurator-core 0.12.0: 4 for GB200 and GB300, 8 for all others."""


def low_latency_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """DeepEP's low-latency kernels: for batches of generated tokens."""
    times_us = {phase: frame[f"{phase}_avg_t_us"] for phase in _PHASES}
    return _deepep(frame, times_us, low_latency=1)


def throughput_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """DeepEP's normal kernels: for prompts. Of several counts of multiprocessors the fastest stays."""
    times_us = {
        phase: frame[f"{phase}_transmit_us"] + frame[f"{phase}_notify_us"].fillna(0.0) for phase in _PHASES
    }
    return _deepep(frame, times_us, low_latency=0)


def _deepep(frame: pd.DataFrame, times_us: dict[str, pd.Series], low_latency: int) -> list[MeasuredRows]:
    is_grace = frame["device"].str.contains("GB")
    host = np.where(is_grace, GRACE_HOST_ACCELERATORS, HOST_ACCELERATORS)
    named = frame.assign(
        hidden=frame["hidden_size"],
        top_k=frame["num_topk"],
        experts=frame["num_experts"],
        ep=frame["node_num"].to_numpy(dtype=np.int64) * host,
        tokens=frame["num_token"],
        low_latency=low_latency,
    )
    return [
        _rows(kind, _USUAL[kind], named, times_us[phase].to_numpy(dtype=np.float64) / US_PER_MS)
        for phase, kind in _PHASES.items()
    ]


def all_to_all_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Return the kernels of both kinds in one table, with their phase in a column."""
    named = frame.assign(
        hidden=frame["hidden_size"],
        top_k=frame["topk"],
        experts=frame["num_experts"],
        ep=frame["ep_size"],
        tokens=frame["num_tokens"],
        low_latency=frame["comm_backend"].str.endswith("_ll").astype(np.int64),
    )
    tables = []
    for (phase, dtype), theirs in _SENT_AS.items():
        part = named[(named["phase"] == phase) & named["comm_dtype"].isin(theirs)]
        if not part.empty:
            tables.append(
                _rows(_PHASES[phase], dtype, part, part["latency"].to_numpy(dtype=np.float64) / US_PER_MS)
            )
    return tables


def nvlink_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """TensorRT-LLM's kernels within an NVLink domain: preparing and dispatching, or combining. In ms."""
    keys = ["kernel_source", "hidden_size", "topk", "num_experts", "moe_ep_size", "num_tokens"]

    def of(operator: str, dtype: str) -> pd.Series:
        part = frame[(frame["op_name"] == operator) & (frame["moe_dtype"] == dtype)]
        return part.groupby(keys)["latency"].min()

    def dispatch(dtype: str) -> pd.Series:
        # One-sided kernels have no separate preparation.
        sent = of("alltoall_dispatch", dtype)
        return sent.add(of("alltoall_prepare", dtype).reindex(sent.index).fillna(0.0))

    tables = []
    for kind, sent_as, times in (
        (OperatorKind.EXPERT_DISPATCH, "fp4", dispatch("nvfp4")),
        (OperatorKind.EXPERT_DISPATCH, "fp8", dispatch("fp8")),
        (OperatorKind.EXPERT_COMBINE, "bf16", of("alltoall_combine", "bfloat16")),
    ):
        columns = times.reset_index()
        for low_latency in (0, 1):
            named = columns.assign(
                hidden=columns["hidden_size"],
                top_k=columns["topk"],
                experts=columns["num_experts"],
                ep=columns["moe_ep_size"],
                tokens=columns["num_tokens"],
                low_latency=low_latency,
            )
            if not columns.empty:
                tables.append(_rows(kind, sent_as, named, columns["latency"].to_numpy(dtype=np.float64)))
    return tables


def _rows(kind: OperatorKind, dtype: str, frame: pd.DataFrame, latency_ms: FloatArray) -> MeasuredRows:
    names = ("hidden", "top_k", "experts", "ep", "low_latency", "tokens")
    dims = {name: frame[name].to_numpy(dtype=np.int64) for name in names}
    return measured_rows(kind, dtype, dims, latency_ms)
