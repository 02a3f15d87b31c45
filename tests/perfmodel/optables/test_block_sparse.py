"""Attention to chosen blocks by the measured modules of MiniMax-M3: their parts add up to them."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.parts import first_of
from tests.perfmodel.fakes import configurations

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables import OperatorSource, operator_source
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.measured.block_sparse import block_sparse_tables
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.steps import decode_shape, prefill_shape

M3 = load_architecture("minimax-m3", Path())
KINDS = (OperatorKind.BLOCK_SPARSE_PREFILL, OperatorKind.BLOCK_SPARSE_DECODE)
H100 = accelerators()["H100-SXM"]


@cache
def source(framework: str) -> OperatorSource:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    return operator_source(H100, framework)


def rows(framework: str, version: str, phase: str) -> pd.DataFrame:
    folder = data_folder()
    if folder is None:
        pytest.skip("the measured tables are not installed")
    name = f"msa_{phase}_module_perf.parquet"
    frame = pd.read_parquet(folder / "h100_sxm" / "msa" / framework / version / name)
    return frame[(frame["gemm_type"] == "bfloat16") & (frame["kv_cache_dtype"] == "bfloat16")]


def dims(kind: OperatorKind, heads: int, **more: IntArray) -> dict[str, IntArray]:
    n = len(next(iter(more.values())))
    kv_heads = max(1, heads // 16)
    fixed = {"heads": heads, "kv_heads": kv_heads, "head_dim": 128, "index_heads": kv_heads}
    fixed |= {"index_head_dim": 128, "block_tokens": 128, "blocks": 16}
    return {**more, **{name: np.full(n, value) for name, value in fixed.items()}}


@pytest.mark.parametrize(("framework", "version"), [("vllm", "0.24.0"), ("sglang", "0.5.16")])
@pytest.mark.parametrize(
    ("phase", "heads"), first_of((("generation", 8), ("context", 16), ("generation", 64)), 2)
)
def test_the_parts_of_a_module_add_up_to_its_time(
    framework: str, version: str, phase: str, heads: int
) -> None:
    frame = rows(framework, version, phase)
    frame = frame[(frame["num_heads"] == heads) & frame["batch_size"].isin([1, 16, 64])]
    if phase == "generation":
        frame = frame[frame["step"] > 1000]
    else:
        frame = frame[(frame["step"] == 0) & (frame["latency"] > 2.0)]
    evaluator = Evaluator(M3, H100, source(framework), Precision("bf16", "bf16"))
    errors = []
    for module in frame.head(30).itertuples():
        is_decode = phase == "generation"
        context = int(module.step) + 1
        asked = configurations(
            (f"TP{64 // heads}",), (module.batch_size,), 8 if is_decode else int(module.isl), 0, context
        )
        times = evaluator.step(decode_shape(asked) if is_decode else prefill_shape(asked))
        found = dict(zip(times.names, times.breakdown_ms[:, 0], strict=True))
        # Projections run in all 60 layers, the rest in 57; three layers attend to everything.
        kind = KINDS[1] if is_decode else KINDS[0]
        lengths = (
            {"context_tokens": np.array([context])}
            if is_decode
            else {"new_tokens": np.array([module.isl]), "prefix_tokens": np.array([0])}
        )
        core = source(framework).times(
            kind, "bf16", dims(kind, heads, batch=np.array([module.batch_size]), **lengths)
        )
        total = (found["qkv_projection"] + found["output_projection"]) / 60
        total += found["index_projection"] / 57 + core.latency_ms[0]
        errors.append(total / module.latency - 1)
    assert errors
    # Surfaces are made to grow along their axes, so single points move a little.
    assert np.median(np.abs(errors)) < 0.01
    assert np.quantile(np.abs(errors), 0.9) < 0.08


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_times_are_interpolated_grow_and_stay_near_the_roofline(framework: str, dtype: str) -> None:
    kind = OperatorKind.BLOCK_SPARSE_DECODE
    contexts = np.array([500, 2000, 8000, 32_000, 64_000])
    for heads in (64, 16, 8):
        before = np.zeros(contexts.shape)
        for batch in (1, 16, 64, 200):
            asked = dims(kind, heads, batch=np.full(5, batch), context_tokens=contexts)
            found = source(framework).times(kind, dtype, asked)
            assert (found.provenance <= Provenance.EXTRAPOLATED).all()
            assert (found.provenance >= Provenance.INTERPOLATED).all()
            assert (np.diff(found.latency_ms) >= 0).all()
            assert (found.latency_ms >= before).all()
            before = found.latency_ms
            ratio = found.latency_ms / roofline_ms(H100, kind, dtype, asked)
            assert ((ratio > 0.4) & (ratio < 4)).all()


def test_a_prefix_costs_as_much_as_in_the_measured_rows() -> None:
    frame = rows("sglang", "0.5.16", "context")
    frame = frame[(frame["num_heads"] == 64) & (frame["latency"] > 2.0) & frame["isl"].isin([1024, 4096])]
    whole = {
        "batch": frame["batch_size"].to_numpy(dtype=np.int64),
        "new_tokens": frame["isl"].to_numpy(dtype=np.int64),
        "prefix_tokens": frame["step"].to_numpy(dtype=np.int64),
    }
    kind = OperatorKind.BLOCK_SPARSE_PREFILL
    core = source("sglang").times(kind, "bf16", dims(kind, 64, **whole)).latency_ms
    tokens = whole["batch"] * whole["new_tokens"]
    for n, k in ((72 * 128, 6144), (5 * 128, 6144), (6144, 64 * 128)):
        product = {"m": tokens, "n": np.full_like(tokens, n), "k": np.full_like(tokens, k)}
        core = core + source("sglang").times(OperatorKind.GEMM, "bf16", product).latency_ms
    error = core / frame["latency"].to_numpy() - 1
    prefix = whole["prefix_tokens"]
    assert abs(np.median(error[prefix <= 500])) < 0.03
    assert abs(np.median(error[(prefix > 500) & (prefix <= 5000)])) < 0.35
    assert abs(np.median(error[(prefix > 5000) & (prefix <= 40_000)])) < 0.4


def frame_of(**columns: object) -> pd.DataFrame:
    row: dict[str, object] = {
        "framework": "VLLM",
        "op_name": "msa_generation_module",
        "gemm_type": "bfloat16",
        "kv_cache_dtype": "bfloat16",
        "num_heads": 64,
        "batch_size": 4,
        "isl": 1,
        "step": 99,
        "latency": 0.1,
    }
    return pd.DataFrame([row | columns])


def test_rows_that_no_server_runs_are_left_out() -> None:
    (table,) = block_sparse_tables(frame_of())
    assert table.dims["context_tokens"].tolist() == [100]
    assert table.dims["kv_heads"].tolist() == table.dims["index_heads"].tolist() == [4]
    assert block_sparse_tables(frame_of(framework="TRTLLM")) == []
    assert block_sparse_tables(frame_of(gemm_type="nvfp4")) == []
    assert block_sparse_tables(frame_of(num_heads=128)) == []
    assert block_sparse_tables(frame_of(framework="SGLang", batch_size=512)) == []
    prompt = {"op_name": "msa_context_module", "isl": 128, "step": 0}
    assert block_sparse_tables(frame_of(**prompt))
    assert block_sparse_tables(frame_of(**prompt | {"step": 128})) == []
    assert block_sparse_tables(frame_of(framework="SGLang", **prompt)) == []
