"""Steady states of a serving instance under load: a fixed concurrency, or a given rate of arrivals.

A decode batch settles where sequences leave as fast as they come. With B sequences in a micro-batch and O
generated tokens each, p = B/O prompts are due an iteration; iterations carry up to `PREFILL_TOKENS_LIMIT`
prompt tokens. Frameworks that fuse prompts into decode iterations (vLLM, TensorRT-LLM) reach
TPOT = (1-s) t_decode + s t_mixed, where s is the share of iterations with prompts; SGLang, which runs
prompts first in steps of their own, TPOT = t_decode + s t_prefill.

Lengths count as given: a benchmark that draws them from a range is described by its mean. No queueing and
no start burst is modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps import MemoryUse, StepShape
from fleetplan.perfmodel.steps.memory import resident_sequences
from fleetplan.perfmodel.techniques.speculative import step_cost_ratio, tokens_per_step

PREFILL_TOKENS_LIMIT: Final = 8192
"""Prompt tokens that a framework takes into one iteration. [tokens]
Source: documented defaults of TensorRT-LLM (`max_num_tokens`) and SGLang (`chunked_prefill_size`), and of
vLLM's server (`max_num_batched_tokens`) on large accelerators."""

HELD_OUTPUT_RATIO: Final = 0.55
"""Part of its output that the mean resident sequence holds. Source: published closed-loop rows of 2025 and
2026 run at the batch that the cache allows at I + 0.55 O tokens a sequence."""

LARGEST_BATCH: Final = 8192
"""Where the search for a steady state ends: twice the largest batch of the paper's tables."""

