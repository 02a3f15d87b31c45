"""Closed loop of a disaggregated deployment: clients, prefill replicas and decode replicas.

Symbols: N clients, each of which sends its next request when it has its answer; X requests per ms; O
generated tokens of a request; B sequences of a decode engine; k prompts of a full prefill iteration, which
takes t(k) ms; r the utilisation of the prefill engines.

**Rate and batch** follow from Little's law::

    N = X (TTFT + (O - 1) TPOT(B)),    B = X O TPOT(B) / decode engines

**TTFT**: prefill engines complete at most engines k / t(k) requests per ms. A prompt finds its engine busy
with probability r, waits for half of the current iteration, and queues as in M/D/1::

    steady TTFT = t(1) + r t(1) / 2 + r^2 / (2 (1 - r)) t(k) / k

Clients without a place in the decode batch, or beyond the prefill rate, wait outside by Little's law. A
single client therefore has the latencies of single prompts and sequences, and many clients have the rates of
full batches, which a landscape states. All clients send their first request at once: with n iterations for
that burst, its mean TTFT is (n + 1) / 2 iterations. The KV cache then moves to decode.

**Streaming**: a server that sends s tokens at a time shows the first s together::

    seen TTFT = TTFT + (s - 1) TPOT,    seen TPOT = TPOT (O - s) / (O - 1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator import Evaluator, PhaseResult
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving import Load, cache_limit
from fleetplan.perfmodel.steps import ConfigurationBatch

_BISECTIONS: Final = 50
"""Bisection steps for the batch."""

_LARGEST_SHARE: Final = 0.995
"""Largest utilisation in the formula of the prompt queue, which is infinite at 1."""

GRID_BATCHES: Final = 24
"""Batches at which decode is evaluated; TPOT is nearly linear between them."""


@dataclass(frozen=True, slots=True)
class Pools:
    """Prefill and decode replicas with their requests, each array of shape (n_configs,).

    Attributes
    ----------
    prefill, decode : Load
        Parallelism of one replica each, with the same requests.
    prefill_replicas, decode_replicas : IntArray
        Number of each.
    """

    prefill: Load
    decode: Load
    prefill_replicas: IntArray
    decode_replicas: IntArray

    @property
    def accelerators(self) -> IntArray:
        """Accelerators of all replicas, shape (n_configs,)."""
        prefill = self.prefill_replicas * self.prefill.layouts.accelerators
        found: IntArray = prefill + self.decode_replicas * self.decode.layouts.accelerators
        return found


@dataclass(frozen=True, slots=True)
class PoolsState:
    """Steady state of a deployment, each array of shape (n_configs,).

    Attributes
    ----------
    ttft_ms, tpot_ms : FloatArray
        Means as clients see them. [ms]
    requests_per_s : FloatArray
        Rate of the whole deployment. [1/s]
    decode : PhaseResult
        Decode step at the steady batch.
    fits : NDArray[np.bool_]
        Whether weights and the cache of one sequence fit on both kinds of replicas.
    """

    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    decode: PhaseResult
    fits: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _PrefillRates:
    """Latencies and largest rate of prefill replicas, each of shape (n_configs,)."""

    alone_ms: FloatArray
    each_ms: FloatArray
    burst_ms: FloatArray
    most_per_ms: FloatArray
    fits: NDArray[np.bool_]


def disaggregated_loop(
    evaluator: Evaluator,
    pools: Pools,
    concurrency: FloatArray,
    requests: FloatArray,
    streamed_tokens: IntArray,
) -> PoolsState:
    """Return the latency of a deployment with a fixed number of requests in the system.

    Parameters
    ----------
    evaluator : Evaluator
        The model on the accelerator of both kinds of replicas.
    pools : Pools
        Replicas and requests.
    concurrency : FloatArray
        Requests in the system, shape (n_configs,).
    requests : FloatArray
        Requests sent in total, the first `concurrency` of them at once; 0 for the steady state.
    streamed_tokens : IntArray
        Tokens that a server sends at a time, at least 1. [tokens]
    """
    prompts = _prompts(evaluator, pools, concurrency)
    engines = pools.decode_replicas * pools.decode.engines
    per_engine = np.maximum(1.0, concurrency / engines)
    cache_places, fits = cache_limit(evaluator.generating(), pools.decode, per_engine)
    places = np.minimum(cache_places, pools.decode.places)
    tpot_of = _tpot_curve(evaluator, pools.decode, np.minimum(per_engine, places))
    output_tokens = pools.decode.output_tokens.astype(np.float64)
    outside_ms = pools.prefill.front_end_ms + evaluator.kv_transfer_ms(
        _batch(pools.prefill, np.ones_like(pools.prefill_replicas)), prompts.alone_ms
    )
    largest_batch = np.minimum(concurrency / engines, places)

    def settled(batch: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the rate [1/ms], TPOT and steady TTFT [ms] of decode engines with `batch` sequences each."""
        tpot = tpot_of(np.maximum(1.0, batch))
        rate = batch * engines / (output_tokens * tpot)
        return rate, tpot, _steady_ms(prompts, rate) + outside_ms

    low, high = np.zeros_like(largest_batch), largest_batch
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rate, tpot, ttft = settled(middle)
        fits_more = rate * (ttft + (output_tokens - 1) * tpot) <= concurrency
        fits_more &= rate <= prompts.most_per_ms
        low, high = np.where(fits_more, middle, low), np.where(fits_more, high, middle)
    batch = high
    rate, tpot, steady = settled(batch)
    # By Little's law, requests that do not generate wait for their first token.
    steady = np.maximum(steady, concurrency / rate - (output_tokens - 1) * tpot)
    rounds = np.maximum(1.0, requests / concurrency)
    burst = np.maximum(prompts.burst_ms + outside_ms, np.where(batch >= places, steady, 0.0))
    ttft = np.where(requests > 0, burst / rounds + (1 - 1 / rounds) * steady, steady)
    decode = evaluator.decode(_batch(pools.decode, np.maximum(1, np.rint(batch)).astype(np.int64)))
    streamed = np.minimum(streamed_tokens, output_tokens)
    return PoolsState(
        ttft + (streamed - 1) * tpot,
        tpot
        * np.where(output_tokens > 1, (output_tokens - streamed) / np.maximum(1.0, output_tokens - 1), 1.0),
        rate * MS_PER_S,
        decode,
        fits & prompts.fits & decode.memory.fits,
    )


