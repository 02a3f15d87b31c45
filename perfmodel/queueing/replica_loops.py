"""Closed and open loops of whole replicas: the formulas of one engine, and the limits of batch and cache.

A replica's engines are its attention-DP ranks times its pipeline micro-batches; they share the load evenly.
Whoever finds no place in the batch (`Scheduling.max_sequences`) or in the cache waits outside: the engine
then runs as if it had only as many clients as places, and by Little's law the others wait for

    TTFT = clients / rate - (O - 1) TPOT
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.queueing import batching, closed
from fleetplan.perfmodel.queueing.iteration_times import IterationTimes, Lengths
from fleetplan.perfmodel.serving import Load, Range, SteadyState, cache_limit, mean_iteration, step_grids
from fleetplan.perfmodel.serving.replica_load import LARGEST_BATCH, resident_memory
from fleetplan.perfmodel.techniques.speculative import tokens_per_step

_MS_PER_S: Final = 1e3

MOST_ITERATION_TOKENS: Final = 65_536
"""Token budget of an iteration above which more makes no difference: its GEMMs are as efficient as they get.
[tokens]"""

_LEAST_CONTEXT_TOKENS: Final = 16_384
"""Decode attention is taken as straight between a sixteenth and a half of this context, or of a longer one:
short ones are all latency. [tokens]"""


@dataclass(frozen=True, slots=True)
class _Engines:
    """Rates of one engine of each configuration, each of shape (n_configs,); per ms."""

    sequences: FloatArray
    starts: FloatArray
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    requests_per_ms: FloatArray


def closed_loop(
    evaluator: Evaluator, load: Load, concurrency: FloatArray, requests: FloatArray | None = None
) -> SteadyState:
    """Latency of replicas with a fixed number of requests in the system.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    load : Load
        Lengths, parallelism and scheduling.
    concurrency : FloatArray
        Requests in the system of one replica, shape (n_configs,).
    requests : FloatArray, optional
        Requests that are sent in all, the first `concurrency` of them together: the mean TTFT then holds the
        burst at the start. Without it, or where 0, TTFT is that of the long run.
    """
    share = concurrency / load.engines
    places, fits = _places(evaluator, load, share)
    found = _closed_engines(evaluator, load, share, places, requests)
    return _state(evaluator, load, found, fits, np.ones(share.shape, dtype=np.bool_))


def open_loop(evaluator: Evaluator, load: Load, requests_per_s: FloatArray) -> SteadyState:
    """Latency of replicas under a given rate of Poisson arrivals.

    A rate above that of a closed loop which always fills batch and cache is not sustained; the numbers are
    then those of that loop.

    Parameters
    ----------
    evaluator, load
        As in `closed_loop`.
    requests_per_s : FloatArray
        Arrivals at one replica, shape (n_configs,). [1/s]
    """
    per_ms = requests_per_s / _MS_PER_S / load.engines
    ample = np.full(per_ms.shape, float(load.scheduling.max_sequences))
    places, fits = _places(evaluator, load, ample)
    largest = _closed_engines(evaluator, load, places, places, None)
    sustained = per_ms <= largest.requests_per_ms
    found = _blank(per_ms.size)
    for rows, times in _by_layout(evaluator, load):
        opened = batching.open_loop(times, np.minimum(per_ms, largest.requests_per_ms)[rows])
        found.sequences[rows] = opened.sequences
        found.starts[rows] = per_ms[rows] * opened.tpot_ms * times.lengths.tokens_per_step
        found.tpot_ms[rows] = opened.tpot_ms
        found.ttft_ms[rows] = opened.ttft_ms + load.front_end_ms[rows]
        found.requests_per_ms[rows] = per_ms[rows]
    chosen = _Engines(
        *(
            np.where(sustained, getattr(found, name), getattr(largest, name))
            for name in _Engines.__dataclass_fields__
        )
    )
    return _state(evaluator, load, chosen, fits, sustained)


def _places(evaluator: Evaluator, load: Load, share: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """Requests of an engine that batch and cache hold of `share`, and whether the cache holds one."""
    allowed, fits = cache_limit(evaluator, load, share)
    return np.minimum(allowed, load.scheduling.max_sequences).astype(np.float64), fits


def _closed_engines(
    evaluator: Evaluator, load: Load, share: FloatArray, places: FloatArray, requests: FloatArray | None
) -> _Engines:
    outside_ms, apart_ms = load.front_end_ms, load.front_end_prompt_ms
    resident = np.clip(share, 1.0, places)
    waiting = share > places
    found = _blank(share.size)
    for rows, times in _by_layout(evaluator, load):
        outside = outside_ms[rows]
        front_end = closed.Outside(np.where(waiting[rows], 0.0, outside), apart_ms[rows])
        loop = closed.closed_loop(times, resident[rows], np.ones(rows.size), front_end)
        # A rank with less than one request in the mean has none at times.
        rate = loop.requests_per_ms * np.minimum(1.0, share[rows])
        decoding = times.lengths.decode_iterations * loop.iteration_ms
        wait = share[rows] / rate - decoding
        steady = np.where(waiting[rows], np.maximum(wait, outside), loop.steady_ttft_ms + outside)
        ttft = steady
        if requests is not None:
            rounds = np.maximum(1.0, requests[rows] / np.maximum(1.0, share * load.engines)[rows])
            beyond = np.maximum(0.0, share - places)[rows]
            # Places come free one after the other.
            burst = loop.burst_ttft_ms + outside + beyond**2 / (2 * share[rows] * rate)
            ttft = np.where(requests[rows] > 0, burst / rounds + (1 - 1 / rounds) * steady, steady)
        found.sequences[rows] = loop.sequences
        found.starts[rows] = loop.starts
        found.tpot_ms[rows] = loop.tpot_ms
        found.ttft_ms[rows] = ttft
        found.requests_per_ms[rows] = rate
    return found


def _blank(count: int) -> _Engines:
    return _Engines(*(np.zeros(count) for _ in _Engines.__dataclass_fields__))


def _by_layout(evaluator: Evaluator, load: Load) -> Iterator[tuple[IntArray, IterationTimes]]:
    """Rows of each layout and reach, with the times of its iterations."""
    layouts, scheduling = load.layouts, load.scheduling
    longest = load.prefix_tokens + load.input_tokens + load.output_tokens
    # A case has the same table, and the same answer, whichever others are asked with it.
    context = 1 << np.ceil(np.log2(np.maximum(longest, _LEAST_CONTEXT_TOKENS))).astype(np.int64)
    degrees = [layouts.pp, layouts.tp, layouts.dp, layouts.ffn_tp, layouts.ep, layouts.cp]
    distinct, codes = np.unique(np.stack([*degrees, context], axis=1), axis=0, return_inverse=True)
    gained = tokens_per_step(evaluator.techniques.speculative)
    tokens = min(scheduling.iteration_tokens, MOST_ITERATION_TOKENS)
    sequences = min(scheduling.max_sequences, LARGEST_BATCH)
    for code, (*degree, reached) in enumerate(distinct.tolist()):
        rows = np.flatnonzero(codes.reshape(-1) == code)
        grids = step_grids(evaluator, Parallelism(*degree), Range(sequences, tokens, reached))
        lengths = Lengths(
            load.input_tokens[rows].astype(np.float64),
            load.prefix_tokens[rows].astype(np.float64),
            load.output_tokens[rows].astype(np.float64),
            gained,
        )
        yield rows, IterationTimes(grids, lengths, tokens, scheduling.admission)


def _state(
    evaluator: Evaluator, load: Load, found: _Engines, fits: np.ndarray, sustained: np.ndarray
) -> SteadyState:
    batch = np.maximum(1, np.rint(found.sequences)).astype(np.int64)
    # Those whose prompt is computed have a cache as well.
    resident = np.maximum(1, np.rint(found.sequences + found.starts)).astype(np.int64)
    return SteadyState(
        batch=resident,
        ttft_ms=found.ttft_ms,
        tpot_ms=found.tpot_ms,
        requests_per_s=found.requests_per_ms * _MS_PER_S * load.engines,
        iteration=mean_iteration(evaluator, load, batch, found.starts),
        memory=resident_memory(evaluator, load, resident),
        fits=fits,
        sustained=sustained,
    )
