"""The one evaluator: latency, rate and memory of prefill, decode and continuous batching configurations.

A prediction of one row, the landscape of a service and the planner's candidates all come from here, so
the same configuration has the same numbers everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory.techniques import PIPELINED_CHUNKS
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator.rates import (
    continuous_batching_requests_per_s,
    continuous_batching_tpot_ms,
    decode_requests_per_s,
    prefill_mix,
    prefill_requests_per_s,
    prompt_iteration_ms,
)
from fleetplan.perfmodel.evaluator.result import PhaseResult
from fleetplan.perfmodel.evaluator.step import StepEvaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.steps import (
    ConfigurationBatch,
    MemoryUse,
    StepShape,
    StepTimes,
    decode_shape,
    mixed_shape,
    prefill_shape,
    steady_shape,
)
from fleetplan.perfmodel.steps.times import with_wait
from fleetplan.perfmodel.techniques.chunked_prefill import (
    PromptTimes,
    StepsEvaluator,
    batching,
    chunks_of,
    prompt_chunks,
    prompt_times,
    scaled_times,
)
from fleetplan.perfmodel.techniques.memory import session_gib
from fleetplan.perfmodel.techniques.session_cache import TierHits, tier_hits
from fleetplan.perfmodel.techniques.speculative import step_cost_ratio, tokens_per_step

LOAD_NAME: Final = "session_load"
"""The name in a breakdown of the wait for the cache of a session."""


@dataclass(frozen=True, slots=True)
class Evaluator(StepEvaluator):
    """Latency, rate and memory of the phases of serving, from their steps."""

    def prefill_memory(self, configurations: ConfigurationBatch) -> MemoryUse:
        """Return the memory of prompts alone: each keeps its cache until it is handed over."""
        kv_tokens = configurations.input_tokens + configurations.prefix_tokens
        shape = self._largest_prompt(configurations)(prefill_shape(configurations))
        return self.memory(
            shape, configurations.batch, kv_tokens, session_tokens=configurations.prefix_tokens
        )

    def generating(self) -> Evaluator:
        """Return the evaluator of a server that generates alone.

        It has no prefix cache, so that states share the memory of the tokens. Source: SGLang,
        `pd_disaggregation_hook.py`, a server of decode has a cache without prefixes and no further slots.
        """
        return self if self.state_slots is None else replace(self, state_slots=None)

    def decode_memory(self, configurations: ConfigurationBatch) -> MemoryUse:
        """Return the memory of generation alone, when every sequence is at its end."""
        return self.generating().memory(
            decode_shape(configurations),
            configurations.batch,
            configurations.held_tokens,
            configurations.output_tokens,
        )

    def aggregated_memory(self, configurations: ConfigurationBatch) -> MemoryUse:
        """Return the memory of continuous batching, in an iteration that carries prompts."""
        shape = mixed_shape(configurations, self._prompts_together(configurations))
        return self.memory(
            self._largest_prompt(configurations)(shape),
            configurations.batch,
            configurations.held_tokens,
            configurations.output_tokens,
            configurations.prefix_tokens,
        )

    def prefill(self, configurations: ConfigurationBatch, steps: StepsEvaluator | None = None) -> PhaseResult:
        """Evaluate prompts alone: `batch` prompts a rank and micro-batch at a time.

        TTFT includes their chunks, which follow each other through the stages of a pipeline if the framework
        allows it, and the loads of kept sessions. `steps` replaces the method of that name.
        """
        pipelined = self._pipelines_chunks(configurations)
        prompts = self._prompts(configurations, prefill_shape(configurations), steps, pipelined)
        times = with_wait(prompts.computed, prompts.load_ms, LOAD_NAME)
        result = self.prefill_result(configurations, times)
        result = replace(result, ttft_ms=result.ttft_ms - prompts.overlapped_ms(configurations.layouts.pp))
        if self.techniques.persistent_kv is None:
            return result
        # While one micro-batch's sessions load, another one computes.
        busy_ms = np.maximum(prompts.computed.latency_ms, prompts.load_ms)
        rate = prefill_requests_per_s(configurations.layouts.pp, configurations.sequences, busy_ms)
        return replace(result, requests_per_s=rate)

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

    def decode(self, configurations: ConfigurationBatch, steps: StepsEvaluator | None = None) -> PhaseResult:
        """Evaluate generation alone: each of `batch` sequences a rank gains tokens in a step.

        `steps` replaces the method of that name.
        """
        shape = decode_shape(configurations)
        return self.decode_result(configurations, self.step(shape) if steps is None else steps([shape])[0])

    def decode_result(self, configurations: ConfigurationBatch, times: StepTimes) -> PhaseResult:
        """Return what generation alone reaches, given the times of its (verifying) step."""
        step_ms = times.latency_ms * self._draft_ratio
        tpot = step_ms / self._tokens_per_step
        # Without a length of the output a step has a time, but requests have no rate.
        output = np.where(configurations.output_tokens > 0, configurations.output_tokens, np.nan)
        generated = output * self.techniques.samples_per_prompt
        return PhaseResult(
            step_ms,
            np.full(times.latency_ms.shape, np.nan),
            tpot,
            decode_requests_per_s(configurations.layouts.pp, configurations.sequences, generated, tpot),
            times.by_provenance_ms * self._draft_ratio,
            times.bottleneck,
            times.names,
            self.decode_memory(configurations),
        )

    def aggregated(self, configurations: ConfigurationBatch) -> PhaseResult:
        """Evaluate continuous batching: prompts join the decode iterations as sequences end.

        TTFT is the iteration that carries the prompt, TPOT the mean of iterations with and without
        prompts. Prompts are whole unless the techniques cut them.
        """
        techniques = self.techniques
        if techniques.chunk_tokens is not None or techniques.persistent_kv is not None:
            return self._aggregated_in_parts(configurations)
        steps = self._steps_per_sequence(configurations)
        mix = prefill_mix(configurations.batch, steps * techniques.samples_per_prompt)
        fewer, more = self.steps(
            [steady_shape(configurations, mix.fewer), steady_shape(configurations, mix.more)]
        )
        ratio = self._draft_ratio
        iteration_ms = ratio * continuous_batching_tpot_ms(mix, fewer.latency_ms, more.latency_ms)
        first_ms = ratio * prompt_iteration_ms(mix, fewer.latency_ms, more.latency_ms)
        more_share = mix.more_share
        by_provenance = (1.0 - more_share) * fewer.by_provenance_ms + more_share * more.by_provenance_ms
        rate = continuous_batching_requests_per_s(
            configurations.layouts.pp,
            configurations.sequences,
            self._steps_after_first(configurations),
            first_ms,
            iteration_ms,
        )
        return PhaseResult(
            iteration_ms,
            ratio * more.latency_ms,
            iteration_ms / self._tokens_per_step,
            rate / techniques.samples_per_prompt,
            ratio * by_provenance,
            more.bottleneck,
            more.names,
            self.aggregated_memory(configurations),
        )

    def _aggregated_in_parts(self, configurations: ConfigurationBatch) -> PhaseResult:
        """Evaluate continuous batching whose prompts take several iterations, or come from kept sessions."""
        together = self._prompts_together(configurations)
        ratio = self._draft_ratio
        decode = scaled_times(self.step(decode_shape(configurations)), ratio)
        shape = mixed_shape(configurations, together, self._generating_beside(configurations, together))
        prompts = self._prompts(configurations, shape)
        prompts = replace(prompts, iteration=scaled_times(prompts.iteration, ratio))
        found = batching(
            configurations.batch,
            self._steps_after_first(configurations),
            self.techniques.samples_per_prompt,
            together,
            decode.latency_ms,
            prompts,
        )
        carrying = found.carrying_ratio
        by_provenance = (1.0 - carrying) * decode.by_provenance_ms
        return PhaseResult(
            found.iteration_ms,
            found.ttft_ms,
            found.iteration_ms / self._tokens_per_step,
            found.prompts_per_ms * configurations.layouts.dp * configurations.layouts.pp * MS_PER_S,
            by_provenance + carrying * prompts.iteration.by_provenance_ms,
            prompts.iteration.bottleneck,
            prompts.iteration.names,
            self.aggregated_memory(configurations),
        )

    @property
    def _tokens_per_step(self) -> float:
        return tokens_per_step(self.techniques.speculative)

    @property
    def _draft_ratio(self) -> float:
        return step_cost_ratio(self.techniques.speculative)

    def _steps_per_sequence(self, configurations: ConfigurationBatch) -> FloatArray:
        steps: FloatArray = configurations.output_tokens / self._tokens_per_step
        return steps

    def _steps_after_first(self, configurations: ConfigurationBatch) -> FloatArray:
        """Return the steps of a sequence after its prompt, which ends with its first token."""
        steps: FloatArray = np.maximum(0, configurations.output_tokens - 1) / self._tokens_per_step
        return steps

    def _generating_beside(self, configurations: ConfigurationBatch, together: IntArray) -> IntArray:
        """Return the sequences that generate beside `together` prompts: no more than these keep supplied."""
        samples, chunk = self.techniques.samples_per_prompt, self.techniques.chunk_tokens
        count = chunks_of(configurations.input_tokens, configurations.prefix_tokens, chunk).count
        supplied = np.ceil(samples * together * self._steps_after_first(configurations) / count)
        found: IntArray = np.minimum(
            np.maximum(0, configurations.batch - together), supplied.astype(np.int64)
        )
        return found

    def _prompts_together(self, configurations: ConfigurationBatch) -> IntArray:
        """Return the prompts that share an iteration: as many as are due, and as chunks leave room for."""
        steps = self._steps_per_sequence(configurations) * self.techniques.samples_per_prompt
        due = prefill_mix(configurations.batch, steps).more
        chunk = self.techniques.chunk_tokens
        if chunk is None:
            return due
        room = np.maximum(1, chunk // np.minimum(configurations.input_tokens, chunk))
        return np.clip(due, 1, room)

    def _pipelines_chunks(self, configurations: ConfigurationBatch) -> bool:
        """Whether chunks of one prompt are in several stages of a pipeline at once."""
        cut = self.techniques.chunk_tokens is not None
        return cut and self._framework in PIPELINED_CHUNKS and bool((configurations.layouts.pp > 1).any())

    def _prompts(
        self,
        configurations: ConfigurationBatch,
        whole: StepShape,
        steps: StepsEvaluator | None = None,
        pipelined: bool = False,
    ) -> PromptTimes:
        """Return the times of prompts; `whole` is the step that would compute them at once."""

        def shape_of(new_tokens: IntArray, prefix_tokens: IntArray) -> StepShape:
            return replace(whole, new_tokens=new_tokens, prefix_tokens=prefix_tokens)

        techniques = self.techniques
        hits = self._session_hits(configurations, whole.prefill_sequences)
        chunk, shared = techniques.chunk_tokens, techniques.shared_prefix_tokens
        return prompt_times(steps or self.steps, shape_of, configurations, chunk, shared, hits, pipelined)

    def prefill_shapes(self, configurations: ConfigurationBatch) -> list[StepShape]:
        """Return the steps that `prefill` needs, in its order."""
        whole, techniques = prefill_shape(configurations), self.techniques
        chunk, shared = techniques.chunk_tokens, techniques.shared_prefix_tokens
        may_be_lost = techniques.persistent_kv is not None and bool(techniques.persistent_kv.tiers)
        return [
            replace(whole, new_tokens=each.new_tokens, prefix_tokens=each.prefix_tokens)
            for each in prompt_chunks(
                configurations, chunk, shared, may_be_lost, self._pipelines_chunks(configurations)
            )
        ]

    def _session_hits(self, configurations: ConfigurationBatch, prompts: IntArray) -> list[TierHits]:
        persistent = self.techniques.persistent_kv
        if persistent is None:
            return []
        gib = session_gib(self.architecture, self.dtypes, configurations.prefix_tokens, self.techniques)
        layouts = configurations.layouts
        return tier_hits(persistent, gib, prompts, layouts.accelerators / layouts.dp)

    def _largest_prompt(self, configurations: ConfigurationBatch) -> Callable[[StepShape], StepShape]:
        """Return how to turn a step of whole prompts into the largest computed one, for its activations."""
        techniques, tokens = self.techniques, configurations.input_tokens
        if techniques.persistent_kv is not None:
            # If a session is lost, the whole prompt is computed.
            tokens = tokens + np.maximum(0, configurations.prefix_tokens - techniques.shared_prefix_tokens)
        new_tokens = chunks_of(tokens, configurations.prefix_tokens, techniques.chunk_tokens).new_tokens
        return lambda shape: replace(shape, new_tokens=new_tokens)
