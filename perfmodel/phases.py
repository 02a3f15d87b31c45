"""The one evaluator: latency, rate and memory of prefill, decode and continuous batching configurations.

A prediction of one row, the landscape of a service and the planner's candidates all come from here, so
the same configuration has the same numbers everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.fleet.hardware import Accelerator
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture
from fleetplan.perfmodel.latency import (
    OperatorTimesSource,
    StepTimes,
    joined_times,
    provenance_shares,
    step_times,
)
from fleetplan.perfmodel.memory import KvResidency, MemoryUse, memory_use
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.optables.source import operator_source
from fleetplan.perfmodel.precision import PartDtypes, part_dtypes
from fleetplan.perfmodel.runtimes import (
    continuous_batching_requests_per_s,
    continuous_batching_tpot_ms,
    decode_requests_per_s,
    prefill_mix,
    prefill_requests_per_s,
)
from fleetplan.perfmodel.shapes import (
    ConfigurationBatch,
    StepShape,
    decode_shape,
    mixed_shape,
    prefill_shape,
)
from fleetplan.perfmodel.steps import step_operators

CHUNK_CONFIGURATIONS: Final = 65_536
"""Configurations that are evaluated at once: their arrays stay in the processor's cache."""

_BYTES_PER_MS_OF_GB_PER_S: Final = 1e6
_BYTES_PER_GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """What a phase reaches, each array of shape (n_configs,) unless said otherwise.

    Attributes
    ----------
    latency_ms : FloatArray
        One step: the prefill pass, the decode pass, or the mean iteration. [ms]
    ttft_ms, tpot_ms : FloatArray
        Mean time to first token without network and KV transfer, and per output token; NaN where the
        phase has none. [ms]
    requests_per_s : FloatArray
        Of one replica. [1/s]
    by_provenance_ms : FloatArray
        Time by `Provenance`, shape (4, n_configs). [ms]
    bottleneck : IntArray
        Operator that takes most of the time, as a position in `names`.
    names : tuple[str, ...]
        Operators.
    memory : MemoryUse
        Of the fullest accelerator.
    """

    latency_ms: FloatArray
    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    by_provenance_ms: FloatArray
    bottleneck: IntArray
    names: tuple[str, ...]
    memory: MemoryUse

    @property
    def shares(self) -> FloatArray:
        """Share of the time by `Provenance`, shape (4, n_configs)."""
        return provenance_shares(self.by_provenance_ms)

    @property
    def bottleneck_names(self) -> list[str]:
        """Operator that takes most of the time, one a configuration."""
        return [self.names[position] for position in self.bottleneck]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A model at a precision on an accelerator.

    Attributes
    ----------
    architecture : ModelArchitecture
        The model.
    accelerator : Accelerator
        Where it runs.
    source : OperatorTimesSource
        Operator times of that accelerator.
    precision : Precision
        Data types of weights and KV cache.
    kv_residency : {"all", "microbatch"}
        Whether the cache of all pipeline micro-batches is resident, or of one alone.
    """

    architecture: ModelArchitecture
    accelerator: Accelerator
    source: OperatorTimesSource
    precision: Precision
    kv_residency: KvResidency = "all"

    @property
    def dtypes(self) -> PartDtypes:
        """Data types of the model's parts."""
        return part_dtypes(self.architecture, self.precision)

    def step(self, shape: StepShape) -> StepTimes:
        """Time of one step.

        Raises
        ------
        UnsupportedDtype
            The accelerator has no matrix units for a data type.
        UnsupportedArchitecture
            The model has layers that are not evaluated yet.
        """
        n_configs = shape.rank_tokens.size
        starts = range(0, max(n_configs, 1), CHUNK_CONFIGURATIONS)
        if len(starts) == 1:
            return self._chunk(shape)
        rows = np.arange(n_configs)
        return joined_times([self._chunk(shape.take(rows[at : at + CHUNK_CONFIGURATIONS])) for at in starts])

    def steps(self, shapes: Sequence[StepShape]) -> list[StepTimes]:
        """Times of several steps in one evaluation: their operators share the look-ups.

        Raises
        ------
        UnsupportedDtype, UnsupportedArchitecture
            As `step`.
        """
        times = self.step(StepShape.joined(shapes))
        ends = np.cumsum([shape.rank_tokens.size for shape in shapes]).tolist()
        starts = [0, *ends[:-1]]
        return [times.part(slice(start, end)) for start, end in zip(starts, ends, strict=True)]

    def _chunk(self, shape: StepShape) -> StepTimes:
        operators = step_operators(self.architecture, self.dtypes, shape)
        return step_times(operators, self.architecture.layer_count, self.source, self.accelerator)

    def memory(self, shape: StepShape, sequences: IntArray, kv_tokens: IntArray) -> MemoryUse:
        """Memory of the fullest accelerator; see `memory_use`."""
        return memory_use(
            self.architecture, self.dtypes, self.accelerator, shape, sequences, kv_tokens, self.kv_residency
        )

    def prefill_memory(self, configurations: ConfigurationBatch) -> MemoryUse:
        """Memory of prompts alone: each keeps its cache until it is handed over."""
        kv_tokens = configurations.input_tokens + configurations.prefix_tokens
        return self.memory(prefill_shape(configurations), configurations.batch, kv_tokens)

    def decode_memory(self, configurations: ConfigurationBatch) -> MemoryUse:
        """Memory of generation alone, when every sequence is at its end."""
        return self.memory(decode_shape(configurations), configurations.batch, configurations.held_tokens)

    def aggregated_memory(self, configurations: ConfigurationBatch) -> MemoryUse:
        """Memory of continuous batching, in an iteration that carries prompts."""
        mix = prefill_mix(configurations.batch, configurations.output_tokens)
        shape = mixed_shape(configurations, mix.more)
        return self.memory(shape, configurations.batch, configurations.held_tokens)

    def prefill(self, configurations: ConfigurationBatch) -> PhaseResult:
        """Evaluate prompts alone: `batch` prompts a rank and micro-batch in one step."""
        return self.prefill_result(configurations, self.step(prefill_shape(configurations)))

    def prefill_result(self, configurations: ConfigurationBatch, times: StepTimes) -> PhaseResult:
        """Return what prompts alone reach, given the times of their step."""
        return PhaseResult(
            times.latency_ms,
            times.latency_ms,
            np.full(times.latency_ms.shape, np.nan),
            prefill_requests_per_s(configurations.layouts.pp, configurations.sequences, times.latency_ms),
            times.by_provenance_ms,
            times.bottleneck,
            times.names,
            self.prefill_memory(configurations),
        )

    def decode(self, configurations: ConfigurationBatch) -> PhaseResult:
        """Evaluate generation alone: each of `batch` sequences a rank gains a token in a step."""
        return self.decode_result(configurations, self.step(decode_shape(configurations)))

    def decode_result(self, configurations: ConfigurationBatch, times: StepTimes) -> PhaseResult:
        """Return what generation alone reaches, given the times of its step."""
        # Without a length of the output a step has a time, but requests have no rate.
        output = np.where(configurations.output_tokens > 0, configurations.output_tokens, np.nan)
        return PhaseResult(
            times.latency_ms,
            np.full(times.latency_ms.shape, np.nan),
            times.latency_ms,
            decode_requests_per_s(
                configurations.layouts.pp, configurations.sequences, output, times.latency_ms
            ),
            times.by_provenance_ms,
            times.bottleneck,
            times.names,
            self.decode_memory(configurations),
        )

    def aggregated(self, configurations: ConfigurationBatch) -> PhaseResult:
        """Evaluate continuous batching: whole prompts join the decode iterations as sequences end.

        TTFT is the iteration that carries the prompt, TPOT the mean of iterations with and without
        prompts. Prompts are not cut into chunks here; `fleetplan.perfmodel.serving` does that.
        """
        mix = prefill_mix(configurations.batch, configurations.output_tokens)
        fewer, more = self.steps(
            [mixed_shape(configurations, mix.fewer), mixed_shape(configurations, mix.more)]
        )
        tpot = continuous_batching_tpot_ms(mix, fewer.latency_ms, more.latency_ms)
        more_share = mix.more_share
        by_provenance = (1.0 - more_share) * fewer.by_provenance_ms + more_share * more.by_provenance_ms
        rate = continuous_batching_requests_per_s(
            configurations.layouts.pp,
            configurations.sequences,
            configurations.output_tokens,
            more.latency_ms,
            tpot,
        )
        memory = self.aggregated_memory(configurations)
        return PhaseResult(
            tpot, more.latency_ms, tpot, rate, by_provenance, more.bottleneck, more.names, memory
        )

    def kv_transfer_ms(self, configurations: ConfigurationBatch) -> FloatArray:
        """Time to hand a prompt's cache to decode, shape (n_configs,). [ms].

        All accelerators of the prefill replica send their share over their scale-out links, after the
        prompt is complete: nothing is hidden behind the computation. The cached prefix is sent along. A
        part without a network figure hands over within its scale-up domain.
        """
        link_gb_per_s = self.accelerator.scale_out_gb_per_s
        if link_gb_per_s is None:
            link_gb_per_s = self.accelerator.scale_up_gb_per_s
        tokens = configurations.input_tokens + configurations.prefix_tokens
        distinct, codes = np.unique(tokens, return_inverse=True)
        size = 1.0 if self.precision.kv == "fp8" else 2.0
        each = [self.architecture.kv_bytes_per_sequence(int(count), size) for count in distinct]
        kv_bytes = np.array(each, dtype=np.float64)[codes]
        link_bytes_per_ms = link_gb_per_s * _BYTES_PER_MS_OF_GB_PER_S * configurations.layouts.accelerators
        transfer: FloatArray = kv_bytes / link_bytes_per_ms
        return transfer


def build_evaluator(
    model: str, accelerator: Accelerator, framework: str, precision: Precision, folder: Path
) -> Evaluator:
    """Put together what evaluates `model` on `accelerator`.

    Parameters
    ----------
    model : str
        HF id or alias of the catalogue, or the path of a config relative to `folder`.
    accelerator : Accelerator
        Where it runs.
    framework : str
        trtllm, sglang or vllm: whose measured operators are read.
    precision : Precision
        Data types of weights and KV cache.
    folder : Path
        Where relative paths start.

    Raises
    ------
    InputError
        No such model, or an unreadable config.
    UnsupportedArchitecture
        A decoder that is not understood.
    """
    architecture = load_architecture(model, folder)
    return Evaluator(architecture, accelerator, operator_source(accelerator, framework), precision)
