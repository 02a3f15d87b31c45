from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tests.perfmodel.optables.conftest import SYSTEM, TableWriter

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import MeasuredRows
from fleetplan.perfmodel.optables.measured import folders
from fleetplan.perfmodel.optables.measured.tables import TableFile, read_table, table_files


def table(path: Path, family: str, framework: str = "vllm") -> list[MeasuredRows]:
    return read_table(TableFile(path, family, framework, path.parent.name, "test"))


def test_columns_are_found_by_name_and_the_fastest_kernel_stays(
    write_table: TableWriter, gemm_frame: Callable[..., pd.DataFrame]
) -> None:
    slow, fast = gemm_frame({(1, 64, 32): 3.0, (2, 64, 32): 4.0}), gemm_frame({(1, 64, 32): 2.0})
    (rows,) = table(write_table("gemm", "vllm", "1.0", "gemm", pd.concat([slow, fast])), "gemm")
    found = dict(zip(rows.dims["m"].tolist(), rows.latency_ms.tolist(), strict=True))
    assert found == {1: 2.0, 2: 4.0}
    assert set(rows.dims["n"]) == {64}


def test_formats_without_a_counterpart_are_left_out(
    write_table: TableWriter, gemm_frame: Callable[..., pd.DataFrame]
) -> None:
    theirs = ["bfloat16", "nvfp4", "int4_wo", "sq", "w4afp8"]
    frame = pd.concat([gemm_frame({(1, 64, 32): 1.0}, dtype) for dtype in theirs])
    tables = table(write_table("gemm", "vllm", "1.0", "gemm", frame), "gemm")
    assert {rows.dtype for rows in tables} == {"bf16", "fp4", "int4"}


@pytest.mark.parametrize(("spike_ms", "is_kept"), [(28.0, False), (2.0, True)])
def test_an_interrupted_collective_is_left_out(
    write_table: TableWriter, spike_ms: float, is_kept: bool
) -> None:
    times = {2**20: 0.2, 2**21: 0.4, 2**22: spike_ms, 2**23: 1.6, 2**24: 2.8}
    frame = pd.DataFrame(
        [
            {"kernel_source": "graph", "num_gpus": ranks, "message_size": size, "latency": ranks * ms}
            for ranks in (2, 8)
            for size, ms in reversed(times.items())
        ]
    )
    (rows,) = table(write_table("comm", "vllm", "1.0", "custom_allreduce", frame), "custom_allreduce")
    kept = {size for size in times if is_kept or size != 2**22}
    for ranks in (2, 8):
        assert {2 * size for size in kept} == set(
            rows.dims["message_bytes"][rows.dims["ranks"] == ranks].tolist()
        )


def test_attention_without_a_window_column_has_no_window(write_table: TableWriter) -> None:
    columns = {
        "batch_size": 2,
        "isl": 128,
        "num_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 128,
        "beam_width": 1,
        "kv_cache_dtype": "fp8",
        "latency": 0.5,
    }
    frame = pd.DataFrame([columns | {"step": 0}, columns | {"step": 64}])
    (rows,) = table(write_table("attention", "vllm", "1.0", "context_attention", frame), "context_attention")
    assert (rows.kind, rows.dtype, rows.n_rows) == (OperatorKind.PREFILL_ATTENTION, "fp8", 1)
    assert {name: int(column[0]) for name, column in rows.dims.items()} == {
        "batch": 2,
        "new_tokens": 128,
        "heads": 8,
        "kv_heads": 1,
        "head_dim": 128,
        "window": 0,
    }


def moe_row(tokens: int, distribution: str, ms: float, kernel: str = "gated") -> dict[str, object]:
    return {
        "kernel_source": kernel,
        "moe_dtype": "w4a16_mxfp4",
        "num_tokens": tokens,
        "hidden_size": 1024,
        "inter_size": 512,
        "topk": 2,
        "num_experts": 8,
        "moe_tp_size": 1,
        "moe_ep_size": 1,
        "distribution": distribution,
        "latency": ms,
    }


def test_experts_by_triton_stand_apart_where_others_are_faster(write_table: TableWriter) -> None:
    bf16 = {"moe_dtype": "bfloat16"}
    frame = pd.DataFrame(
        [
            moe_row(1, "power_law_1.01", 2.0, "sglang_fused_moe_triton") | bf16,
            moe_row(1, "power_law_1.01", 1.0, "sglang_flashinfer_trtllm_moe") | bf16,
        ]
    )
    tables = table(write_table("moe", "sglang", "1.0", "moe", frame), "moe", "sglang")
    assert {rows.dtype: rows.latency_ms.tolist() for rows in tables} == {"bf16": [1.0], "bf16_triton": [2.0]}


