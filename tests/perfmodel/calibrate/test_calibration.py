"""Calibration: what the fit finds, where it holds, what is refused, and that it predicts rows left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.accuracy_rows import packaged_file, published_rows
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.parts import first_parts

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.calibrate import CalibrationFit, calibrate, read_calibration, write_calibration
from fleetplan.perfmodel.calibrate.ratios import fit_ratios
from fleetplan.perfmodel.evaluator import Calibration, CalibrationScope, PhaseFit, ScopeCalibration
from fleetplan.perfmodel.predict import predict

MODEL = "meta-llama/Llama-3.1-8B"
SCOPE = CalibrationScope("MI300X", "vllm", "0.9.1", MODEL, "bf16", "bf16")


def entry(scope: CalibrationScope = SCOPE, prefill: float = 1.2, decode: float = 1.4) -> ScopeCalibration:
    return ScopeCalibration(scope, PhaseFit(prefill, 1.0), PhaseFit(decode, 2.0), 3, 0.3, 0.02, ())


def calibration(*scopes: ScopeCalibration) -> Calibration:
    return Calibration("", "", "", "", "", "", scopes)


def cases(n_rows: int = 12) -> pd.DataFrame:
    """Closed loops of many mixes of both phases, and prompts alone."""
    number = np.arange(n_rows)
    closed = number % 3 > 0
    return pd.DataFrame(
        {
            "case_id": number,
            "model": MODEL,
            "hardware": "MI300X",
            "backend": "vllm",
            "weights": "bf16",
            "mode": np.where(closed, "closed_loop", "static"),
            "tp": 1,
            "input_tokens": 500 + 700 * (number % 5),
            "output_tokens": 64 << (number % 4),
            "concurrency": 4 << (number % 4),
            "batch": 1 + number % 4,
        }
    )


def measurements(frame: pd.DataFrame, truth: Calibration | None) -> pd.DataFrame:
    """Return measurements as a benchmark would report them if `truth` held."""
    found = predict(frame, calibration=truth)
    own = frame.rename(columns={"backend": "framework"}).drop(columns="case_id")
    return own.assign(framework_version="0.9.1", ttft_ms=found["ttft_ms"], tpot_ms=found["tpot_ms"])


def error(predicted: pd.DataFrame, measured: pd.DataFrame) -> float:
    return float((predicted["tpot_ms"] / measured["tpot_ms"] - 1).abs().median())


def test_without_rows_nothing_changes() -> None:
    found = fit_ratios(np.array([]), np.array([]))
    assert (found.ratios.prefill, found.ratios.decode) == (1.0, 1.0)


def test_ratios_are_shrunk_by_the_number_of_rows() -> None:
    alone, three = (fit_ratios(np.full(n, 0.08), np.zeros(n)).ratios for n in (1, 3))
    assert np.log(alone.decode) == pytest.approx(0.04)
    assert np.log(three.decode) == pytest.approx(0.06)
    # No figure says anything about prompts beyond what decode says.
    assert three.prefill == three.decode


def test_phases_are_told_apart_by_their_shares() -> None:
    share = np.linspace(0, 1, 200)
    found = fit_ratios(0.3 * share - 0.1 * (1 - share), share).ratios
    assert found.decode == pytest.approx(np.exp(-0.1), rel=0.02)
    assert found.prefill == pytest.approx(np.exp(0.3), rel=0.02)


def test_one_odd_row_does_not_decide() -> None:
    clean = fit_ratios(np.full(6, 0.05), np.zeros(6)).ratios.decode
    odd = fit_ratios(np.array([0.05] * 6 + [1.2]), np.zeros(7)).ratios.decode
    assert odd == pytest.approx(clean, rel=0.03)


@examples(100, 10, 25)
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_ratios_lie_within_what_was_measured(rows: list[tuple[float, float]]) -> None:
    log_ratio, share = (np.array(values) for values in zip(*rows, strict=True))
    found = fit_ratios(log_ratio, share).ratios
    bound = np.abs(log_ratio).max() + 1e-9
    assert abs(np.log(found.decode)) <= bound
    assert np.isfinite(found.prefill)
    assert found.prefill > 0


def test_a_calibration_multiplies_both_phases() -> None:
    frame = cases().query("mode == 'static'")
    plain, scaled = predict(frame), predict(frame, calibration=calibration(entry()))
    assert (scaled["ttft_ms"] / plain["ttft_ms"]).to_numpy() == pytest.approx(1.2)
    assert (scaled["tpot_ms"] / plain["tpot_ms"]).to_numpy() == pytest.approx(1.4)


@pytest.mark.parametrize(
    "other",
    [
        {"hardware": "MI325X"},
        {"backend": "sglang"},
        {"model": "meta-llama/Llama-3.1-70B", "tp": 2},
        {"weights": "fp8"},
        {"kv": "fp8"},
    ],
)
def test_it_holds_for_its_scope_alone(other: dict[str, object]) -> None:
    frame = cases().assign(**other)
    pd.testing.assert_frame_equal(predict(frame), predict(frame, calibration=calibration(entry())))


def test_an_alias_of_the_model_is_the_model() -> None:
    frame = cases().assign(model="llama3.1-8b")
    same = predict(cases(), calibration=calibration(entry()))
    pd.testing.assert_frame_equal(predict(frame, calibration=calibration(entry())), same)


def test_the_newest_version_holds_where_none_is_asked_for() -> None:
    versions = ("0.9.1", "0.10.0", "0.8")
    found = calibration(
        *(entry(CalibrationScope("MI300X", "vllm", each, MODEL, "bf16", "bf16")) for each in versions)
    )
    newest = found.find("mi300x", "vllm", MODEL, "bf16", "bf16")
    asked = found.find("MI300X", "vllm", MODEL, "bf16", "bf16", "0.8")
    assert newest is not None
    assert newest.scope.version == "0.10.0"
    assert asked is not None
    assert asked.scope.version == "0.8"
    assert found.find("MI300X", "vllm", MODEL, "bf16", "bf16", "7") is None


def test_the_fit_finds_what_slowed_both_phases() -> None:
    measured = measurements(cases(48), calibration(entry(prefill=1.25, decode=1.1)))
    fit = calibrate(measured)
    (found,) = fit.scopes
    assert found.scope == SCOPE
    assert found.prefill.ratio == pytest.approx(1.25, rel=0.03)
    assert found.decode.ratio == pytest.approx(1.1, rel=0.03)
    assert found.error_before_ratio > 0.08
    assert found.error_after_ratio < 0.02
    assert (fit.n_used, fit.refused) == (48, ())
    # Two figures of the static rows, and TPOT alone where requests wait for each other.
    assert len(found.residuals) == 16 * 2 + 32


def test_versions_of_a_framework_are_fitted_apart() -> None:
    old = measurements(cases(9), calibration(entry(decode=1.2, prefill=1.2)))
    new = measurements(cases(9), None).assign(framework_version="0.10")
    fit = calibrate(pd.concat([old, new], ignore_index=True))
    by_version = {each.scope.version: each.decode.ratio for each in fit.scopes}
    assert by_version["0.10"] == pytest.approx(1.0)
    assert by_version["0.9.1"] > 1.12


def test_each_row_that_is_not_used_has_its_reason() -> None:
    good = measurements(cases(9), None)
    broken = {
        "hardware": "MI300Z",
        "model": "meta-llama/Llama-9",
        "weights": "fp99",
        "tpot_ms": 4e4,
        "tp": 3,
    }
    rows = [good.iloc[[1]].assign(**{column: value}) for column, value in broken.items()]
    silent = good.iloc[[1]].assign(tpot_ms=np.nan)
    fit = calibrate(pd.concat([good, *rows, silent], ignore_index=True).astype(object), path="mine.csv")
    assert (fit.n_rows, fit.n_used) == (15, 9)
    assert sorted(issue.line for issue in fit.refused) == [11, 12, 13, 14, 15, 16]
    words = {issue.line: str(issue) for issue in fit.refused}
    assert "MI300Z" in words[11]
    assert "no such model" in words[12]
    assert "fp99" in words[13]
    assert "another unit" in words[14]
    assert "needs tpot_ms" in words[16]


def test_missing_columns_are_the_users_mistake() -> None:
    good = measurements(cases(3), None)
    with pytest.raises(InputError, match="is it the column 'version'"):
        calibrate(good.rename(columns={"framework_version": "version"}))
    with pytest.raises(InputError, match="ttft_ms or tpot_ms"):
        calibrate(good.drop(columns=["ttft_ms", "tpot_ms"]))
    with pytest.raises(InputError, match="not in the catalogue"):
        calibrate(good.assign(hardware="nothing"))


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "bench.csv").write_text("anything", encoding="utf-8")
    fit: CalibrationFit = calibrate(measurements(cases(9), calibration(entry())))
    out = tmp_path / "new" / "calibration.yaml"
    write_calibration(fit, tmp_path / "bench.csv", out)
    found = read_calibration(out)
    assert [each.scope for each in found.scopes] == [SCOPE]
    assert found.scopes[0].ratios == fit.scopes[0].ratios
    assert len(found.scopes[0].residuals) == len(fit.scopes[0].residuals)
    assert (found.measurements, len(found.measurements_sha256), len(found.sha256)) == ("bench.csv", 64, 64)


@pytest.mark.parametrize("text", ["version: 2", "{", "[]", "version: 1\nscopes: 3"])
def test_a_broken_file_is_the_users_mistake(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calibration.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"is no|not valid YAML"):
        read_calibration(path)


@pytest.mark.parametrize(
    ("model", "draws", "least"),
    first_parts((("meta-llama/Llama-3.1-70B", 1, 350), (None, 12, 800)), 0, 1),
    ids=("one model", "all"),
)
def test_three_own_rows_bring_published_dense_rows_within_five_and_a_half_percent(
    model: str | None, draws: int, least: int
) -> None:
    """Three random rows of each scope of the published rows are one's own; all others are left out."""
    path = packaged_file()
    if path is None:
        pytest.skip("aiconfigurator-core is not installed")
    rows = published_rows(path)
    dense = (rows["model_class"] == "dense") & (rows["quality"] == "A") & (rows["mode"] == "closed_loop")
    scope = ["hardware", "framework", "version", "model", "weights"]
    rows = rows[dense & rows["tpot_ms"].notna() & ((rows["model"] == model) | (model is None))]
    rows = rows[rows.groupby(scope)["tpot_ms"].transform("size") >= 6].reset_index(drop=True)
    table = rows.rename(columns={"version": "framework_version", "load": "concurrency"})
    table = table.drop(columns=["ttft_ms", "output_tokens_per_s_per_accelerator"])
    table["moe_tp"] = table["moe_tp"].replace(0, np.nan)
    frame = table.rename(columns={"framework": "backend", "row_id": "case_id"})
    plain, truth = predict(frame), table["tpot_ms"].to_numpy()
    usable = (plain["status"] == "ok").to_numpy()
    before, after = np.abs(plain["tpot_ms"].to_numpy() / truth - 1)[usable], []
    scope = [name if name != "version" else "framework_version" for name in scope]
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(table))
        own = table.iloc[order].groupby(scope).head(3)
        fit = calibrate(own.reset_index(drop=True))
        left_out = usable & ~table.index.isin(own.index)
        for version in table["framework_version"].unique():
            rows_of_version = left_out & (table["framework_version"] == version).to_numpy()
            of_version = calibration(*(each for each in fit.scopes if each.scope.version == version))
            found = predict(frame[rows_of_version], calibration=of_version)
            after += np.abs(found["tpot_ms"].to_numpy() / truth[rows_of_version] - 1).tolist()
    assert len(after) > least * draws
    assert np.median(after) <= 0.055
    assert np.median(after) < 0.95 * np.median(before)
