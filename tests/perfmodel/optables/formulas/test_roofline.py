from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, DIMENSIONS, EXPERT_KINDS, OperatorKind
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.optables.formulas.roofline import KERNEL_LAUNCH_US, roofline_ms

# A wider split of the same experts is less work for one accelerator, and so is a smaller share of them. Where
# more tokens are compressed into one entry, there are fewer entries.
SHRINKS = {"moe_tp", "moe_ep", "experts", "window", "ratio"}


def one(**dims: int) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in dims.items()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), kind=st.sampled_from(list(OperatorKind)))
def test_time_grows_with_every_dimension(toy: Accelerator, data: st.DataObject, kind: OperatorKind) -> None:
    names = DIMENSIONS[kind]
    dims = {name: data.draw(st.integers(1, 4096), label=name) for name in names}
    if kind in EXPERT_KINDS:
        dims |= {"experts": 256, "top_k": data.draw(st.integers(1, 8)), "moe_tp": 1, "moe_ep": 4}
    if kind in {OperatorKind.EXPERT_DISPATCH, OperatorKind.EXPERT_COMBINE}:
        dims |= {"experts": 256, "top_k": data.draw(st.integers(1, 8)), "low_latency": 0}
    # With more tokens to keep, an indexer has less to choose from.
    shrinks = SHRINKS | ({"top_k"} if kind is OperatorKind.TOKEN_SELECTION else set())
    grown = data.draw(st.sampled_from([name for name in names if name not in shrinks]))
    larger = dims | {grown: dims[grown] + data.draw(st.integers(1, 4096))}
    if grown == "top_k" and "experts" in names:
        larger["top_k"] = min(larger["top_k"], 256)
    before = roofline_ms(toy, kind, "bf16", one(**dims))
    after = roofline_ms(toy, kind, "bf16", one(**larger))
    assert after[0] >= before[0] * (1 - 1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ratio=st.integers(1, 512), more=st.integers(1, 512), context=st.integers(1, 10**6))
def test_more_tokens_in_an_entry_are_less_to_read(
    toy: Accelerator, ratio: int, more: int, context: int
) -> None:
    dims = dict.fromkeys(DIMENSIONS[OperatorKind.COMPRESSED_DECODE], 64) | {"context_tokens": context}
    before, after = (
        roofline_ms(toy, OperatorKind.COMPRESSED_DECODE, "bf16", one(**dims | {"ratio": each}))
        for each in (ratio, ratio + more)
    )
    assert after[0] <= before[0] * (1 + 1e-12)


def test_a_part_without_the_units_refuses_by_name(toy: Accelerator) -> None:
    with pytest.raises(UnsupportedDtype, match="toy has no matrix units for fp4"):
        roofline_ms(toy, OperatorKind.GEMM, "fp4", one(m=1, n=64, k=64))


def test_weight_only_formats_need_no_units_of_their_own(toy: Accelerator) -> None:
    times = {
        dtype: roofline_ms(toy, OperatorKind.GEMM, dtype, one(m=1, n=8192, k=8192))[0]
        for dtype in BYTES_PER_ELEMENT
        if toy.peak_tflops(dtype) is not None
    }
    assert times["mxfp4"] < times["int4"] * 1.05 < times["fp8"] < times["bf16"]


def test_a_small_gemm_streams_weights_and_a_large_one_computes(toy: Accelerator) -> None:
    launch_ms = KERNEL_LAUNCH_US / 1e3
    small = roofline_ms(toy, OperatorKind.GEMM, "bf16", one(m=1, n=8192, k=8192))[0] - launch_ms
    assert small == pytest.approx(8192 * 8192 * 2 / (4000e9 * 0.9) * 1e3, rel=1e-3)
    large = roofline_ms(toy, OperatorKind.GEMM, "bf16", one(m=65536, n=8192, k=8192))[0] - launch_ms
    assert large == pytest.approx(2 * 65536 * 8192 * 8192 / (1000e12 * 0.7) * 1e3, rel=1e-2)


def test_faster_memory_speeds_decode_attention_up(toy: Accelerator) -> None:
    dims = one(batch=64, context_tokens=8192, heads=8, kv_heads=1, head_dim=128, window=0)
    faster = replace(toy, hbm_gb_per_s=8000.0)
    ratio = (roofline_ms(toy, OperatorKind.DECODE_ATTENTION, "bf16", dims) - 1e-3) / (
        roofline_ms(faster, OperatorKind.DECODE_ATTENTION, "bf16", dims) - 1e-3
    )
    assert ratio[0] == pytest.approx(2.0)
