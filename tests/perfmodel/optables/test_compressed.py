"""Measured tables of DeepSeek-V4: what their rows mean, prefixes, and the roofline beside them."""

import numpy as np
import pandas as pd
import pytest
from tests.measured import needs_tables
from tests.perfmodel.fakes import whole
from tests.perfmodel.steps.test_compressed import HEAVY, INDEXED, WINDOW_ONLY, block

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.optables.formulas.compressed import compressed_ms
from fleetplan.perfmodel.optables.measured.compressed import (
    compressed_decode_tables,
    compressed_prefill_tables,
    hyper_connection_tables,
)
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.optables.rows import MeasuredRows

PARTS = accelerators()
DECODE, PREFILL = OperatorKind.COMPRESSED_DECODE, OperatorKind.COMPRESSED_PREFILL
ROW = {
    "model": "sgl-project/DeepSeek-V4-Flash-FP8",
    "kv_cache_dtype": "fp8_e4m3",
    "gemm_type": "fp8_block",
    "num_heads": 8,
    "batch_size": 16,
    "isl": 1,
    "tp_size": 8,
    "step": 4095,
    "compress_ratio": 4,
    "latency": 0.5,
}


def only(tables: list[MeasuredRows]) -> dict[str, int]:
    (table,) = tables
    assert table.n_rows == 1
    return {name: int(values[0]) for name, values in table.dims.items()}


def test_a_row_is_the_block_that_its_model_and_degree_say() -> None:
    found = only(compressed_decode_tables(pd.DataFrame([ROW])))
    expected = {
        name: int(values[0]) for name, values in block(INDEXED, batch=16, context_tokens=4096).items()
    }
    assert found == expected | {"heads": 8, "groups": 1}
    heavy = ROW | {"compress_ratio": 128}
    found = only(compressed_decode_tables(pd.DataFrame([heavy])))
    expected = {name: int(values[0]) for name, values in block(HEAVY, batch=16, context_tokens=4096).items()}
    assert found == expected | {"heads": 8, "groups": 1}
    pro = ROW | {"model": "deepseek-ai/DeepSeek-V4-Pro", "num_heads": 128, "tp_size": 1}
    found = only(compressed_decode_tables(pd.DataFrame([pro])))
    widths = [found[name] for name in ("hidden", "query_rank", "heads", "groups", "top_k")]
    assert widths == [7168, 1536, 128, 16, 1024]


def test_prompts_are_read_without_prefixes_and_other_models_are_not_read() -> None:
    rows = [ROW | {"isl": 64, "step": 0}, ROW | {"isl": 64, "step": 128}]
    assert only(compressed_prefill_tables(pd.DataFrame(rows)))["new_tokens"] == 64
    assert compressed_decode_tables(pd.DataFrame([ROW | {"model": "other/model"}])) == []
    (table,) = compressed_decode_tables(pd.DataFrame([ROW | {"gemm_type": "bfloat16"}]))
    assert table.dtype == "bf16"


def test_a_row_of_hyper_connections_holds_both_of_a_layer() -> None:
    rows = [
        {"op_name": name, "num_tokens": 64, "num_sites": 2, "hc_mult": 4, "hidden_size": 4096, "latency": ms}
        for name, ms in (("pre", 0.02), ("post", 0.01))
    ]
    (table,) = hyper_connection_tables(pd.DataFrame(rows))
    assert table.dims["side"].tolist() == [1, 2]
    assert table.latency_ms.tolist() == [0.01, 0.005]


@needs_tables
def test_measured_blocks_answer_for_themselves_and_for_blocks_without_entries() -> None:
    source = operator_source(PARTS["H200-SXM"], "vllm")
    # dsv4_{csa,hca}_generation_module of vLLM 0.24.0, 64 heads, batch 128, 2,048 cached tokens.
    indexed = source.times(DECODE, "fp8_block", block(INDEXED, batch=128, context_tokens=2049))
    assert indexed.latency_ms == pytest.approx([0.1719], rel=0.01)
    assert indexed.provenance.tolist() == [Provenance.MEASURED]
    heavy = source.times(DECODE, "fp8_block", block(HEAVY, batch=128, context_tokens=129))
    alone = source.times(DECODE, "fp8_block", block(WINDOW_ONLY, batch=128, context_tokens=100_000))
    assert alone.latency_ms == pytest.approx(heavy.latency_ms, rel=0.02)
    assert alone.provenance.tolist() == [Provenance.INTERPOLATED]
    # No framework was measured with a cache of 16 bits.
    wide = block(HEAVY, batch=128, context_tokens=129) | {"kv_bits": whole(16)}
    assert source.times(DECODE, "fp8_block", wide).provenance[0] >= Provenance.INTERPOLATED


