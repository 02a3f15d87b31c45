"""Number of experts that a step activates, and the load of the busiest expert-parallel rank."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, dense_model, mixture_model, whole

from fleetplan.fleet.inventory import ExpertRouting, Precision, SpeculativeDecoding, Techniques
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.steps import prefill_shape
from fleetplan.perfmodel.techniques import technique_problem
from fleetplan.perfmodel.techniques.expert_routing import (
    RoutedSource,
    busiest_rank_ratio,
    expert_shares,
    reached_experts,
)

BF16 = Precision("bf16", "bf16")
MAVERICK_EXPERTS, MAVERICK_BUSIEST, MAVERICK_RANKS = 128, 0.07, 8
"""Meta, Optimizing Deployment Configurations for LLM Inference, section 4.5 and Figure 14a."""


def test_the_three_activation_models() -> None:
    # Llama 4 Maverick: one of 128 experts a token.
    tokens, top_k, experts = whole(1, 64, 256), whole(1, 1, 1), whole(128, 128, 128)
    uniform = reached_experts(ExpertRouting(), tokens, top_k, experts)
    by_hand = [128 * (1 - (127 / 128) ** n) for n in (1, 64, 256)]
    assert uniform == pytest.approx(by_hand)
    assert uniform == pytest.approx([1.0, 50.5, 110.8], abs=0.1)
    balanced = reached_experts(ExpertRouting("balanced"), tokens, top_k, experts)
    assert balanced.tolist() == [1, 64, 128]
    line = ExpertRouting("log-linear", 1.0, 8.0)
    assert reached_experts(line, tokens, top_k, experts) == pytest.approx(
        [1.0, 1 + 8 * math.log(64), 1 + 8 * math.log(256)]
    )


@examples(100, 10, 25)
@given(st.integers(1, 8), st.integers(8, 512), st.floats(-50, 200), st.floats(0, 100))
def test_a_line_never_leaves_what_is_possible(
    top_k: int, experts: int, intercept: float, slope: float
) -> None:
    tokens = whole(1, 2, 16, 4096)
    routing = ExpertRouting("log-linear", intercept, slope)
    found = reached_experts(routing, tokens, np.full(4, top_k), np.full(4, experts))
    assert (found >= top_k).all()
    assert (found <= np.minimum(experts, top_k * tokens)).all()
    assert (np.diff(found) >= 0).all()


def test_time_of_few_tokens_follows_the_experts_they_reach() -> None:
    dims = {
        "tokens": whole(16),
        "hidden": whole(5120),
        "intermediate": whole(8192),
        "top_k": whole(1),
        "experts": whole(128),
        "moe_tp": whole(8),
        "moe_ep": whole(1),
    }
    source = WorkSource()
    times = {
        name: RoutedSource(source, accelerator(), ExpertRouting(name)).times(OperatorKind.MOE, "bf16", dims)  # type: ignore[arg-type]
        for name in ("uniform", "balanced")
    }
    reached = 128 * (1 - (127 / 128) ** 16)
    ratio = times["balanced"].latency_ms[0] / times["uniform"].latency_ms[0]
    # Weights are all but a thousandth of the traffic.
    assert ratio == pytest.approx(16 / reached, rel=2e-3)
    assert times["uniform"].provenance[0] == Provenance.INTERPOLATED
    assert times["balanced"].provenance[0] == Provenance.EXTRAPOLATED


def test_other_operators_do_not_see_the_routing() -> None:
    dims = {"m": whole(8), "n": whole(64), "k": whole(64)}
    routed = RoutedSource(WorkSource(), accelerator(), ExpertRouting("balanced"))
    assert (
        routed.times(OperatorKind.GEMM, "bf16", dims).latency_ms
        == WorkSource().times(OperatorKind.GEMM, "bf16", dims).latency_ms
    )


def test_shares_fall_from_the_busiest_and_add_to_one() -> None:
    shares = np.array(expert_shares(MAVERICK_EXPERTS, MAVERICK_BUSIEST))
    assert shares[0] == pytest.approx(0.07)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.diff(shares) < 0).all()
    assert expert_shares(8, 1 / 8) == pytest.approx([1 / 8] * 8)
    with pytest.raises(ValueError, match=r"the busiest of 128 experts has 0.007812 to 1, not 0.001"):
        expert_shares(128, 0.001)


def test_mixing_hot_with_cold_experts_comes_close_to_an_even_load() -> None:
    loads = {
        placement: busiest_rank_ratio(MAVERICK_EXPERTS, MAVERICK_RANKS, MAVERICK_BUSIEST, placement)
        for placement in ("mixed", "random", "sorted")
    }
    hottest = sum(expert_shares(MAVERICK_EXPERTS, MAVERICK_BUSIEST)[:16])
    assert loads["sorted"] == pytest.approx(8 * hottest)
    # 16 experts hold an eighth of the tokens in the mean; the hottest 16 hold three times that.
    assert loads["mixed"] < 1.1
    assert 1.3 < loads["random"] < 1.7
    assert 3.0 < loads["sorted"] < 3.2


@examples(100, 10, 25)
@given(st.sampled_from([8, 16, 64, 128, 257]), st.sampled_from([1, 2, 4, 8]), st.floats(0.13, 0.9))
def test_no_placement_is_better_than_even_or_worse_than_sorted(
    experts: int, ranks: int, busiest: float
) -> None:
    mixed, random, worst = (
        busiest_rank_ratio(experts, ranks, busiest, placement) for placement in ("mixed", "random", "sorted")
    )
    assert 1 - 1e-9 <= mixed <= random + 1e-9
    assert random <= worst + 1e-9 <= ranks + 1e-6


def test_a_skewed_prefill_waits_for_the_busiest_rank() -> None:
    batch = configurations(("DP8-EP8",), (4,), input_tokens=32_768)
    latencies = []
    for routing in (
        ExpertRouting(),
        *(ExpertRouting(busiest_expert_ratio=0.3, placement=each) for each in ("mixed", "sorted")),  # type: ignore[arg-type]
    ):
        one = Evaluator(
            mixture_model(), accelerator(), WorkSource(), BF16, techniques=Techniques(experts=routing)
        )
        times = one.step(prefill_shape(batch))
        latencies.append(times.breakdown_ms[times.names.index("routed_experts"), 0])
    assert latencies[0] < latencies[1] < latencies[2]
    # Matrix-bound: the time follows the tokens of the busiest rank.
    assert latencies[2] / latencies[0] == pytest.approx(busiest_rank_ratio(16, 8, 0.3, "sorted"), rel=0.1)


def test_what_a_model_cannot_use_is_refused_by_name() -> None:
    skewed = Techniques(experts=ExpertRouting(busiest_expert_ratio=0.01))
    assert technique_problem(mixture_model(), "vllm", skewed).startswith(
        "busiest_expert_ratio: 0.01 is outside 0.0625"
    )
    # Half of the routed tokens is the most that one expert can get where a token uses two.
    too_hot = Techniques(experts=ExpertRouting(busiest_expert_ratio=0.6))
    assert "to 0.5" in technique_problem(mixture_model(), "vllm", too_hot)
    without = "experts: dense has none, so their routing has no effect"
    assert technique_problem(dense_model(), "vllm", skewed) == without
    drafted = Techniques(speculative=SpeculativeDecoding(1, 0.5, 0.0))
    assert technique_problem(dense_model(), "vllm", drafted) == ""
