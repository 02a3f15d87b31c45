"""Importers of latent attention and delta nets, on small tables in the layout of the package."""

from pathlib import Path

import pandas as pd
from tests.perfmodel.optables.conftest import TableWriter

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import MeasuredRows
from fleetplan.perfmodel.optables.measured.tables import TableFile, read_table


def table(path: Path, family: str) -> list[MeasuredRows]:
    return read_table(TableFile(path, family, "sglang", path.parent.name, "test"))


def latent_row(phase: str, step: int, isl: int, ms: float) -> dict[str, object]:
    return {
        "op_name": f"mla_{phase}",
        "kv_cache_dtype": "bfloat16",
        "num_heads": 16,
        "batch_size": 4,
        "isl": isl,
        "step": step,
        "latency": ms,
    }


def test_latent_attention_gets_the_widths_it_was_measured_with(write_table: TableWriter) -> None:
    frame = pd.DataFrame([latent_row("context", 0, 128, 0.3)])
    (rows,) = table(write_table("mla", "sglang", "1.0", "context_mla", frame), "context_mla")
    assert rows.kind is OperatorKind.LATENT_PREFILL_ATTENTION
    found = {name: int(column[0]) for name, column in rows.dims.items()}
    assert found == {"batch": 4, "heads": 16, "new_tokens": 128, "key_head_dim": 192, "value_head_dim": 128}
    frame = pd.DataFrame([latent_row("generation", 1023, 1, 0.2)])
    (rows,) = table(write_table("mla", "sglang", "1.0", "generation_mla", frame), "generation_mla")
    assert rows.kind is OperatorKind.LATENT_DECODE_ATTENTION
    found = {name: int(column[0]) for name, column in rows.dims.items()}
    assert found == {"batch": 4, "heads": 16, "context_tokens": 1024, "kv_rank": 512, "rope_head_dim": 64}


def test_absorbed_products_before_and_after_attention(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [
            {"op_name": name, "bmm_dtype": "fp8", "num_tokens": 8, "num_heads": 16, "latency": ms}
            for name, ms in (("mla_gen_pre", 0.004), ("mla_gen_post", 0.005))
        ]
    )
    (rows,) = table(write_table("mla_bmm", "sglang", "1.0", "mla_bmm", frame), "mla_bmm")
    assert (rows.kind, rows.dtype) == (OperatorKind.BATCHED_GEMM, "fp8")
    sites = zip(rows.dims["n"].tolist(), rows.dims["k"].tolist(), rows.latency_ms.tolist(), strict=True)
    assert sorted(sites) == [(128, 512, 0.005), (512, 128, 0.004)]


def delta_row(phase: str, kernel: str, ms: float, width: int = 2048) -> dict[str, object]:
    return {
        "kernel_source": kernel,
        "phase": phase,
        "batch_size": 2,
        "seq_len": 1 if phase == "generation" else 64,
        "d_model": width,
        "d_conv": 4,
        "num_k_heads": 4,
        "head_k_dim": 128,
        "num_v_heads": 8,
        "head_v_dim": 128,
        "latency": ms,
    }


def test_a_recurrence_is_its_convolution_and_its_rule(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [
            delta_row("context", "causal_conv1d_fn", 0.1),
            delta_row("context", "causal_conv1d_fn", 0.2, width=4096),
            delta_row("context", "chunk_gated_delta_rule", 1.0),
            delta_row("generation", "causal_conv1d_update", 0.01),
            delta_row("generation", "fused_recurrent_gated_delta_rule", 0.02),
        ]
    )
    prefill, decode = table(write_table("linear_attention", "sglang", "1.0", "gdn", frame), "gdn")
    assert (prefill.kind, prefill.latency_ms.tolist()) == (OperatorKind.DELTA_PREFILL, [1.1])
    assert prefill.dims["new_tokens"].tolist() == [64]
    assert decode.kind is OperatorKind.DELTA_DECODE
    assert decode.latency_ms.round(6).tolist() == [0.03]
    assert "new_tokens" not in decode.dims
