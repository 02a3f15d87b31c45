"""Collectives among accelerators: which links a group uses, and the time by latency and bandwidth.

A group of `ranks` with `stride` holds the accelerators 0, stride, 2 stride and so on. Inside one scale-up
domain it uses the scale-up links alone. A group that leaves the domain works in two levels: the ranks of one
domain share the message out among themselves, each rank exchanges its share with its peers in the other
domains over the network, and the shares are put together again within each domain. A communication library
that knows no levels (`NetworkAllReduce` "ring") runs an all-reduce as one flat ring over all ranks instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S, US_PER_MS
from fleetplan.perfmodel.operators import FloatArray, IntArray, OperatorKind

NetworkAllReduce = Literal["hierarchical", "ring"]
"""All-reduce of the communication library across domains: in levels (every accelerator carries its share of
the message over its own network link), or as one flat ring (the link that leaves a domain carries the whole
message)."""


ALL_REDUCE_PASSES: Final = 2
"""Times that an all-reduce crosses the network: pieces are summed up, then handed out. An all-to-all, a
gather and a message cross it once. `inter_host_latency_us` was fitted on all-reduces alone (405B under TP16,
Figure 12b of Meta, Optimizing Deployment Configurations for LLM Inference), so what crosses once takes half.
Held against experts over hosts, which were not fitted: over two hosts +4 % in Figure 12b and -3 % in Figure
13 (the paper +16 and -2 %; with the whole latency -6 and -9 %), over four +36 % (+45 %; +30 %)."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Placement of groups on the scale-up domains, each array of shape (n_configs,).

    Attributes
    ----------
    inner : IntArray
        Ranks of a group within one domain, at least 1.
    outer : IntArray
        Domains that the group spans; 1 within a domain.
    leaves : NDArray[np.bool_]
        Whether it spans more than one.
    """

    inner: IntArray
    outer: IntArray
    leaves: NDArray[np.bool_]


def groups(accelerator: Accelerator, ranks: IntArray, stride: IntArray) -> Groups:
    """Place groups of `ranks`, `stride` accelerators apart, on the scale-up domains."""
    domain = accelerator.scale_up_accelerators
    leaves = (ranks > 1) & (ranks * stride > domain)
    inner = np.where(leaves, np.clip(domain // np.maximum(stride, 1), 1, ranks), ranks)
    return Groups(inner, -(-ranks // inner), leaves)


def group_ms(
    accelerator: Accelerator,
    kind: OperatorKind,
    dims: dict[str, IntArray],
    network_all_reduce: NetworkAllReduce = "hierarchical",
) -> FloatArray:
    """Return the time of a collective by latency and bandwidth, 0 for a group of one, in ms."""
    placed = groups(accelerator, dims["ranks"], dims["stride"])
    message = dims["message_bytes"].astype(np.float64)
    inside = inside_ms(accelerator, kind, inside_message(kind, message, placed), placed.inner)
    fixed = inside_ms(accelerator, kind, np.zeros(message.shape), placed.inner)
    sent_bytes = network_bytes(kind, message, placed, network_all_reduce)
    return with_network_ms(accelerator, kind, sent_bytes, placed, inside, fixed)


def inside_message(kind: OperatorKind, message_bytes: FloatArray, placed: Groups) -> FloatArray:
    """Return the message of a collective's part within a domain, in bytes.

    The whole message, except for an all-to-all, where a rank keeps inside only the data for its own domain.
    """
    if kind is not OperatorKind.ALL_TO_ALL:
        return message_bytes
    return message_bytes / placed.outer


def links_used(accelerator: Accelerator, ranks: IntArray) -> FloatArray:
    """Return share of its scale-up links that a part uses in a group within a domain, shape (n_configs,)."""
    if not accelerator.scale_up_mesh or accelerator.scale_up_accelerators <= 2:
        return np.ones(ranks.shape)
    found: FloatArray = (np.maximum(ranks, 2) - 1.0) / (accelerator.scale_up_accelerators - 1)
    return np.minimum(1.0, found)


def _scale_up_bytes_per_ms(accelerator: Accelerator, ranks: IntArray) -> FloatArray:
    """Return the bandwidth of a part in a group within a domain, shape (n_configs,).

    Kernels reach `link_ratio` of all links. Those of a mesh that a group uses may carry less: no more than
    `mesh_link_ratio` of each. Groups of two, four and eight MI300X then come out at 1.00, 1.2 and 1.0 times
    the published all-reduces (ROCm/aiter pull request 801, vllm-project/vllm pull request 19744).
    """
    efficiency = accelerator.efficiency
    ratio: FloatArray = np.full(ranks.shape, efficiency.link_ratio)
    if accelerator.scale_up_mesh:
        ratio = np.minimum(ratio, efficiency.mesh_link_ratio * links_used(accelerator, ranks))
    found: FloatArray = accelerator.scale_up_gb_per_s * BYTES_PER_MS_OF_GB_PER_S * ratio
    return found


def inside_ms(
    accelerator: Accelerator, kind: OperatorKind, message_bytes: FloatArray, ranks: IntArray
) -> FloatArray:
    """Return the time of a collective that stays within one scale-up domain; 0 for a single rank, in ms.

    An all-reduce takes the faster of two ways: one-shot (every rank sends its whole message to every
    other, one latency) and two-shot (reduce-scatter, then all-gather: the least traffic, two latencies).
    """
    latency_ms = accelerator.efficiency.collective_latency_us / US_PER_MS
    bytes_per_ms = _scale_up_bytes_per_ms(accelerator, ranks)
    share = 1.0 - 1.0 / ranks
    if kind is OperatorKind.ALL_REDUCE:
        one_shot = latency_ms + (ranks - 1) * message_bytes / bytes_per_ms
        two_shot = 2 * latency_ms + 2 * share * message_bytes / bytes_per_ms
        time = np.minimum(one_shot, two_shot)
    else:
        time = latency_ms + share * message_bytes / bytes_per_ms
    return np.where(ranks > 1, time, 0.0)


def network_bytes(
    kind: OperatorKind,
    message_bytes: FloatArray,
    placed: Groups,
    network_all_reduce: NetworkAllReduce = "hierarchical",
) -> FloatArray:
    """Return the bytes that the busiest network link of a group carries, shape (n_configs,)."""
    remote = 1.0 - 1.0 / placed.outer
    match kind:
        case OperatorKind.ALL_REDUCE if network_all_reduce == "ring":
            # The rank at the edge of a host passes on every piece but its own, in both halves of the ring.
            return 2 * (1.0 - 1.0 / (placed.inner * placed.outer)) * message_bytes
        case OperatorKind.ALL_REDUCE:
            return 2 * remote * message_bytes / placed.inner
        case OperatorKind.ALL_GATHER | OperatorKind.REDUCE_SCATTER:
            return remote * message_bytes / placed.inner
        case OperatorKind.ALL_TO_ALL:
            return remote * message_bytes
        case _:
            raise ValueError(f"{kind} is not a collective")


def with_network_ms(
    accelerator: Accelerator,
    kind: OperatorKind,
    sent_bytes: FloatArray,
    placed: Groups,
    inside: FloatArray,
    inside_fixed: FloatArray,
) -> FloatArray:
    """Return the time of a collective, from its part within a domain and its traffic to other domains.

    A collective that leaves the domain has the fixed time of its passes over the network. Its levels work on
    one piece of the message after the other, so that the slower of the two links sets the pace.

    Parameters
    ----------
    accelerator : Accelerator
        Its network.
    kind : OperatorKind
        Collective.
    sent_bytes : FloatArray
        From `network_bytes`, shape (n_configs,). [bytes]
    placed : Groups
        Placement of the groups.
    inside, inside_fixed : FloatArray
        Time within a domain, and the share of it that does not depend on the message, same shape. [ms]

    Returns
    -------
    FloatArray
        Shape (n_configs,); infinite for a group that leaves the domain of a part without a network. [ms]
    """
    if not placed.leaves.any():
        return inside
    if accelerator.scale_out_gb_per_s is None:
        return np.where(placed.leaves, np.inf, inside)
    network = sent_bytes / _network_bytes_per_ms(accelerator, accelerator.scale_out_gb_per_s)
    leaving = _network_latency_ms(accelerator, kind) + np.maximum(inside - inside_fixed, network)
    return np.where(placed.leaves, np.maximum(leaving, inside), inside)


def send_recv_ms(accelerator: Accelerator, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time to send a message to the accelerator `stride` away, in ms.

    Infinite where the peer is outside the scale-up domain of a part without a network.
    """
    efficiency = accelerator.efficiency
    message = dims["message_bytes"].astype(np.float64)
    # In a mesh a message goes over the links to one other part.
    near_bytes_per_ms = _scale_up_bytes_per_ms(accelerator, np.full(message.shape, 2))
    near = efficiency.collective_latency_us / US_PER_MS + message / near_bytes_per_ms
    if accelerator.scale_out_gb_per_s is None:
        far = np.full(message.shape, np.inf)
    else:
        far = _network_latency_ms(accelerator, OperatorKind.SEND_RECV) + message / _network_bytes_per_ms(
            accelerator, accelerator.scale_out_gb_per_s
        )
    return np.where(dims["stride"] < accelerator.scale_up_accelerators, near, far)


def _network_latency_ms(accelerator: Accelerator, kind: OperatorKind) -> float:
    passes = ALL_REDUCE_PASSES if kind is OperatorKind.ALL_REDUCE else 1
    return passes / ALL_REDUCE_PASSES * accelerator.efficiency.inter_host_latency_us / US_PER_MS


def _network_bytes_per_ms(accelerator: Accelerator, scale_out_gb_per_s: float) -> float:
    return scale_out_gb_per_s * accelerator.efficiency.link_ratio * BYTES_PER_MS_OF_GB_PER_S
