"""Expected counts that operators and their measured tables share: query-key pairs, experts, groups."""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.operators.arrays import FloatArray, IntArray


def attended_pairs(
    new_tokens: IntArray | FloatArray, prefix_tokens: IntArray | FloatArray, window: IntArray
) -> FloatArray:
    """Return the query-key pairs of one head of causal attention over a prefix.

    Parameters
    ----------
    new_tokens, prefix_tokens : IntArray or FloatArray
        Tokens of one sequence, or mean ones. [tokens]
    window : IntArray
        Keys that a query sees at most; 0 is unlimited. [tokens]

    Returns
    -------
    FloatArray
        Query i (1..new) sees min(prefix + i, window) keys; the sum over i.
    """
    new = new_tokens.astype(np.float64)
    prefix = prefix_tokens.astype(np.float64)
    full = new * prefix + new * (new + 1) / 2
    limit = window.astype(np.float64)
    # Queries before the window fills see a growing context, the rest see the window.
    growing = np.clip(limit - prefix, 0, new)
    windowed = growing * prefix + growing * (growing + 1) / 2 + (new - growing) * limit
    return np.where(window > 0, windowed, full)


def groups_reached(top_k: IntArray | int, ep: IntArray) -> FloatArray:
    """Return the expected number of `ep` equal expert groups of a token: ep (1 - (1 - 1/ep)^k)."""
    reached: FloatArray = ep * (1.0 - np.power(1.0 - 1.0 / ep, top_k))
    return reached


def active_experts(tokens: IntArray, top_k: IntArray, experts: IntArray) -> FloatArray:
    """Return the expected number of distinct experts that `tokens` uniformly random tokens reach.

    E (1 - (1 - k/E)^T): each token picks k of E experts, each expert is missed with 1 - k/E.
    Source: the paper, section 4.5 ("uniform random").
    """
    share = top_k / experts
    reached: FloatArray = experts * (1.0 - np.power(1.0 - np.minimum(share, 1.0), tokens))
    return reached
