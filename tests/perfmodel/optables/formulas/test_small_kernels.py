import numpy as np
import pytest

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.optables.formulas.rank_skew import RANK_SKEW_US, rank_skew_ms
from fleetplan.perfmodel.optables.formulas.small_kernels import (
    ACTIVATION_BANDWIDTH_RATIO,
    KERNELS_PER_OPERATOR,
    SMALL_KERNEL_US,
    quantisation_ms,
    small_kernel_ms,
)


@pytest.mark.parametrize("framework", ["trtllm", "sglang", "vllm"])
def test_a_small_kernel_takes_its_least_time_and_its_traffic(toy: Accelerator, framework: str) -> None:
    found = small_kernel_ms(toy, framework, np.array([0, 10**9]))
    least_ms = KERNELS_PER_OPERATOR[framework] * SMALL_KERNEL_US[framework] / 1e3
    traffic_ms = 1e3 / (toy.hbm_gb_per_s * ACTIVATION_BANDWIDTH_RATIO)
    assert found == pytest.approx([least_ms, least_ms + traffic_ms])


def test_activations_are_quantised_for_narrow_products_alone(toy: Accelerator) -> None:
    dims = {"m": np.array([2048]), "n": np.array([1]), "k": np.array([4096])}
    per_byte_ms = 1.0 / (toy.hbm_gb_per_s * ACTIVATION_BANDWIDTH_RATIO * 1e6)
    # Read in BF16, written in 8 bits.
    traffic_ms = 2048 * 4096 * 3 * per_byte_ms
    assert quantisation_ms(toy, "vllm", "fp8", dims) == pytest.approx([traffic_ms])
    assert quantisation_ms(toy, "vllm", "fp8_block", dims) == pytest.approx([traffic_ms + 0.002])
    for dtype in ("bf16", "int8", "int4", "mxfp4"):
        assert quantisation_ms(toy, "vllm", dtype, dims).tolist() == [0.0]


def test_ranks_wait_for_one_another_where_it_was_seen() -> None:
    ranks = np.array([1, 2, 8])
    assert rank_skew_ms("h100_sxm", ranks) * 1e3 == pytest.approx([0, RANK_SKEW_US, 3 * RANK_SKEW_US])
    for system in ("b200_sxm", None):
        assert rank_skew_ms(system, ranks).tolist() == [0.0, 0.0, 0.0]
