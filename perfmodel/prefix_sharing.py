"""A prefix that all requests begin with: its cache is kept once, and a batch reads it once.

Attention of a batch splits in two parts that are merged afterwards: all queries over the shared prefix,
which is a prompt-like operation over one sequence, and each query over the rest of its own context. The
merge moves one vector a head and token; its time is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from fleetplan.fleet.techniques import Techniques
from fleetplan.perfmodel.operators import Operator, OperatorKind

SHARED_ATTENTION = "shared_prefix_attention"
"""The name in a breakdown of a batch's attention over the shared prefix."""


def split_attention(
    operators: Iterable[Operator], techniques: Techniques, queries_per_sequence: int
) -> Iterator[Operator]:
    """Yield the operators with decode attention split at the end of the shared prefix.

    Layers with a window are left as they are: the prefix slides out of it.

    Parameters
    ----------
    operators : Iterable[Operator]
        Of one step.
    techniques : Techniques
        For the length of the shared prefix.
    queries_per_sequence : int
        Tokens of a sequence that a decode step computes.
    """
    shared = techniques.shared_prefix_tokens
    for operator in operators:
        if shared and operator.kind is OperatorKind.DECODE_ATTENTION and not operator.dims["window"].any():
            yield from _split(operator, shared, queries_per_sequence)
        else:
            yield operator


def _split(operator: Operator, shared: int, queries_per_sequence: int) -> Iterator[Operator]:
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
