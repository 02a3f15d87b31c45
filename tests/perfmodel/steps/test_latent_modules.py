"""Latent attention as the sum of its operators, against whole modules that were measured apart from them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import configurations

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.steps import decode_shape, prefill_shape

PARTS = {
    "attention_norm",
    "latent_projection",
    "query_projection",
    "key_value_projection",
    "absorbed_queries",
    "prefill_attention",
    "decode_attention",
    "absorbed_outputs",
    "output_projection",
}


@pytest.fixture(scope="module")
def deepseek() -> Evaluator:
    return build_evaluator(
        "deepseek-v3", accelerators()["H200-SXM"], "trtllm", Precision("fp8", "bf16"), Path()
    )


def modules(phase: str) -> pd.DataFrame:
    folder = data_folder()
    if folder is None:
        pytest.skip("the measured tables are not installed")
    path = folder / "h200_sxm" / "mla" / "trtllm" / "1.3.0rc20" / f"mla_{phase}_module_perf.parquet"
    frame = pd.read_parquet(path)
    return frame[(frame["gemm_type"] == "fp8_block") & (frame["kv_cache_dtype"] == "bfloat16")]


def errors(evaluator: Evaluator, phase: str, rows: pd.DataFrame, length: str) -> np.ndarray:
    found = []
    for row in rows.itertuples():
        tokens = int(getattr(row, length))
        asked = configurations(
            (f"TP{128 // row.num_heads}",), (row.batch_size,), input_tokens=tokens, context_tokens=tokens
        )
        shape = decode_shape(asked) if phase == "generation" else prefill_shape(asked)
        times = evaluator.step(shape)
        of_parts = [ms[0] for name, ms in zip(times.names, times.breakdown_ms, strict=True) if name in PARTS]
        found.append(sum(of_parts) / evaluator.architecture.layer_count / row.latency - 1)
    return np.array(found)


def test_generation_modules_are_the_sum_of_their_operators(deepseek: Evaluator) -> None:
    rows = modules("generation")
    rows = rows[rows["num_heads"].isin([16, 128]) & rows["batch_size"].isin([1, 16, 64, 256])]
    error = errors(deepseek, "generation", rows[rows["step"].isin([1024, 4096, 8192])], "step")
    assert error.size >= 20
    assert np.median(np.abs(error)) < 0.15
    assert np.abs(error).max() < 0.30


def test_prompt_modules_are_the_sum_of_their_operators(deepseek: Evaluator) -> None:
    rows = modules("context")
    rows = rows[rows["num_heads"].isin([16, 128]) & rows["batch_size"].isin([1, 4])]
    error = errors(deepseek, "context", rows[rows["isl"].isin([1024, 2048, 8192])], "isl")
    assert error.size >= 8
    assert np.median(np.abs(error)) < 0.20
    assert np.abs(error).max() < 0.30
