"""Balance of experts over accelerators, redundant copies of them, and what is hidden behind their travel."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.perfmodel.fakes import (
    WorkSource,
    accelerator,
    configurations,
    dense_model,
    layouts,
    mixture_model,
)

from fleetplan.fleet.inventory import ExpertRouting, Precision, Techniques
from fleetplan.fleet.inventory.techniques import ExpertBalance, ExpertOverlap
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.steps import StepShape, decode_shape, prefill_shape
from fleetplan.perfmodel.steps.overlap import (
    LOW_LATENCY_OCCUPIED_SHARE,
    THROUGHPUT_OCCUPIED_SHARE,
    visible_ms,
)
from fleetplan.perfmodel.techniques import technique_problem
from fleetplan.perfmodel.techniques.expert_routing import (
    EPLB_BUSIEST_RATIO,
    EXPERTS_PER_REDUNDANT,
    expert_spread,
)

BF16 = Precision("bf16", "bf16")
WIDE = ("DP8-EP8", "DP16-EP16", "DP16-TP4EP4", "TP16")


def evaluator(**switches: object) -> Evaluator:
    return Evaluator(
        mixture_model(shared=512),
        accelerator(),
        WorkSource(),
        BF16,
        techniques=Techniques(**switches),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("routing", "even", "redundant"),
    [
        (ExpertRouting(), [False, True, True, False], [0, 2, 2, 0]),
        (ExpertRouting(balance="eplb"), [True, True, True, False], [2, 2, 2, 0]),
        (ExpertRouting(balance="eplb", redundant_experts=16), [True, True, True, False], [16, 16, 16, 0]),
        (ExpertRouting(balance="none"), [False] * 4, [0] * 4),
        (ExpertRouting(balance="perfect"), [True] * 4, [0] * 4),
        (ExpertRouting(busiest_expert_ratio=0.2), [True] * 4, [0] * 4),
    ],
)
def test_experts_over_several_hosts_are_balanced_unless_something_else_is_said(
    routing: ExpertRouting, even: list[bool], redundant: list[int]
) -> None:
    found = expert_spread(routing, 16, layouts(*WIDE), accelerator())
    assert found.even.tolist() == even
    assert found.redundant.tolist() == redundant
    balanced = routing.balance in {"auto", "eplb"} and routing.busiest_expert_ratio is None
    assert found.busiest_ratio == (EPLB_BUSIEST_RATIO if balanced or routing.balance == "none" else 1.0)


def test_two_trays_of_a_rack_balance_no_more_than_a_host_of_eight() -> None:
    rack = accelerator(accelerators_per_host=4, scale_up_accelerators=72)
    found = expert_spread(ExpertRouting(), 256, layouts("DP8-EP8", "DP16-EP16"), rack)
    assert found.even.tolist() == [False, True]
    large = accelerator(accelerators_per_host=16, scale_up_accelerators=16)
    assert not expert_spread(ExpertRouting(), 256, layouts("DP16-EP16"), large).even.any()


def test_copies_are_one_for_eight_experts() -> None:
    assert 256 / EXPERTS_PER_REDUNDANT == 32
    assert pytest.approx(1 / 0.7) == EPLB_BUSIEST_RATIO


@pytest.mark.parametrize("balance", ["none", "eplb", "perfect"])
def test_the_spread_decides_the_operator_and_its_tokens(balance: ExpertBalance) -> None:
    shape = prefill_shape(configurations(("DP16-EP16",), (2,), input_tokens=700))
    found = evaluator(experts=ExpertRouting(balance=balance)).operators(shape)
    (experts,) = [each for each in found if each.name == "routed_experts"]
    even = balance != "none"
    assert experts.kind is (OperatorKind.EVEN_DISPATCHED_MOE if even else OperatorKind.DISPATCHED_MOE)
    ratio = EPLB_BUSIEST_RATIO if balance == "eplb" else 1.0
    assert experts.dims["tokens"].tolist() == [int(np.ceil(2 * 700 * 16 * ratio))]
    # 16 experts and 2 copies do not fill 16 accelerators equally: more copies do.
    assert experts.dims["experts"].tolist() == [32 if balance == "eplb" else 16]


def test_redundant_experts_take_memory() -> None:
    batch = configurations(("DP8-EP8",), (1,))
    weights = {
        copies: evaluator(experts=ExpertRouting(balance="eplb", redundant_experts=copies))
        .decode_memory(batch)
        .weights_gib[0]
        for copies in (0, 8, 16)
    }
    model = mixture_model(shared=512)
    one = 3 * model.hidden_size * 256 * 2 / 2**30
    assert weights[8] - weights[0] == pytest.approx(3 * one)
    assert weights[16] - weights[8] == pytest.approx(3 * one)


@settings(deadline=None, max_examples=50)
@given(*[st.floats(0, 1e3)] * 2, st.floats(0, 1))
def test_what_is_hidden_is_neither_more_than_the_work_nor_than_the_travel(
    work: float, travel: float, occupied: float
) -> None:
    seen = float(visible_ms(np.array(work), np.array(travel), np.array(occupied * travel)))
    assert 0 <= seen <= travel
    assert travel - seen <= work + 1e-9
    assert seen >= occupied * travel - 1e-9


@pytest.mark.parametrize("overlap", ["two-batch", "single-batch"])
@pytest.mark.parametrize("step", [prefill_shape, decode_shape])
def test_an_overlap_hides_travel_and_never_costs(overlap: ExpertOverlap, step: object) -> None:
    shape: StepShape = step(configurations(WIDE, (1 << 18,) * 4))  # type: ignore[operator]
    without, with_it = (evaluator(expert_overlap=each).step(shape) for each in ("none", overlap))
    saved = without.latency_ms - with_it.latency_ms
    assert (saved >= 0).all()
    # Split experts, and those that nobody dispatches tokens to, have nothing to hide.
    assert (saved[:2] > 0).all()
    assert saved[2:].tolist() == [0.0, 0.0]
    assert with_it.breakdown_ms.sum(axis=0) == pytest.approx(with_it.latency_ms)
    assert with_it.by_provenance_ms.sum(axis=0) == pytest.approx(with_it.latency_ms)
    travel = sum(
        without.breakdown_ms[without.names.index(name)] for name in ("expert_dispatch", "expert_combine")
    )
    share = LOW_LATENCY_OCCUPIED_SHARE if step is decode_shape else THROUGHPUT_OCCUPIED_SHARE
    assert (saved <= (1 - share) * travel + 1e-9).all()  # type: ignore[operator]


@pytest.mark.parametrize("overlap", ["none", "two-batch", "single-batch"])
def test_a_cross_product_has_the_times_of_its_configurations(overlap: ExpertOverlap) -> None:
    labels, batches = ("DP8-EP8", "DP16-EP16", "TP16"), (2, 64)
    one = evaluator(expert_overlap=overlap)
    listed = [
        float(one.step(decode_shape(configurations((label,), (batch,)))).latency_ms[0])
        for label in labels
        for batch in batches
    ]
    crossed = configurations(labels, (2,) * len(labels))
    axis = (len(labels), 1, 1)
    tokens = {
        name: np.full((1, 1, 1), getattr(crossed, name)[0])
        for name in ("input_tokens", "prefix_tokens", "context_tokens", "output_tokens")
    }
    grid = replace(
        crossed, layouts=crossed.layouts.reshaped(axis), batch=np.array(batches).reshape(1, 2, 1), **tokens
    )
    found = one.step(decode_shape(grid)).latency_ms
    assert np.broadcast_to(found, (3, 2, 1)).ravel() == pytest.approx(listed)


def test_an_overlap_needs_experts() -> None:
    switched = Techniques(expert_overlap="two-batch")
    assert technique_problem(dense_model(), "vllm", switched) == (
        "expert_overlap: dense has no experts, so it has no effect"
    )
    assert technique_problem(mixture_model(), "vllm", switched) == ""
