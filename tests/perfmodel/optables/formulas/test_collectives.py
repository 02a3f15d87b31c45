from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import COLLECTIVE_KINDS, OperatorKind
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.optables.formulas.collectives import group_ms, groups, send_recv_ms

# Decode of a model with hidden size 16384 at batch 64: one BF16 tensor.
DECODE_MESSAGE = 64 * 16384 * 2


def collective(kind: OperatorKind, part: Accelerator, message: int, ranks: int, stride: int = 1) -> float:
    dims = {"message_bytes": np.array([message]), "ranks": np.array([ranks]), "stride": np.array([stride])}
    return float(group_ms(part, kind, dims)[0])


@pytest.mark.parametrize(
    ("ranks", "stride", "inner", "outer"),
    [(8, 1, 8, 1), (16, 1, 8, 2), (2, 8, 1, 2), (4, 4, 2, 2), (8, 2, 4, 2)],
)
def test_groups_lie_on_domains(toy: Accelerator, ranks: int, stride: int, inner: int, outer: int) -> None:
    placed = groups(toy, np.array([ranks]), np.array([stride]))
    assert (placed.inner[0], placed.outer[0], bool(placed.leaves[0])) == (inner, outer, outer > 1)


@pytest.mark.parametrize("kind", sorted(COLLECTIVE_KINDS))
def test_a_group_of_one_takes_no_time(toy: Accelerator, kind: OperatorKind) -> None:
    assert collective(kind, toy, 1 << 30, 1) == 0.0


def test_all_reduce_takes_the_faster_of_one_shot_and_two_shot(toy: Accelerator) -> None:
    bytes_per_ms = 450e6 * 0.5
    small, large = 8192, 1 << 30
    assert collective(OperatorKind.ALL_REDUCE, toy, small, 8) == pytest.approx(
        0.004 + 7 * small / bytes_per_ms
    )
    assert collective(OperatorKind.ALL_REDUCE, toy, large, 8) == pytest.approx(
        0.008 + 1.75 * large / bytes_per_ms
    )


def test_leaving_the_domain_multiplies_a_decode_all_reduce_by_three_and_not_by_the_links(
    toy: Accelerator,
) -> None:
    inside = collective(OperatorKind.ALL_REDUCE, toy, DECODE_MESSAGE, 8)
    across = collective(OperatorKind.ALL_REDUCE, toy, DECODE_MESSAGE, 16)
    assert 2.5 <= across / inside <= 4.0


def test_a_flat_ring_carries_the_whole_message_over_one_link_of_a_domain(toy: Accelerator) -> None:
    ring = OperatorSource(toy, "vllm", None, network_all_reduce="ring")
    levels = OperatorSource(toy, "vllm", None)
    ranks, ones = np.array([8, 16]), np.ones(2, dtype=np.int64)
    dims = {"message_bytes": DECODE_MESSAGE * ones, "ranks": ranks, "stride": ones}
    inside, across = ring.times(OperatorKind.ALL_REDUCE, "bf16", dims).latency_ms
    assert across == pytest.approx(0.06 + 2 * 15 / 16 * DECODE_MESSAGE / (50e6 * 0.5))
    in_levels = levels.times(OperatorKind.ALL_REDUCE, "bf16", dims).latency_ms
    assert inside == in_levels[0]
    assert across > in_levels[1]


@pytest.mark.parametrize("kind", sorted(COLLECTIVE_KINDS))
def test_a_group_across_domains_is_never_faster_than_one_inside(toy: Accelerator, kind: OperatorKind) -> None:
    for message in (256, 1 << 20, 1 << 30):
        assert collective(kind, toy, message, 16) >= collective(kind, toy, message, 8)
        assert collective(kind, toy, message, 4, stride=8) >= collective(kind, toy, message, 4)


@pytest.mark.parametrize("kind", sorted(COLLECTIVE_KINDS))
def test_a_part_without_a_network_cannot_leave_its_domain(toy: Accelerator, kind: OperatorKind) -> None:
    island = replace(toy, scale_out_gb_per_s=None)
    assert collective(kind, island, 1024, 16) == np.inf
    assert np.isfinite(collective(kind, island, 1024, 8))


def test_a_neighbour_in_the_domain_is_nearer_than_one_outside(toy: Accelerator) -> None:
    dims = {"message_bytes": np.array([1 << 20] * 3), "stride": np.array([1, 7, 8])}
    near, still_near, far = send_recv_ms(toy, dims)
    assert near == still_near < far
    assert far == pytest.approx(0.03 + (1 << 20) / (50e6 * 0.5))


