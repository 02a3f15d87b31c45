"""A prefix that all requests begin with: its cache is kept once, and a batch reads it once.

Attention of a batch splits in two parts that are merged afterwards: all queries over the shared prefix,
and each query over the rest of its own context. Over the prefix, grouped-query attention is prompt-like, with
all queries as the new tokens of one sequence; latent attention, whose latent vectors serve all heads anyway,
has the queries of all sequences as further heads of one. The merge moves one vector a head and token; its
time is left out. Layers with a window, with an indexer (every query reads tokens of its own choice) or with a
recurrent state (it sums up the prefix) run as without sharing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Techniques
from fleetplan.perfmodel.operators import IntArray, Operator, OperatorKind
from fleetplan.perfmodel.techniques.record import ALL_MODES, Technique, TechniqueStep, number
from fleetplan.perfmodel.techniques.speculative import verified_tokens

SHARED_ATTENTION = "shared_prefix_attention"
"""The name in a breakdown of a batch's attention over the shared prefix."""


def split_attention(
    operators: Iterable[Operator], techniques: Techniques, queries_per_sequence: int, cp: IntArray
) -> Iterator[Operator]:
    """Yield the operators with decode attention split at the end of the shared prefix.

    Parameters
    ----------
    operators : Iterable[Operator]
        Lengths of one step.
    techniques : Techniques
        For the length of the shared prefix.
    queries_per_sequence : int
        Tokens of a sequence that a decode step computes.
    cp : IntArray
        Context-parallel ranks, which share the prefix out among themselves, shape (n_configs,).
    """
    if not techniques.shared_prefix_tokens:
        yield from operators
        return
    shared = -(-techniques.shared_prefix_tokens // cp)
    for operator in operators:
        if operator.kind is OperatorKind.LATENT_DECODE_ATTENTION:
            yield from _split_latent(operator, shared)
        elif operator.kind is OperatorKind.DECODE_ATTENTION and not operator.dims["window"].any():
            yield from _split(operator, shared, queries_per_sequence)
        else:
            yield operator


def _split_latent(operator: Operator, shared: IntArray) -> Iterator[Operator]:
    dims = operator.dims
    own = np.maximum(1, dims["context_tokens"] - shared)
    yield replace(operator, dims={**dims, "context_tokens": own})
    once = {
        "batch": np.ones_like(dims["batch"]),
        # A context that ends within the prefix reads no more of it than it has.
        "context_tokens": np.minimum(shared, dims["context_tokens"]),
        "heads": dims["heads"] * dims["batch"],
    }
    yield replace(operator, name=SHARED_ATTENTION, dims={**dims, **once})


def _split(operator: Operator, shared: IntArray, queries_per_sequence: int) -> Iterator[Operator]:
    dims = operator.dims
    own = np.maximum(1, dims["context_tokens"] - shared)
    yield replace(operator, dims={**dims, "context_tokens": own})
    queries = dims["batch"] * queries_per_sequence
    # The operator is causal; half of the queries taken off its prefix leave `queries * shared` pairs.
    prefix = np.maximum(0, shared - (queries + 1) // 2)
    prompt_like = {
        "batch": np.ones_like(queries),
        "new_tokens": queries,
        "prefix_tokens": prefix,
        "heads": dims["heads"] // queries_per_sequence,
        "kv_heads": dims["kv_heads"],
        "head_dim": dims["head_dim"],
        "window": dims["window"],
    }
    kind = OperatorKind.PREFILL_ATTENTION
    yield Operator(SHARED_ATTENTION, kind, operator.dtype, prompt_like, operator.count)


def _refused(cells: Mapping[str, str]) -> Iterator[str]:
    shared, cached = (cells.get(name, "0") for name in ("shared_prefix_tokens", "prefix_tokens"))
    try:
        exceeds = float(shared) > float(cached)
    except ValueError:
        # Said where the cell is read.
        return
    if exceeds:
        yield "shared_prefix_tokens: exceeds prefix_tokens, of which it is a part"


def _operators(operators: Iterable[Operator], step: TechniqueStep) -> Iterator[Operator]:
    queries = verified_tokens(step.techniques)
    return split_attention(operators, step.techniques, queries, step.asked.layouts.cp)


SHARED_CACHE: Final = Technique(
    {
        "samples_per_prompt": number(1, 1e6, frozenset({"decode"}), whole=True),
        "shared_prefix_tokens": number(0, 1e8, ALL_MODES, "prefix_tokens", whole=True),
    },
    refused=_refused,
    operators=_operators,
)
"""The record of prompts that share a prefix, and of samples that share a prompt."""
