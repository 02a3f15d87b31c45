"""A source of operator times that can be added up by hand, and small decoders."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fleetplan.fleet.inventory import Accelerator, Efficiency
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    ModelArchitecture,
    MoeFfn,
)
from fleetplan.perfmodel.operators import IntArray, OperatorKind, Provenance, work
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.parallelism import Layouts, parse_parallelism
from fleetplan.perfmodel.steps import ConfigurationBatch

TABLED = {
    OperatorKind.GEMM,
    OperatorKind.MOE,
    OperatorKind.PREFILL_ATTENTION,
    OperatorKind.DECODE_ATTENTION,
}


@dataclass
class CountingSource:
    """One microsecond an operator, by default MEASURED; remembers what it was asked."""

    provenance: Provenance = Provenance.MEASURED
    asked: list[tuple[OperatorKind, str, dict[str, IntArray]]] = field(default_factory=list)

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        self.asked.append((kind, dtype, dims))
        shape = next(iter(dims.values())).shape
        return OperatorTimes.labelled(np.full(shape, 1e-3), self.provenance)


class WorkSource:
    """Time in proportion to the work of an operator: 1 ms a GB moved, 1 ms a TFLOP, and a launch each."""

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        done = work(kind, dtype, dims)
        moved = done.weight_bytes + done.kv_bytes + done.activation_bytes + 5 * done.link_bytes
        time = moved / 1e9 + done.flops / 1e12 + 1e-3
        label = Provenance.INTERPOLATED if kind in TABLED else Provenance.ROOFLINE
        return OperatorTimes.labelled(time, label)

    def times_of_distinct(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        return self.times(kind, dtype, dims)


def accelerator(**changes: object) -> Accelerator:
    efficiency = Efficiency(0.7, 0.9, 0.7, 0.6, 0.5, 4.0, 60.0, 50.0, "made up")
    figures: dict[str, object] = {
        "name": "Test",
        "vendor": "none",
        "bf16_tflops": 1000.0,
        "fp8_tflops": 2000.0,
        "fp4_tflops": None,
        "int8_tops": None,
        "hbm_gib": 80.0,
        "hbm_gb_per_s": 3000.0,
        "scale_up_gb_per_s": 450.0,
        "scale_up_accelerators": 8,
        "scale_out_gb_per_s": 50.0,
        "tdp_w": 700.0,
        "all_in_w": 1000.0,
        "accelerators_per_host": 8,
        "lifecycle": "stable",
        "measured_system": None,
        "efficiency": efficiency,
        "sources": (),
    }
    return Accelerator(**{**figures, **changes})  # type: ignore[arg-type]


def dense_model(layers: int = 4, kv_heads: int = 2, window: int = 0) -> ModelArchitecture:
    attention = GroupedQueryAttention(
        heads=8, kv_heads=kv_heads, head_dim=64, value_head_dim=64, window=window
    )
    group = LayerGroup(layers, attention, DenseFfn(1024))
    return ModelArchitecture("dense", "llama", 512, 32_000, False, (group,))


def mixture_model(shared: int = 0) -> ModelArchitecture:
    attention = GroupedQueryAttention(heads=8, kv_heads=2, head_dim=64, value_head_dim=64)
    mixture = MoeFfn(
        experts=16,
        top_k=2,
        intermediate_size=256,
        shared_experts=1 if shared else 0,
        shared_intermediate_size=shared,
    )
    groups = (LayerGroup(1, attention, DenseFfn(1024)), LayerGroup(3, attention, mixture))
    return ModelArchitecture("mixture", "qwen3_moe_like", 512, 32_000, False, groups)


def whole(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def layouts(*labels: str) -> Layouts:
    return Layouts.of([parse_parallelism(label) for label in labels])


def configurations(
    labels: tuple[str, ...],
    batch: tuple[int, ...],
    input_tokens: int = 2048,
    prefix_tokens: int = 0,
    context_tokens: int = 2123,
    output_tokens: int = 150,
) -> ConfigurationBatch:
    n_configs = len(labels)
    return ConfigurationBatch(
        layouts(*labels),
        whole(*batch),
        np.full(n_configs, input_tokens),
        np.full(n_configs, prefix_tokens),
        np.full(n_configs, context_tokens),
        np.full(n_configs, output_tokens),
    )
