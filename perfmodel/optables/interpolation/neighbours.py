"""Choose and weight the measured sites that represent an unmeasured one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import (
    COMPRESSED_KINDS,
    EXPERT_KINDS,
    ByteArray,
    FloatArray,
    IntArray,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables.rows import site_dimensions

NEAREST_SITES: Final = 2
"""Sites that an unmeasured one borrows from. Of 2, 3 and 4, two predicted left-out sites of attention and MoE
best on the tables of H200."""

_TINY: Final = 1e-12
"""Sites that differ only in what the distance does not see are this far apart, squared."""

_ATTENTION_SCALE: Final = {"heads": 1.0, "kv_heads": 4.0, "head_dim": 8.0, "window": 4.0}
"""Distance of a doubling between two sites of attention. The head size and the KV heads select kernels and
their tiles; more heads only scale the work."""

_MOE_SCALE: Final = (1.0, 1.0, 0.5, 1.0, 0.25, 0.25)
"""How unlike a doubling makes two sites of MoE, in: hidden size, width of an expert's slice, experts held,
share of the experts that a token picks, moe_tp, moe_ep. The kernel sees the first four, and the splits only
through them. Chosen, of ten sets, by left-out sites of three frameworks on H200."""

SKEWED_DISTANCE: Final = 2.0
"""How unlike experts in groups are to experts in one group, beside their dimensions. [doublings] Those in
groups were timed on the busiest accelerator of skewed tokens, which takes up to twice the mean. Of 0, 2 and
16: with 2 whole models left out of 33 tables of A100, H100 and H200 are predicted to 20.7 % instead of 23.2
(mean of medians; 30 tables better, 3 worse), with 16 alike. On B200 they are predicted to 25 % with each."""

UNLIKE_KERNELS: Final = 16.0
"""Distance of two kernels for different purposes: larger than that of any two shapes. [doublings]"""

_CHUNK: Final = 512
"""Queries whose distances to all sites are held at a time."""


@dataclass(frozen=True, slots=True)
class DonorSites:
    """The sites that each query borrows from.

    Attributes
    ----------
    sites : IntArray
        Shape (n_queries, n_lenders).
    weights : FloatArray
        Shares that add up to 1, same shape.
    provenance : ByteArray
        INTERPOLATED where the query lies between its lenders in every dimension, EXTRAPOLATED elsewhere;
        shape (n_queries,).
    """

    sites: IntArray
    weights: FloatArray
    provenance: ByteArray


def nearest_lenders(sites: FloatArray, queries: FloatArray, extra_distance: FloatArray) -> DonorSites:
    """Borrow from the nearest sites, the nearer the more (inverse square of the distance).

    Parameters
    ----------
    sites, queries : FloatArray
        Points in a space where distance means unlikeness, shape (n_sites, n_dims) and (n_queries, n_dims).
        No query is a site.
    extra_distance : FloatArray
        By how much more each site is unlike any query, shape (n_sites,).
    """
    n_lenders = min(NEAREST_SITES, len(sites))
    chosen = np.empty((len(queries), n_lenders), dtype=np.int64)
    squared = np.empty((len(queries), n_lenders))
    for start in range(0, len(queries), _CHUNK):
        part = slice(start, start + _CHUNK)
        distance = ((queries[part, None, :] - sites[None, :, :]) ** 2).sum(axis=-1) + extra_distance**2
        # Stable, so that of two sites equally far the first in the table is taken on every machine.
        chosen[part] = np.argsort(distance, axis=1, kind="stable")[:, :n_lenders]
        squared[part] = np.take_along_axis(distance, chosen[part], axis=1)
    weights = 1.0 / np.maximum(squared, _TINY)
    weights /= weights.sum(axis=1, keepdims=True)
    around = sites[chosen]
    inside = ((around.min(axis=1) <= queries) & (queries <= around.max(axis=1))).all(axis=1)
    return DonorSites(chosen, weights, _label(~inside))


def line_lenders(sites: FloatArray, queries: FloatArray) -> DonorSites:
    """Borrow from the two sites around each query on a line, and beyond them from the last one.

    Parameters
    ----------
    sites, queries : FloatArray
        Shape (n_sites,) and (n_queries,).
    """
    order = np.argsort(sites)
    level = sites[order]
    clipped = np.clip(queries, level[0], level[-1])
    below = np.clip(np.searchsorted(level, clipped, side="right") - 1, 0, max(level.size - 2, 0))
    above = np.minimum(below + 1, level.size - 1)
    width = level[above] - level[below]
    share = (clipped - level[below]) / np.where(width > 0, width, 1.0)
    chosen = np.stack([order[below], order[above]], axis=1)
    return DonorSites(chosen, np.stack([1 - share, share], axis=1), _label(clipped != queries))


def grid_lenders(sites: FloatArray, queries: FloatArray) -> DonorSites:
    """Borrow from the corners of the grid cell around each query, by bilinear weights.

    For sites that form a nearly complete grid in two dimensions; where a corner with a weight is missing,
    the query borrows from the nearest sites instead.

    Parameters
    ----------
    sites, queries : FloatArray
        Shape (n_sites, 2) and (n_queries, 2).
    """
    levels = [np.unique(sites[:, dim]) for dim in range(2)]
    table = np.full((levels[0].size, levels[1].size), -1, dtype=np.int64)
    table[tuple(np.searchsorted(levels[dim], sites[:, dim]) for dim in range(2))] = np.arange(len(sites))
    lower, share, outside = [], [], np.zeros(len(queries), dtype=np.bool_)
    for dim, level in enumerate(levels):
        clipped = np.clip(queries[:, dim], level[0], level[-1])
        outside |= clipped != queries[:, dim]
        below = np.clip(np.searchsorted(level, clipped, side="right") - 1, 0, max(level.size - 2, 0))
        width = level[np.minimum(below + 1, level.size - 1)] - level[below]
        lower.append(below)
        share.append((clipped - level[below]) / np.where(width > 0, width, 1.0))
    chosen, weights = [], []
    for up_first in (0, 1):
        for up_second in (0, 1):
            corner = (
                np.minimum(lower[0] + up_first, levels[0].size - 1),
                np.minimum(lower[1] + up_second, levels[1].size - 1),
            )
            chosen.append(table[corner])
            weights.append(
                (share[0] if up_first else 1 - share[0]) * (share[1] if up_second else 1 - share[1])
            )
    corners, corner_weights = np.stack(chosen, axis=1), np.stack(weights, axis=1)
    label = _label(outside)
    holes = ((corners < 0) & (corner_weights > 0)).any(axis=1)
    corners = np.maximum(corners, 0)
    if holes.any():
        found = nearest_lenders(sites, queries[holes], np.zeros(len(sites)))
        n_found = found.sites.shape[1]
        corners[holes], corner_weights[holes] = 0, 0.0
        corners[np.flatnonzero(holes)[:, None], np.arange(n_found)] = found.sites
        corner_weights[np.flatnonzero(holes)[:, None], np.arange(n_found)] = found.weights
        label[holes] = found.provenance
    return DonorSites(corners, corner_weights, label)


def _label(outside: NDArray[np.bool_]) -> ByteArray:
    return np.where(outside, np.uint8(Provenance.EXTRAPOLATED), np.uint8(Provenance.INTERPOLATED))


def site_features(kind: OperatorKind, sites: IntArray) -> FloatArray:
    """Return the place sites so that their distance is their unlikeness.

    Features in logarithms, so that every doubling has the same weight, shape (n_sites, n_features).
    """
    names = site_dimensions(kind)
    features: FloatArray
    dims = {name: sites[:, column].astype(np.float64) for column, name in enumerate(names)}
    match kind:
        case _ if kind in EXPERT_KINDS:
            # Kernels for low latency and for throughput do not replace each other.
            unlike = UNLIKE_KERNELS * dims.get("low_latency", np.zeros(len(sites)))
            seen = (
                dims["hidden"],
                dims["intermediate"] / dims["moe_tp"],
                dims["experts"] / dims["moe_ep"],
                dims["top_k"] / dims["experts"],
                dims["moe_tp"],
                dims["moe_ep"],
            )
            features = np.log2(np.stack(seen, axis=1)) * np.array(_MOE_SCALE)
            features = np.concatenate([features, unlike[:, None]], axis=1)
        case OperatorKind.EXPERT_DISPATCH | OperatorKind.EXPERT_COMBINE:
            # Kernels for low latency and for throughput do not replace each other.
            dims["low_latency"] = np.power(2.0, UNLIKE_KERNELS * dims["low_latency"])
            features = np.log2(np.stack([dims[name] for name in names], axis=1))
        case OperatorKind.PREFILL_ATTENTION | OperatorKind.DECODE_ATTENTION:
            # A window of 0 is unlimited; one added keeps the logarithm finite.
            dims["window"] += 1.0
            scale = np.array([_ATTENTION_SCALE[name] for name in names])
            features = np.log2(np.stack([dims[name] for name in names], axis=1)) * scale
        case _ if kind in COMPRESSED_KINDS:
            # Blocks without entries or without an index have zeros; one added keeps the logarithm finite.
            features = np.log2(sites.astype(np.float64) + 1.0)
        case _:
            features = np.log2(sites.astype(np.float64))
    return features


def skewed_feature(sites: IntArray) -> FloatArray:
    """Place sites of experts by whether a group holds all of them or one of several, shape (n_sites, 1)."""
    groups = sites[:, site_dimensions(OperatorKind.MOE).index("moe_ep")]
    found: FloatArray = np.where(groups > 1, SKEWED_DISTANCE, 0.0)[:, None]
    return found
