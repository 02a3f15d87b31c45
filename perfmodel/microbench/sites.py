"""Sites to measure: the operators of some models, or a grid that most models lie within."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.microbench.points import Point, point
from fleetplan.perfmodel.operators import AXES, COLLECTIVE_KINDS, CURVES, OperatorKind, work
from fleetplan.perfmodel.optables.rows import site_dimensions, table_dimensions
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps import (
    ConfigurationBatch,
    decode_shape,
    part_dtypes,
    prefill_shape,
    step_operators,
)

LARGEST_STEP_TOKENS: Final = 8192
"""Default largest number of prompt tokens of a measured step. Source: vLLM, `max_num_batched_tokens`, default
on a GPU with 80 GB."""

FIRST_FACTOR: Final = 8
"""Distance between neighbouring values of the first sweep; later points go where the errors are largest."""

STANDARD_WIDTHS: Final = (1024, 4096, 8192, 28672)
STANDARD_HEADS: Final = ((8, 1, 128), (8, 8, 128), (32, 8, 128), (16, 2, 64))
STANDARD_EXPERTS: Final = ((4096, 1536, 8, 128), (7168, 2048, 8, 256), (2880, 2880, 4, 128))
"""A grid without any model: inner and outer widths of products; heads, key-value heads and width; hidden
size, width, experts a token and experts of mixtures (Qwen3-235B, DeepSeek-V3, gpt-oss-120b)."""

_PROBE_TOKENS: Final = 128


@dataclass(frozen=True, slots=True)
class Site:
    """A sweep: an operator with its fixed dimensions.

    Attributes
    ----------
    kind : OperatorKind
        Operator.
    dtype : str
        Data type.
    fixed : tuple[tuple[str, int], ...]
        Dimensions that the sweep holds.
    """

    kind: OperatorKind
    dtype: str
    fixed: tuple[tuple[str, int], ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """Dimensions that the sweep changes."""
        return (CURVES[self.kind],) if self.kind in CURVES else AXES[self.kind]

    def at(self, values: Sequence[int]) -> Point:
        """Return the point at some values of the axes."""
        return point(self.kind, self.dtype, **dict(self.fixed), **dict(zip(self.axes, values, strict=True)))


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of the measured steps.

    Attributes
    ----------
    step_tokens : int
        Most tokens that a step computes.
    """

    step_tokens: int = LARGEST_STEP_TOKENS

    def ends(self, axis: str) -> tuple[int, int]:
        """Return the first and last value of a swept dimension."""
        return {
            "m": (1, self.step_tokens),
            "tokens": (1, self.step_tokens),
            "batch": (1, 256),
            "new_tokens": (64, self.step_tokens),
            "context_tokens": (64, 4 * self.step_tokens),
            # A row of 8 KiB for every token, four times.
            "traffic_bytes": (2**12, 2**15 * self.step_tokens),
            "message_bytes": (2**12, 2**15 * self.step_tokens),
        }[axis]

    def holds(self, site: Site, values: Sequence[int]) -> bool:
        """Return whether a point is within a step: not more prompt or cached tokens than it has."""
        dims = dict(zip(site.axes, values, strict=True))
        if "new_tokens" in dims:
            return dims["batch"] * dims["new_tokens"] <= 2 * self.step_tokens
        if "context_tokens" in dims:
            return dims["batch"] * dims["context_tokens"] <= 256 * self.step_tokens
        return True


def first_points(site: Site, extent: Extent) -> list[Point]:
    """Return the points of a first, coarse sweep."""
    values = [_spread(*extent.ends(axis)) for axis in site.axes]
    return [site.at(each) for each in product(*values) if extent.holds(site, each)]


