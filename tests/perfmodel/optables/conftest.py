"""An accelerator, and a folder of small measured tables in the layout of the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fleetplan.fleet.inventory import Accelerator, Efficiency
from fleetplan.perfmodel.optables import TableLibrary

SYSTEM = "toy_sxm"

EFFICIENCY = Efficiency(
    gemm_ratio=0.7,
    weight_read_ratio=0.9,
    kv_read_ratio=0.7,
    prefill_attention_ratio=0.6,
    link_ratio=0.5,
    collective_latency_us=4.0,
    inter_host_latency_us=60.0,
    layer_overhead_us=50.0,
    source="made up",
)

ACCELERATOR = Accelerator(
    name="toy",
    vendor="nobody",
    bf16_tflops=1000.0,
    fp8_tflops=2000.0,
    fp4_tflops=None,
    int8_tops=2000.0,
    hbm_gib=80.0,
    hbm_gb_per_s=4000.0,
    scale_up_gb_per_s=450.0,
    scale_up_accelerators=8,
    scale_out_gb_per_s=50.0,
    tdp_w=700.0,
    all_in_w=1000.0,
    accelerators_per_host=8,
    lifecycle="stable",
    measured_system=None,
    efficiency=EFFICIENCY,
    sources=("made up",),
)


@pytest.fixture
def toy() -> Accelerator:
    """An accelerator without measurements."""
    return ACCELERATOR


@pytest.fixture
def measured_toy() -> Accelerator:
    """The same accelerator with measurements."""
    return replace(ACCELERATOR, measured_system=SYSTEM)


TableWriter = Callable[[str, str, str, str, pd.DataFrame], Path]


@pytest.fixture
def write_table(tmp_path: Path) -> TableWriter:
    """Write a table of (folder, framework, version, family) under ``tmp_path / "data"``."""
    pytest.importorskip("pyarrow")

    def write(folder: str, framework: str, version: str, family: str, frame: pd.DataFrame) -> Path:
        path = tmp_path / "data" / SYSTEM / folder / framework / version / f"{family}_perf.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path)
        return path

    return write


@pytest.fixture
def gemm_frame() -> Callable[..., pd.DataFrame]:
    """GEMM rows in the package's columns: a dict of (m, n, k) to ms."""

    def frame(times: dict[tuple[int, int, int], float], dtype: str = "bfloat16") -> pd.DataFrame:
        rows = [
            {"latency": ms, "k": k, "m": m, "n": n, "gemm_dtype": dtype, "kernel_source": "any"}
            for (m, n, k), ms in times.items()
        ]
        return pd.DataFrame(rows)

    return frame


@pytest.fixture
def library(tmp_path: Path) -> TableLibrary:
    return TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
