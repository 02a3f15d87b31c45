"""Explanation of one configuration by operator: time, speed of light, and source of the number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S
from fleetplan.perfmodel.evaluator import prefill_mix
from fleetplan.perfmodel.landscape import AGGREGATED, PREFILL, Option, RequestShape, configurations_of
from fleetplan.perfmodel.operators import (
    BYTES_PER_ELEMENT,
    COLLECTIVE_KINDS,
    WEIGHT_KINDS,
    Operator,
    OperatorKind,
    Provenance,
    work,
)
from fleetplan.perfmodel.optables.formulas.collectives import groups, links_used, network_bytes
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.steps import (
    StepShape,
    decode_shape,
    prefill_shape,
    steady_shape,
)

_FLOPS_PER_MS_OF_TFLOPS: Final = 1e9
_LINK_KINDS: Final = COLLECTIVE_KINDS | {OperatorKind.SEND_RECV}


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """One operator of a step.

    Attributes
    ----------
    name, dtype : str
        Name, and data type.
    kind : OperatorKind or None
        None for layer overhead outside operators.
    shape : str
        Dimensions.
    count : float
        Runs per pass.
    time_ms : float
        Time of all runs. [ms]
    compute_ms : float
        Time of its multiplications at the peak of its data type. [ms]
    light_ms : float
        Speed of light: the largest of compute, memory and link time at data-sheet figures. [ms]
    tflop : float
        Floating-point operations of all runs on one accelerator. [10^12]
    source : str
        measured, interpolated, extrapolated or roofline.
    """

    name: str
    dtype: str
    kind: OperatorKind | None
    shape: str
    count: float
    time_ms: float
    compute_ms: float
    light_ms: float
    tflop: float
    source: str

    @property
    def light_share(self) -> float:
        """Return the speed of light over the time; 0 to 1 if the model is right."""
        return self.light_ms / self.time_ms if self.time_ms > 0 else 0.0

    @property
    def is_link(self) -> bool:
        """Return whether it moves data between accelerators."""
        return self.kind in _LINK_KINDS

    @property
    def is_kernel(self) -> bool:
        """Return whether it performs the model's multiplications."""
        return self.kind is not None and self.kind.record.kernels > 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Step of one configuration, by operator.

    Attributes
    ----------
    step : str
        Name of the step.
    lines : tuple[OperatorLine, ...]
        Operators, largest first.
    latency_ms : float
        Sum of their times. [ms]
    """

    step: str
    lines: tuple[OperatorLine, ...]
    latency_ms: float


def explain(
    option: Option, phase: str, layout: Parallelism, batch: int, request: RequestShape
) -> Explanation:
    """Explain one configuration by operator.

    With continuous batching, the step is the iteration that carries prompts.
    """
    shape, step = step_of(phase, layout, batch, request)
    evaluator = option.evaluator
    times = evaluator.step(shape)
    light: dict[str, OperatorLine] = {}
    for operator in evaluator.operators(shape):
        if operator.count[0] > 0:
            found = evaluator.source.times(operator.kind, operator.dtype, operator.dims)
            label = Provenance(int(found.provenance[0])).label
            line = _line(evaluator.accelerator, operator, float(found.latency_ms[0]), label)
            light[operator.name] = _joined(light.get(operator.name), line)
    lines = []
    for name, row in zip(times.names, times.breakdown_ms[:, 0].tolist(), strict=True):
        if row > 0:
            # Time outside operators (gaps between layers, waits of a technique) has no speed of light.
            known = light.get(name) or _without_light(name)
            lines.append(replace(known, time_ms=row))
    lines.sort(key=lambda line: -line.time_ms)
    return Explanation(step, tuple(lines), float(times.latency_ms[0]))


def _joined(first: OperatorLine | None, second: OperatorLine) -> OperatorLine:
    """Merge operators of one name, which layers of several shapes run, into one line."""
    if first is None:
        return second
    return replace(
        first,
        shape=f"{first.shape}; {second.shape}",
        count=first.count + second.count,
        compute_ms=first.compute_ms + second.compute_ms,
        light_ms=first.light_ms + second.light_ms,
        tflop=first.tflop + second.tflop,
    )


def _without_light(name: str) -> OperatorLine:
    return OperatorLine(name, "", None, "", 1.0, 0.0, 0.0, 0.0, 0.0, Provenance.ROOFLINE.label)


def step_of(phase: str, layout: Parallelism, batch: int, request: RequestShape) -> tuple[StepShape, str]:
    """Return the step that explains a configuration, and its name."""
    configurations = configurations_of(
        [layout], np.array([batch], dtype=np.int64), [request], np.zeros(1, dtype=np.int64)
    )
    if phase == PREFILL:
        return prefill_shape(configurations), "prefill pass"
    if phase != AGGREGATED:
        return decode_shape(configurations), "decode pass"
    mix = prefill_mix(configurations.batch, configurations.output_tokens)
    share = float(mix.more_share[0])
    name = f"iteration with {counted(int(mix.more[0]), 'prompt')} ({share:.1%} of iterations)"
    return steady_shape(configurations, mix.more), name


def _line(accelerator: Accelerator, operator: Operator, each_ms: float, source: str) -> OperatorLine:
    done = work(operator.kind, operator.dtype, operator.dims)
    count = float(operator.count[0])
    peak_tflops = None
    if operator.kind.record.kernels:
        # Attention computes in BF16, whatever the data type of its cache.
        with_weights = operator.kind in WEIGHT_KINDS
        peak_tflops = accelerator.peak_tflops(operator.dtype if with_weights else "bf16")
    compute_ms = 0.0
    if peak_tflops is not None:
        compute_ms = float(done.flops[0]) / (peak_tflops * _FLOPS_PER_MS_OF_TFLOPS)
    moved = float(done.weight_bytes[0] + done.kv_bytes[0] + done.activation_bytes[0])
    memory_ms = moved / (accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S)
    light_ms = max(compute_ms, memory_ms, _link_ms(accelerator, operator, float(done.link_bytes[0])))
    shape = ", ".join(f"{name} {int(values[0]):,}" for name, values in operator.dims.items())
    return OperatorLine(
        operator.name,
        operator.dtype if operator.dtype in BYTES_PER_ELEMENT else "",
        operator.kind,
        shape,
        count,
        count * each_ms,
        count * compute_ms,
        count * light_ms,
        count * float(done.flops[0]) / 1e12,
        source,
    )


def _link_ms(accelerator: Accelerator, operator: Operator, link_bytes: float) -> float:
    if operator.kind not in _LINK_KINDS:
        return 0.0
    ranks = operator.dims.get("ranks", np.array([2]))
    used = float(links_used(accelerator, ranks)[0])
    inside_ms = link_bytes / (used * accelerator.scale_up_gb_per_s * BYTES_PER_MS_OF_GB_PER_S)
    if accelerator.scale_out_gb_per_s is None:
        return inside_ms
    per_ms = accelerator.scale_out_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    if operator.kind is OperatorKind.SEND_RECV:
        far = int(operator.dims["stride"][0]) >= accelerator.scale_up_accelerators
        return link_bytes / per_ms if far else inside_ms
    placed = groups(accelerator, operator.dims["ranks"], operator.dims["stride"])
    if not placed.leaves[0]:
        return inside_ms
    message = operator.dims["message_bytes"].astype(np.float64)
    return float(network_bytes(operator.kind, message, placed)[0]) / per_ms