def model_sites(
    models: Iterable[tuple[ModelArchitecture, Precision]], tensor_parallel: Sequence[int]
) -> list[Site]:
    """Return the sweeps that the steps of some models need, under some degrees of tensor parallelism.

    Experts are split by tensor parallelism and spread over as many groups as well.
    """
    found: dict[Site, None] = {}
    asked = _probes(tensor_parallel)
    for architecture, precision in models:
        dtypes = part_dtypes(architecture, precision)
        for shape in (prefill_shape(asked), decode_shape(asked)):
            for operator in step_operators(architecture, dtypes, shape):
                if operator.kind not in AXES or operator.kind in COLLECTIVE_KINDS:
                    continue
                names = site_dimensions(operator.kind)
                for row in np.flatnonzero(operator.count > 0):
                    fixed = tuple((name, int(operator.dims[name][row])) for name in names)
                    found[Site(operator.kind, operator.dtype, fixed)] = None
    found[Site(OperatorKind.ELEMENTWISE, "bf16")] = None
    return list(found)


def least_read_bytes(
    models: Iterable[tuple[ModelArchitecture, Precision]], tensor_parallel: Sequence[int]
) -> int:
    """Return the weights that a step of one sequence reads, for the smallest model. [bytes]."""
    asked = _probes(tensor_parallel)
    found = []
    for architecture, precision in models:
        read_bytes = np.zeros(asked.batch.size)
        for operator in step_operators(
            architecture, part_dtypes(architecture, precision), decode_shape(asked)
        ):
            done = work(operator.kind, operator.dtype, operator.dims)
            read_bytes += operator.count * done.weight_bytes
        found.append(int(read_bytes.min()))
    return min(found)


def _probes(tensor_parallel: Sequence[int]) -> ConfigurationBatch:
    """One sequence at every degree of parallelism."""
    layouts = [Parallelism(tp=tp, ffn_tp=tp // ep, ep=ep) for tp in tensor_parallel for ep in {1, tp}]
    ones = np.ones(len(layouts), dtype=np.int64)
    return ConfigurationBatch(
        Layouts.of(layouts), ones, ones * _PROBE_TOKENS, 0 * ones, ones * _PROBE_TOKENS, ones
    )


def standard_sites(dtypes: Sequence[str]) -> list[Site]:
    """Return the sweeps of a grid that most models lie within."""
    sites = [
        Site(OperatorKind.GEMM, dtype, (("n", n), ("k", k)))
        for dtype in dtypes
        for n in STANDARD_WIDTHS
        for k in STANDARD_WIDTHS
    ]
    for kind in (OperatorKind.PREFILL_ATTENTION, OperatorKind.DECODE_ATTENTION):
        sites += [
            Site(kind, "bf16", (("heads", heads), ("kv_heads", kv_heads), ("head_dim", width), ("window", 0)))
            for heads, kv_heads, width in STANDARD_HEADS
        ]
    sites += [
        Site(
            OperatorKind.MOE,
            "bf16",
            (
                ("hidden", hidden),
                ("intermediate", width),
                ("top_k", top_k),
                ("experts", experts),
                ("moe_tp", 1),
                ("moe_ep", 8),
            ),
        )
        for hidden, width, top_k, experts in STANDARD_EXPERTS
    ]
    return [*sites, Site(OperatorKind.ELEMENTWISE, "bf16")]


def group_sites(ranks: Sequence[int]) -> list[Site]:
    """Yield sweeps of collectives among a number of accelerators, and of messages between two."""
    kinds = sorted(COLLECTIVE_KINDS, key=lambda kind: kind.value)
    groups = [Site(kind, "bf16", (("ranks", count),)) for kind in kinds for count in ranks]
    return [*groups, Site(OperatorKind.SEND_RECV, "bf16")] if groups else []


def site_of(measured: Point) -> Site:
    """Return the sweep that a point belongs to."""
    swept = (CURVES[measured.kind],) if measured.kind in CURVES else AXES[measured.kind]
    fixed = tuple((name, value) for name, value in measured.dims if name not in swept)
    if {name for name, _ in fixed} | set(swept) != set(table_dimensions(measured.kind)):
        raise ValueError(f"{measured.label} is not a point of a table")
    return Site(measured.kind, measured.dtype, fixed)


def _spread(first: int, last: int) -> list[int]:
    values = [first]
    while values[-1] * FIRST_FACTOR < last:
        values.append(values[-1] * FIRST_FACTOR)
    return [*values, last]
