from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, mixture_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import (
    Landscape,
    LatencyTarget,
    RequestShape,
    SearchSpace,
    layout_problem,
    search_layouts,
    service_landscape,
)
from fleetplan.perfmodel.landscape.search_space import decode_batch_grid, default_max_accelerators
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.predict import predict

BF16 = Precision("bf16", "bf16")
REQUEST = RequestShape(2048, 150, 8192)
NO_TARGET = LatencyTarget()


def landscape(target: LatencyTarget = NO_TARGET, space: SearchSpace | None = None) -> Landscape:
    evaluator = Evaluator(dense_model(), accelerator(), WorkSource(), BF16)
    return service_landscape(evaluator, REQUEST, target, space or SearchSpace())


def test_decode_batches_have_the_form_of_the_papers() -> None:
    grid = decode_batch_grid(32)
    assert grid == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32)
    assert {112, 128, 224, 56, 896, 2560, 1280, 4096, 640}.issubset(decode_batch_grid())
    assert max(decode_batch_grid()) == 4096


def test_layouts_are_powers_of_two_that_the_model_allows() -> None:
    found = search_layouts(dense_model(), accelerator(), SearchSpace())
    labels = {layout.label for layout in found}
    assert {"TP1", "TP8", "PP4-TP2", "PP2-TP4DP2-TP8"} <= labels
    # 8 heads cannot be shared out among 16, and there are no experts.
    assert "TP16" not in labels
    assert all(layout.ep == 1 and layout.accelerators <= 16 and layout.pp <= 4 for layout in found)
    assert len(labels) == len(found)
    mixed = {layout.label for layout in search_layouts(mixture_model(), accelerator(), SearchSpace())}
    assert {"TP4DP4-TP4EP4", "TP8-TP2EP4", "DP8-EP8"} <= mixed


def test_pods_are_searched_as_a_whole() -> None:
    pod = accelerator(scale_up_accelerators=72)
    assert default_max_accelerators(pod) == 72
    layouts = search_layouts(mixture_model(), pod, SearchSpace())
    assert max(layout.accelerators for layout in layouts) == 72
    assert {"TP8DP9-TP72", "TP2DP36-TP72"} <= {layout.label for layout in layouts}
    whole = accelerator(scale_up_accelerators=64)
    sizes = {layout.accelerators for layout in search_layouts(mixture_model(), whole, SearchSpace())}
    assert sizes == {1, 2, 4, 8, 16, 32, 64}
    assert default_max_accelerators(accelerator()) == 16
    assert default_max_accelerators(accelerator(scale_out_gb_per_s=None)) == 8


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("TP16", "tp 16 does not divide 8 attention heads"),
        ("DP32-EP32", "ep 32 is more than the 16 experts"),
        ("DP512-TP512", "moe_tp 512 splits an expert of width 256"),
        ("TP4", ""),
    ],
)
def test_layouts_that_cannot_run_say_why(label: str, reason: str) -> None:
    assert layout_problem(mixture_model(), parse_parallelism(label), accelerator()) == reason
    if label.startswith("DP32"):
        assert "model has none" in layout_problem(dense_model(), parse_parallelism(label), accelerator())


def test_replicas_stay_in_the_domain_of_parts_without_a_network() -> None:
    lonely = accelerator(scale_out_gb_per_s=None)
    assert "leave the scale-up domain of 8" in layout_problem(
        dense_model(), parse_parallelism("PP2-TP8"), lonely
    )


def test_every_configuration_is_there_once_with_its_numbers_or_a_reason() -> None:
    table = landscape().table
    assert not table.duplicated(["phase", "config"]).any()
    assert set(table["phase"]) == {"prefill", "decode", "aggregated"}
    usable = table["excluded"] == ""
    assert usable.any()
    assert table.loc[usable, ["requests_per_s", "latency_ms"]].notna().all().all()
    assert (table.loc[usable, "requests_per_s"] > 0).all()
    shares = table.loc[
        usable, ["share_measured", "share_interpolated", "share_extrapolated", "share_roofline"]
    ]
    assert np.allclose(shares.sum(axis=1), 1.0)
    prefill = table[usable & (table["phase"] == "prefill")]
    assert prefill["tpot_ms"].isna().all()
    assert (prefill["ttft_ms"] == prefill["latency_ms"] + prefill["kv_transfer_ms"]).all()
    decode = table[usable & (table["phase"] == "decode")]
    assert decode["ttft_ms"].isna().all()
    assert (decode["kv_transfer_ms"] == 0).all()


def test_kv_transfer_by_hand() -> None:
    table = landscape().table.set_index(["phase", "config"])
    # 8192 tokens of 4 layers, 2 heads, keys and values of 64 in BF16, over 4 links of 50 GB/s.
    kv_bytes = 8192 * 4 * 2 * 2 * 64 * 2
    assert table.loc[("prefill", "PP2-TP2 b1"), "kv_transfer_ms"] == pytest.approx(kv_bytes / (4 * 50e6))


