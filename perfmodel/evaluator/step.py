"""Time of single steps, with the techniques that act on every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.evaluator.model_memory import ModelMemory
from fleetplan.perfmodel.evaluator.phase_ratios import calibrated
from fleetplan.perfmodel.interruption import checkpoint
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.steps import (
    OperatorTimesSource,
    StepShape,
    StepTimes,
    step_operators,
    step_times,
)
from fleetplan.perfmodel.steps.communication import dispatched
from fleetplan.perfmodel.steps.folding import Places
from fleetplan.perfmodel.steps.grid_latency import CrossedStep, grid_step_times
from fleetplan.perfmodel.steps.host_gaps import GAP_NAME, SYNCHRONOUS_GAP, gap_ms, host_gap
from fleetplan.perfmodel.steps.host_launches import HOST_NAME, US_PER_LAUNCH, launch_ms
from fleetplan.perfmodel.steps.memory import (
    kv_gib_per_sequence,
    weights_gib,
)
from fleetplan.perfmodel.steps.merged_experts import MERGING_FRAMEWORKS, merged_experts
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.perfmodel.steps.software_versions import AMD, NVIDIA, as_run
from fleetplan.perfmodel.steps.sparse import DENSE_PROMPT_FRAMEWORKS, with_dense_prompts
from fleetplan.perfmodel.steps.times import concatenated_times, with_wait
from fleetplan.perfmodel.techniques.expert_overlap import faster_of, half_batch
from fleetplan.perfmodel.techniques.expert_routing import RoutedSource, changes_times
from fleetplan.perfmodel.techniques.offload import stream_ms, with_stall
from fleetplan.perfmodel.techniques.record import TechniqueStep
from fleetplan.perfmodel.techniques.registry import computed_shape, with_their_operators

CHUNK_CONFIGURATIONS: Final = 65_536
"""Configurations that are evaluated at once: their arrays stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A step over a cross product whose operators are queued for look-up.

    Attributes
    ----------
    shape : StepShape
        The step.
    operators : list[Operator]
        Operators of the step.
    crossed : CrossedStep or None
        Their times; None if halves of the step overlap, which are evaluated apart.
    """

    shape: StepShape
    operators: list[Operator]
    crossed: CrossedStep | None


@dataclass(frozen=True, slots=True)
class StepEvaluator(ModelMemory):
    """A model at a precision on an accelerator: time of a step, and memory."""

    @property
    def software_date(self) -> str:
        """Year and month of the framework (YYYY-MM); empty for the newest."""
        return self.software.date

    @property
    def overlaps_host(self) -> bool:
        """Whether the cache of states lets the framework make up its next step while one runs."""
        return self.state_slots is None or self.state_slots.overlaps_host

    def step(self, shape: StepShape) -> StepTimes:
        """Return the time of one step.

        Raises
        ------
        UnsupportedDtype
            The accelerator has no matrix units for a data type.
        UnsupportedArchitecture
            The model has layers that are not evaluated yet.
        """
        if shape.is_full_grid:
            return self._chunk(shape)
        n_configs = shape.rank_tokens.size
        starts = range(0, max(n_configs, 1), CHUNK_CONFIGURATIONS)
        if len(starts) == 1:
            return self._chunk(shape)
        rows = np.arange(n_configs)
        return concatenated_times(
            [self._chunk(shape.take(rows[at : at + CHUNK_CONFIGURATIONS])) for at in starts]
        )

    def steps(self, shapes: Sequence[StepShape]) -> list[StepTimes]:
        """Return the times of several steps in one evaluation: their operators share the look-ups.

        Raises
        ------
        UnsupportedDtype, UnsupportedArchitecture
            As `step`.
        """
        if any(shape.is_full_grid for shape in shapes):
            return [self.step(shape) for shape in shapes]
        times = self.step(StepShape.concatenated(shapes))
        ends = np.cumsum([shape.rank_tokens.size for shape in shapes]).tolist()
        starts = [0, *ends[:-1]]
        return [times.part(slice(start, end)) for start, end in zip(starts, ends, strict=True)]

    def asked_steps(
        self, shapes: Sequence[StepShape], lookups: SharedLookups
    ) -> Callable[[], list[StepTimes]]:
        """Return what gives the times of several steps in full detail, whose operators wait for a look-up.

        The times equal those of `steps` for all configurations, the last axis fastest, but operators are
        looked up once for all layouts with equal dimensions.

        Parameters
        ----------
        shapes : Sequence[StepShape]
            Cross products with the same layouts along the first axis; the second axis may differ.
        lookups : SharedLookups
            Queue of the operators. The returned function raises as `step` does.

        Raises
        ------
        UnsupportedArchitecture
            As `step`.
        """
        whole = StepShape.side_by_side(shapes)
        n_layouts, n_points, _ = whole.crossed
        rows, at_once = np.arange(n_layouts), max(1, CHUNK_CONFIGURATIONS // n_points)
        parts = [
            self.asked_step(whole.of_layouts(rows[at : at + at_once]), lookups)
            for at in range(0, n_layouts, at_once)
        ]
        ends = np.cumsum([shape.crossed[1] for shape in shapes]).tolist()

        def found() -> list[StepTimes]:
            times = concatenated_times([self._detailed(part) for part in parts])
            return [
                times.part(np.add.outer(rows * n_points, np.arange(start, end)).ravel())
                for start, end in zip([0, *ends[:-1]], ends, strict=True)
            ]

        return found

    def _detailed(self, asked: PendingStep) -> StepTimes:
        """Return the times of a step over a cross product in full detail, the last axis fastest."""
        checkpoint()
        flat, shape = asked.shape.flattened(), asked.shape.crossed
        if asked.crossed is None:
            return self._chunk(flat)
        return self._finished(flat, asked.crossed.all_operators(shape), asked.crossed.all_detail(shape))

    def asked_step(self, shape: StepShape, lookups: SharedLookups) -> PendingStep:
        """Ask for the operators of one step over a cross product, which wait for a look-up.

        Raises
        ------
        UnsupportedArchitecture, WorkInterruptedError
            As `step` and `detail`.
        """
        checkpoint()
        if self._overlaps_halves(shape):
            return PendingStep(shape, [], None)
        operators = list(self.operators(shape))
        overlap = self.techniques.expert_overlap
        crossed = CrossedStep.of(operators, self._routed_source, self.accelerator, overlap, lookups)
        return PendingStep(shape, operators, crossed)

    def time_of(self, asked: PendingStep) -> StepTimes:
        """Return the time of a queued step; raises as `step` and `detail` do."""
        checkpoint()
        if asked.crossed is None:
            return self.step(asked.shape)
        return self._finished(asked.shape, asked.operators, asked.crossed.times())

    def detail(self, shape: StepShape, crossed: CrossedStep, places: Places) -> StepTimes:
        """Return the time of some steps of a cross product in full detail, without looking anything up again.

        Parameters
        ----------
        shape : StepShape
            These steps, one after the other.
        crossed : CrossedStep
            As `asked_step` returned it.
        places : Places
            Position of each in the cross product.

        Raises
        ------
        WorkInterruptedError
            The time of an interruptible computation is over.
        """
        checkpoint()
        return self._finished(shape, crossed.operators(places), crossed.detail(places))

    def _chunk(self, shape: StepShape) -> StepTimes:
        operators = list(self.operators(shape))
        return self._finished(shape, operators, self._computed(shape, operators))

    def _finished(self, shape: StepShape, operators: Iterable[Operator], computed: StepTimes) -> StepTimes:
        """Return the times of the operators, calibrated, and with the other waits of a step."""
        times = calibrated(computed, shape, self.phase_ratios)
        return self._scheduled(shape, self._launched(shape, operators, self._streamed(shape, times)))

    def _overlaps_halves(self, shape: StepShape) -> bool:
        return self.techniques.expert_overlap == "two-batch" and bool(dispatched(shape.layouts).any())

    def _computed(self, shape: StepShape, operators: list[Operator]) -> StepTimes:
        """Return the times of the operators, of the whole batch or of two halves that overlap."""
        times = grid_step_times if shape.is_full_grid else step_times
        overlap, source = self.techniques.expert_overlap, self._routed_source
        if not self._overlaps_halves(shape):
            return times(operators, source, self.accelerator, overlap)
        whole = times(operators, source, self.accelerator)
        half = times(self.operators(half_batch(shape)), source, self.accelerator, overlap)
        return faster_of(whole, half, shape)

    def _launched(self, shape: StepShape, operators: Iterable[Operator], times: StepTimes) -> StepTimes:
        """Return the times with the wait for a host that launches the kernels of prompts one by one."""
        framework = self._framework
        if framework not in US_PER_LAUNCH or not np.any(shape.prefill_sequences):
            return times
        launched_ms = launch_ms(operators, framework)
        waits_ms = np.maximum(0.0, launched_ms - times.latency_ms)
        return with_wait(times, np.where(shape.prefill_sequences > 0, waits_ms, 0.0), HOST_NAME)

    def _scheduled(self, shape: StepShape, times: StepTimes) -> StepTimes:
        """Return the times with the wait for a host that schedules between two steps."""
        gap = host_gap(self._framework, self.software)
        if not self.overlaps_host and self.software.iterations_ahead is None:
            gap = SYNCHRONOUS_GAP
        if gap.step_ms == 0.0:
            return times
        return with_wait(times, gap_ms(shape, gap, is_served=self.software.is_served), GAP_NAME)

    def operators(self, shape: StepShape) -> Iterable[Operator]:
        """Return the operators of a step as the framework runs them, with the techniques that act on them."""
        computed = computed_shape(shape, self.techniques)
        architecture = self.architecture
        if isinstance(self.source, OperatorSource) and self.source.framework in MERGING_FRAMEWORKS:
            architecture = merged_experts(architecture, self.dtypes)
        if isinstance(self.source, OperatorSource) and self.source.framework in DENSE_PROMPT_FRAMEWORKS:
            architecture = with_dense_prompts(architecture)
        of_decoder = step_operators(architecture, self.dtypes, computed, self._spread(shape.layouts))
        step = TechniqueStep(architecture, shape, computed, self.techniques)
        operators = with_their_operators(of_decoder, step)
        # Facts of NVIDIA's parts apply wherever operators come from, except on AMD parts.
        vendor = AMD if self.accelerator.vendor == AMD else NVIDIA
        if isinstance(self.source, OperatorSource) or vendor == AMD:
            operators = as_run(operators, architecture, self._framework, self.software_date, vendor)
        return operators

    @property
    def _routed_source(self) -> OperatorTimesSource:
        routing = self.techniques.experts
        if not changes_times(routing):
            return self.source
        return RoutedSource(self.source, self.accelerator, routing)

    def _streamed(self, shape: StepShape, times: StepTimes) -> StepTimes:
        """Return the times including the wait for offloaded weights and caches."""
        offload, layouts = self.techniques.offload, shape.layouts
        if offload is None:
            return times
        prefixes = kv_gib_per_sequence(self.architecture, self.dtypes, layouts, shape.prefix_tokens)
        contexts = kv_gib_per_sequence(self.architecture, self.dtypes, layouts, shape.context_tokens)
        kv = shape.prefill_sequences * prefixes + shape.decode_sequences * contexts
        redundant = self._spread(layouts).redundant
        weights = weights_gib(self.architecture, self.dtypes, layouts, redundant_experts=redundant)
        return with_stall(times, stream_ms(offload, layouts.pp, weights, kv))
