from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

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