def _batch(load: Load, batch: IntArray) -> ConfigurationBatch:
    context = load.input_tokens + load.prefix_tokens + load.output_tokens // 2
    return ConfigurationBatch(
        load.layouts, batch, load.input_tokens, load.prefix_tokens, context, load.output_tokens
    )


def _prompts(evaluator: Evaluator, pools: Pools, concurrency: FloatArray) -> _PrefillRates:
    load, engines = pools.prefill, pools.prefill_replicas * pools.prefill.engines
    # Prefill servers have the chunk size of a rank; without one, a rank computes whole prompts.
    most = np.maximum(1, load.scheduling.iteration_tokens // load.input_tokens)
    first = np.clip(np.ceil(concurrency / engines), 1, most).astype(np.int64)
    alone, full, burst = (evaluator.prefill(_batch(load, each)) for each in (np.ones_like(most), most, first))
    iterations = np.maximum(1.0, concurrency / (engines * first))
    sent = evaluator.transfer_requests_per_s(_batch(load, most))
    most_per_s = pools.prefill_replicas * np.minimum(full.requests_per_s, sent)
    # A pipeline has as many micro-batches in flight as stages, each of which takes a pass.
    return _PrefillRates(
        alone.ttft_ms,
        full.latency_ms / most,
        (iterations + 1) / 2 * burst.ttft_ms,
        most_per_s / MS_PER_S,
        full.memory.fits,
    )


def _steady_ms(prompts: _PrefillRates, rate: FloatArray) -> FloatArray:
    used = np.minimum(rate / prompts.most_per_ms, _LARGEST_SHARE)
    queue = used**2 / (2 * (1 - used)) * prompts.each_ms
    found: FloatArray = prompts.alone_ms * (1 + used / 2) + queue
    return found


class _TpotCurve:
    """TPOT of each configuration over its batch."""

    def __init__(self, batches: FloatArray, tpot_ms: FloatArray) -> None:
        self._batches, self._tpot_ms = batches, tpot_ms

    def __call__(self, batch: FloatArray) -> FloatArray:
        rows = zip(batch, self._batches, self._tpot_ms, strict=True)
        return np.array([np.interp(at, known, times) for at, known, times in rows])


def _tpot_curve(evaluator: Evaluator, load: Load, largest: FloatArray) -> _TpotCurve:
    """Evaluate decode from one sequence to the largest batch of each configuration."""
    steps = np.linspace(0.0, 1.0, GRID_BATCHES)
    batches = np.maximum(1, np.rint(np.maximum(1.0, largest)[:, None] ** steps)).astype(np.int64)
    rows = np.repeat(np.arange(largest.size), GRID_BATCHES)
    found = evaluator.decode(replace(_batch(load, batches[:, 0]).take(rows), batch=batches.ravel()))
    tpot_ms = found.tpot_ms.reshape(batches.shape)
    # A larger batch takes no less time, and no more than in proportion, whatever the tables state.
    for column in range(1, GRID_BATCHES):
        before = tpot_ms[:, column - 1]
        longest = before * batches[:, column] / batches[:, column - 1]
        tpot_ms[:, column] = np.clip(tpot_ms[:, column], before, longest)
    return _TpotCurve(batches.astype(np.float64), tpot_ms)
