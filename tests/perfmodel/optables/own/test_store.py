"""Operator tables of one's own: what is accepted, what is refused and why, and that plans use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.tables import TABLES
from fleetplan.perfmodel.operators import AXES, OperatorKind, Provenance
from fleetplan.perfmodel.optables import (
    OperatorSource,
    TableLibrary,
    operator_source,
    read_own_table,
    store_own_table,
)
from fleetplan.perfmodel.optables.own import store as own_tables
from fleetplan.perfmodel.optables.own.store import OWN_PACKAGE, OwnTables, stored_tables
from fleetplan.perfmodel.optables.rows import site_dimensions, table_dimensions

GEMMS = """operator,dtype,m,n,k,latency_us,framework,version
gemm,bf16,1,64,64,10,vllm,0.9
gemm,bf16,1,64,64,14,vllm,0.9
gemm,bf16,1,64,64,11,vllm,0.9
gemm,bf16,9,64,64,19,vllm,0.9
"""


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Hide the user's tables from the tests."""
    folder = tmp_path / "user data"
    monkeypatch.setattr(own_tables, "own_tables_folder", lambda: folder)
    operator_source.cache_clear()
    yield folder
    operator_source.cache_clear()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a file and return its path."""

    def writer(text: str, name: str = "own.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return writer


def gemm(m: int) -> dict[str, np.ndarray]:
    return {"m": np.array([m]), "n": np.array([64]), "k": np.array([64])}


def test_repeats_are_joined_by_their_median(write: Callable[[str], Path]) -> None:
    table = read_own_table(write(GEMMS), "toy")
    (part,) = table.parts
    assert (table.n_rows, table.n_accepted, table.rejected) == (4, 4, ())
    assert (part.framework, part.version) == ("vllm", "0.9")
    assert part.rows.dims["m"].tolist() == [1, 9]
    assert part.rows.latency_ms == pytest.approx([0.011, 0.019])


def test_parquet_is_read_as_csv_is(tmp_path: Path, write: Callable[[str], Path]) -> None:
    pytest.importorskip("pyarrow")
    csv = write(GEMMS)
    pd.read_csv(csv).to_parquet(tmp_path / "own.parquet")
    (first,), (second,) = (read_own_table(path, "toy").parts for path in (csv, tmp_path / "own.parquet"))
    assert first.rows.latency_ms.tolist() == second.rows.latency_ms.tolist()


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        ("gem,bf16,1,64,64,10,vllm,toy", "operator", "did you mean 'gemm'"),
        ("scan_prefill,bf16,1,64,64,10,vllm,toy", "operator", "is not known"),
        ("gemm,fp9,1,64,64,10,vllm,toy", "dtype", "allowed: bf16"),
        ("gemm,bf16,,64,64,10,vllm,toy", "m", "is missing"),
        ("gemm,bf16,1.5,64,64,10,vllm,toy", "m", "whole number"),
        ("gemm,bf16,0,64,64,10,vllm,toy", "m", "whole number from 1"),
        (f"gemm,bf16,{'9' * 400},64,64,10,vllm,toy", "m", "whole number from 1"),
        ("gemm,bf16,1,64,64,soon,vllm,toy", "latency_us", "not a finite number"),
        ("gemm,bf16,1,64,64,0,vllm,toy", "latency_us", "above 0"),
        ("gemm,bf16,1,64,64,1e12,vllm,toy", "latency_us", "another unit"),
        ("gemm,bf16,1,64,64,10,vlm,toy", "framework", "did you mean 'vllm'"),
        ("gemm,bf16,1,64,64,10,vllm,other", "hardware", "is for 'other', not for 'toy'"),
    ],
)
def test_a_row_is_refused_with_its_place_and_reason(
    write: Callable[[str], Path], row: str, column: str, words: str
) -> None:
    header = "operator,dtype,m,n,k,latency_us,framework,hardware\n"
    path = write(f"{header}gemm,bf16,1,64,64,10,vllm,toy\n\n{row}\n")
    table = read_own_table(path, "toy")
    (issue,) = table.rejected
    assert (table.n_rows, table.n_accepted) == (2, 1)
    # A blank line is a line of the file.
    assert (issue.path, issue.line, issue.key_path) == (str(path), 4, column)
    assert words in str(issue)


def test_collectives_take_16_bit_rows_alone(write: Callable[[str], Path]) -> None:
    rows = "all_reduce,fp8,2,1024,5\nall_reduce,half,2,1024,5\n"
    table = read_own_table(write(f"operator,dtype,ranks,message_bytes,latency_us\n{rows}"), "toy")
    assert [issue.key_path for issue in table.rejected] == ["dtype"]
    assert table.parts[0].rows.kind is OperatorKind.ALL_REDUCE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("operator,dtype,time\ngemm,bf16,3\n", "latency_us: the column is missing"),
        ("operator,dtype,latency_us\n", "no rows"),
        ("", "cannot be read"),
        # The parser would name each row by its first cell, and set the others one column to the left.
        (
            f"{GEMMS.splitlines()[0]}\nnote,gemm,bf16,1,64,64,11,vllm,0.9\n",
            "rows have more cells than the header",
        ),
    ],
)
def test_a_file_that_is_no_table_is_refused(write: Callable[[str], Path], text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_own_table(write(text), "toy")


def test_the_line_in_which_excel_says_what_divides_fields_is_no_header(write: Callable[[str], Path]) -> None:
    (part,) = read_own_table(write(f"sep=,\n{GEMMS}"), "toy").parts
    assert part.rows.latency_ms == pytest.approx([0.011, 0.019])
    broken = GEMMS.replace("64,14", "64,-14")
    (issue,) = read_own_table(write(f"\ufeffsep=,\r\n{broken}"), "toy").rejected
    assert issue.line == 4


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_own_table(tmp_path / "none.csv", "toy")


def test_columns_that_nothing_reads_are_named(write: Callable[[str], Path]) -> None:
    text = GEMMS.replace("version\n", "colour\n")
    assert read_own_table(write(text), "toy").ignored_columns == ("colour",)


def test_every_dimension_of_every_table_is_documented() -> None:
    documented = {column.name for column in TABLES["operator_table"]}
    assert documented >= {name for kind in AXES for name in (*site_dimensions(kind), *AXES[kind])}


def test_a_fleets_table_answers_as_measured(toy: Accelerator, write: Callable[[str], Path]) -> None:
    path = write(GEMMS)
    source = operator_source(replace(toy, operator_tables=(str(path),)), "vllm")
    found = source.times(OperatorKind.GEMM, "bf16", gemm(9))
    assert found.latency_ms == pytest.approx([0.019])
    assert found.provenance.tolist() == [Provenance.MEASURED]
    between = source.times(OperatorKind.GEMM, "bf16", gemm(5))
    assert between.latency_ms == pytest.approx([0.015])
    assert between.provenance.tolist() == [Provenance.INTERPOLATED]
    (used,) = source.table_sources()
    assert (used.package, used.system, used.framework_version) == (OWN_PACKAGE, "toy", "0.9")
    assert used.sha256 == read_own_table(path, "toy").sha256


def test_rows_of_another_framework_are_not_used(toy: Accelerator, write: Callable[[str], Path]) -> None:
    source = operator_source(replace(toy, operator_tables=(str(write(GEMMS)),)), "sglang")
    found = source.times(OperatorKind.GEMM, "bf16", gemm(9))
    assert found.provenance.tolist() == [Provenance.ROOFLINE]


def test_a_fleets_table_with_a_broken_row_is_refused(toy: Accelerator, write: Callable[[str], Path]) -> None:
    path = write(GEMMS + "gemm,bf16,x,64,64,10,vllm,0.9\n")
    source = operator_source(replace(toy, operator_tables=(str(path),)), "vllm")
    with pytest.raises(InputError, match=r"own\.csv:6:1: m"):
        source.times(OperatorKind.GEMM, "bf16", gemm(9))


def test_an_imported_table_answers_for_its_part_alone(
    toy: Accelerator, write: Callable[[str], Path], data_folder: Path
) -> None:
    table = read_own_table(write(GEMMS.replace(",vllm,", ",,")), "toy", "sglang")
    copy = store_own_table(table, "toy", "sglang")
    assert copy.is_relative_to(data_folder)
    (stored,) = stored_tables("toy")
    assert (stored.path, stored.framework) == (copy, "sglang")
    times = [
        operator_source(part, framework).times(OperatorKind.GEMM, "bf16", gemm(9)).provenance[0]
        for part, framework in ((toy, "sglang"), (toy, "vllm"), (replace(toy, name="other"), "sglang"))
    ]
    assert times == [Provenance.MEASURED, Provenance.ROOFLINE, Provenance.ROOFLINE]


def test_own_sites_go_before_those_of_the_package(
    measured_toy: Accelerator,
    write: Callable[[str], Path],
    write_table: Callable[..., Path],
    gemm_frame: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    write_table("gemm", "vllm", "0.24.0", "gemm", gemm_frame({(1, 64, 64): 0.5, (1, 128, 128): 0.7}))
    library = TableLibrary("toy_sxm", tmp_path / "data", tmp_path / "cache")
    own = OwnTables("toy", (str(write(GEMMS)),))
    source = OperatorSource(measured_toy, "vllm", library, own=own)
    both = {"m": np.array([1, 1]), "n": np.array([64, 128]), "k": np.array([64, 128])}
    found = source.times(OperatorKind.GEMM, "bf16", both)
    assert found.latency_ms == pytest.approx([0.011, 0.7])
    assert [each.package for each in source.table_sources()] == [OWN_PACKAGE, "aiconfigurator-core"]


@pytest.mark.parametrize(
    ("kind", "zeros"),
    [
        (OperatorKind.PREFILL_ATTENTION, ("window",)),
        (OperatorKind.EXPERT_DISPATCH, ("low_latency",)),
        (OperatorKind.DISPATCHED_MOE, ("low_latency",)),
        (OperatorKind.COMPRESSED_DECODE, ("ratio", "top_k", "index_heads", "index_head_dim")),
    ],
)
def test_what_layers_do_without_is_zero(
    kind: OperatorKind, zeros: tuple[str, ...], write: Callable[[str], Path]
) -> None:
    named = table_dimensions(kind)
    cells = ",".join("0" if name in zeros else "8" for name in named)
    table = read_own_table(
        write(f"operator,dtype,latency_us,{','.join(named)}\n{kind.value},bf16,10,{cells}\n"), "toy"
    )
    assert table.rejected == ()
    assert all(table.parts[0].rows.dims[name][0] == 0 for name in zeros)


def test_no_expert_is_none_of_a_mixture(write: Callable[[str], Path]) -> None:
    named = table_dimensions(OperatorKind.MOE)
    cells = ",".join("0" if name == "top_k" else "8" for name in named)
    text = f"operator,dtype,latency_us,{','.join(named)}\nmoe,bf16,10,{cells}\n"
    assert [each.key_path for each in read_own_table(write(text), "toy").rejected] == ["top_k"]


MLP_HEADER = (
    "n_head,n_kv_head,n_embd,n_expanded_embd,vocab_size,use_gated_mlp,num_tokens,"
    "num_tensor_parallel_workers,time_stats.attn_pre_proj.median,time_stats.attn_post_proj.median,"
    "time_stats.mlp_up_proj.median,time_stats.mlp_down_proj.median,time_stats.add.median\n"
)


def test_vidurs_products_become_gemm_sites(write: Callable[[str], Path]) -> None:
    rows = "64,8,8192,28672,128256,True,16,2,1,2,3,4,9\n64,8,8192,28672,128256,False,x,2,1,2,3,4,9\n"
    table = read_own_table(write(MLP_HEADER + rows), "toy", "vllm")
    (part,) = table.parts
    dims = part.rows.dims
    shapes = set(zip(dims["n"].tolist(), dims["k"].tolist(), part.rows.latency_ms.tolist(), strict=True))
    # Llama-3-70B over two accelerators: QKV, output, gate and up, down.
    assert shapes == {(5120, 8192, 1.0), (8192, 4096, 2.0), (28672, 8192, 3.0), (8192, 14336, 4.0)}
    assert set(dims["m"].tolist()) == {16}
    assert [(issue.line, issue.key_path) for issue in table.rejected] == [(3, "num_tokens")]


def test_vidurs_attention_keeps_its_phases_apart(write: Callable[[str], Path]) -> None:
    header = (
        "n_embd,n_q_head,n_kv_head,block_size,num_tensor_parallel_workers,max_model_len,batch_size,"
        "prefill_chunk_size,kv_cache_size,is_prefill,time_stats.attn_prefill.median,"
        "time_stats.attn_decode.median\n"
    )
    rows = (
        "8192,64,8,16,4,4096,1,512,0,True,0.5,\n"
        "8192,64,8,16,4,4096,1,512,1024,True,0.9,\n"
        "8192,64,8,16,4,4096,8,0,2048,False,,0.25\n"
    )
    table = read_own_table(write(header + rows), "toy")
    found = {part.rows.kind: part.rows for part in table.parts}
    prefill, decode = found[OperatorKind.PREFILL_ATTENTION], found[OperatorKind.DECODE_ATTENTION]
    assert prefill.latency_ms.tolist() == [0.5]
    assert {name: values[0] for name, values in decode.dims.items()} == {
        "batch": 8,
        "context_tokens": 2048,
        "heads": 16,
        "kv_heads": 2,
        "head_dim": 128,
        "window": 0,
    }
    assert [(issue.line, issue.key_path) for issue in table.rejected] == [(3, "kv_cache_size")]


def test_vidurs_collectives_within_a_host_alone(write: Callable[[str], Path]) -> None:
    header = ",time_stats.all_reduce.median,rank,num_workers,size,collective,devices_per_node\n"
    rows = "0,0.045,0,8,2752512,all_reduce,8\n1,1,0,8,2752512,all_reduce,4\n2,1,0,2,64,send_recv,2\n"
    table = read_own_table(write(header + rows), "toy")
    (part,) = table.parts
    assert (part.rows.dims["message_bytes"][0], part.rows.dims["ranks"][0]) == (2752512, 8)
    assert part.rows.latency_ms == pytest.approx([0.045])
    assert [issue.line for issue in table.rejected] == [3, 4]


def test_another_file_of_vidur_says_what_it_lacks(write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match="not one of its mlp, attention and all_reduce files"):
        read_own_table(write("time_stats.send_recv.median,size\n1,2\n"), "toy")