VLLM_ON_MI355X_US = {24: 6.3, 48: 6.7, 96: 7.6, 192: 10.0, 384: 13.1, 768: 16.0, 1536: 24.2}
"""All-reduces of so many KiB on eight MI355X before vllm-project/vllm pull request 39080. [us]"""


@pytest.mark.parametrize("name", ["MI300X", "MI325X"])
def test_constants_of_amd_are_those_of_published_all_reduces(name: str) -> None:
    links = replace(accelerators()[name], scale_up_gb_per_s=7 * 76.8)
    for kib, measured_us in VLLM_ON_MI355X_US.items():
        ours_us = 1e3 * collective(OperatorKind.ALL_REDUCE, links, kib * 1024, 8)
        assert ours_us == pytest.approx(measured_us, rel=0.15)
    growth_us = VLLM_ON_MI355X_US[1536] - VLLM_ON_MI355X_US[768]
    bytes_per_us = 2 * (1 - 1 / 8) * 768 * 1024 / growth_us
    assert links.efficiency.link_ratio == pytest.approx(bytes_per_us / (7 * 76.8e3), abs=0.005)


MI300X_US = {
    2: {1024: 28.15, 4096: 93.79, 16384: 355.91, 65536: 1398.17, 524288: 11126.36},
    4: {1024: 22.91, 2048: 36.64, 4096: 63.86, 8192: 118.31, 16384: 230.48},
}
"""All-reduces of so many KiB by vLLM's own kernel in groups of two (ROCm/aiter pull request 801) and four
(vllm-project/vllm pull request 19744) MI300X. [us]"""


@pytest.mark.parametrize(("ranks", "within"), [(2, 0.07), (4, 0.18)])
def test_a_group_in_a_mesh_uses_the_links_to_its_members_alone(ranks: int, within: float) -> None:
    """In a full mesh, ranks communicate only over the links to the other members of their group."""
    part = accelerators()["MI300X"]
    for kib, measured_us in MI300X_US[ranks].items():
        ours_us = 1e3 * collective(OperatorKind.ALL_REDUCE, part, kib * 1024, ranks)
        assert ours_us == pytest.approx(measured_us, rel=within)


def test_a_whole_mesh_is_as_fast_as_a_switch(toy: Accelerator) -> None:
    mesh = replace(toy, scale_up_mesh=True)
    for kind in COLLECTIVE_KINDS:
        assert collective(kind, mesh, 1 << 30, 8) == collective(kind, toy, 1 << 30, 8)
        across = [collective(kind, part, 1 << 30, 16) for part in (mesh, toy)]
        assert across[0] == across[1]
    dims = {"message_bytes": np.array([1 << 30]), "stride": np.array([1])}
    # One of seven links, where half of a switch is reached.
    assert send_recv_ms(mesh, dims)[0] == pytest.approx(send_recv_ms(toy, dims)[0] * 0.5 * 7, rel=0.01)


@pytest.mark.parametrize("kind", sorted(COLLECTIVE_KINDS))
def test_more_ranks_of_a_mesh_send_no_less_at_once(toy: Accelerator, kind: OperatorKind) -> None:
    mesh = replace(toy, scale_up_mesh=True)
    pieces = [collective(kind, mesh, 1 << 30, ranks) / (1 - 1 / ranks) for ranks in range(2, 9)]
    assert pieces == sorted(pieces, reverse=True)


def test_gaudi_has_three_ports_of_its_own_to_each_other_card() -> None:
    """Intel Gaudi documentation, Network Configuration: 21 ports of 200 Gb/s to seven others."""
    part = accelerators()["Gaudi3"]
    sent_ms = collective(OperatorKind.ALL_GATHER, part, 1 << 30, 2)
    assert sent_ms == pytest.approx((1 << 29) / (3 * 25e6), rel=0.01)


@pytest.mark.parametrize("name", ["MI300X", "MI325X"])
def test_attention_of_amd_is_carried_over_in_proportion(name: str) -> None:
    own, fitted = (accelerators()[each].efficiency for each in (name, "H100-SXM"))
    products = own.gemm_ratio / fitted.gemm_ratio
    memory = own.weight_read_ratio / fitted.weight_read_ratio
    assert own.prefill_attention_ratio == pytest.approx(fitted.prefill_attention_ratio * products, abs=0.005)
    assert own.kv_read_ratio == pytest.approx(fitted.kv_read_ratio * memory, abs=0.005)
