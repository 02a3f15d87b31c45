"""The paper's figures regenerated, and what the paper says about them."""

import numpy as np
import pytest
from benchmarks import paper_study
from benchmarks.paper_cases import catalogue
from benchmarks.paper_figures import (
    figure_12,
    figure_13,
    figure_15,
    four_experts,
    large_dense,
    table_8,
    with_experts,
)

from fleetplan.perfmodel.landscape import RequestShape


def test_table_8_has_the_papers_rates_and_its_order() -> None:
    rows = table_8(catalogue())
    rates = {row.name: row for row in rows if row.name.endswith("requests/s")}
    assert all(abs(row.error) <= 0.06 for row in rates.values() if row.error is not None)
    worst = min(rates.values(), key=lambda row: row.ours)
    assert worst.name == "prefill GPU-A, decode GPU-A: requests/s"


def test_figure_13_is_in_the_papers_order() -> None:
    rows = figure_13(catalogue())
    assert np.argsort([row.ours for row in rows]).tolist() == np.argsort([row.paper for row in rows]).tolist()


def test_mixtures_are_as_large_as_their_dense_model() -> None:
    dense = large_dense()
    assert dense.weight_count().total == pytest.approx(1.8e12, rel=0.02)
    mixture = with_experts(dense, experts=64, top_k=8)
    assert mixture.weight_count().total == pytest.approx(dense.weight_count().total, rel=0.001)


def test_dense_models_stop_at_the_host_and_mixtures_spread() -> None:
    rates = {row.name: row.ours for row in figure_15(catalogue())}

    def rate(what: str, label: str, part: str) -> float:
        return rates[f"{what} {label} on {part}, requests/s"]

    # Tensor parallelism beyond a host gains nothing; in the pod it costs far less.
    assert rate("15a: dense decode", "TP16", "NextGen") < rate("15a: dense decode", "TP8", "NextGen")
    assert rate("15a: dense decode", "TP64", "NextGen-Pod") > 2 * rate("15a: dense decode", "TP64", "NextGen")
    # Experts spread over eight hosts keep most of their rate where the dense model keeps a tenth.
    kept = rate("15b: mixture decode", "TP8DP8-TP1EP64", "NextGen") / rate(
        "15b: mixture decode", "TP8", "NextGen"
    )
    dense = rate("15a: dense decode", "TP64", "NextGen") / rate("15a: dense decode", "TP8", "NextGen")
    assert kept > 0.7
    assert dense < 0.2
    best = max(rates, key=lambda name: rates[name] if name.startswith("15b: mixture decode") else 0.0)
    assert best.endswith("on NextGen-Pod, requests/s")


def test_figure_12_dense_falls_over_two_hosts() -> None:
    rates = {row.name: row for row in figure_12(catalogue())}
    for name in ("12b: dense decode TP8, requests/s", "12b: dense decode TP16 over TP8"):
        error = rates[name].error
        assert error is not None
        assert abs(error) < 0.1


def test_the_mixture_of_figure_12_has_both_printed_sizes() -> None:
    mixture = four_experts()
    (group,) = mixture.groups
    experts = mixture.group_weights(group).routed_experts * group.count
    assert mixture.total_parameters == pytest.approx(405e9, rel=0.005)
    assert mixture.total_parameters - experts * 3 / 4 == pytest.approx(125e9, rel=0.005)


def test_disaggregation_pays_for_prompts_large_models_and_tight_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traffic = (RequestShape(4000, 200), RequestShape(500, 2000))
    monkeypatch.setattr(paper_study, "TRAFFIC", traffic)
    monkeypatch.setattr(paper_study, "MODELS", ("llama3-8b", "llama3-70b"))
    monkeypatch.setattr(paper_study, "STUDY_HARDWARE", "GPU-B")
    paper_study.option.cache_clear()
    rows = {(row.model, row.limits, row.request): row.gain for row in paper_study.study()}
    paper_study.option.cache_clear()
    tight, *_, none = paper_study.LIMITS
    assert rows["llama3-70b", tight, traffic[0]] > 1.3
    assert rows["llama3-70b", tight, traffic[0]] > rows["llama3-70b", tight, traffic[1]]
    assert rows["llama3-70b", tight, traffic[0]] > rows["llama3-8b", tight, traffic[0]]
    assert rows["llama3-70b", none, traffic[0]] < 1.2
