"""Choice of measurements by framework: library, version and kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.optables.frames import GemmFrame, all_reduce_frame, gemm

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import (
    OperatorSource,
    TableLibrary,
)
from fleetplan.perfmodel.optables.measured.experts import ExpertKernels

from .conftest import SYSTEM, TableWriter


def gemm_ms(part: Accelerator, library: TableLibrary, framework: str, **shape: int) -> float:
    found = OperatorSource(part, framework, library).times(OperatorKind.GEMM, "bf16", gemm(**shape))
    return float(found.latency_ms[0])


def test_frameworks_take_the_fastest_gemm_of_all_and_trtllm_its_own(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter, gemm_frame: GemmFrame
) -> None:
    for framework, ms in (("trtllm", 3.0), ("sglang", 2.0), ("vllm", 1.0)):
        write_table("gemm", framework, "1.0", "gemm", gemm_frame({(1, 64, 32): ms}))
    found = {name: gemm_ms(measured_toy, library, name, m=1) for name in ("trtllm", "sglang", "vllm")}
    assert found == {"trtllm": 3.0, "sglang": 1.0, "vllm": 1.0}
    # Elsewhere it borrows the fastest.
    write_table("gemm", "sglang", "1.1", "gemm", gemm_frame({(1, 128, 32): 2.0}))
    source = OperatorSource(measured_toy, "trtllm", TableLibrary(SYSTEM, library._data_folder))
    borrowed = source.times(OperatorKind.GEMM, "bf16", gemm(1, 128))
    assert (borrowed.latency_ms[0], borrowed.provenance[0]) == (2.0, Provenance.INTERPOLATED)


def test_a_newer_version_wins_and_an_older_one_fills_missing_sites(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter, gemm_frame: GemmFrame
) -> None:
    write_table("gemm", "vllm", "0.9", "gemm", gemm_frame({(1, 64, 32): 1.0, (1, 128, 32): 5.0}))
    write_table("gemm", "vllm", "0.10", "gemm", gemm_frame({(1, 64, 32): 2.0}))
    assert gemm_ms(measured_toy, library, "vllm", m=1) == 2.0
    assert gemm_ms(measured_toy, library, "vllm", m=1, n=128) == 5.0


def test_a_chosen_version_comes_before_newer_ones_and_borrows_what_it_lacks(
    measured_toy: Accelerator, write_table: TableWriter, gemm_frame: GemmFrame, tmp_path: Path
) -> None:
    write_table("gemm", "vllm", "0.9", "gemm", gemm_frame({(1, 64, 32): 1.0}))
    write_table("gemm", "vllm", "0.10", "gemm", gemm_frame({(1, 64, 32): 2.0, (1, 128, 32): 5.0}))
    write_table("gemm", "sglang", "0.9", "gemm", gemm_frame({(1, 64, 32): 3.0}))
    chosen = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache", version="0.9")
    assert chosen.versions("vllm") == ("0.10", "0.9")
    source = OperatorSource(measured_toy, "vllm", chosen)
    old, borrowed = (source.times(OperatorKind.GEMM, "bf16", gemm(1, n)) for n in (64, 128))
    assert (old.latency_ms[0], old.provenance[0]) == (1.0, Provenance.MEASURED)
    assert (borrowed.latency_ms[0], borrowed.provenance[0]) == (5.0, Provenance.INTERPOLATED)
    assert [each.framework_version for each in source.table_sources()][:2] == ["0.9", "0.10"]
    newest = OperatorSource(measured_toy, "vllm", TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache"))
    assert newest.times(OperatorKind.GEMM, "bf16", gemm(1)).latency_ms[0] == 2.0
    assert source.fingerprint() != newest.fingerprint()


def test_libraries_of_collectives_have_versions_of_their_own(
    measured_toy: Accelerator, write_table: TableWriter, tmp_path: Path
) -> None:
    frame = all_reduce_frame((2, 4)).assign(nccl_dtype="half", op_name="all_reduce")
    write_table("comm", "nccl", "2.27", "nccl", frame)
    chosen = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache", version="0.9")
    assert chosen.versions("vllm") == ()
    dims = {"message_bytes": np.array([2048]), "ranks": np.array([4]), "stride": np.array([1])}
    found = OperatorSource(measured_toy, "vllm", chosen).times(OperatorKind.ALL_REDUCE, "bf16", dims)
    assert found.provenance[0] == Provenance.MEASURED


def test_a_framework_without_tables_borrows_and_says_so(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter, gemm_frame: GemmFrame
) -> None:
    write_table("gemm", "sglang", "1.0", "gemm", gemm_frame({(1, 64, 32): 2.0}))
    source = OperatorSource(measured_toy, "vllm", library)
    found = source.times(OperatorKind.GEMM, "bf16", gemm(1))
    assert (found.latency_ms[0], found.provenance[0]) == (2.0, Provenance.INTERPOLATED)
    (used,) = source.table_sources()
    assert (used.framework, used.framework_version, used.family) == ("sglang", "1.0", "gemm")
    assert len(used.sha256) == 64


def moe_frame(sites: dict[tuple[int, int], float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "kernel_source": "k",
                "distribution": "power_law_1.01",
                "moe_dtype": "bfloat16",
                "num_tokens": 16,
                "hidden_size": 64,
                "inter_size": 64,
                "topk": 2,
                "num_experts": 8,
                "moe_tp_size": moe_tp,
                "moe_ep_size": moe_ep,
                "latency": latency,
            }
            for (moe_tp, moe_ep), latency in sites.items()
        ]
    )


def test_experts_split_the_other_way_come_before_those_of_another_framework(
    library: TableLibrary, write_table: TableWriter
) -> None:
    write_table("moe", "trtllm", "1.0", "moe", moe_frame({(1, 1): 4.0, (1, 4): 2.0}))
    write_table("moe", "vllm", "1.0", "moe", moe_frame({(4, 1): 1.0, (8, 1): 0.5}))
    found = library.rows(OperatorKind.MOE, "bf16", "trtllm")
    assert found is not None
    dims, ms = found.rows.dims, found.rows.latency_ms
    by_site = dict(zip(zip(dims["moe_tp"].tolist(), dims["moe_ep"].tolist(), strict=True), ms, strict=True))
    assert by_site == {(1, 1): 4.0, (1, 4): 2.0, (4, 1): 2.0, (8, 1): 0.5}
    assert found.rows.provenance.tolist().count(Provenance.INTERPOLATED) == 2


def test_experts_by_triton_take_its_measurements_of_any_framework(
    write_table: TableWriter, tmp_path: Path
) -> None:
    sites = {"vllm": {(1, 1): 1.0, (2, 1): 1.5, (4, 1): 2.0}, "sglang": {(1, 1): 3.0, (2, 1): 4.0}}
    kernels = {"vllm": "vllm_fused_moe", "sglang": "sglang_fused_moe_triton"}
    for framework, times in sites.items():
        fast = moe_frame({site: ms / 2 for site, ms in times.items()})
        slow = moe_frame(dict(list(times.items())[: 1 if framework == "vllm" else None]))
        frame = pd.concat([fast, slow.assign(kernel_source=kernels[framework])])
        write_table("moe", framework, "1.0", "moe", frame)
    chosen = TableLibrary(
        SYSTEM,
        tmp_path / "data",
        tmp_path / "cache",
        expert_kernels=ExpertKernels(triton=frozenset({"bf16"})),
    ).rows(OperatorKind.MOE, "bf16", "vllm")
    assert chosen is not None
    by_site = dict(zip(chosen.rows.dims["moe_tp"].tolist(), chosen.rows.latency_ms.tolist(), strict=True))
    # Its own, then Triton of another framework, then whatever else was measured.
    assert by_site == {1: 1.0, 2: 4.0, 4: 1.0}
    assert chosen.rows.provenance.tolist().count(Provenance.INTERPOLATED) == 2


@pytest.mark.parametrize(("own", "ms"), [(frozenset(), 1.0), (frozenset({"fp8_block"}), 3.0)])
def test_experts_without_another_kernel_keep_their_own_measurements(
    write_table: TableWriter, tmp_path: Path, own: frozenset[str], ms: float
) -> None:
    for framework, each_ms in (("trtllm", 3.0), ("sglang", 1.0)):
        frame = moe_frame({(1, 1): each_ms}).assign(moe_dtype="fp8_block")
        path = write_table("moe", framework, "1.0", "moe", frame)
        target = tmp_path / "data" / "b200_sxm" / path.relative_to(tmp_path / "data" / SYSTEM)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    kernels = ExpertKernels(own=own)
    chosen = TableLibrary("b200_sxm", tmp_path / "data", tmp_path / "cache", expert_kernels=kernels)
    found = chosen.rows(OperatorKind.MOE, "fp8_block", "trtllm")
    assert found is not None
    assert found.rows.latency_ms.tolist() == [ms]


def latent_prompts(ms: float) -> pd.DataFrame:
    shape = {"op_name": "context_mla", "kv_cache_dtype": "bfloat16", "num_heads": 128, "batch_size": 1}
    return pd.DataFrame([{**shape, "isl": 1024, "step": 0, "latency": ms}])


@pytest.mark.parametrize(("system", "sglang_ms"), [(SYSTEM, 1.0), ("b200_sxm", 3.0)])
def test_sglang_rebuilds_the_keys_of_prompts_though_its_table_before_blackwell_does_not(
    write_table: TableWriter, tmp_path: Path, system: str, sglang_ms: float
) -> None:
    for framework, ms in (("sglang", 3.0), ("trtllm", 1.0), ("vllm", 2.0)):
        path = write_table("mla", framework, "1.0", "context_mla", latent_prompts(ms))
        target = tmp_path / "data" / system / path.relative_to(tmp_path / "data" / SYSTEM)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    chosen = TableLibrary(system, tmp_path / "data", tmp_path / "cache")
    kind = OperatorKind.LATENT_PREFILL_ATTENTION
    found = {name: chosen.rows(kind, "bf16", name) for name in ("sglang", "trtllm", "vllm")}
    latencies = {name: each.rows.latency_ms.tolist() for name, each in found.items() if each is not None}
    assert latencies == {"sglang": [sglang_ms], "trtllm": [1.0], "vllm": [2.0]}


@pytest.mark.parametrize(("system", "trtllm_ms"), [(SYSTEM, 3.0), ("b200_sxm", 1.0)])
def test_experts_in_fp4_on_blackwell_take_the_fastest(
    write_table: TableWriter, tmp_path: Path, system: str, trtllm_ms: float
) -> None:
    for framework, ms in (("trtllm", 3.0), ("sglang", 1.0)):
        row = {
            "kernel_source": "any",
            "moe_dtype": "nvfp4",
            "num_tokens": 1,
            "hidden_size": 64,
            "inter_size": 32,
            "topk": 2,
            "num_experts": 8,
            "moe_tp_size": 1,
            "moe_ep_size": 1,
            "distribution": "power_law_1.01",
            "latency": ms,
        }
        path = write_table("moe", framework, "1.0", "moe", pd.DataFrame([row]))
        target = tmp_path / "data" / system / path.relative_to(tmp_path / "data" / SYSTEM)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    chosen = TableLibrary(system, tmp_path / "data", tmp_path / "cache").rows(
        OperatorKind.MOE, "fp4", "trtllm"
    )
    assert chosen is not None
    assert chosen.rows.latency_ms.tolist() == [trtllm_ms]


def test_experts_in_mxfp4_that_nobody_measured_take_the_kernel_of_int4(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter
) -> None:
    frame = moe_frame({(1, 1): 2.0}).assign(moe_dtype="int4_wo")
    write_table("moe", "sglang", "1.0", "moe", frame)
    found = library.rows(OperatorKind.MOE, "mxfp4", "vllm")
    assert found is not None
    assert found.rows.dtype == "mxfp4"
    assert found.rows.latency_ms.min() == 2.0
    assert set(found.rows.provenance.tolist()) == {Provenance.INTERPOLATED}
    # Measured ones come first.
    write_table("moe", "vllm", "1.0", "moe", moe_frame({(1, 1): 1.0}).assign(moe_dtype="w4a16_mxfp4"))
    again = TableLibrary(SYSTEM, library._data_folder).rows(OperatorKind.MOE, "mxfp4", "vllm")
    assert again is not None
    assert again.rows.latency_ms.min() == 1.0
