"""Closed loops of replicas: the formulas of one engine within the limits of batch and KV cache.

A replica's engines are its attention-DP ranks times its pipeline micro-batches; they share the load evenly.
Clients without a place in the batch (`Load.places`) or in the cache wait outside. The engine then runs as if
it had only as many clients as places, and the wait of the others follows from Little's law:

    TTFT = clients / rate - (O - 1) TPOT
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving import (
    Load,
    Range,
    SteadyState,
    cache_limit,
    closed,
    mean_iteration,
    step_grids,
)
from fleetplan.perfmodel.serving.cohorts import LoopFormulas, cohort_loop, mixed_cohort_loop
from fleetplan.perfmodel.serving.iteration_costs import keep_grids
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths, some_numbers
from fleetplan.perfmodel.serving.replica_load import LARGEST_BATCH, resident_memory
from fleetplan.perfmodel.serving.short_answers import closed_loop_of_any_length
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.perfmodel.techniques.memory import session_gib
from fleetplan.perfmodel.techniques.session_cache import tier_hits
from fleetplan.perfmodel.techniques.speculative import tokens_per_step

MOST_ITERATION_TOKENS: Final = 65_536
"""Token budget of an iteration beyond which GEMMs gain no efficiency. [tokens]"""

_SHORTEST_LOAD_MS: Final = 1e-9
"""Keeps the rate of loads finite without loads. [ms]"""

_LEAST_CONTEXT_TOKENS: Final = 16_384
"""Decode attention is taken as straight between a sixteenth and a half of this context, or of a longer one:
short ones are all latency. [tokens]"""


@dataclass(frozen=True, slots=True)
class EngineStates:
    """State of one engine of each configuration, each of shape (n_configs,); rates are per ms."""

    sequences: FloatArray
    starts: FloatArray
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    requests_per_ms: FloatArray


@dataclass(frozen=True, slots=True)
class ReplicaRates:
    """Rates and latencies of replicas with full batches, each of shape (n_configs,).

    Attributes
    ----------
    ttft_ms, tpot_ms : FloatArray
        Means; TTFT includes all waits. [ms]
    requests_per_s : FloatArray
        Rate of one replica. [1/s]
    sequences : FloatArray
        Mean generating sequences of a rank and micro-batch.
    starts : FloatArray
        Requests that start per iteration there.
    """

    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    sequences: FloatArray
    starts: FloatArray


def closed_loop(
    evaluator: Evaluator, load: Load, concurrency: FloatArray, requests: FloatArray | None = None
) -> SteadyState:
    """Return the latency of replicas with a fixed number of requests in the system.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    load : Load
        Lengths, parallelism and scheduling.
    concurrency : FloatArray
        Requests in the system of one replica, shape (n_configs,).
    requests : FloatArray, optional
        Requests sent in total, the first `concurrency` of them at once: the mean TTFT then includes the
        initial burst. Without it, or if 0, TTFT is that of the steady state.
    """
    share = concurrency / load.engines
    places, fits = places_of(evaluator, load, share)
    found = closed_engines(evaluator, load, share, places, requests)
    return steady_state(evaluator, load, found, fits, np.ones(share.shape, dtype=np.bool_))


def full_batches(evaluator: Evaluator, load: Load, batch: IntArray) -> ReplicaRates:
    """Return rates and latencies of replicas whose engines always have `batch` sequences.

    The figures are those of `closed_loop` with that many requests in the system. The cache is not checked
    here.

    Parameters
    ----------
    evaluator, load
        As in `closed_loop`; arrays of several axes broadcast.
    batch : IntArray
        Sequences of a rank and micro-batch, shape (n_configs,).
    """
    share = batch / evaluator.techniques.samples_per_prompt
    engines = closed_engines(evaluator, load, share, np.maximum(1.0, share), None)
    rate = engines.requests_per_ms * MS_PER_S * load.engines
    return ReplicaRates(engines.ttft_ms, engines.tpot_ms, rate, engines.sequences, engines.starts)


def places_of(evaluator: Evaluator, load: Load, share: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """Return how many of `share` requests fit in batch and cache of an engine, and whether one fits."""
    samples = evaluator.techniques.samples_per_prompt
    allowed, fits = cache_limit(evaluator, load, share * samples)
    most = np.minimum(allowed, load.places) / samples
    return np.maximum(1.0, np.floor(most)), fits


def closed_engines(
    evaluator: Evaluator, load: Load, share: FloatArray, places: FloatArray, requests: FloatArray | None
) -> EngineStates:
    """Return the states of the engines of a closed loop.

    Parameters
    ----------
    evaluator, load, requests
        As in `closed_loop`.
    share : FloatArray
        Requests in the system of one engine, shape (n_configs,).
    places : FloatArray
        Requests that fit in its batch and cache, shape (n_configs,).
    """
    found = no_states(share.size)
    for rows, prompts in by_reach(evaluator, load):
        times = prompts.times
        outside = np.broadcast_to(load.front_end_ms[rows] + prompts.load_ms, rows.shape)
        rounds = None
        if requests is not None:
            rounds = np.maximum(1.0, requests[rows] / np.maximum(1.0, share * load.engines)[rows])
        between = load.front_end_prompt_ms + load.front_end_template_ms
        front_end = closed.Outside(outside, between[rows])
        formulas: LoopFormulas = closed_loop_of_any_length
        if load.alike:
            formulas = cohort_loop if load.scheduling.admission.prompts_apart else mixed_cohort_loop
        loop, waiting = _limited_loop(formulas, times, share[rows], places[rows], rounds, front_end)
        # A rank with a mean below one request is idle at times.
        most = np.minimum(prompts.most_loads_per_ms, load.most_templates_per_ms[rows])
        rate = np.minimum(loop.requests_per_ms * np.minimum(1.0, share[rows]), most)
        decoding = times.lengths.decode_iterations * loop.iteration_ms
        wait = share[rows] / rate - decoding
        late = waiting | (rate < loop.requests_per_ms * np.minimum(1.0, share[rows]))
        steady = np.where(late, np.maximum(wait, outside), loop.steady_ttft_ms + outside)
        ttft = steady
        if requests is not None and rounds is not None:
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


def _limited_loop(
    formulas: LoopFormulas,
    times: IterationTimes,
    share: FloatArray,
    places: FloatArray,
    rounds: FloatArray | None,
    outside: closed.Outside,
) -> tuple[closed.ClosedLoop, np.ndarray]:
    """Return the loops of engines with a number of slots, and whether clients wait for one, shape (n,).

    If there are more clients than slots, some are always outside the engine. No client waits for a slot if
    all clients that are not outside, by Little's law, have one.
    """
    many = share > places
    alone = replace(outside, request_ms=np.where(many, 0.0, outside.request_ms))
    full = formulas(times, np.clip(share, 1.0, places), rounds, alone)
    waiting: np.ndarray = many.copy()
    if many.any():
        row = np.flatnonzero(many)
        away = _some_outside(outside, row)
        free = formulas(times.take(row), share[row], None, away)
        inside = share[row] - free.requests_per_ms * away.request_ms
        roomy = (inside <= places[row]) & (free.requests_per_ms < full.requests_per_ms[row])
        waiting[row[roomy]] = False
        for name in ("sequences", "starts", "iteration_ms", "tpot_ms", "steady_ttft_ms", "requests_per_ms"):
            getattr(full, name)[row[roomy]] = getattr(free, name)[roomy]
    return full, waiting


def _some_outside(outside: closed.Outside, rows: IntArray) -> closed.Outside:
    return closed.Outside(some_numbers(outside.request_ms, rows), some_numbers(outside.apart_ms, rows))


def no_states(count: int) -> EngineStates:
    """Return idle engines, to be overwritten."""
    return EngineStates(*(np.zeros(count) for _ in EngineStates.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class _PromptIterations:
    """Iteration times of some loads, and the time to load session caches, each of shape (n,).

    Attributes
    ----------
    times : IterationTimes
        Iteration times.
    load_ms : FloatArray
        Mean time to load the cache of a session into HBM, over all requests. [ms]
    """

    times: IterationTimes
    load_ms: FloatArray

    @property
    def most_loads_per_ms(self) -> FloatArray:
        """Rate at which sessions can be loaded, one after the other. [1/ms]"""
        rate: FloatArray = np.where(
            self.load_ms > 0, 1.0 / np.maximum(self.load_ms, _SHORTEST_LOAD_MS), np.inf
        )
        return rate


@dataclass(frozen=True, slots=True)
class _Reach:
    """Loads with the same longest context.

    Attributes
    ----------
    rows : IntArray
        Positions.
    layouts : list[Parallelism]
        Distinct layouts.
    codes : IntArray
        Index of the layout of each row, shape (n_rows,).
    range : Range
        Ranges of their iterations.
    """

    rows: IntArray
    layouts: list[Parallelism]
    codes: IntArray
    range: Range


def _reaches(load: Load) -> Iterator[_Reach]:
    scheduling = load.scheduling
    longest = load.prefix_tokens + load.input_tokens + load.output_tokens
    # A case has the same table and the same result, whatever other cases are evaluated with it.
    context = 1 << np.ceil(np.log2(np.maximum(longest, _LEAST_CONTEXT_TOKENS))).astype(np.int64)
    tokens = min(scheduling.iteration_tokens, MOST_ITERATION_TOKENS)
    sequences = min(scheduling.max_sequences, LARGEST_BATCH)
    for reach in np.unique(context).tolist():
        rows = np.flatnonzero(context == reach)
        yield _Reach(rows, *load.layouts.take(rows).distinct(), Range(sequences, tokens, reach))


def keep_iterations(evaluator: Evaluator, load: Load, lookups: SharedLookups) -> list[Callable[[], None]]:
    """Queue the look-ups of loads, and return a function that evaluates them for `by_reach`."""
    return [keep_grids(evaluator, each.layouts, each.range, lookups) for each in _reaches(load)]


def by_reach(evaluator: Evaluator, load: Load) -> Iterator[tuple[IntArray, _PromptIterations]]:
    """Yield the rows by longest context, with their iteration times."""
    techniques, scheduling = evaluator.techniques, load.scheduling
    for reach in _reaches(load):
        rows = reach.rows
        grids = step_grids(evaluator, reach.layouts, reach.range)
        lengths = Lengths(
            load.input_tokens[rows].astype(np.float64),
            load.prefix_tokens[rows].astype(np.float64),
            load.output_tokens[rows].astype(np.float64),
            tokens_per_step(techniques.speculative),
            techniques.samples_per_prompt,
            shared_tokens=techniques.shared_prefix_tokens,
        )
        tokens = np.minimum(scheduling.rank_tokens(load.layouts.dp[rows]), reach.range.prompt_tokens)
        # A single number if all loads have the same.
        budget = tokens.astype(np.float64) if np.ptp(tokens) else float(tokens[0])
        times = IterationTimes(grids, lengths, budget, scheduling.admission, reach.codes)
        yield rows, _with_sessions(evaluator, load.layouts.take(rows), load.prefix_tokens[rows], times)


def _with_sessions(
    evaluator: Evaluator, layouts: Layouts, prefix_tokens: IntArray, times: IterationTimes
) -> _PromptIterations:
    """Return prompts of which a share finds its session in a tier; the others recompute it.

    Sessions in a tier are loaded if that is faster than recomputing them.
    """
    persistent, lengths = evaluator.techniques.persistent_kv, times.lengths
    load_ms = np.zeros(prefix_tokens.shape)
    if persistent is None:
        return _PromptIterations(times, load_ms)
    none = np.zeros(prefix_tokens.shape)
    lost = replace(times, lengths=replace(lengths, lost_ratio=np.ones_like(none)))
    warm_ms, cold_ms = (each.prompts_ms(each.lengths.computed_tokens + none, none) for each in (times, lost))
    gib = session_gib(evaluator.architecture, evaluator.dtypes, prefix_tokens, evaluator.techniques)
    links = layouts.accelerators / layouts.dp
    kept = none
    for tier in tier_hits(persistent, gib, np.ones_like(prefix_tokens), links):
        loaded = np.where(warm_ms + tier.load_ms < cold_ms, tier.hit_ratio, 0.0)
        kept = kept + loaded
        load_ms = load_ms + loaded * tier.load_ms
    return _PromptIterations(replace(times, lengths=replace(lengths, lost_ratio=1.0 - kept)), load_ms)


def steady_state(
    evaluator: Evaluator, load: Load, found: EngineStates, fits: np.ndarray, sustained: np.ndarray
) -> SteadyState:
    """Return the steady state of replicas of these engines, with memory and breakdown of iterations."""
    batch = np.maximum(1, np.rint(found.sequences)).astype(np.int64)
    # Sequences with a computed prompt have a cache, too.
    samples = evaluator.techniques.samples_per_prompt
    resident = np.maximum(1, np.rint(found.sequences + samples * found.starts)).astype(np.int64)
    return SteadyState(
        batch=resident,
        ttft_ms=found.ttft_ms,
        tpot_ms=found.tpot_ms,
        requests_per_s=found.requests_per_ms * MS_PER_S * load.engines,
        iteration=mean_iteration(evaluator, load, batch, found.starts),
        memory=resident_memory(evaluator, load, resident),
        fits=fits,
        sustained=sustained,
    )