def test_targets_exclude_by_name_and_count() -> None:
    free = landscape().table
    limited = landscape(LatencyTarget(ttft_ms=1.2, tpot_ms=0.5))
    table = limited.table
    assert limited.excluded_counts == {
        reason: count for reason, count in table["excluded"].value_counts().items() if reason
    }
    late = free["ttft_ms"] > 1.2
    slow = free["tpot_ms"] > 0.5
    kept = free["excluded"] == ""
    assert late.any()
    assert slow.any()
    assert (table.loc[kept & late, "excluded"] == "ttft").all()
    assert (table.loc[kept & slow & ~late, "excluded"] == "tpot").all()
    assert (table.loc[kept & ~slow & ~late, "excluded"] == "").all()
    pd.testing.assert_frame_equal(limited.usable, table[table["excluded"] == ""])


def test_memory_excludes_weights_activations_and_cache_apart() -> None:
    def reasons(hbm_gib: float) -> set[str]:
        tight = Evaluator(dense_model(), accelerator(hbm_gib=hbm_gib), WorkSource(), BF16)
        return set(service_landscape(tight, REQUEST, NO_TARGET, SearchSpace()).excluded_counts)

    assert reasons(0.06) == {"memory: weights", "memory: activations"}
    assert reasons(2.0) == {"memory: activations", "memory: kv cache"}
    assert reasons(1000.0) == set()


def test_uneven_pipelines_are_left_out() -> None:
    evaluator = Evaluator(dense_model(layers=5), accelerator(), WorkSource(), BF16)
    table = service_landscape(evaluator, REQUEST, NO_TARGET, SearchSpace()).table
    assert set(table.loc[table["pp"] > 1, "excluded"]) == {"uneven pipeline"}


def test_runtimes_limit_the_phases() -> None:
    apart = landscape(space=SearchSpace(runtimes=("disaggregated",))).table
    assert set(apart["phase"]) == {"prefill", "decode"}
    together = landscape(space=SearchSpace(runtimes=("aggregated",))).table
    assert set(together["phase"]) == {"aggregated"}
    with pytest.raises(ValueError, match="no runtime"):
        landscape(space=SearchSpace(runtimes=()))


def test_data_types_that_the_part_lacks_exclude_every_row() -> None:
    evaluator = build_evaluator(
        "llama3-8b", accelerators()["A100-SXM-80GB"], "vllm", Precision("fp4", "bf16"), Path()
    )
    found = service_landscape(evaluator, REQUEST, NO_TARGET, SearchSpace(max_accelerators=1))
    assert set(found.table["excluded"]) == {"data type"}
    assert found.usable.empty


def test_lengths_of_a_request() -> None:
    assert (REQUEST.prefix_tokens, REQUEST.decode_context_tokens) == (6144, 8192)
    plain = RequestShape(1000, 101)
    assert (plain.prefix_tokens, plain.decode_context_tokens) == (0, 1050)
    with pytest.raises(ValueError, match="at least one"):
        RequestShape(1000, 0)


@pytest.mark.parametrize("hardware", ["H200-SXM", "GPU-A", "MI300X"])
def test_a_landscape_row_equals_the_prediction_of_that_row(hardware: str) -> None:
    precision = Precision("fp8-ffn", "bf16")
    evaluator = build_evaluator("llama3-70b", accelerators()[hardware], "vllm", precision, Path())
    space = SearchSpace(runtimes=("disaggregated",), decode_batches=(1, 56, 128))
    found = service_landscape(evaluator, REQUEST, NO_TARGET, space, "vllm")
    table = found.usable.reset_index(drop=True)
    is_prefill = table["phase"] == "prefill"
    cases = pd.DataFrame(
        {
            "case_id": table.index,
            "model": "llama3-70b",
            "hardware": hardware,
            "weights": "fp8-ffn",
            "mode": table["phase"],
            **{name: table[name] for name in ("pp", "tp", "cp", "dp", "ep", "batch")},
            "input_tokens": np.where(is_prefill, 2048, 8192),
            "prefix_tokens": np.where(is_prefill, 6144, 0),
            "output_tokens": 150,
        }
    )
    predicted = predict(cases, Path())
    assert (predicted["status"] == "ok").all()
    assert predicted["fits"].all()
    for name in ("latency_ms", "requests_per_s", "memory_gib_per_accelerator"):
        np.testing.assert_allclose(predicted[name], table[name], rtol=1e-9)
    np.testing.assert_allclose(predicted["tpot_ms"], table["tpot_ms"], rtol=1e-9)
    assert predicted["source"].tolist() == table["source"].tolist()
    assert predicted["bottleneck"].tolist() == table["bottleneck"].tolist()
