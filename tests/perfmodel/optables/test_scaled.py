"""Parts whose figures differ from those of the part that was measured."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.measured import needs_tables
from tests.perfmodel.fakes import configurations
from tests.perfmodel.optables.conftest import SYSTEM, TableWriter

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator, Precision
from fleetplan.fleet.inventory.power import power_capped
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import layout_problem
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import TableLibrary, operator_source
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.source import OperatorSource
from fleetplan.perfmodel.parallelism import parse_parallelism

NODES = {(m, 4096, 4096): 0.02 + m * 7e-5 for m in (1, 16, 256, 4096)}


def source_of(part: Accelerator, data: Path) -> OperatorSource:
    return OperatorSource(part, "vllm", TableLibrary(SYSTEM, data_folder=data, cache_folder=data / "cache"))


def gemm(source: OperatorSource, m: list[int], n: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    sizes = {"m": np.array(m), "n": np.full(len(m), n), "k": np.full(len(m), 4096)}
    found = source.times(OperatorKind.GEMM, "bf16", sizes)
    return found.latency_ms, found.provenance


@pytest.mark.parametrize("figure", ["hbm_gb_per_s", "bf16_tflops"])
def test_a_measured_time_is_multiplied_by_the_ratio_of_the_rooflines(
    measured_toy: Accelerator,
    write_table: TableWriter,
    gemm_frame: Callable[..., pd.DataFrame],
    tmp_path: Path,
    figure: str,
) -> None:
    write_table("gemm", "vllm", "1.0", "gemm", gemm_frame(NODES))
    other = measured_toy.with_figures(**{figure: 2 * getattr(measured_toy, figure)})
    data = tmp_path / "data"
    m = [1, 16, 256, 4096]
    dims = {"m": np.array(m), "n": np.full(4, 4096), "k": np.full(4, 4096)}
    before, own = gemm(source_of(measured_toy, data), m)
    after, label = gemm(source_of(other, data), m)
    light = [roofline_ms(part, OperatorKind.GEMM, "bf16", dims) for part in (other, measured_toy)]
    assert after == pytest.approx(before * light[0] / light[1])
    assert (own == Provenance.MEASURED).all()
    assert (label == Provenance.EXTRAPOLATED).all()


def test_what_a_figure_does_not_touch_stays_measured(
    measured_toy: Accelerator,
    write_table: TableWriter,
    gemm_frame: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    write_table("gemm", "vllm", "1.0", "gemm", gemm_frame(NODES))
    linked = source_of(measured_toy.with_figures(scale_up_gb_per_s=900.0), tmp_path / "data")
    found, label = gemm(linked, [16, 256])
    assert found == pytest.approx([NODES[16, 4096, 4096], NODES[256, 4096, 4096]])
    assert (label == Provenance.MEASURED).all()


def test_figures_that_come_back_are_no_difference(measured_toy: Accelerator) -> None:
    doubled = measured_toy.with_figures(hbm_gb_per_s=8000.0)
    assert doubled.measured_figures == measured_toy.speed_figures
    assert doubled.as_measured == measured_toy
    assert doubled.with_figures(hbm_gb_per_s=4000.0) == measured_toy
    # What was not measured has nothing to scale.
    bare = replace(measured_toy, measured_system=None)
    assert bare.with_figures(hbm_gb_per_s=8000.0).measured_figures is None


MODELS = ("llama3-8b", "llama3-70b", "gpt-oss-20b", "qwen3-30b-a3b", "deepseek-v3", "qwen3-next-80b")
LABELS = ("TP1", "TP2", "TP8", "TP4CP2-TP8", "PP2-TP4", "DP8-EP8", "TP8-TP2EP4", "TP16")
FIGURES = ("bf16_tflops", "fp8_tflops", "hbm_gb_per_s", "scale_up_gb_per_s", "scale_out_gb_per_s")
FACTORS = (1.0, 1.01, 1.3, 2.0, 7.0)
CAPS_W = (350.0, 500.0, 690.0, 700.0)


@cache
def evaluator(model: str, figure: str, factor: float) -> Evaluator:
    part = accelerators()["H200-SXM"]
    if figure == "power_cap_w":
        part = power_capped(part, factor)
    else:
        part = part.with_figures(**{figure: getattr(part, figure) * factor})
    architecture = load_architecture(model, Path())
    return Evaluator(architecture, part, operator_source(part, "vllm"), Precision("fp8", "fp8"))


def rates(own: Evaluator, label: str, batch: int, tokens: int) -> np.ndarray:
    asked = configurations((label,), (batch,), input_tokens=tokens, context_tokens=tokens)
    return np.array(
        [getattr(own, phase)(asked).requests_per_s[0] for phase in ("prefill", "decode", "aggregated")]
    )


@needs_tables
@examples(60, 2, 8)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(LABELS),
    st.sampled_from(FIGURES),
    st.lists(st.sampled_from(FACTORS), min_size=2, max_size=2, unique=True),
    st.integers(1, 512),
    st.integers(1, 30_000),
)
def test_better_figures_never_cost_rate_where_tables_are_used(
    model: str, label: str, figure: str, factors: list[float], batch: int, tokens: int
) -> None:
    worse, better = (evaluator(model, figure, factor) for factor in sorted(factors))
    if layout_problem(worse.architecture, parse_parallelism(label), worse.accelerator):
        return
    assert (rates(better, label, batch, tokens) >= rates(worse, label, batch, tokens) * (1 - 1e-9)).all()


@needs_tables
@examples(40, 2, 6)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(LABELS),
    st.lists(st.sampled_from(CAPS_W), min_size=2, max_size=2, unique=True),
    st.integers(1, 512),
    st.integers(1, 30_000),
)
def test_a_lower_cap_never_makes_a_part_faster(
    model: str, label: str, caps_w: list[float], batch: int, tokens: int
) -> None:
    lower, higher = (evaluator(model, "power_cap_w", cap_w) for cap_w in sorted(caps_w))
    if layout_problem(lower.architecture, parse_parallelism(label), lower.accelerator):
        return
    assert (rates(higher, label, batch, tokens) >= rates(lower, label, batch, tokens) * (1 - 1e-9)).all()


def carried(part: Accelerator, **figures: float) -> Accelerator:
    """Return another part of the same architecture, as the catalogue makes it."""
    other = part.with_figures(**figures)
    return replace(other, carried_figures=other.speed_figures)


def test_another_part_loses_the_same_time_beyond_the_speed_of_light(
    measured_toy: Accelerator,
    write_table: TableWriter,
    gemm_frame: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    write_table("gemm", "vllm", "1.0", "gemm", gemm_frame(NODES))
    weak = carried(measured_toy, bf16_tflops=measured_toy.bf16_tflops / 8)
    data, m = tmp_path / "data", [1, 4096]
    before, _ = gemm(source_of(measured_toy, data), m)
    after, label = gemm(source_of(weak, data), m)
    # One row is all memory, of which the part has as much.
    assert after[0] == pytest.approx(before[0], rel=1e-4)
    flops = 2 * 4096**3
    slower_ms = flops / weak.bf16_tflops / 1e9 - flops / measured_toy.bf16_tflops / 1e9
    assert after[1] == pytest.approx(before[1] + slower_ms, rel=0.02)
    assert label[1] == Provenance.EXTRAPOLATED
    strong = carried(measured_toy, hbm_gb_per_s=2 * measured_toy.hbm_gb_per_s)
    faster, _ = gemm(source_of(strong, data), m)
    assert before[0] / 2 * 0.999 <= faster[0] < before[0]


def test_a_figure_of_ones_own_is_a_ratio_of_what_was_carried_over(
    measured_toy: Accelerator,
    write_table: TableWriter,
    gemm_frame: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    write_table("gemm", "vllm", "1.0", "gemm", gemm_frame(NODES))
    weak = carried(measured_toy, bf16_tflops=measured_toy.bf16_tflops / 8)
    data, m = tmp_path / "data", [4096]
    plain, _ = gemm(source_of(weak, data), m)
    halved, _ = gemm(source_of(weak.with_figures(bf16_tflops=weak.bf16_tflops / 2), data), m)
    assert halved[0] == pytest.approx(2 * plain[0], rel=0.01)
    restored, _ = gemm(source_of(weak.with_figures(bf16_tflops=weak.bf16_tflops), data), m)
    assert restored[0] == plain[0]
