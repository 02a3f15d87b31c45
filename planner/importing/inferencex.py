"""Read rows of InferenceX (formerly InferenceMAX), from its runs or its site."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from fleetplan.fleet.catalog.hardware_names import devices_of, part_called
from fleetplan.fleet.units import MS_PER_S
from fleetplan.planner.importing.benchmark_rows import BenchmarkRow, MeasuredDeployment
from fleetplan.planner.importing.records import (
    Record,
    RejectedRowError,
    count,
    mapping,
    number,
    optional_number,
    text_or_none,
)

INFERENCEX_MEAN_LENGTH_RATIO: Final = 0.9
"""Ratio of mean to nominal length of InferenceX's random requests: uniform from 0.8 (its benchmark scripts,
`--random-range-ratio 0.8`; measured throughput implies 0.901 at the median of its rows).
"""

_FRAMEWORKS: Final = MappingProxyType({"trt": "trtllm"})
"""InferenceX's names of frameworks that differ from ours."""


def inferencex_run(row: Record) -> BenchmarkRow:
    """Return a row of InferenceX: one layout at a fixed concurrency."""
    _check_one_layout(row)
    figures = mapping(row.get("metrics", row), "metrics")

    def seconds_as_ms(name: str) -> float | None:
        value = optional_number(figures.get(name), name)
        return None if value is None else value * MS_PER_S

    return BenchmarkRow(
        _deployment(row, figures),
        INFERENCEX_MEAN_LENGTH_RATIO * count(row.get("isl"), "isl"),
        INFERENCEX_MEAN_LENGTH_RATIO * count(row.get("osl"), "osl"),
        number(row.get("conc"), "conc"),
        None,
        seconds_as_ms("mean_ttft"),
        seconds_as_ms("mean_tpot"),
    )


def _is_set(value: object) -> bool:
    """Return whether a flag is set; some rows store it as text."""
    return str(value).lower() == "true"


def _check_one_layout(row: Record) -> None:
    if _is_set(row.get("disagg")) or _is_set(row.get("is_multinode")):
        raise RejectedRowError("disaggregated or multi-node: its two phases do not have a single layout")
    if str(row.get("spec_method") or row.get("spec_decoding") or "none") not in {"none", "False"}:
        raise RejectedRowError("speculative decoding: the acceptance is not stated")
    if any(str(row.get(name) or "").startswith("agentic") for name in ("scenario_type", "benchmark_type")):
        raise RejectedRowError("a replayed trace of agents: its requests have no common length")
    if str(row.get("kv_offloading") or row.get("offload_mode") or "none") not in {"none", "off"}:
        raise RejectedRowError("KV caches are offloaded: their hits are not stated")


def _deployment(row: Record, figures: Record) -> MeasuredDeployment:
    """Return the layout of a row, in accelerators."""

    def degree(name: str, default: object = 1) -> int:
        places = [(part, key) for part in (row, figures) for key in (name, f"{name}_size", f"decode_{name}")]
        return count(next((part[key] for part, key in places if part.get(key)), default), name)

    tp, dcp, pcp, dp = degree("tp", None), degree("dcp"), degree("pcp"), degree("dp")
    if dcp > 1 and pcp > 1:
        raise RejectedRowError(f"contexts are split differently in prefill ({pcp}) and decode ({dcp})")
    if _is_set(row.get("dp_attention", row.get("decode_dp_attention"))):
        if dcp > 1 or pcp > 1:
            raise RejectedRowError(
                "attention data parallelism with split contexts: not a layout of the planner"
            )
        # Tensor-parallel ranks share the requests, all of them unless the row states a number.
        dp = dp if dp > 1 else tp
        if tp % dp:
            raise RejectedRowError(f"attention data parallelism {dp} does not divide tp {tp}")
        tp //= dp
    if tp % dcp:
        raise RejectedRowError(f"decode context parallelism {dcp} does not divide tp {tp}")
    framework = text_or_none(row.get("framework"))
    stated = MeasuredDeployment(
        model=text_or_none(row.get("model")),
        hardware=text_or_none(row.get("hw", row.get("hardware"))),
        framework=_FRAMEWORKS.get(str(framework), framework),
        weights=text_or_none(row.get("precision")),
        # Decode context parallelism splits tensor-parallel ranks; that of prefill adds ranks.
        tp=tp // dcp,
        dp=dp,
        ep=degree("ep"),
        pp=degree("pp"),
        cp=max(dcp, pcp),
    )
    return _in_accelerators(stated, optional_number(row.get("num_gpus", figures.get("num_gpus")), "num_gpus"))


def _in_accelerators(stated: MeasuredDeployment, said: float | None) -> MeasuredDeployment:
    """Return degrees in accelerators from those in devices, whose number the row may state."""
    devices = devices_of(part_called(str(stated.hardware)) or "")
    tp, ep = stated.tp or 1, stated.ep or 1
    if tp % devices:
        raise RejectedRowError(f"a rank of tp {tp} is half a chip: not a layout of the planner")
    ours = replace(stated, tp=tp // devices, ep=max(1, ep // devices))
    accelerators = (ours.tp or 1) * (ours.dp or 1) * (ours.pp or 1) * (ours.cp or 1)
    if said is not None and said != accelerators:
        raise RejectedRowError(f"{said:g} accelerators are stated, but the degrees give {accelerators}")
    return ours
