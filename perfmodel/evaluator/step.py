"""Time and memory of single steps, with the techniques that act on every step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator, Precision, Techniques
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.evaluator.phase_ratios import UNCALIBRATED, PhaseRatios, calibrated
from fleetplan.perfmodel.interruption import checkpoint
from fleetplan.perfmodel.operators import FloatArray, IntArray, Operator
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps import (
    ConfigurationBatch,
    MemoryUse,
    OperatorTimesSource,
    PartDtypes,
    StepShape,
    StepTimes,
    memory_use,
    part_dtypes,
    step_operators,
    step_times,
)
from fleetplan.perfmodel.steps.communication import dispatched
from fleetplan.perfmodel.steps.experts import ExpertSpread
from fleetplan.perfmodel.steps.grid_latency import CrossedStep, Places, grid_step_times
from fleetplan.perfmodel.steps.host_gaps import GAP_NAME, SYNCHRONOUS_GAP, gap_ms, host_gap
from fleetplan.perfmodel.steps.host_launches import HOST_NAME, US_PER_LAUNCH, launch_ms
from fleetplan.perfmodel.steps.latency import concatenated_times, with_wait
from fleetplan.perfmodel.steps.memory import (
    RESERVE_OF_FREE_FRAMEWORKS,
    KvResidency,
    kv_gib_per_sequence,
    state_gib_per_sequence,
    weights_gib,
)
from fleetplan.perfmodel.steps.merged_experts import MERGING_FRAMEWORKS, merged_experts
from fleetplan.perfmodel.steps.software_versions import TODAYS_SOFTWARE, Software, as_run
from fleetplan.perfmodel.steps.sparse import DENSE_PROMPT_FRAMEWORKS, with_dense_prompts
from fleetplan.perfmodel.steps.state_slots import StateSlots
from fleetplan.perfmodel.techniques.expert_overlap import faster_of, half_batch
from fleetplan.perfmodel.techniques.expert_routing import RoutedSource, changes_times, expert_spread
from fleetplan.perfmodel.techniques.kv_transfer import exposed_ms, transfer_ms
from fleetplan.perfmodel.techniques.memory import (
    HeldCache,
    running_kv_gib,
    sequence_bytes,
    session_gib,
    with_techniques,
)
from fleetplan.perfmodel.techniques.offload import stream_ms, with_stall
from fleetplan.perfmodel.techniques.record import TechniqueStep
from fleetplan.perfmodel.techniques.registry import computed_shape, with_their_operators
from fleetplan.perfmodel.techniques.speculative import verified_tokens

CHUNK_CONFIGURATIONS: Final = 65_536
"""Configurations that are evaluated at once: their arrays stay in the processor's cache."""

NO_TECHNIQUES: Final = Techniques()


