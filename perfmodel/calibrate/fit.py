"""Fit calibrations to a table of benchmark results; each row is used, or rejected with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.fleet.catalog import UnknownModelError
from fleetplan.fleet.catalog.hardware_names import part_called
from fleetplan.fleet.catalog.models import resolve
from fleetplan.fleet.document.headers import header_issues
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.tables import numbers_of
from fleetplan.perfmodel.calibrate.ratios import fit_ratios
from fleetplan.perfmodel.evaluator import Calibration, CalibrationScope, PhaseFit, Residual, ScopeCalibration
from fleetplan.perfmodel.evaluator.phase_ratios import PhaseRatios
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.predict import Cases, parse_cases, predict

FIGURES: Final = ("ttft_ms", "tpot_ms")

FARTHEST_RATIO: Final = 4.0
"""A measurement that is off by more than this factor is of another configuration or in another unit, and says
nothing about ours. Chosen; 16 of 1,729 published rows of aiconfigurator-core 0.12.0 (silicon_sample.csv)
are."""

_REQUIRED: Final = ("model", "hardware", "framework", "framework_version", "weights", "tp", "input_tokens")
_TRIAL: Final = PhaseRatios(1.1, 1.0)
"""Prompts a tenth slower: the change of a figure shows which share of it is prefill."""
_FIRST_LINE: Final = 2
_CLOSED_LOOP: Final = "closed_loop"


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """Calibration from a file of measurements.

    Attributes
    ----------
    scopes : tuple[ScopeCalibration, ...]
        Calibrations, one a scope.
    n_rows, n_used : int
        Rows of the file, and those that decided a calibration.
    refused : tuple[Issue, ...]
        Why the others did not.
    """

    scopes: tuple[ScopeCalibration, ...]
    n_rows: int
    n_used: int
    refused: tuple[Issue, ...]


def calibrate(frame: pd.DataFrame, folder: Path = Path(), path: str = "measurements") -> CalibrationFit:
    """Fit one ratio a phase for every scope of a table of measurements.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns of `predict` with `framework`, `framework_version`, and `ttft_ms` or `tpot_ms` or both; a row
        with `concurrency` is a closed loop and one with `batch` a static batch where `mode` does not say.
    folder : Path
        Folder of relative paths of model configs.
    path : str
        Name of the table in messages.

    Raises
    ------
    InputError
        Columns are missing, or no row can be used.
    """
    cases_frame = _cases_frame(frame, path)
    cases = parse_cases(cases_frame, path)
    measured = {name: _figure(frame, name) for name in FIGURES}
    plain = predict(cases_frame, folder, path)
    predicted = _columns(plain)
    refusals = _Refusals(path, len(frame))
    refusals.add(plain["status"] != "ok", "", [str(reason) for reason in plain["reason"]])
    # A configuration that does not fit cannot have run, so another figure of the row is wrong.
    refusals.add(~plain["fits"], "", ["does not fit in memory as described"] * len(frame))
    usable = {
        "ttft_ms": ~refusals.rows & (measured["ttft_ms"] > 0) & _waits_for_nobody(cases),
        "tpot_ms": ~refusals.rows & (measured["tpot_ms"] > 0),
    }
    for name in FIGURES:
        with_figure = np.where(usable[name], measured[name], 1.0) / np.where(
            usable[name], predicted[name], 1.0
        )
        apart = np.abs(np.log(with_figure))
        far = apart > np.log(FARTHEST_RATIO)
        refusals.add(
            far, name, [_apart(name, *pair) for pair in zip(measured[name], predicted[name], strict=True)]
        )
    usable = {name: rows & ~refusals.rows for name, rows in usable.items()}
    nothing = ~(usable["ttft_ms"] | usable["tpot_ms"])
    refusals.add(
        nothing, "", ["needs tpot_ms above 0, or ttft_ms of a request that does not queue"] * len(frame)
    )
    if refusals.rows.all():
        raise InputError(refusals.issues)
    compared = _Compared(cases_frame, folder, path, measured, usable, predicted)
    versions = _version(frame)
    scopes = _scopes(cases, versions)
    fitted: list[ScopeCalibration] = []
    for version in sorted({versions[row] for row in np.flatnonzero(~refusals.rows)}):
        rows = np.flatnonzero(~refusals.rows & (versions == version))
        fitted += _fit(compared, rows, [scopes[row] for row in rows])
    return CalibrationFit(tuple(fitted), len(frame), int((~refusals.rows).sum()), tuple(refusals.issues))


class _Refusals:
    """Rows that cannot be used, each with the first reason."""

    def __init__(self, path: str, n_rows: int) -> None:
        self._path = path
        self.rows: NDArray[np.bool_] = np.zeros(n_rows, dtype=np.bool_)
        self.issues: list[Issue] = []

    def add(self, rows: pd.Series[bool] | NDArray[np.bool_], column: str, messages: list[str]) -> None:
        new = np.asarray(rows, dtype=np.bool_) & ~self.rows
        for row in np.flatnonzero(new).tolist():
            self.issues.append(Issue(self._path, row + _FIRST_LINE, 1, column, messages[row]))
        self.rows |= new


@dataclass(frozen=True, slots=True)
class _Compared:
    """Measurements beside predictions without calibration; arrays of shape (n_rows,)."""

    cases: pd.DataFrame
    folder: Path
    path: str
    measured: dict[str, FloatArray]
    usable: dict[str, NDArray[np.bool_]]
    plain: dict[str, FloatArray]

    def predicted(self, rows: IntArray, ratios: dict[CalibrationScope, PhaseRatios]) -> dict[str, FloatArray]:
        """Predict rows with a calibration; other rows stay NaN."""
        trial = tuple(_entry(scope, ratio) for scope, ratio in ratios.items())
        calibration = Calibration("", "", "", "", "", "", trial)
        found = _columns(predict(self.cases.iloc[rows], self.folder, self.path, calibration))
        spread = {name: np.full(len(self.cases), np.nan) for name in FIGURES}
        for name in FIGURES:
            spread[name][rows] = found[name]
        return spread

    def figures(self, rows: IntArray) -> list[tuple[int, str]]:
        """Return the usable figures of rows."""
        return [(int(row), name) for row in rows for name in FIGURES if self.usable[name][row]]

    def error_ratios(self, figures: list[tuple[int, str]], predicted: dict[str, FloatArray]) -> FloatArray:
        """Return predicted over measured, minus 1, for each figure."""
        ratios = [predicted[name][row] / self.measured[name][row] - 1.0 for row, name in figures]
        return np.array(ratios)


def _fit(compared: _Compared, rows: IntArray, scopes: list[CalibrationScope]) -> list[ScopeCalibration]:
    """Fit the scopes of one framework version; `scopes` names that of each row."""
    members: dict[CalibrationScope, list[int]] = {}
    for row, scope in zip(rows.tolist(), scopes, strict=True):
        members.setdefault(scope, []).append(row)
    slower = compared.predicted(rows, dict.fromkeys(members, _TRIAL))
    fitted = {}
    for scope, own in members.items():
        figures = compared.figures(np.array(own))
        before = [compared.plain[name][row] for row, name in figures]
        after = [slower[name][row] for row, name in figures]
        truth = np.array([compared.measured[name][row] for row, name in figures])
        share = np.log(np.array(after) / before) / np.log(_TRIAL.prefill)
        # A batch that grows with slower prompts can move TPOT the other way.
        fitted[scope] = fit_ratios(np.log(truth / before), np.clip(share, 0.0, 1.0))
    final = compared.predicted(rows, {scope: each.ratios for scope, each in fitted.items()})
    found = []
    for scope, own in members.items():
        figures = compared.figures(np.array(own))
        residuals = tuple(
            Residual(row + _FIRST_LINE, name, float(compared.measured[name][row]), float(final[name][row]))
            for row, name in figures
        )
        each = fitted[scope]
        found.append(
            ScopeCalibration(
                scope,
                PhaseFit(each.ratios.prefill, each.prefill_weight),
                PhaseFit(each.ratios.decode, each.decode_weight),
                len(own),
                float(np.median(np.abs(compared.error_ratios(figures, compared.plain)))),
                float(np.median(np.abs(compared.error_ratios(figures, final)))),
                residuals,
            )
        )
    return found


def _columns(frame: pd.DataFrame) -> dict[str, FloatArray]:
    return {name: frame[name].to_numpy(dtype=np.float64) for name in FIGURES}


def _entry(scope: CalibrationScope, ratios: PhaseRatios) -> ScopeCalibration:
    return ScopeCalibration(
        scope, PhaseFit(ratios.prefill, 0.0), PhaseFit(ratios.decode, 0.0), 0, 0.0, 0.0, ()
    )


def _cases_frame(frame: pd.DataFrame, path: str) -> pd.DataFrame:
    """Return the table that `predict` reads."""
    issues = header_issues(path, [str(name) for name in frame.columns], _REQUIRED)
    if len(frame.columns) > 1 and not set(FIGURES) & set(frame.columns):
        issues.append(Issue(path, 1, 1, "", f"needs a column of {' or '.join(FIGURES)}"))
    if issues:
        raise InputError(issues)
    cases = frame.drop(columns=[name for name in (*FIGURES, "framework_version") if name in frame.columns])
    cases = cases.rename(columns={"framework": "backend"}).reset_index(drop=True)
    loaded = (
        frame["concurrency"].notna() & (frame["concurrency"].astype(str).str.strip() != "")
        if ("concurrency" in frame.columns)
        else pd.Series(data=False, index=frame.index)
    )
    implied = np.where(loaded, _CLOSED_LOOP, "static")
    if "mode" in cases.columns:
        said = cases["mode"].fillna("").astype(str).str.strip().to_numpy()
        implied = np.where(said == "", implied, said)
    return cases.assign(mode=implied, case_id=[str(row + _FIRST_LINE) for row in range(len(frame))])


def _version(frame: pd.DataFrame) -> NDArray[np.object_]:
    return frame["framework_version"].fillna("").astype(str).str.strip().to_numpy(dtype=object)


def _scopes(cases: Cases, versions: NDArray[np.object_]) -> list[CalibrationScope]:
    return [
        CalibrationScope(
            part_called(hardware) or hardware,
            framework,
            version,
            _identifier(model),
            weights,
            kv,
        )
        for hardware, framework, version, model, weights, kv in zip(
            cases.hardware, cases.backend, versions, cases.model, cases.weights, cases.kv, strict=True
        )
    ]


def _identifier(model: str) -> str:
    """Return the id of an alias; a config path as it is."""
    try:
        return resolve(model)
    except UnknownModelError:
        return model


def _figure(frame: pd.DataFrame, column: str) -> FloatArray:
    if column not in frame.columns:
        return np.full(len(frame), np.nan)
    return numbers_of(frame[column]).to_numpy(dtype=np.float64)


def _waits_for_nobody(cases: Cases) -> NDArray[np.bool_]:
    """Whether the first token of a row comes without a wait for other requests."""
    ranks = np.array([degrees.dp for degrees in cases.degrees])
    accelerators_each = np.array([degrees.pp * degrees.tp * degrees.dp for degrees in cases.degrees])
    replicas = np.maximum(1, cases.n_accelerators // accelerators_each)
    alone: NDArray[np.bool_] = (cases.mode != _CLOSED_LOOP) | (cases.load <= ranks * replicas)
    return alone


def _apart(figure: str, measured_ms: float, predicted_ms: float) -> str:
    return (
        f"{figure} {measured_ms:.4g} differs by more than {FARTHEST_RATIO:g} times from the predicted "
        f"{predicted_ms:.4g}: is it another unit, or another configuration?"
    )
