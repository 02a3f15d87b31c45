"""Distribution of prompt times for prompts of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving import RequestKind
from fleetplan.perfmodel.steps import ConfigurationBatch

_NODES: Final = 24
"""Quantiles of the prompt length, in equal steps, over which means are taken."""


@dataclass(frozen=True, slots=True)
class PromptSpread:
    """Times of single prompts of each layout, over the time of a prompt of mean length; shape (n_layouts,).

    Attributes
    ----------
    mean : FloatArray
        Mean time.
    variation : FloatArray
        Squared coefficient of variation of the times.
    percentiles : dict[float, FloatArray]
        Time that a share of the prompts does not exceed, over the mean time, by share.
    """

    mean: FloatArray
    variation: FloatArray
    percentiles: dict[float, FloatArray]


def prompt_spread(
    evaluator: Evaluator, layouts: Sequence[Parallelism], kind: RequestKind, shares: Sequence[float]
) -> PromptSpread:
    """Return the spread of the times of single prompts of different lengths.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator.
    layouts : Sequence[Parallelism]
        At least one.
    kind : RequestKind
        Lengths.
    shares : Sequence[float]
        Percentiles to compute.
    """
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    tokens = kind.input_quantiles(np.concatenate([nodes, np.array(shares, dtype=np.float64)]))
    tokens = np.concatenate([tokens, [float(kind.input_tokens)]])
    times = _times_ms(evaluator, layouts, kind, np.rint(tokens).astype(np.int64))
    at_mean, spread = times[:, -1:], times[:, :_NODES]
    mean = spread.mean(axis=1)
    return PromptSpread(
        mean=mean / at_mean[:, 0],
        variation=spread.var(axis=1) / mean**2,
        percentiles={share: times[:, _NODES + k] / mean for k, share in enumerate(shares)},
    )


def _times_ms(
    evaluator: Evaluator, layouts: Sequence[Parallelism], kind: RequestKind, tokens: np.ndarray
) -> FloatArray:
    """Return the time of one prompt per rank, by layout and length, shape (n_layouts, n_lengths). [ms]"""
    count = len(layouts) * tokens.size
    input_tokens = np.tile(tokens, len(layouts))
    prefix = np.full(count, kind.prefix_tokens)
    rows = np.repeat(np.arange(len(layouts)), tokens.size)
    batch = ConfigurationBatch(
        Layouts.of(list(layouts)).take(rows),
        np.ones(count, dtype=np.int64),
        input_tokens,
        prefix,
        prefix + input_tokens,
        np.full(count, kind.output_tokens),
    )
    found: FloatArray = evaluator.prefill(batch).ttft_ms.reshape(len(layouts), tokens.size)
    return found
