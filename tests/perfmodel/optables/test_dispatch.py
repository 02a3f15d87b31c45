"""Expert dispatch and combine: microseconds and milliseconds, kernels by purpose, ranks beyond the tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.measured import needs_tables

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import IntArray, OperatorKind, Provenance, groups_reached
from fleetplan.perfmodel.optables import MeasuredRows, OperatorSource, TableLibrary, operator_source
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.measured.tables import TableFile, read_table

from .conftest import SYSTEM, TableWriter

DISPATCH, COMBINE = OperatorKind.EXPERT_DISPATCH, OperatorKind.EXPERT_COMBINE


def one(**dims: int) -> dict[str, IntArray]:
    shape = {"tokens": 16, "hidden": 7168, "top_k": 8, "experts": 256, "ep": 8, "low_latency": 1}
    return {name: np.array([value]) for name, value in {**shape, **dims}.items()}


def table(path: Path, family: str, framework: str = "sglang") -> dict[tuple[str, str], MeasuredRows]:
    found = read_table(TableFile(path, family, framework, path.parent.name, "test"))
    return {(rows.kind.value, rows.dtype): rows for rows in found}


def deepep(device: str, nodes: int, tokens: int, dispatch_us: float, combine_us: float) -> dict[str, object]:
    return {
        "device": device,
        "node_num": nodes,
        "hidden_size": 7168,
        "num_token": tokens,
        "num_topk": 8,
        "num_experts": 256,
        "dispatch_avg_t_us": dispatch_us,
        "combine_avg_t_us": combine_us,
    }


def test_microseconds_and_nodes_of_deepep(write_table: TableWriter) -> None:
    frame = pd.DataFrame(
        [deepep("NVIDIA H200", 2, 16, 40.0, 57.0), deepep("NVIDIA GB200", 2, 32, 30.0, 20.0)]
    )
    found = table(write_table("comm", "sglang", "1.0", "wideep_deepep_ll", frame), "wideep_deepep_ll")
    dispatch, combine = found["expert_dispatch", "fp8"], found["expert_combine", "bf16"]
    assert sorted(dispatch.latency_ms.tolist()) == [0.03, 0.04]
    assert sorted(combine.latency_ms.tolist()) == [0.02, 0.057]
    # Nodes of 8 accelerators, but of 4 beside a Grace processor.
    assert sorted(dispatch.dims["ep"].tolist()) == [8, 16]
    assert set(dispatch.dims["low_latency"].tolist()) == {1}


def test_normal_kernels_add_their_notification_and_keep_the_fastest(write_table: TableWriter) -> None:
    shape = {name: deepep("NVIDIA H200", 1, 16, 0, 0)[name] for name in deepep("", 1, 1, 0, 0)}
    rows = [
        {
            **shape,
            "dispatch_sms": sms,
            "dispatch_transmit_us": us,
            "dispatch_notify_us": 10.0,
            "combine_transmit_us": us,
            "combine_notify_us": None,
        }
        for sms, us in ((4, 90.0), (24, 30.0))
    ]
    path = write_table("comm", "sglang", "1.0", "wideep_deepep_normal", pd.DataFrame(rows))
    found = table(path, "wideep_deepep_normal")
    assert found["expert_dispatch", "fp8"].latency_ms.tolist() == [0.04]
    assert found["expert_combine", "bf16"].latency_ms.tolist() == [0.03]


def test_latency_of_moe_a2a_is_microseconds_and_formats_stay_apart(write_table: TableWriter) -> None:
    rows = [
        {
            "comm_backend": backend,
            "phase": phase,
            "comm_dtype": dtype,
            "ep_size": 8,
            "hidden_size": 7168,
            "topk": 8,
            "num_experts": 256,
            "num_tokens": 16,
            "latency": 25.0 if dtype == "fp8" else 50.0,
        }
        for backend, phase, dtype in (
            ("trtllm_deepep_ll", "dispatch", "fp8"),
            ("trtllm_deepep_ht", "dispatch", "bfloat16"),
            ("trtllm_deepep_ll", "dispatch", "nvfp4"),
            ("trtllm_deepep_ll", "combine", "bfloat16"),
        )
    ]
    found = table(write_table("comm", "trtllm", "1.0", "moe_a2a", pd.DataFrame(rows)), "moe_a2a", "trtllm")
    assert found["expert_dispatch", "fp8"].latency_ms.tolist() == [0.025]
    assert found["expert_dispatch", "fp8"].dims["low_latency"].tolist() == [1]
    assert found["expert_dispatch", "bf16"].dims["low_latency"].tolist() == [0]
    assert found["expert_dispatch", "fp4"].dims["low_latency"].tolist() == [1]
    assert len(found) == 4


def test_nvlink_kernels_are_milliseconds_and_prepare_first(write_table: TableWriter) -> None:
    def row(operator: str, source: str, dtype: str, ms: float) -> dict[str, object]:
        return {
            "op_name": operator,
            "kernel_source": source,
            "moe_dtype": dtype,
            "num_tokens": 16,
            "hidden_size": 7168,
            "topk": 8,
            "num_experts": 256,
            "moe_ep_size": 32,
            "latency": ms,
        }

    frame = pd.DataFrame(
        [
            row("alltoall_prepare", "NVLinkTwoSided", "fp8", 0.02),
            row("alltoall_dispatch", "NVLinkTwoSided", "fp8", 0.01),
            row("alltoall_dispatch", "NVLinkOneSided", "fp8", 0.025),
            row("alltoall_dispatch", "NVLinkOneSided", "nvfp4", 0.015),
            row("alltoall_combine", "NVLinkOneSided", "bfloat16", 0.04),
        ]
    )
    path = write_table("comm", "trtllm", "1.0", "trtllm_alltoall", frame)
    tables = read_table(TableFile(path, "trtllm_alltoall", "trtllm", "1.0", "test"))
    narrow, dispatch = [rows for rows in tables if rows.kind is DISPATCH]
    assert (narrow.dtype, narrow.latency_ms.tolist()) == ("fp4", [0.015, 0.015])
    # Two sides: 0.02 + 0.01; one side: 0.025, the faster. For steps with and without prompts.
    assert dispatch.latency_ms.tolist() == [0.025, 0.025]
    assert dispatch.dims["low_latency"].tolist() == [0, 1]


def test_more_ranks_than_measured_add_the_network(
    measured_toy: Accelerator, tmp_path: Path, write_table: TableWriter
) -> None:
    library = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
    frame = pd.DataFrame([deepep("NVIDIA H200", 1, tokens, 20.0 + tokens, 30.0) for tokens in (1, 16, 128)])
    write_table("comm", "sglang", "1.0", "wideep_deepep_ll", frame)
    source = OperatorSource(measured_toy, "sglang", library)
    measured = source.times(DISPATCH, "fp8", one())
    assert (measured.latency_ms[0], measured.provenance[0]) == (pytest.approx(0.036), Provenance.MEASURED)
    wide = source.times(DISPATCH, "fp8", one(ep=32))
    light = [roofline_ms(measured_toy, DISPATCH, "fp8", one(ep=ep))[0] for ep in (8, 32)]
    assert wide.latency_ms[0] == pytest.approx(0.036 + light[1] - light[0])
    assert wide.provenance[0] == Provenance.EXTRAPOLATED
    # 16 tokens go to 7.1 of 32 ranks, three quarters of them on other hosts, over 25 of 50 GB/s.
    sent = 16 * 7168 * groups_reached(8, np.array([32]))[0] * 0.75
    assert light[1] == pytest.approx(0.03 + sent / 25e6)


@pytest.mark.parametrize(
    ("kind", "dtype", "collective", "row_bytes"),
    [
        (DISPATCH, "fp4", OperatorKind.ALL_GATHER, 7168 * 0.5625),
        (DISPATCH, "bf16", OperatorKind.ALL_GATHER, 7168 * 2),
        (COMBINE, "bf16", OperatorKind.REDUCE_SCATTER, 7168 * 2),
    ],
)
def test_without_kernels_for_it_the_tokens_of_all_ranks_are_gathered(
    measured_toy: Accelerator,
    library: TableLibrary,
    kind: OperatorKind,
    dtype: str,
    collective: OperatorKind,
    row_bytes: float,
) -> None:
    """A framework without dispatch kernels gathers the tokens of all ranks and reduces their results."""
    source = OperatorSource(measured_toy, "trtllm", library)
    tokens, ranks = np.array([16, 512]), np.array([8, 4])
    dims = {name: np.repeat(values, 2) for name, values in one().items()} | {"tokens": tokens, "ep": ranks}
    message = np.ceil(tokens * ranks * row_bytes).astype(np.int64)
    whole = {"message_bytes": message, "ranks": ranks, "stride": np.ones_like(ranks)}
    expected = source.times(collective, "bf16", whole).latency_ms
    assert source.times(kind, dtype, dims).latency_ms.tolist() == expected.tolist()
    # Where nothing was measured at all, the parts of nobody's tables send as their kernels would.
    alone = OperatorSource(measured_toy, "trtllm", None).times(kind, dtype, dims).latency_ms
    assert alone.tolist() == roofline_ms(measured_toy, kind, dtype, dims).tolist()


def test_throughput_kernels_cross_the_network_once_a_host(toy: Accelerator) -> None:
    low = roofline_ms(toy, COMBINE, "bf16", one(tokens=4096, ep=32))[0]
    high = roofline_ms(toy, COMBINE, "bf16", one(tokens=4096, ep=32, low_latency=0))[0]
    # 7.1 ranks on 3.6 of 4 hosts.
    assert high < 0.6 * low


@needs_tables
def test_the_package_has_wide_groups_of_hopper() -> None:
    source = operator_source(accelerators()["H200-SXM"], "sglang")
    found = [source.times(DISPATCH, "fp8", one(ep=ep)) for ep in (8, 16, 32, 64)]
    times = [each.latency_ms[0] for each in found]
    assert times == sorted(times)
    assert all(each.provenance[0] == Provenance.MEASURED for each in found)
    # Microseconds that are taken for milliseconds would be a thousand times this.
    assert 0.005 < times[0] < times[-1] < 0.2


def test_a_rack_takes_the_links_of_the_rack_that_was_measured(
    measured_toy: Accelerator, tmp_path: Path, write_table: TableWriter
) -> None:
    row = {
        "kernel_source": "NVLinkOneSided",
        "hidden_size": 7168,
        "topk": 8,
        "num_experts": 256,
        "moe_ep_size": 8,
    }
    frame = pd.DataFrame(
        [
            {**row, "op_name": f"alltoall_{name}", "moe_dtype": dtype, "num_tokens": tokens, "latency": ms}
            for name, dtype, ms in (("dispatch", "fp8", 0.02), ("combine", "bfloat16", 0.04))
            for tokens in (16, 32)
        ]
    )
    written = write_table("comm", "trtllm", "1.0", "trtllm_alltoall", frame)
    target = tmp_path / "data" / "gb200" / "comm" / "trtllm" / "1.0" / written.name
    target.parent.mkdir(parents=True)
    written.rename(target)
    own, rack = (TableLibrary(system, tmp_path / "data", tmp_path / "cache") for system in ("gb200", "gb300"))
    measured, lent = (
        OperatorSource(measured_toy, "trtllm", library).times(DISPATCH, "fp8", one())
        for library in (own, rack)
    )
    assert (measured.latency_ms.tolist(), measured.provenance.tolist()) == ([0.02], [Provenance.MEASURED])
    assert (lent.latency_ms.tolist(), lent.provenance.tolist()) == ([0.02], [Provenance.INTERPOLATED])
    chosen = rack.rows(DISPATCH, "fp8", "trtllm")
    assert chosen is not None
    assert {source.system for source in chosen.sources} == {"gb200"}
    # What it answers depends on that file.
    assert rack.file_hashes() == own.file_hashes()
    # Other parts take nobody's links.
    assert (
        TableLibrary("b200_sxm", tmp_path / "data", tmp_path / "cache").rows(DISPATCH, "fp8", "trtllm")
        is None
    )
