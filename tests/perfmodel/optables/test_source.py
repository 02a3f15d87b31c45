"""Answers of a source of operator times: measured, extrapolated, or from the roofline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.live_objects import live_objects
from tests.perfmodel.optables.frames import GemmFrame, all_reduce_frame, gemm

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import (
    MeasuredRows,
    OperatorSource,
    TableLibrary,
    UnsupportedDtype,
    choice,
    operator_source,
)
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms

from .conftest import SYSTEM, TableWriter


def test_without_a_table_the_roofline_answers(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter, gemm_frame: GemmFrame
) -> None:
    write_table("gemm", "vllm", "1.0", "gemm", gemm_frame({(1, 64, 32): 2.0}))
    source = OperatorSource(measured_toy, "vllm", library)
    found = source.times(OperatorKind.GEMM, "fp8", gemm(1))
    assert found.provenance[0] == Provenance.ROOFLINE
    assert found.latency_ms == roofline_ms(measured_toy, OperatorKind.GEMM, "fp8", gemm(1))
    with pytest.raises(UnsupportedDtype):
        source.times(OperatorKind.GEMM, "fp4", gemm(1))


def test_collectives_are_measured_inside_and_extrapolated_elsewhere(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter
) -> None:
    write_table("comm", "vllm", "1.0", "custom_allreduce", all_reduce_frame((2, 4, 8)))
    source = OperatorSource(measured_toy, "vllm", library)
    ranks, stride = np.array([1, 8, 3, 16, 2, 4]), np.array([1, 1, 1, 1, 8, 2])
    dims = {"message_bytes": np.full(6, 2**21), "ranks": ranks, "stride": stride}
    found = source.times(OperatorKind.ALL_REDUCE, "bf16", dims)
    assert found.latency_ms[0] == 0.0
    assert found.latency_ms[1] == 0.011 + 2**20 / 1e8
    assert found.latency_ms[3] >= 0.06 + 2**20 / 1e8
    measured, outside, roofline = Provenance.MEASURED, Provenance.EXTRAPOLATED, Provenance.ROOFLINE
    assert found.provenance.tolist() == [measured, measured, outside, outside, roofline, measured]


def test_a_measured_domain_without_a_network_is_not_left(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter
) -> None:
    write_table("comm", "vllm", "1.0", "custom_allreduce", all_reduce_frame((2, 4, 8)))
    source = OperatorSource(replace(measured_toy, scale_out_gb_per_s=None), "vllm", library)
    dims = {"message_bytes": np.array([64, 64]), "ranks": np.array([8, 16]), "stride": np.array([1, 1])}
    assert np.isfinite(source.times(OperatorKind.ALL_REDUCE, "bf16", dims).latency_ms).tolist() == [
        True,
        False,
    ]


def test_no_work_takes_no_time(toy: Accelerator) -> None:
    found = operator_source(toy, "vllm").times(OperatorKind.GEMM, "bf16", gemm(0))
    assert (found.latency_ms[0], found.provenance[0]) == (0.0, Provenance.MEASURED)
    empty = {name: values[:0] for name, values in gemm(1).items()}
    assert operator_source(toy, "vllm").times(OperatorKind.GEMM, "bf16", empty).latency_ms.size == 0


def test_rows_are_answered_in_their_order(toy: Accelerator) -> None:
    m = np.array([512, 1, 512, 64, 1])
    dims = {"m": m, "n": np.full(5, 4096), "k": np.full(5, 4096)}
    found = operator_source(toy, "vllm").times(OperatorKind.GEMM, "fp8", dims)
    assert found.latency_ms == pytest.approx(roofline_ms(toy, OperatorKind.GEMM, "fp8", dims))
    assert (found.provenance == Provenance.ROOFLINE).all()


def test_sources_are_kept_for_the_process(toy: Accelerator) -> None:
    assert operator_source(toy, "vllm") is operator_source(replace(toy), "vllm")
    assert operator_source(toy, "vllm") is not operator_source(toy, "sglang")


def test_wrong_questions_are_bugs(toy: Accelerator) -> None:
    with pytest.raises(ValueError, match="known are trtllm, sglang, vllm"):
        operator_source(toy, "vlm")
    with pytest.raises(ValueError, match="gemm has dimensions"):
        operator_source(toy, "vllm").times(OperatorKind.GEMM, "bf16", {"m": np.array([1])})
    with pytest.raises(ValueError, match="negative m"):
        operator_source(toy, "vllm").times(OperatorKind.GEMM, "bf16", gemm(-1))


def test_an_all_reduce_is_never_slower_than_one_of_a_larger_message(
    measured_toy: Accelerator, library: TableLibrary, write_table: TableWriter
) -> None:
    frame = all_reduce_frame((2,))
    frame.loc[frame["message_size"] == 2**10, "latency"] = 9.0
    write_table("comm", "vllm", "1.0", "custom_allreduce", frame)
    found = library.rows(OperatorKind.ALL_REDUCE, "bf16", "vllm")
    assert found is not None
    order = np.argsort(found.rows.dims["message_bytes"])
    assert (np.diff(found.rows.latency_ms[order]) >= 0).all()
    assert found.rows.latency_ms.max() < 9.0


def test_a_host_with_peer_access_stands_for_parts_on_pcie(
    library: TableLibrary, write_table: TableWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "PEER_ACCESS_TABLES", {SYSTEM: ("sglang", "0.5.12")})
    slow = all_reduce_frame((2, 4))
    write_table("comm", "vllm", "2.0", "custom_allreduce", slow)
    write_table("comm", "sglang", "0.5.14", "custom_allreduce", slow)
    with_access = slow.assign(latency=slow["latency"] / 10)
    write_table("comm", "sglang", "0.5.12", "custom_allreduce", with_access)
    found = library.rows(OperatorKind.ALL_REDUCE, "bf16", "vllm")
    assert found is not None
    assert found.rows.latency_ms.max() == pytest.approx(slow["latency"].max() / 10)
    assert [source.framework_version for source in found.sources] == ["0.5.12"]


def test_a_library_keeps_no_rows(
    library: TableLibrary, write_table: TableWriter, gemm_frame: GemmFrame
) -> None:
    """A library reads the rows of a table on request and keeps none, as the files of a system hold 50 MB."""
    write_table("gemm", "vllm", "1.0", "gemm", gemm_frame({(1, 64, 32): 1.0}))
    before = live_objects(MeasuredRows)
    assert library.rows(OperatorKind.GEMM, "bf16", "vllm") is not None
    assert live_objects(MeasuredRows) == before
