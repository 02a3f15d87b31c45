"""Computation of prompts: whole or in chunks, over a cache that is present, loaded, or recomputed.

A chunk attends to the chunks before it. Attention over them grows in a straight line with their length,
so n equal chunks take n times the chunk that has half of the others before it. In a pipeline each of P stages
takes a P-th of a chunk. Where chunks follow each other through the stages, the last one leaves after the P-th
part of all chunks and P - 1 times that of the longest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.steps import NO_DETAIL, ConfigurationBatch, StepShape, StepTimes
from fleetplan.perfmodel.techniques.record import PROMPTING_MODES, Technique, number
from fleetplan.perfmodel.techniques.session_cache import TierHits

_SHORTEST_LOAD_MS: Final = 1e-9
"""Keeps the rate of loads finite without loads. [ms]"""

StepsEvaluator: TypeAlias = Callable[[Sequence[StepShape]], list[StepTimes]]
ShapeOfPrompt: TypeAlias = Callable[[IntArray, IntArray], StepShape]


@dataclass(frozen=True, slots=True)
class Chunks:
    """A prompt as equal chunks, each array of shape (n_configs,).

    Attributes
    ----------
    count : IntArray
        Chunks of a prompt.
    new_tokens, prefix_tokens : IntArray
        Tokens of a chunk, and tokens before the mean chunk. [tokens]
    """

    count: IntArray
    new_tokens: IntArray
    prefix_tokens: IntArray


def chunks_of(input_tokens: IntArray, prefix_tokens: IntArray, chunk_tokens: int | None) -> Chunks:
    """Cut prompts into as few equal chunks as `chunk_tokens` allows; None leaves them whole."""
    if chunk_tokens is None:
        return Chunks(np.ones_like(input_tokens), input_tokens, prefix_tokens)
    count = -(-input_tokens // chunk_tokens)
    new_tokens = -(-input_tokens // count)
    return Chunks(count, new_tokens, prefix_tokens + (input_tokens - new_tokens) // 2)


@dataclass(frozen=True, slots=True)
class PromptTimes:
    """The mean prompt of each configuration.

    Attributes
    ----------
    iteration : StepTimes
        The mean iteration that carries prompt tokens.
    iterations : FloatArray
        Mean iterations of a prompt, shape (n_configs,).
    load_ms : FloatArray
        Mean time to load the caches of sessions, shape (n_configs,). [ms]
    longest_ms : FloatArray or None
        The longest chunk where chunks follow each other through a pipeline, shape (n_configs,); None where
        each waits for the one before. [ms]
    """

    iteration: StepTimes
    iterations: FloatArray
    load_ms: FloatArray
    longest_ms: FloatArray | None = None

    @property
    def computed(self) -> StepTimes:
        """All iterations of a prompt together."""
        whole = bool(np.all(self.iterations == 1.0))
        return self.iteration if whole else scaled_times(self.iteration, self.iterations)

    def overlapped_ms(self, stages: IntArray) -> FloatArray:
        """Return the time of its passes that a prompt skips, as its chunks are in several stages at once.

        With a pass of all chunks of T ms and of the longest of t ms, P stages take T/P + (P-1)/P t ms.
        """
        if self.longest_ms is None:
            return np.zeros(self.iteration.latency_ms.shape)
        passes_ms = self.iterations * self.iteration.latency_ms
        # A configuration that cannot run takes infinite time with any chunks.
        runs = np.isfinite(passes_ms)
        others_ms = np.subtract(passes_ms, self.longest_ms, out=np.zeros_like(passes_ms), where=runs)
        found: FloatArray = (1.0 - 1.0 / stages) * np.maximum(0.0, others_ms)
        return found


def longest_chunk(input_tokens: IntArray, prefix_tokens: IntArray, chunk_tokens: int) -> Chunks:
    """Return the last chunk of full size, which has the most tokens before it; a shorter prompt is one."""
    before = np.maximum(0, input_tokens // chunk_tokens - 1) * chunk_tokens
    return Chunks(np.ones_like(input_tokens), np.minimum(input_tokens, chunk_tokens), prefix_tokens + before)


def prompt_chunks(
    configurations: ConfigurationBatch,
    chunk_tokens: int | None,
    shared_prefix_tokens: int,
    may_be_lost: bool,
    pipelined: bool = False,
) -> list[Chunks]:
    """Return the chunks of prompts with a cached prefix, and of prompts that recompute a lost one.

    The longest chunk comes last where chunks are pipelined.

    Parameters
    ----------
    configurations, chunk_tokens, shared_prefix_tokens
        As in `prompt_times`.
    may_be_lost : bool
        Whether the rest of the prefix is in tiers that may not hold it.
    pipelined : bool
        Whether chunks of a prompt follow each other through the stages of a pipeline.
    """
    new_tokens, prefix_tokens = configurations.input_tokens, configurations.prefix_tokens
    found = [chunks_of(new_tokens, prefix_tokens, chunk_tokens)]
    if may_be_lost:
        shared = np.minimum(shared_prefix_tokens, prefix_tokens)
        found.append(chunks_of(new_tokens + prefix_tokens - shared, shared, chunk_tokens))
    if pipelined and chunk_tokens is not None:
        found.append(longest_chunk(new_tokens, prefix_tokens, chunk_tokens))
    return found


def prompt_times(
    evaluate: StepsEvaluator,
    shape_of: ShapeOfPrompt,
    configurations: ConfigurationBatch,
    chunk_tokens: int | None,
    shared_prefix_tokens: int,
    hits: Sequence[TierHits],
    pipelined: bool = False,
) -> PromptTimes:
    """Evaluate prompts.

    Parameters
    ----------
    evaluate : callable
        Returns the times of steps.
    shape_of : callable
        The step of a chunk, from its new tokens and the tokens before it.
    configurations : ConfigurationBatch
        Parallelism, batch sizes and lengths.
    chunk_tokens : int or None
        Most prompt tokens of an iteration. [tokens]
    shared_prefix_tokens : int
        Part of the prefix whose cache is always there. [tokens]
    hits : Sequence[TierHits]
        Tiers that may hold the rest of the prefix; without any it is always there. What a tier holds is
        loaded where that is faster than to compute it again.
    pipelined : bool
        Whether chunks of a prompt follow each other through the stages of a pipeline.
    """
    chunks = prompt_chunks(configurations, chunk_tokens, shared_prefix_tokens, bool(hits), pipelined)
    steps = evaluate([shape_of(each.new_tokens, each.prefix_tokens) for each in chunks])
    longest_ms = steps[-1].latency_ms if pipelined else None
    if not hits:
        warm, times = chunks[0], steps[0]
        no_load = np.zeros(times.latency_ms.shape)
        return PromptTimes(times, warm.count.astype(np.float64), no_load, longest_ms)
    (warm, cold), (warm_step, cold_step) = chunks[:2], steps[:2]
    warm_ms = warm.count * warm_step.latency_ms
    cold_ms = cold.count * cold_step.latency_ms
    warm_ratio, load_ms = np.zeros(warm_ms.shape), np.zeros(warm_ms.shape)
    for tier in hits:
        loaded = np.where(warm_ms + tier.load_ms < cold_ms, tier.hit_ratio, 0.0)
        warm_ratio = warm_ratio + loaded
        load_ms = load_ms + loaded * tier.load_ms
    warm_iterations = warm_ratio * warm.count
    cold_iterations = (1.0 - warm_ratio) * cold.count
    iterations = warm_iterations + cold_iterations
    mean = mixed_times(warm_step, cold_step, cold_iterations / iterations)
    return PromptTimes(mean, iterations, load_ms, longest_ms)


def scaled_times(times: StepTimes, factor: FloatArray | float) -> StepTimes:
    """Return the times of a step that runs `factor` times."""
    latency = times.latency_ms * factor
    if times.names == (NO_DETAIL,):
        return StepTimes.without_detail(latency)
    return StepTimes(latency, times.by_provenance_ms * factor, times.names, times.breakdown_ms * factor)


def mixed_times(first: StepTimes, second: StepTimes, second_ratio: FloatArray) -> StepTimes:
    """Return the mean of two steps with the same operators; `second_ratio` of them are the second."""
    latency = (1.0 - second_ratio) * first.latency_ms + second_ratio * second.latency_ms
    if first.names == (NO_DETAIL,):
        return StepTimes.without_detail(latency)
    return StepTimes(
        latency,
        (1.0 - second_ratio) * first.by_provenance_ms + second_ratio * second.by_provenance_ms,
        first.names,
        (1.0 - second_ratio) * first.breakdown_ms + second_ratio * second.breakdown_ms,
    )


@dataclass(frozen=True, slots=True)
class Batching:
    """Continuous batching with prompts in several iterations, each array of shape (n_configs,).

    Attributes
    ----------
    carrying_ratio : FloatArray
        Share of iterations that carry prompt tokens.
    ttft_ms, iteration_ms : FloatArray
        Time to first token, and the mean iteration. [ms]
    prompts_per_ms : FloatArray
        Rate of one rank and micro-batch. [1/ms]
    """

    carrying_ratio: FloatArray
    ttft_ms: FloatArray
    iteration_ms: FloatArray
    prompts_per_ms: FloatArray


def batching(
    batch: IntArray,
    steps_per_sequence: FloatArray,
    sequences_per_prompt: int,
    prompts_together: IntArray,
    decode_ms: FloatArray,
    prompts: PromptTimes,
) -> Batching:
    """Return the steady state of continuous batching.

    Every place of the batch is free again after the iterations of its prompt and `steps_per_sequence` more,
    so that many prompts are due. Where more is due than iterations can carry, all of them carry prompts and
    the prompts set the rate; where more is due than can be loaded, the loads do. Sequences that are not
    decoding wait for their first token.

    Parameters
    ----------
    batch : IntArray
        Sequences of one rank and micro-batch.
    steps_per_sequence : FloatArray
        Decode steps of a sequence after its first token.
    sequences_per_prompt : int
        Sequences that one prompt starts.
    prompts_together : IntArray
        Prompts that share an iteration.
    decode_ms : FloatArray
        An iteration without prompts. [ms]
    prompts : PromptTimes
        Iterations with them.
    """
    prompts_resident = batch / sequences_per_prompt
    cycle = steps_per_sequence + prompts.iterations
    due = prompts_resident / cycle * prompts.iterations / prompts_together
    ratio = np.minimum(1.0, due)
    carrying_ms = prompts.iteration.latency_ms
    iteration_ms = (1.0 - ratio) * decode_ms + ratio * carrying_ms
    ttft_ms = prompts.iterations * carrying_ms + prompts.load_ms
    decoding_ms = steps_per_sequence * iteration_ms
    unlimited = prompts_resident / (ttft_ms + decoding_ms)
    carried = prompts_together / (prompts.iterations * carrying_ms)
    loaded = prompts_together / np.maximum(prompts.load_ms, _SHORTEST_LOAD_MS)
    per_ms = np.minimum(np.where(due > 1.0, np.minimum(unlimited, carried), unlimited), loaded)
    # Little's law: requests that are not decoding wait for the first token.
    waiting_ms = prompts_resident / per_ms - decoding_ms
    return Batching(ratio, np.maximum(ttft_ms, waiting_ms), iteration_ms, per_ms)


CHUNKED_PREFILL: Final = Technique({"chunk_tokens": number(1, 1e8, PROMPTING_MODES, whole=True)})
"""The record of the technique."""