@dataclass(frozen=True, slots=True)
class StepEvaluator:
    """A model at a precision on an accelerator: the time of a step, and what it keeps in memory.

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
    techniques : Techniques
        What is switched on; see `fleetplan.perfmodel.techniques` for what a model cannot use.
    phase_ratios : PhaseRatios
        Calibration by measurements; see `fleetplan.perfmodel.evaluator.calibration`.
    software : Software
        Date and settings of the framework; see `fleetplan.perfmodel.steps.software_versions`.
    state_slots : StateSlots or None
        How the framework keeps recurrent states; None where they share the memory of the cache.
    """

    architecture: ModelArchitecture
    accelerator: Accelerator
    source: OperatorTimesSource
    precision: Precision
    kv_residency: KvResidency = "all"
    techniques: Techniques = NO_TECHNIQUES
    phase_ratios: PhaseRatios = UNCALIBRATED
    software: Software = TODAYS_SOFTWARE
    state_slots: StateSlots | None = None

    @property
    def without_source(self) -> tuple[object, ...]:
        """What tells it from the other evaluators of its source."""
        return tuple(getattr(self, each.name) for each in fields(self) if each.name != "source")

    @property
    def software_date(self) -> str:
        """Year and month of the framework (YYYY-MM); the newest where it is empty."""
        return self.software.date

    @property
    def overlaps_host(self) -> bool:
        """Whether the cache of states lets the framework make up its next step while one runs."""
        return self.state_slots is None or self.state_slots.overlaps_host

    @property
    def _framework(self) -> str:
        """Whose operators are read; '' of a source that does not say."""
        return self.source.framework if isinstance(self.source, OperatorSource) else ""

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
        """Times of several steps in one evaluation: their operators share the look-ups.

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

    def crossed_steps(self, shapes: Sequence[StepShape]) -> list[StepTimes]:
        """Times of several steps in full detail, each over a cross product with the same layouts.

        They equal those of `steps` for all configurations, the last axis fastest, but operators are looked up
        once for all layouts that give them equal dimensions.

        Parameters
        ----------
        shapes : Sequence[StepShape]
            Layouts along the first axis, whatever else varies along the second.

        Raises
        ------
        UnsupportedDtype, UnsupportedArchitecture
            As `step`.
        """
        whole = StepShape.side_by_side(shapes)
        n_layouts, n_points, _ = whole.crossed
        rows, at_once = np.arange(n_layouts), max(1, CHUNK_CONFIGURATIONS // n_points)
        times = concatenated_times(
            [self._detailed(whole.of_layouts(rows[at : at + at_once])) for at in range(0, n_layouts, at_once)]
        )
        ends = np.cumsum([shape.crossed[1] for shape in shapes]).tolist()
        return [
            times.part(np.add.outer(rows * n_points, np.arange(start, end)).ravel())
            for start, end in zip([0, *ends[:-1]], ends, strict=True)
        ]

    def _detailed(self, shape: StepShape) -> StepTimes:
        """Times of a step over a cross product in full detail, the last axis fastest."""
        flat = shape.flattened()
        if self._overlaps_halves(shape):
            return self._chunk(flat)
        crossed = CrossedStep.of(
            self.operators(shape), self._routed_source, self.accelerator, self.techniques.expert_overlap
        )
        return self._finished(flat, crossed.all_operators(shape.crossed), crossed.all_detail(shape.crossed))

    def noted_step(self, shape: StepShape) -> tuple[StepTimes, CrossedStep | None]:
        """Time of one step over a cross product, and what `detail` needs; None where halves of it overlap.

        Raises
        ------
        UnsupportedDtype, UnsupportedArchitecture
            As `step`.
        """
        if self._overlaps_halves(shape):
            return self.step(shape), None
        operators = list(self.operators(shape))
        crossed = CrossedStep.of(
            operators, self._routed_source, self.accelerator, self.techniques.expert_overlap
        )
        return self._finished(shape, operators, crossed.times()), crossed

    def detail(self, shape: StepShape, crossed: CrossedStep, places: Places) -> StepTimes:
        """Time of some steps of a cross product in full detail, without looking anything up again.

        Parameters
        ----------
        shape : StepShape
            These steps, one after the other.
        crossed : CrossedStep
            As `noted_step` returned it.
        places : Places
            Where each stands in the cross product.

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
        """Times of the operators as calibrated, and with what else a step waits for."""
        times = calibrated(computed, shape, self.phase_ratios)
        return self._scheduled(shape, self._launched(shape, operators, self._streamed(shape, times)))

    def _overlaps_halves(self, shape: StepShape) -> bool:
        return self.techniques.expert_overlap == "two-batch" and bool(dispatched(shape.layouts).any())

    def _computed(self, shape: StepShape, operators: list[Operator]) -> StepTimes:
        """Times of the operators, of the whole batch or of two halves that overlap."""
        times = grid_step_times if shape.is_full_grid else step_times
        overlap, source = self.techniques.expert_overlap, self._routed_source
        if not self._overlaps_halves(shape):
            return times(operators, source, self.accelerator, overlap)
        whole = times(operators, source, self.accelerator)
        half = times(self.operators(half_batch(shape)), source, self.accelerator, overlap)
        return faster_of(whole, half, shape)

    def _launched(self, shape: StepShape, operators: Iterable[Operator], times: StepTimes) -> StepTimes:
        """Times with the wait for a host that launches the kernels of prompts one by one."""
        framework = self._framework
        if framework not in US_PER_LAUNCH or not np.any(shape.prefill_sequences):
            return times
        launched_ms = launch_ms(operators, framework)
        waits_ms = np.maximum(0.0, launched_ms - times.latency_ms)
        return with_wait(times, np.where(shape.prefill_sequences > 0, waits_ms, 0.0), HOST_NAME)

    def _scheduled(self, shape: StepShape, times: StepTimes) -> StepTimes:
        """Times with the wait for a host that schedules between two steps."""
        gap = host_gap(self._framework, self.software)
        if not self.overlaps_host and self.software.iterations_ahead is None:
            gap = SYNCHRONOUS_GAP
        return times if gap.sequence_us == 0.0 else with_wait(times, gap_ms(shape, gap), GAP_NAME)

    def _spread(self, layouts: Layouts) -> ExpertSpread:
        experts = self.architecture.routed_experts
        return expert_spread(self.techniques.experts, experts, layouts, self.accelerator)

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
        if isinstance(self.source, OperatorSource):
            operators = as_run(operators, architecture, self.source.framework, self.software_date)
        return operators

    @property
    def _routed_source(self) -> OperatorTimesSource:
        routing = self.techniques.experts
        if not changes_times(routing):
            return self.source
        return RoutedSource(self.source, self.accelerator, routing)

    def _streamed(self, shape: StepShape, times: StepTimes) -> StepTimes:
        """Times with the wait for what is offloaded."""
        offload, layouts = self.techniques.offload, shape.layouts
        if offload is None:
            return times
        prefixes = kv_gib_per_sequence(self.architecture, self.dtypes, layouts, shape.prefix_tokens)
        contexts = kv_gib_per_sequence(self.architecture, self.dtypes, layouts, shape.context_tokens)
        kv = shape.prefill_sequences * prefixes + shape.decode_sequences * contexts
        redundant = self._spread(layouts).redundant
        weights = weights_gib(self.architecture, self.dtypes, layouts, redundant_experts=redundant)
        return with_stall(times, stream_ms(offload, layouts.pp, weights, kv))

    def memory(
        self,
        shape: StepShape,
        sequences: IntArray,
        kv_tokens: IntArray,
        generated_tokens: IntArray | None = None,
        session_tokens: IntArray | None = None,
    ) -> MemoryUse:
        """Memory of the fullest accelerator; see `memory_use`.

        Parameters
        ----------
        shape, sequences, kv_tokens
            As in `memory_use`.
        generated_tokens : IntArray or None
            Part of `kv_tokens` that samples of a prompt do not share; None where every sequence is a
            prompt. [tokens]
        session_tokens : IntArray or None
            Tokens of sessions that are kept between requests; None where none are kept. [tokens]
        """
        dtypes, techniques, layouts = self.dtypes, self.techniques, shape.layouts
        largest = computed_shape(shape, techniques)
        use = memory_use(
            self.architecture,
            dtypes,
            self.accelerator,
            largest,
            sequences,
            kv_tokens,
            self.kv_residency,
        )
        if isinstance(self.source, OperatorSource):
            use = replace(use, reserve_of_free=self.source.framework in RESERVE_OF_FREE_FRAMEWORKS)
        redundant = self._spread(layouts).redundant
        if redundant.any():
            weights = weights_gib(self.architecture, dtypes, layouts, redundant_experts=redundant)
            use = replace(use, weights_gib=weights)
        taken = self.software.memory_ratio
        if taken is not None and not self.accelerator.sram_only:
            use = replace(use, reserve_ratio=1.0 - taken)
        slots = self.state_slots
        if techniques == NO_TECHNIQUES and slots is None:
            return use
        if generated_tokens is None:
            generated_tokens = np.zeros_like(kv_tokens)
            techniques = replace(techniques, samples_per_prompt=1)
        in_flight = layouts.pp if self.kv_residency == "all" else np.ones_like(layouts.pp)
        held = HeldCache(in_flight * sequences, kv_tokens, generated_tokens)
        running = running_kv_gib(self.architecture, dtypes, layouts, held, techniques, slots is None)
        kept = np.zeros_like(kv_tokens) if session_tokens is None else session_tokens
        sessions = session_gib(self.architecture, dtypes, kept, techniques)
        layers_per_stage = -(-self.architecture.layer_count // layouts.pp)
        use = with_techniques(use, running, sessions, layers_per_stage, techniques)
        if slots is None:
            return use
        states = held.sequences * slots.of_request(layouts.pp, verified_tokens(self.techniques))
        one = state_gib_per_sequence(self.architecture, layouts)
        return replace(
            use, kv_gib=slots.with_tokens_gib(use.kv_gib), slots_gib=slots.with_slots_gib(one, states)
        )

    def most_states(self, layouts: Layouts, room_gib: FloatArray) -> FloatArray:
        """Sequences of one rank and micro-batch for whose states there are slots, shape (n_configs,).

        Parameters
        ----------
        layouts : Layouts
            Parallelism.
        room_gib : FloatArray
            Memory that all but caches and states leaves. [GiB]
        """
        slots = self.state_slots
        if slots is None:
            return np.full(layouts.pp.shape, np.inf)
        in_flight = layouts.pp if self.kv_residency == "all" else np.ones_like(layouts.pp)
        of_request = slots.of_request(layouts.pp, verified_tokens(self.techniques))
        found = slots.most_slots(state_gib_per_sequence(self.architecture, layouts), room_gib)
        return np.floor(found / (in_flight * of_request))

    def kv_transfer_ms(
        self, configurations: ConfigurationBatch, prefill_ms: FloatArray | None = None
    ) -> FloatArray:
        """Time that handing prompts to decode adds after their computation, shape (n_configs,). [ms].

        The prompts of a micro-batch leave together, over the links of the accelerators of their rank. The
        cached prefix is sent along; what all requests share is there already. See
        `fleetplan.perfmodel.techniques.kv_transfer`.

        Parameters
        ----------
        configurations : ConfigurationBatch
            Lengths and parallelism.
        prefill_ms : FloatArray or None
            Computation of the prompt, which hides the transfer where that is switched on. [ms]
        """
        whole = configurations.batch * self._sending_ms(configurations)
        return exposed_ms(self.techniques.kv_transfer, whole, prefill_ms, self.architecture.layer_count)

    def transfer_requests_per_s(self, configurations: ConfigurationBatch) -> FloatArray:
        """Prompts whose cache the links of a prefill replica can send, shape (n_configs,). [1/s]."""
        sending_ms = self._sending_ms(configurations)
        busy_s = np.where(sending_ms > 0, sending_ms, np.nan) / MS_PER_S
        rate: FloatArray = np.where(sending_ms > 0, configurations.layouts.dp / busy_s, np.inf)
        return rate

    def _sending_ms(self, configurations: ConfigurationBatch) -> FloatArray:
        """Time that the links of one rank need for one prompt."""
        tokens = configurations.input_tokens + configurations.prefix_tokens
        kv_bytes = sequence_bytes(
            self.architecture, self.dtypes, np.maximum(0, tokens - self.techniques.shared_prefix_tokens)
        )
        layouts = configurations.layouts
        links = layouts.accelerators // layouts.dp
        return transfer_ms(self.accelerator, self.techniques.kv_transfer, kv_bytes, links)
