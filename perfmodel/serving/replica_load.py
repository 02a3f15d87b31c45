"""Load of a replica, the batch that its KV cache allows, and the mean iteration at a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.serving.scheduling import Scheduling
from fleetplan.perfmodel.steps import MemoryUse, StepShape
from fleetplan.perfmodel.steps.memory import resident_sequences
from fleetplan.perfmodel.techniques.speculative import tokens_per_step

HELD_OUTPUT_RATIO: Final = 0.55
"""Part of its output that the mean resident sequence holds. Source: published closed-loop rows of 2025 and
2026 run at the batch that the cache allows at I + 0.55 O tokens a sequence."""

LARGEST_BATCH: Final = 8192
"""Largest number of sequences to test against the cache: twice the largest batch of the paper's tables."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one kind, each array of shape (n_configs,).

    Attributes
    ----------
    layouts : Layouts
        Parallelism.
    input_tokens, prefix_tokens, output_tokens : IntArray
        New prompt tokens, tokens already cached, and generated tokens of a request. [tokens]
    scheduling : Scheduling
        Scheduling of the engines.
    alike : bool
        Whether all requests have exactly these lengths: closed loops then run in cohorts
        (`fleetplan.perfmodel.serving.cohorts`).
    """

    layouts: Layouts
    input_tokens: IntArray
    prefix_tokens: IntArray
    output_tokens: IntArray
    scheduling: Scheduling
    alike: bool = False

    @property
    def engines(self) -> IntArray:
        """Attention-DP ranks times pipeline micro-batches of a replica, shape (n_configs,)."""
        found: IntArray = self.layouts.dp * self.layouts.pp
        return found

    @property
    def places(self) -> IntArray:
        """Largest number of sequences that the server admits to an engine, shape (n_configs,)."""
        return self.scheduling.engine_sequences(self.layouts.pp)

    @property
    def front_end_ms(self) -> FloatArray:
        """Time of a single request outside the engine, shape (n_configs,). [ms]"""
        front_end = self.scheduling.front_end
        return front_end.request_ms + front_end.template_ms + front_end.prompt_ms(self.input_tokens)

    @property
    def front_end_prompt_ms(self) -> FloatArray:
        """Time between two prompts of an engine if the front end is the bottleneck. [ms]"""
        return self.scheduling.front_end.prompt_ms(self.input_tokens) * self.engines

    @property
    def front_end_template_ms(self) -> FloatArray:
        """Template time of a chat request of an engine, serial over the requests of a burst. [ms]"""
        found: FloatArray = self.scheduling.front_end.template_ms * self.engines.astype(np.float64)
        return found

    @property
    def most_templates_per_ms(self) -> FloatArray:
        """Rate of chat requests per engine that the template allows; infinite without templates. [1/ms]"""
        each_ms = self.front_end_template_ms
        found: FloatArray = np.where(each_ms > 0, 1.0 / np.where(each_ms > 0, each_ms, 1.0), np.inf)
        return found


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Steady state of a replica, each array of shape (n_configs,).

    Attributes
    ----------
    batch : IntArray
        Resident sequences of one attention-DP rank in one micro-batch.
    ttft_ms, tpot_ms : FloatArray
        Means; TTFT includes all waits. [ms]
    requests_per_s : FloatArray
        Rate of one replica. [1/s]
    iteration : MeanIteration
        Breakdown of the mean iteration.
    memory : MemoryUse
        Memory of the fullest accelerator at that batch.
    fits : NDArray[np.bool_]
        Whether the cache of one sequence fits.
    sustained : NDArray[np.bool_]
        Whether a steady state exists; if not, the figures are those of the largest rate.
    """

    batch: IntArray
    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    iteration: MeanIteration
    memory: MemoryUse
    fits: NDArray[np.bool_]
    sustained: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MeanIteration:
    """Breakdown of the time of the mean iteration, each array of shape (n_configs,) unless noted.

    Attributes
    ----------
    by_provenance_ms : FloatArray
        Time by `Provenance`, shape (4, n_configs). [ms]
    bottleneck : IntArray
        Slowest operator of an iteration with prompts, as an index into `names`.
    names : tuple[str, ...]
        Operators.
    """

    by_provenance_ms: FloatArray
    bottleneck: IntArray
    names: tuple[str, ...]


