"""Requests that are all released at once, with none to follow: how some benchmarks load an instance.

In a closed loop a request follows as soon as another ends, so that in the long run prompts arrive one by one.
A benchmark that sends only as many requests as its concurrency never gets there: all prompts are processed
first, the requests then decode together, and all end together. TTFT is longer than in a closed loop, and
TPOT shorter.
"""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving.replica_load import (
    Load,
    MeanIteration,
    SteadyState,
    cache_limit,
    prompts_taken,
    resident_memory,
)
from fleetplan.perfmodel.steps import StepShape


def burst(evaluator: Evaluator, load: Load, concurrency: FloatArray) -> SteadyState:
    """Mean times of requests of one length that are released together.

    B prompts take n iterations. The first token of the k-th comes after k of them, and its decoding waits
    for the n-k that are left: TTFT = (n+1)/2 t_prefill and TPOT = t_decode + (n-1)/2 t_prefill / O.
    Requests beyond the cache form further waves, one after the other.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    load : Load
        Lengths and parallelism.
    concurrency : FloatArray
        Requests that are released to one replica, shape (n_configs,).
    """
    share = concurrency / load.engines
    allowed, fits = cache_limit(evaluator, load, share)
    most = np.minimum(allowed, load.scheduling.max_sequences)
    batch = np.clip(np.ceil(share), 1, most).astype(np.int64)
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
    waiting = (steps - 1.0) / 2.0 / load.output_tokens
    tpot = decode.latency_ms + waiting * prefill.latency_ms
    ttft = (steps + 1.0) / 2.0 * prefill.latency_ms
    wave = ttft + (load.output_tokens - 1) * tpot
    earlier_waves = np.maximum(0.0, share / batch - 1.0) / 2.0
    iteration = MeanIteration(
        decode.by_provenance_ms + waiting * prefill.by_provenance_ms, decode.bottleneck, decode.names
    )
    return SteadyState(
        batch=batch,
        ttft_ms=np.maximum(ttft, share / 2 * load.front_end_prompt_ms)
        + earlier_waves * wave
        + load.front_end_ms,
        tpot_ms=tpot,
        requests_per_s=batch / wave * 1e3 * load.engines,
        iteration=iteration,
        memory=resident_memory(evaluator, load, batch),
        fits=fits,
        sustained=np.ones(batch.shape, dtype=np.bool_),
    )