GRID_POINTS: Final = 20
"""Batches at which a steady state is looked for; the curves between them are nearly straight."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one kind, each array of shape (n_configs,).

    Attributes
    ----------
    layouts : Layouts
        Parallelism.
    input_tokens, prefix_tokens, output_tokens : IntArray
        New prompt tokens, tokens already cached, and generated tokens of a request. [tokens]
    chunk_tokens : int
        Most prompt tokens of an iteration. [tokens]
    """

    layouts: Layouts
    input_tokens: IntArray
    prefix_tokens: IntArray
    output_tokens: IntArray
    chunk_tokens: int = PREFILL_TOKENS_LIMIT

    def take(self, rows: IntArray) -> Load:
        """Return the requests at `rows`, in that order."""
        return Load(
            self.layouts.take(rows),
            self.input_tokens[rows],
            self.prefix_tokens[rows],
            self.output_tokens[rows],
            self.chunk_tokens,
        )


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Where an instance settles, each array of shape (n_configs,).

    Attributes
    ----------
    batch : IntArray
        Resident sequences of one attention-DP rank in one micro-batch.
    ttft_ms, tpot_ms : FloatArray
        Means; TTFT holds the wait for a place where the cache limits the batch. [ms]
    requests_per_s : FloatArray
        Of one replica. [1/s]
    by_provenance_ms : FloatArray
        Time of the mean iteration by `Provenance`, shape (4, n_configs). [ms]
    bottleneck : IntArray
        Operator that takes most of an iteration with prompts, as a position in `names`.
    names : tuple[str, ...]
        Operators.
    memory : MemoryUse
        Of the fullest accelerator at that batch.
    fits : NDArray[np.bool_]
        Whether the cache of one sequence fits at all.
    sustained : NDArray[np.bool_]
        Whether there is a steady state; where not, the numbers are those of the largest batch.
    """

    batch: IntArray
    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    by_provenance_ms: FloatArray
    bottleneck: IntArray
    names: tuple[str, ...]
    memory: MemoryUse
    fits: NDArray[np.bool_]
    sustained: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Iterations:
    """The mean iteration at a batch, each array of shape (n_configs,); see `SteadyState`."""

    ttft_ms: FloatArray
    tpot_ms: FloatArray
    by_provenance_ms: FloatArray
    bottleneck: IntArray
    names: tuple[str, ...]


def closed_loop(evaluator: Evaluator, framework: str, load: Load, concurrency: FloatArray) -> SteadyState:
    """Steady state with a fixed number of requests in the system.

    The batch solves B = C O TPOT / (O TPOT + TTFT): of C requests, those past their prompt.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    framework : str
        trtllm, sglang or vllm: whether prompts share iterations with decode.
    load : Load
        Lengths and parallelism.
    concurrency : FloatArray
        Requests in the system of one replica, shape (n_configs,).
    """
    share = concurrency / (load.layouts.dp * load.layouts.pp)
    allowed, fits = cache_limit(evaluator, load, share)
    largest = np.clip(np.ceil(share), 1, allowed).astype(np.int64)

    def gap(rows: IntArray, batch: IntArray) -> FloatArray:
        found = iterations(evaluator, framework, load.take(rows), batch)
        decoding = load.output_tokens[rows] * found.tpot_ms
        missing: FloatArray = share[rows] * decoding / (decoding + found.ttft_ms) - batch
        return missing

    batch = _crossing(gap, largest)
    found = iterations(evaluator, framework, load, batch)
    decoding = load.output_tokens * found.tpot_ms
    unlimited = share / (found.ttft_ms + decoding)
    per_ms = np.where(share > allowed, np.minimum(unlimited, batch / decoding), unlimited)
    # Little's law: whoever is not decoding waits for the first token.
    ttft = np.maximum(found.ttft_ms, share / per_ms - decoding)
    everywhere = np.ones(batch.shape, dtype=np.bool_)
    found = replace(found, ttft_ms=ttft)
    return steady_state(evaluator, load, batch, found, per_ms, fits, everywhere)


def open_loop(evaluator: Evaluator, framework: str, load: Load, requests_per_s: FloatArray) -> SteadyState:
    """Steady state under a given rate of arrivals, without queueing.

    The batch solves B = rate O TPOT(B). Where the cache, or the growth of TPOT, allows no such batch the
    rate is not sustained.

    Parameters
    ----------
    evaluator, framework, load
        As in `closed_loop`.
    requests_per_s : FloatArray
        Arrivals at one replica, shape (n_configs,). [1/s]
    """
    per_ms = requests_per_s / 1e3 / (load.layouts.dp * load.layouts.pp)
    ample = np.full(per_ms.shape, float(LARGEST_BATCH))
    allowed, fits = cache_limit(evaluator, load, ample)

    def gap(rows: IntArray, batch: IntArray) -> FloatArray:
        found = iterations(evaluator, framework, load.take(rows), batch)
        excess: FloatArray = per_ms[rows] * load.output_tokens[rows] * found.tpot_ms - batch
        return excess

    batch = _crossing(gap, allowed)
    found = iterations(evaluator, framework, load, batch)
    # Rounding to whole sequences may leave the batch up to half a sequence short.
    sustained = per_ms * load.output_tokens * found.tpot_ms <= np.minimum(batch + 1, allowed)
    served = np.where(sustained, per_ms, batch / (load.output_tokens * found.tpot_ms))
    return steady_state(evaluator, load, batch, found, served, fits, sustained)


def iterations(evaluator: Evaluator, framework: str, load: Load, batch: IntArray) -> Iterations:
    """Mean iteration of an instance that holds `batch` sequences a rank and micro-batch."""
    speculative = evaluator.techniques.speculative
    gained, drafting = tokens_per_step(speculative), step_cost_ratio(speculative)
    due = batch * gained / load.output_tokens
    prompts, new_tokens = prompts_taken(load, due)
    share = np.minimum(1.0, due * load.input_tokens / (prompts * new_tokens))
    steps_per_prompt = -(-load.input_tokens // load.chunk_tokens)
    # A prompt that takes several iterations attends, in the mean, to half of its other chunks.
    prefix = load.prefix_tokens + (load.input_tokens - new_tokens) // 2
    context = load.prefix_tokens + load.input_tokens + load.output_tokens // 2
    none = np.zeros_like(batch)
    decoding = none if framework == "sglang" else batch
    decode, carrying = evaluator.steps(
        [
            StepShape(load.layouts, none, none, none, batch, context),
            StepShape(load.layouts, prompts, new_tokens, prefix, decoding, context),
        ]
    )
    # Prompts in steps of their own delay every iteration; fused ones replace a share of them.
    plain_share = np.ones_like(share) if framework == "sglang" else 1.0 - share
    return Iterations(
        ttft_ms=drafting * steps_per_prompt * carrying.latency_ms,
        tpot_ms=drafting / gained * (plain_share * decode.latency_ms + share * carrying.latency_ms),
        by_provenance_ms=plain_share * decode.by_provenance_ms + share * carrying.by_provenance_ms,
        bottleneck=carrying.bottleneck,
        names=carrying.names,
    )


def prompts_taken(load: Load, due: FloatArray) -> tuple[IntArray, IntArray]:
    """Prompts that a rank takes into one iteration when `due` of them wait, and the new tokens of each."""
    # T = min(M, max(I, p I)) tokens an iteration, as whole prompts or as one chunk of a long prompt.
    new_tokens = np.minimum(load.input_tokens, load.chunk_tokens)
    most = np.maximum(1, load.chunk_tokens // new_tokens)
    prompts = np.clip(np.ceil(due), 1, most).astype(np.int64)
    return prompts, new_tokens


def cache_limit(evaluator: Evaluator, load: Load, share: FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Sequences of a rank and micro-batch that the cache holds of `share` ones, and whether one fits."""
    many = np.clip(np.ceil(share), 2, LARGEST_BATCH).astype(np.int64)
    one = _memory(evaluator, load, np.ones_like(many))
    fitting = resident_sequences(one, _memory(evaluator, load, many), many)
    return np.clip(np.floor(fitting), 1, LARGEST_BATCH).astype(np.int64), one.fits


