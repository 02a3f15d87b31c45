"""Bursts: requests that are released at once, with none to follow, as some benchmarks load an instance.

In a closed loop, a request follows as soon as another ends, so in the steady state prompts arrive one by one.
A benchmark that sends only as many requests as its concurrency never reaches that state: all prompts are
computed first, then all requests decode together and end together. TTFT is longer than in a closed loop, and
TPOT shorter. With fewer requests at a time, first come first served, their mean latency may be shorter, but
the last one ends no sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving.replica_load import (
    Load,
    MeanIteration,
    SteadyState,
    cache_limit,
    prompts_taken,
    resident_memory,
)
from fleetplan.perfmodel.steps import StepShape, StepTimes


@dataclass(frozen=True, slots=True)
class _Wave:
    """Requests that start and end together, each of shape (n_configs,).

    The first token comes after `ttft_ms` on average, further ones every `tpot_ms`, the last after `wave_ms`.
    """

    ttft_ms: FloatArray
    tpot_ms: FloatArray
    wave_ms: FloatArray
    waiting: FloatArray
    prefill: StepTimes
    decode: StepTimes


def burst(evaluator: Evaluator, load: Load, concurrency: FloatArray) -> SteadyState:
    """Return the mean latency of equal requests that are released together.

    The prompts take n iterations of t_prefill; a request generates O tokens. The first token of the k-th
    prompt comes after k iterations, and its decoding waits for the other n - k::

        TTFT  = (n + 1) / 2 t_prefill
        TPOT  = t_decode + (n - 1) / 2 t_prefill / (O - 1)
        burst = n t_prefill + (O - 1) t_decode

    Requests beyond the KV cache form further waves; the last wave has the remainder. The rate counts all
    requests over all waves.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    load : Load
        Lengths and parallelism.
    concurrency : FloatArray
        Requests released to one replica, shape (n_configs,).
    """
    share = concurrency / load.engines
    allowed, fits = cache_limit(evaluator, load, share)
    # Ranks run in step: the one with most requests ends last.
    count = np.maximum(1, np.ceil(share)).astype(np.int64)
    batch = np.clip(count, 1, np.minimum(allowed, load.places))
    waves, left = np.divmod(count, batch)
    full, last = _wave(evaluator, load, batch), _wave(evaluator, load, np.maximum(1, left))
    early, late = waves * batch / count, left / count
    earlier_ms = early * (waves - 1.0) / 2.0 * full.wave_ms + late * waves * full.wave_ms
    # The front end hands the requests of the first wave over while it runs, the others before theirs.
    handed_ms = np.maximum(0.0, batch / 2 * load.front_end_prompt_ms - full.ttft_ms)
    ttft_ms = early * full.ttft_ms + late * last.ttft_ms + earlier_ms + batch / count * handed_ms
    # None goes on before the last one's template.
    template_ms = (count - 1) * load.front_end_template_ms
    iteration = MeanIteration(
        full.decode.by_provenance_ms + full.waiting * full.prefill.by_provenance_ms,
        full.decode.bottleneck,
        full.decode.names,
    )
    return SteadyState(
        batch=batch,
        ttft_ms=np.maximum(ttft_ms, share / 2 * load.front_end_prompt_ms) + template_ms + load.front_end_ms,
        tpot_ms=early * full.tpot_ms + late * last.tpot_ms,
        requests_per_s=concurrency
        / (template_ms + waves * full.wave_ms + (left > 0) * last.wave_ms)
        * MS_PER_S,
        iteration=iteration,
        memory=resident_memory(evaluator, load, batch),
        fits=fits,
        sustained=np.ones(batch.shape, dtype=np.bool_),
    )


def _wave(evaluator: Evaluator, load: Load, batch: IntArray) -> _Wave:
    """Return the wave of `batch` requests of a rank and micro-batch: all prompts, then all decoding."""
    prompts, new_tokens = prompts_taken(load, batch.astype(np.float64))
    steps = np.maximum(1.0, batch * load.input_tokens / (prompts * new_tokens))
    prefix = load.prefix_tokens + (load.input_tokens - new_tokens) // 2
    context = load.prefix_tokens + load.input_tokens + load.output_tokens // 2
    none = np.zeros_like(batch)
    decode, prefill = evaluator.steps(
        [
            StepShape(load.layouts, none, none, none, batch, context),
            StepShape(load.layouts, prompts, new_tokens, prefix, none, context),
        ]
    )
    later_tokens = load.output_tokens - 1
    waiting = (steps - 1.0) / 2.0 / np.maximum(1, later_tokens)
    return _Wave(
        ttft_ms=(steps + 1.0) / 2.0 * prefill.latency_ms,
        tpot_ms=decode.latency_ms + waiting * prefill.latency_ms,
        wave_ms=steps * prefill.latency_ms + later_tokens * decode.latency_ms,
        waiting=waiting,
        prefill=prefill,
        decode=decode,
    )
