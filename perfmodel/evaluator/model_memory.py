"""Memory of a model on accelerators, and transfers of KV caches between replicas."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator, Precision, Techniques
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.evaluator.phase_ratios import UNCALIBRATED, PhaseRatios
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps import (
    ConfigurationBatch,
    MemoryUse,
    OperatorTimesSource,
    PartDtypes,
    StepShape,
    memory_use,
    part_dtypes,
)
from fleetplan.perfmodel.steps.experts import ExpertSpread
from fleetplan.perfmodel.steps.memory import (
    RESERVE_OF_FREE_FRAMEWORKS,
    KvResidency,
    state_gib_per_sequence,
    weights_gib,
)
from fleetplan.perfmodel.steps.software_versions import TODAYS_SOFTWARE, Software
from fleetplan.perfmodel.steps.state_slots import StateSlots
from fleetplan.perfmodel.techniques.expert_routing import expert_spread
from fleetplan.perfmodel.techniques.kv_transfer import exposed_ms, transfer_ms
from fleetplan.perfmodel.techniques.memory import (
    HeldCache,
    running_kv_gib,
    sequence_bytes,
    session_gib,
    with_techniques,
)
from fleetplan.perfmodel.techniques.registry import computed_shape
from fleetplan.perfmodel.techniques.speculative import verified_tokens

NO_TECHNIQUES: Final = Techniques()


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """A model at a precision on an accelerator: its memory and its transfers.

    Attributes
    ----------
    architecture : ModelArchitecture
        The model.
    accelerator : Accelerator
        Accelerator.
    source : OperatorTimesSource
        Operator times of that accelerator.
    precision : Precision
        Data types of weights and KV cache.
    kv_residency : {"all", "microbatch"}
        Whether the cache of all pipeline micro-batches is resident, or of one alone.
    techniques : Techniques
        Techniques; see `fleetplan.perfmodel.techniques` for those that a model cannot use.
    phase_ratios : PhaseRatios
        Calibration by measurements; see `fleetplan.perfmodel.evaluator.calibration`.
    software : Software
        Date and settings of the framework; see `fleetplan.perfmodel.steps.software_versions`.
    state_slots : StateSlots or None
        Slots of the framework for recurrent states; None if they share the memory of the cache.
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
        """Key of this evaluator among those of its source."""
        return tuple(getattr(self, each.name) for each in fields(self) if each.name != "source")

    @property
    def _framework(self) -> str:
        """Framework of the operator tables; '' if the source does not state one."""
        return self.source.framework if isinstance(self.source, OperatorSource) else ""

    @property
    def dtypes(self) -> PartDtypes:
        """Data types of the model's parts."""
        return part_dtypes(self.architecture, self.precision)

    def _spread(self, layouts: Layouts) -> ExpertSpread:
        experts = self.architecture.routed_experts
        return expert_spread(self.techniques.experts, experts, layouts, self.accelerator)

    def memory(
        self,
        shape: StepShape,
        sequences: IntArray,
        kv_tokens: IntArray,
        generated_tokens: IntArray | None = None,
        session_tokens: IntArray | None = None,
    ) -> MemoryUse:
        """Return the memory of the fullest accelerator; see `memory_use`.

        Parameters
        ----------
        shape, sequences, kv_tokens
            As in `memory_use`.
        generated_tokens : IntArray or None
            Part of `kv_tokens` that samples of a prompt do not share; None if every sequence is a
            prompt. [tokens]
        session_tokens : IntArray or None
            Tokens of sessions kept between requests; None without any. [tokens]
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
        """Return sequences of one rank and micro-batch for whose states there are slots, shape (n_configs,).

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
        """Return time that handing prompts to decode adds after their computation, shape (n_configs,). [ms].

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
        """Return prompts whose cache the links of a prefill replica can send, shape (n_configs,). [1/s]."""
        sending_ms = self._sending_ms(configurations)
        busy_s = np.where(sending_ms > 0, sending_ms, np.nan) / MS_PER_S
        rate: FloatArray = np.where(sending_ms > 0, configurations.layouts.dp / busy_s, np.inf)
        return rate

    def _sending_ms(self, configurations: ConfigurationBatch) -> FloatArray:
        """Return the time that the links of one rank need for one prompt."""
        tokens = configurations.input_tokens + configurations.prefix_tokens
        kv_bytes = sequence_bytes(
            self.architecture, self.dtypes, np.maximum(0, tokens - self.techniques.shared_prefix_tokens)
        )
        layouts = configurations.layouts
        links = layouts.accelerators // layouts.dp
        return transfer_ms(self.accelerator, self.techniques.kv_transfer, kv_bytes, links)
