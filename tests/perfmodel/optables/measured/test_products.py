"""GEMM in FP8 of TensorRT-LLM without the quantisation of its activations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.measured import needs_tables
from tests.perfmodel.optables.conftest import SYSTEM, TableWriter

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import ActivationScales, OperatorKind
from fleetplan.perfmodel.optables import OperatorSource, TableLibrary
from fleetplan.perfmodel.optables.formulas.small_kernels import quantisation_ms
from fleetplan.perfmodel.optables.measured.products import QUANTISATION_FAMILIES

GemmFrame = Callable[..., pd.DataFrame]

N, K = 64, 32
SEARCH_MS, QUANTISE_MS = 0.007, 0.0015


def quantisation_frame(ms: float, tokens: tuple[int, ...] = (1, 8)) -> pd.DataFrame:
    return pd.DataFrame([{"m": m, "k": K, "quant_dtype": "fp8", "latency": ms} for m in tokens])


@pytest.fixture
def write_gemms(write_table: TableWriter, gemm_frame: GemmFrame) -> Callable[[tuple[str, ...]], None]:
    """Write GEMM tables of two frameworks, and of TensorRT-LLM the named tables of the quantisation."""

    def write(families: tuple[str, ...]) -> None:
        for framework, times in (("trtllm", (0.018, 0.019)), ("vllm", (0.012, 0.0125))):
            rows = {(m, N, K): ms for m, ms in zip((1, 8), times, strict=True)}
            write_table("gemm", framework, "1.0", "gemm", gemm_frame(rows, "fp8"))
        for family, ms in zip(QUANTISATION_FAMILIES, (SEARCH_MS, QUANTISE_MS), strict=True):
            if family in families:
                write_table("quantize", "trtllm", "1.0", family, quantisation_frame(ms))

    return write


def product_ms(
    part: Accelerator, folder: Path, framework: str, scales: ActivationScales = "static", m: int = 1
) -> float:
    """Time of one product without what the model itself adds for its quantisation."""
    library = TableLibrary(SYSTEM, folder / "data", folder / "cache", activation_scales=scales)
    source = OperatorSource(part, framework, library)
    dims = {"m": np.array([m]), "n": np.array([N]), "k": np.array([K])}
    found = source.times(OperatorKind.GEMM, "fp8", dims).latency_ms[0]
    return float(found - quantisation_ms(part, framework, "fp8", dims)[0])


def test_what_was_measured_apart_is_taken_off(
    measured_toy: Accelerator, write_gemms: Callable[[tuple[str, ...]], None], tmp_path: Path
) -> None:
    write_gemms(QUANTISATION_FAMILIES)
    for m, whole_ms in ((1, 0.018), (8, 0.019)):
        found = product_ms(measured_toy, tmp_path, "trtllm", m=m)
        assert found == pytest.approx(whole_ms - SEARCH_MS - QUANTISE_MS)
    # Others compare the tables as they are.
    assert product_ms(measured_toy, tmp_path, "vllm") == pytest.approx(0.012)
    # Scales that are found while the model runs need all of its kernels; then the fastest table stands.
    assert product_ms(measured_toy, tmp_path, "trtllm", "dynamic") == pytest.approx(0.012)


def test_all_three_tables_are_named_as_sources(
    measured_toy: Accelerator, write_gemms: Callable[[tuple[str, ...]], None], tmp_path: Path
) -> None:
    write_gemms(QUANTISATION_FAMILIES)
    library = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
    source = OperatorSource(measured_toy, "trtllm", library)
    assert source.measured_rows(OperatorKind.GEMM, "fp8") is not None
    source.table(OperatorKind.GEMM, "fp8")
    families = [each.family for each in source.table_sources()]
    assert families == ["gemm", *QUANTISATION_FAMILIES]
    assert len({each.sha256 for each in source.table_sources()}) == 3
    dynamic = TableLibrary(SYSTEM, tmp_path / "data", activation_scales="dynamic")
    assert OperatorSource(measured_toy, "trtllm", dynamic).fingerprint() != source.fingerprint()


@pytest.mark.parametrize("families", [(), QUANTISATION_FAMILIES[:1], QUANTISATION_FAMILIES[1:]])
def test_without_both_tables_the_fastest_stands(
    measured_toy: Accelerator,
    write_gemms: Callable[[tuple[str, ...]], None],
    tmp_path: Path,
    families: tuple[str, ...],
) -> None:
    write_gemms(families)
    assert product_ms(measured_toy, tmp_path, "trtllm") == pytest.approx(0.012)


def test_sizes_without_a_measurement_or_without_a_rest_are_left_out(
    measured_toy: Accelerator,
    write_gemms: Callable[[tuple[str, ...]], None],
    write_table: TableWriter,
    tmp_path: Path,
) -> None:
    write_gemms(QUANTISATION_FAMILIES)
    write_table("quantize", "trtllm", "1.0", "scale_matrix", quantisation_frame(QUANTISE_MS, (8,)))
    library = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
    found = library.rows(OperatorKind.GEMM, "fp8", "trtllm")
    assert found is not None
    assert found.rows.dims["m"].tolist() == [8]
    write_table("quantize", "trtllm", "1.0", "scale_matrix", quantisation_frame(1.0))
    # A kept import of the same GEMM table is not read where a table beside it is another one.
    again = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
    found = again.rows(OperatorKind.GEMM, "fp8", "trtllm")
    assert found is not None
    assert found.rows.latency_ms.tolist() == [0.012, 0.0125]


@needs_tables
def test_one_die_takes_equally_long_under_two_names(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("cache")
    times = []
    for system in ("h100_sxm", "h200_sxm"):
        found = TableLibrary(system, cache_folder=folder).rows(OperatorKind.GEMM, "fp8", "trtllm")
        assert found is not None
        dims, latency_ms = found.rows.dims, found.rows.latency_ms
        large = (dims["m"] >= 2048) & (dims["n"] >= 3072) & (dims["k"] >= 3072) & (found.rows.provenance == 0)
        order = np.lexsort([dims[name][large] for name in ("m", "n", "k")])
        times.append(latency_ms[large][order])
        flops = 2.0 * dims["m"][large] * dims["n"][large] * dims["k"][large]
        share = flops / (latency_ms[large] / 1e3) / 1979e12
        assert 0.65 < np.median(share) < 0.8
    assert np.median(times[0] / times[1]) == pytest.approx(1.0, abs=0.01)