def mean_iteration(evaluator: Evaluator, load: Load, batch: IntArray, due: FloatArray) -> MeanIteration:
    """Return the mean iteration of an instance with `batch` sequences per rank and micro-batch.

    Parameters
    ----------
    evaluator, load
        The model on its accelerator, and its requests.
    batch : IntArray
        Sequences that generate, shape (n_configs,).
    due : FloatArray
        Mean number of prompts that start per iteration, shape (n_configs,).
    """
    prompts, new_tokens = prompts_taken(load, due)
    share = np.minimum(1.0, due * load.input_tokens / (prompts * new_tokens))
    # A prompt of several iterations attends, on average, to half of its other chunks.
    prefix = load.prefix_tokens + (load.input_tokens - new_tokens) // 2
    context = load.prefix_tokens + load.input_tokens + load.output_tokens // 2
    none = np.zeros_like(batch)
    apart = load.scheduling.admission.prompts_apart
    decode, carrying = evaluator.steps(
        [
            StepShape(load.layouts, none, none, none, batch, context),
            StepShape(load.layouts, prompts, new_tokens, prefix, none if apart else batch, context),
        ]
    )
    # Prompts in separate steps delay every iteration; fused ones replace a share of them.
    plain_share = np.ones_like(share) if apart else 1.0 - share
    return MeanIteration(
        by_provenance_ms=plain_share * decode.by_provenance_ms + share * carrying.by_provenance_ms,
        bottleneck=carrying.bottleneck,
        names=carrying.names,
    )


def prompts_taken(load: Load, due: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the prompts in one iteration of a rank if `due` wait, and their new tokens."""
    # T = min(M, max(I, p I)) tokens an iteration, as whole prompts or as one chunk of a long prompt.
    limit = load.scheduling.rank_tokens(load.layouts.dp)
    new_tokens = np.minimum(load.input_tokens, limit)
    most = np.maximum(1, limit // new_tokens)
    prompts = np.clip(np.ceil(due), 1, most).astype(np.int64)
    return prompts, new_tokens


def cache_limit(evaluator: Evaluator, load: Load, share: FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return how many of `share` sequences fit on a rank and micro-batch, and whether one fits."""
    many = np.clip(np.ceil(share), 2, LARGEST_BATCH).astype(np.int64)
    one, together = (resident_memory(evaluator, load, each) for each in (np.ones_like(many), many))
    fitting = np.floor(resident_sequences(one, together, many))
    allowed: IntArray = np.clip(fitting, 1, LARGEST_BATCH).astype(np.int64)
    high = np.clip(allowed, 2, many)
    over = one.fits & (allowed > 1) & ~resident_memory(evaluator, load, high).fits
    # Prompts of an iteration stop growing at its limit, so fewer fit than on a straight line to all of them.
    low = np.ones_like(high)
    while (over & (high - low > 1)).any():
        middle = (low + high) // 2
        fits = resident_memory(evaluator, load, middle).fits
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(over, low, allowed), one.fits


def _held_output(load: Load) -> IntArray:
    held: IntArray = np.ceil(HELD_OUTPUT_RATIO * load.output_tokens).astype(np.int64)
    return held


def resident_memory(evaluator: Evaluator, load: Load, batch: IntArray) -> MemoryUse:
    """Return the memory of the fullest accelerator with `batch` sequences per rank and micro-batch."""
    techniques = evaluator.techniques
    each = load.output_tokens * techniques.samples_per_prompt
    prompts, new_tokens = prompts_taken(load, batch * tokens_per_step(techniques.speculative) / each)
    shape = StepShape(load.layouts, prompts, new_tokens, load.prefix_tokens, batch, load.input_tokens)
    generated = _held_output(load)
    held = load.prefix_tokens + load.input_tokens + generated
    return evaluator.memory(shape, batch, held, generated, load.prefix_tokens)