@needs_tables
@pytest.mark.parametrize(("part", "framework"), [("H200-SXM", "sglang"), ("B200-SXM", "trtllm")])
@pytest.mark.parametrize("ratio", [WINDOW_ONLY, INDEXED, HEAVY])
def test_measured_times_grow_with_batch_context_and_prefix(part: str, framework: str, ratio: int) -> None:
    source = operator_source(PARTS[part], framework)
    sizes = whole(1, 3, 16, 100, 128, 600, 1024)
    contexts = whole(1, 100, 2049, 5000, 60_000, 200_000, 1_000_000)
    many = {
        name: np.repeat(values, sizes.size)
        for name, values in block(ratio, batch=1, context_tokens=3000).items()
    }
    for name, values in (("batch", sizes), ("context_tokens", contexts)):
        assert (np.diff(source.times(DECODE, "fp8_block", many | {name: values}).latency_ms) >= 0).all(), name
    prompt = block(ratio, batch=1, new_tokens=500, prefix_tokens=0)
    many = {name: np.repeat(values, sizes.size) for name, values in prompt.items()}
    for name, values in (("batch", sizes), ("new_tokens", contexts), ("prefix_tokens", contexts)):
        assert (np.diff(source.times(PREFILL, "fp8_block", many | {name: values}).latency_ms) >= 0).all(), (
            name
        )


@needs_tables
@pytest.mark.parametrize(("block_name", "ratio"), [("csa", INDEXED), ("hca", HEAVY)])
def test_prefixes_add_what_was_measured(block_name: str, ratio: int) -> None:
    frame = sglang_rows(block_name, "context")
    frame = frame[(frame["step"] >= 4096) & (frame["batch_size"] * frame["isl"] >= 512)]
    one = np.ones(len(frame), dtype=np.int64)
    dims = {
        name: values * one for name, values in block(ratio, batch=1, new_tokens=1, prefix_tokens=0).items()
    }
    dims |= {
        "batch": frame["batch_size"].to_numpy(),
        "new_tokens": frame["isl"].to_numpy(),
        "prefix_tokens": frame["step"].to_numpy(),
    }
    found = operator_source(PARTS["H200-SXM"], "sglang").times(PREFILL, "fp8_block", dims)
    error = found.latency_ms / frame["latency"].to_numpy() - 1
    assert len(error) > 100
    assert abs(np.median(error)) < 0.06
    assert np.quantile(np.abs(error), 0.9) < 0.2


@needs_tables
@pytest.mark.parametrize(("block_name", "ratio"), [("csa", INDEXED), ("hca", HEAVY)])
def test_the_roofline_is_within_a_factor_of_three_of_what_was_measured(block_name: str, ratio: int) -> None:
    for phase in ("context", "generation"):
        frame = sglang_rows(block_name, phase)
        one = np.ones(len(frame), dtype=np.int64)
        batch = {"batch": frame["batch_size"].to_numpy()}
        if phase == "context":
            own = {"new_tokens": frame["isl"].to_numpy(), "prefix_tokens": frame["step"].to_numpy()}
        else:
            own = {"context_tokens": frame["step"].to_numpy() + 1}
        fixed = {name: values * one for name, values in block(ratio).items()}
        ratio_of = frame["latency"].to_numpy() / compressed_ms(
            PARTS["H200-SXM"], "fp8_block", batch | own | fixed
        )
        assert (ratio_of > 1 / 3).all()
        assert (ratio_of < 3).all()
        assert 0.9 < np.median(ratio_of) < 1.3


def sglang_rows(block_name: str, phase: str) -> pd.DataFrame:
    """Rows of Flash on one H200 under SGLang."""
    folder = data_folder()
    assert folder is not None
    name = f"dsv4_{block_name}_{phase}_module_perf.parquet"
    (path,) = (folder / "h200_sxm" / "sparse_attention" / "sglang").glob(f"*/{name}")
    frame = pd.read_parquet(path)
    is_flash = frame["model"].str.contains("Flash") & (frame["num_heads"] == 64)
    return frame[is_flash & (frame["gemm_type"] == "fp8_block")]