def _held_tokens(load: Load) -> IntArray:
    generated = np.ceil(HELD_OUTPUT_RATIO * load.output_tokens).astype(np.int64)
    held: IntArray = load.prefix_tokens + load.input_tokens + generated
    return held


def _memory(evaluator: Evaluator, load: Load, batch: IntArray) -> MemoryUse:
    due = batch * tokens_per_step(evaluator.techniques.speculative) / load.output_tokens
    prompts, new_tokens = prompts_taken(load, due)
    shape = StepShape(load.layouts, prompts, new_tokens, load.prefix_tokens, batch, load.input_tokens)
    return evaluator.memory(shape, batch, _held_tokens(load))


def steady_state(
    evaluator: Evaluator,
    load: Load,
    batch: IntArray,
    found: Iterations,
    per_ms: FloatArray,
    fits: NDArray[np.bool_],
    sustained: NDArray[np.bool_],
) -> SteadyState:
    """Put together where an instance settles at `batch`, with `per_ms` requests a rank and micro-batch."""
    return SteadyState(
        batch=batch,
        ttft_ms=found.ttft_ms,
        tpot_ms=found.tpot_ms,
        requests_per_s=per_ms * 1e3 * load.layouts.dp * load.layouts.pp,
        by_provenance_ms=found.by_provenance_ms,
        bottleneck=found.bottleneck,
        names=found.names,
        memory=_memory(evaluator, load, batch),
        fits=fits,
        sustained=sustained,
    )


def _crossing(gap: Callable[[IntArray, IntArray], FloatArray], largest: IntArray) -> IntArray:
    """Whole number nearest to where `gap` falls below zero, from 1 to `largest`, shape (n_configs,).

    `gap` takes positions of configurations and a batch for each. It is looked at on `GRID_POINTS` batches
    in equal ratios, all in one evaluation, and is taken as straight between two of them.
    """
    n_configs = largest.size
    powers = np.linspace(0.0, 1.0, GRID_POINTS)[:, None]
    grid = np.rint(np.power(largest.astype(np.float64), powers)).astype(np.int64)
    rows = np.tile(np.arange(n_configs, dtype=np.int64), GRID_POINTS)
    gaps = gap(rows, grid.reshape(-1)).reshape(grid.shape)
    below = gaps < 0
    # The first point below zero; the last point of all where there is none.
    after = np.where(below.any(axis=0), np.argmax(below, axis=0), GRID_POINTS - 1)
    before = np.maximum(0, after - 1)
    every = np.arange(n_configs)
    low, high = gaps[before, every], gaps[after, every]
    falls = (low > 0) & (high < 0)
    part = np.where(falls, low / np.where(falls, low - high, 1.0), np.where(high < 0, 0.0, 1.0))
    found = grid[before, every] + part * (grid[after, every] - grid[before, every])
    nearest: IntArray = np.rint(found).astype(np.int64)
    return nearest
