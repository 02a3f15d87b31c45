"""Experts behind a dispatch: which steps have them, their tables, and what answers for other models."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import configurations
from tests.perfmodel.steps.test_decoder_step import operators

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator, ExpertRouting, Precision
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture
from fleetplan.perfmodel.operators import IntArray, Operator, OperatorKind, Provenance
from fleetplan.perfmodel.optables import OperatorSource, TableLibrary, operator_source
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.optables.measured.tables import TableFile, read_table
from fleetplan.perfmodel.steps import StepShape, decode_shape, part_dtypes, prefill_shape, step_operators
from fleetplan.perfmodel.steps.merged_experts import merged_experts
from fleetplan.perfmodel.techniques.expert_routing import expert_spread

from .conftest import SYSTEM, TableWriter

KIND = OperatorKind.DISPATCHED_MOE
V3 = load_architecture("deepseek-ai/DeepSeek-V3", Path())
FP8 = Precision("fp8", "bf16")


def measured(tokens: int, ms: float, **changes: object) -> dict[str, object]:
    shape = {
        "kernel_source": "deepepmoe",
        "moe_dtype": "fp8_block",
        "num_tokens": tokens,
        "hidden_size": 7168,
        "inter_size": 2048,
        "topk": 8,
        "num_experts": 256,
        "num_slots": 256,
        "moe_tp_size": 1,
        "moe_ep_size": 8,
        "distribution": "power_law_1.01",
        "latency": ms,
    }
    return shape | changes


def asked(**changes: int) -> dict[str, IntArray]:
    dims = {
        "tokens": 128,
        "hidden": 7168,
        "intermediate": 2048,
        "top_k": 8,
        "experts": 256,
        "moe_tp": 1,
        "moe_ep": 8,
        "low_latency": 1,
    }
    return {name: np.array([value]) for name, value in {**dims, **changes}.items()}


def test_a_step_whose_tokens_are_dispatched_has_kernels_of_their_own() -> None:
    decode = decode_shape(configurations(("TP8", "DP8-EP8"), (16, 2)))
    found = [each for each in step(V3, decode) if each.name == "routed_experts"]
    ordinary, behind = found
    assert (ordinary.kind, ordinary.count.tolist()) == (OperatorKind.MOE, [58.0, 0.0])
    assert (behind.kind, behind.count.tolist()) == (KIND, [0.0, 58.0])
    assert {name: int(values[1]) for name, values in behind.dims.items()} == {
        name: int(values[0]) for name, values in asked(tokens=16).items()
    }
    prompts = prefill_shape(configurations(("DP8-EP8",), (1,)))
    (behind,) = [each for each in step(V3, prompts) if each.name == "routed_experts"]
    assert behind.dims["low_latency"].tolist() == [0]
    # Experts that are split, or that an accelerator's own rank holds all tokens for, get no dispatch.
    for label in ("DP8-TP2EP4", "TP8-EP8"):
        assert operators(V3, decode_shape(configurations((label,), (2,))), FP8)["routed_experts"].kind is (
            OperatorKind.MOE
        )


def step(model: ModelArchitecture, shape: StepShape) -> list[Operator]:
    return list(step_operators(model, part_dtypes(model, FP8), shape))


def test_dispatched_tokens_leave_the_shared_experts_behind() -> None:
    merged = merged_experts(V3, part_dtypes(V3, FP8))
    decode = decode_shape(configurations(("TP8", "DP8-EP8"), (16, 2)))
    found = step(merged, decode)
    ordinary, behind = [each for each in found if each.name == "routed_experts"]
    assert (ordinary.dims["experts"].tolist()[0], ordinary.dims["top_k"].tolist()[0]) == (257, 9)
    assert (behind.dims["experts"].tolist()[1], behind.dims["top_k"].tolist()[1]) == (256, 8)
    (shared,) = [each for each in found if each.name == "shared_experts_down"]
    assert shared.count.tolist() == [0.0, 58.0]
    assert (shared.dims["m"].tolist()[1], shared.dims["k"].tolist()[1]) == (2, 2048)
    (dispatch,) = [each for each in found if each.name == "expert_dispatch"]
    assert (dispatch.dims["experts"].tolist()[1], dispatch.dims["top_k"].tolist()[1]) == (256, 8)


@pytest.mark.parametrize(("weights", "sent"), [("bf16", "bf16"), ("fp8", "fp8"), ("fp4", "fp4")])
def test_tokens_travel_as_experts_compute(weights: str, sent: str) -> None:
    decode = decode_shape(configurations(("DP8-EP8",), (16,)))
    found = {
        each.name: each for each in step_operators(V3, part_dtypes(V3, Precision(weights, "bf16")), decode)
    }
    assert (found["expert_dispatch"].dtype, found["expert_combine"].dtype) == (sent, "bf16")


def test_tables_tell_steps_with_prompts_from_those_without(write_table: TableWriter) -> None:
    for family, ms in (("wideep_context_moe", 3.0), ("wideep_generation_moe", 1.0)):
        path = write_table("moe", "sglang", "1.0", family, pd.DataFrame([measured(128, ms)]))
        (rows,) = read_table(TableFile(path, family, "sglang", "1.0", "test"))
        assert (rows.kind, rows.dtype, rows.latency_ms.tolist()) == (KIND, "fp8_block", [ms])
        assert rows.dims["low_latency"].tolist() == [int(ms == 1.0)]


def test_kernels_that_serve_both_are_read_twice_and_balanced_ones_with_their_redundant_experts(
    write_table: TableWriter,
) -> None:
    balanced = {"distribution": "power_law_1.01_eplb"}
    frame = pd.DataFrame(
        [
            measured(128, 2.0),
            measured(128, 1.5, **balanced),
            measured(128, 1.0, num_slots=288, **balanced),
        ]
    )
    path = write_table("moe", "trtllm", "1.0", "wideep_moe", frame)
    tables = read_table(TableFile(path, "wideep_moe", "trtllm", "1.0", "test"))
    assert [(rows.kind, rows.dims["low_latency"].tolist()) for rows in tables] == [
        (KIND, [0, 1]),
        (OperatorKind.EVEN_DISPATCHED_MOE, [0, 1]),
    ]
    assert [rows.latency_ms.tolist() for rows in tables] == [[2.0] * 2, [1.0] * 2]
    assert [rows.dims["experts"].tolist() for rows in tables] == [[256] * 2, [288] * 2]
    # With a load balancer the busiest rank had 1/0.7 of the mean: so many tokens of an even spread.
    assert [rows.dims["tokens"].tolist() for rows in tables] == [[128] * 2, [183] * 2]


def test_a_load_balancer_counts_once(
    measured_toy: Accelerator, write_table: TableWriter, tmp_path: Path
) -> None:
    # A step that is balanced asks for the busiest rank's tokens; the table was measured with that rank busy.
    balanced = {"distribution": "power_law_1.01_eplb", "moe_ep_size": 16}
    wide = [measured(tokens, ms, **balanced) for tokens, ms in ((256, 1.0), (512, 1.5), (1024, 3.0))]
    write_table("moe", "trtllm", "1.0", "wideep_moe", pd.DataFrame(wide))
    source = OperatorSource(
        measured_toy, "trtllm", TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
    )
    shape = decode_shape(configurations(("DP16-EP16",), (32,)))
    spread = expert_spread(
        ExpertRouting(balance="eplb", redundant_experts=0), 256, shape.layouts, measured_toy
    )
    found = step_operators(V3, part_dtypes(V3, FP8), shape, spread)
    (experts,) = [each for each in found if each.name == "routed_experts"]
    assert experts.kind is OperatorKind.EVEN_DISPATCHED_MOE
    # Tokens are whole, so one more than measured may be asked for.
    times = source.times(experts.kind, "fp8_block", experts.dims)
    assert times.latency_ms.tolist() == pytest.approx([1.5], rel=2e-3)


@pytest.fixture
def source(measured_toy: Accelerator, write_table: TableWriter, tmp_path: Path) -> OperatorSource:
    ordinary = pd.DataFrame(
        [
            measured(tokens, ms, hidden_size=hidden)
            for tokens, ms in ((64, 6.0), (256, 8.0))
            for hidden in (7168, 4096)
        ]
    )
    write_table("moe", "sglang", "1.0", "moe", ordinary)
    write_table("moe", "vllm", "1.0", "moe", ordinary)
    wide = pd.DataFrame([measured(64, 1.0), measured(256, 2.0)])
    write_table("moe", "sglang", "1.0", "wideep_generation_moe", wide)
    library = TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache")
    return OperatorSource(measured_toy, "sglang", library)


def test_a_measured_model_takes_the_kernels_behind_the_dispatch(source: OperatorSource) -> None:
    found = source.times(KIND, "fp8_block", asked(tokens=64))
    assert (found.latency_ms.tolist(), found.provenance.tolist()) == ([1.0], [Provenance.MEASURED])
    between = source.times(KIND, "fp8_block", asked(tokens=128))
    assert 1.0 < between.latency_ms[0] < 2.0
    assert between.provenance.tolist() == [Provenance.INTERPOLATED]


def test_others_take_ordinary_kernels(source: OperatorSource) -> None:
    both = {
        name: np.concatenate([asked(tokens=64)[name], asked(tokens=64, hidden=4096)[name]])
        for name in asked()
    }
    found = source.times(KIND, "fp8_block", both)
    assert found.latency_ms.tolist() == [1.0, 6.0]
    # Kernels for steps without prompts say nothing about those with.
    prompts = source.times(KIND, "fp8_block", asked(tokens=64, low_latency=0))
    assert prompts.latency_ms.tolist() == [6.0]


def test_an_accelerator_knows_the_experts_it_holds_and_the_tokens_that_reach_it(
    source: OperatorSource,
) -> None:
    # 288 experts on 9 accelerators: 32 on each, and 8 of 9 tokens of a group of 8 with as many.
    more = source.times(KIND, "fp8_block", asked(tokens=72, experts=288, moe_ep=9))
    assert (more.latency_ms.tolist(), more.provenance.tolist()) == ([1.0], [Provenance.INTERPOLATED])


def test_kernels_behind_a_dispatch_are_borrowed_over_several_hosts_alone(source: OperatorSource) -> None:
    vllm = OperatorSource(source.accelerator, "vllm", source._library)
    assert vllm.times(KIND, "fp8_block", asked(tokens=64)).latency_ms.tolist() == [6.0]
    # Twice the groups with twice the tokens: half the experts on each, with twice the tokens for each.
    wide = asked(tokens=128, moe_ep=16)
    lent = vllm.times(KIND, "fp8_block", wide)
    assert lent.latency_ms == pytest.approx(source.times(KIND, "fp8_block", wide).latency_ms)
    assert lent.latency_ms[0] < 2.0
    # A model that nobody measured behind a dispatch takes the utilisation of one that was.
    other = source.times(KIND, "fp8_block", asked(tokens=128, moe_ep=16, hidden=4096))
    assert other.provenance.tolist() == [Provenance.EXTRAPOLATED]
    assert other.latency_ms[0] < lent.latency_ms[0]


def test_evenly_spread_tokens_have_tables_of_their_own_and_never_take_longer(
    write_table: TableWriter, measured_toy: Accelerator, tmp_path: Path
) -> None:
    even = {"distribution": "uniform"}
    spread = [
        measured(64, 1.0),
        measured(256, 2.0),
        measured(64, 0.8, **even),
        measured(256, 1.2, **even),
    ]
    write_table("moe", "sglang", "1.0", "wideep_generation_moe", pd.DataFrame(spread))
    balanced = {"distribution": "balanced"}
    plain = [
        measured(64, 1.0),
        measured(256, 4.0),
        measured(64, 1.5, **balanced),
        measured(256, 3.0, **balanced),
    ]
    write_table("moe", "sglang", "1.0", "moe", pd.DataFrame(plain))
    toy = OperatorSource(measured_toy, "sglang", TableLibrary(SYSTEM, tmp_path / "data", tmp_path / "cache"))
    both = {name: np.repeat(values, 2) for name, values in asked().items()} | {"tokens": np.array([64, 256])}
    dispatched = toy.times(OperatorKind.EVEN_DISPATCHED_MOE, "fp8_block", both)
    assert dispatched.latency_ms.tolist() == [0.8, 1.2]
    assert toy.times(KIND, "fp8_block", both).latency_ms.tolist() == [1.0, 2.0]
    ordinary = {name: values for name, values in both.items() if name != "low_latency"}
    # Few tokens, each to other experts, read more weights than skewed ones do.
    assert toy.times(OperatorKind.EVEN_MOE, "fp8_block", ordinary).latency_ms.tolist() == [1.0, 3.0]


def test_experts_of_another_framework_answer_where_nothing_is_measured(source: OperatorSource) -> None:
    bare = OperatorSource(replace(source.accelerator, measured_system=None), "sglang", None)
    roofline = bare.times(KIND, "fp8_block", asked(tokens=64))
    assert roofline.provenance.tolist() == [Provenance.ROOFLINE]
    ordinary = {name: values for name, values in asked(tokens=64).items() if name != "low_latency"}
    assert roofline.latency_ms == pytest.approx(
        bare.times(OperatorKind.MOE, "fp8_block", ordinary).latency_ms
    )


def test_the_packaged_tables_are_faster_than_ordinary_kernels_for_large_batches() -> None:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    h200 = operator_source(accelerators()["H200-SXM"], "sglang")
    wide = h200.times(KIND, "fp8_block", asked(tokens=1024))
    ordinary = {name: values for name, values in asked(tokens=1024).items() if name != "low_latency"}
    plain = h200.times(OperatorKind.MOE, "fp8_block", ordinary)
    assert wide.provenance.tolist() == [Provenance.MEASURED]
    assert 0.5 < (wide.latency_ms / plain.latency_ms)[0] < 0.8