def test_the_kernel_of_modelopt_is_not_that_of_other_checkpoints(write_table: TableWriter) -> None:
    kernel = "vllm_modeloptfp8moe_flashinfer_cutlass_flashinferexperts"
    frame = pd.DataFrame([moe_row(1, "power_law_1.01", 9.0, kernel) | {"moe_dtype": "fp8"}])
    assert table(write_table("moe", "vllm", "1.0", "moe", frame), "moe") == []


def test_marlin_of_older_tables_stands_for_no_int4_experts(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [
            moe_row(1, "power_law_1.01", 9.0, "vllm_marlin_int4_moe") | {"moe_dtype": "int4_wo"},
            moe_row(2, "power_law_1.01", 1.0, "vllm_compressedtensorswna16marlinmoe_marlin_marlinexperts")
            | {"moe_dtype": "int4_wo"},
        ]
    )
    (rows,) = table(write_table("moe", "vllm", "1.0", "moe", frame), "moe")
    assert rows.latency_ms.tolist() == [1.0]


def test_experts_use_the_flattest_power_law_and_ungated_ones_are_another_operator(
    write_table: TableWriter,
) -> None:
    frame = pd.DataFrame(
        [
            moe_row(1, "balanced", 9.0),
            moe_row(1, "power_law_1.2", 8.0),
            moe_row(1, "power_law_1.01", 7.0),
            moe_row(1, "power_law_1.01", 1.0, "moe_torch_flow_nongated"),
        ]
    )
    rows, even, ungated = table(write_table("moe", "trtllm", "1.0", "moe", frame), "moe", "trtllm")
    assert (rows.kind, rows.dtype, rows.latency_ms.tolist()) == (OperatorKind.MOE, "mxfp4", [7.0])
    assert (even.kind, even.latency_ms.tolist()) == (OperatorKind.EVEN_MOE, [9.0])
    assert (ungated.kind, ungated.latency_ms.tolist()) == (OperatorKind.UNGATED_MOE, [1.0])


def test_all_reduce_sizes_are_elements_and_eager_rows_are_left_out(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [
            {"kernel_source": f"vLLM_custom_{mode}", "num_gpus": 8, "message_size": 1024, "latency": ms}
            for mode, ms in (("eager", 0.02), ("graph", 0.005))
        ]
    )
    (rows,) = table(write_table("comm", "vllm", "1.0", "custom_allreduce", frame), "custom_allreduce")
    assert rows.dims["message_bytes"].tolist() == [2048]
    assert rows.latency_ms.tolist() == [0.005]


def test_a_table_with_eager_rows_alone_keeps_them(write_table: TableWriter) -> None:
    frame = pd.DataFrame([{"kernel_source": "eager", "num_gpus": 2, "message_size": 8, "latency": 0.02}])
    (rows,) = table(write_table("comm", "vllm", "1.0", "custom_allreduce", frame), "custom_allreduce")
    assert rows.latency_ms.tolist() == [0.02]


def test_nccl_rows_are_split_by_collective(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [
            {"op_name": name, "nccl_dtype": dtype, "num_gpus": 4, "message_size": 64, "latency": 0.01}
            for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
            for dtype in ("half", "int8")
        ]
    )
    tables = table(write_table("comm", "nccl", "2.0", "nccl", frame), "nccl", "nccl")
    assert {rows.kind: rows.n_rows for rows in tables} == {
        OperatorKind.ALL_REDUCE: 1,
        OperatorKind.ALL_GATHER: 1,
        OperatorKind.REDUCE_SCATTER: 1,
        OperatorKind.ALL_TO_ALL: 1,
    }


def test_oneccl_counts_what_a_rank_sends_of_an_all_gather(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [
            {"op_name": name, "nccl_dtype": "half", "num_gpus": 4, "message_size": 64, "latency": 0.01}
            for name in ("all_reduce", "all_gather", "reduce_scatter")
        ]
    )
    tables = table(write_table("comm", "oneccl", "2.0", "oneccl", frame), "oneccl", "oneccl")
    assert {rows.kind: rows.dims["message_bytes"].tolist() for rows in tables} == {
        OperatorKind.ALL_REDUCE: [128],
        OperatorKind.ALL_GATHER: [512],
        OperatorKind.REDUCE_SCATTER: [128],
    }


def test_newer_versions_come_first(
    write_table: TableWriter, gemm_frame: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    for version in ("0.5.14", "0.5.6.post2", "0.10.1"):
        write_table("gemm", "sglang", version, "gemm", gemm_frame({(1, 64, 32): 1.0}))
    files = table_files(SYSTEM, "gemm", "sglang", tmp_path / "data")
    assert [file.version for file in files] == ["0.10.1", "0.5.14", "0.5.6.post2"]


def test_without_the_package_there_are_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders.importlib.util, "find_spec", lambda name: None)
    folders.data_folder.cache_clear()
    try:
        assert folders.data_folder() is None
        assert table_files("h200_sxm", "gemm", "vllm") == ()
    finally:
        folders.data_folder.cache_clear()
