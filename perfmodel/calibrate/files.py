"""Calibration files: YAML for people and the same as JSON, with residuals, counts and their sources."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleetplan.fleet.document import compose
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import write_whole
from fleetplan.fleet.input_files import MAX_CONFIG_BYTES, NotTextError, input_sha256, read_bytes, text_of
from fleetplan.fleet.packages import installed_version
from fleetplan.perfmodel.calibrate.fit import CalibrationFit
from fleetplan.perfmodel.evaluator import Calibration, CalibrationScope, PhaseFit, Residual, ScopeCalibration

METHOD = (
    "Huber-weighted ridge of log(measured / predicted) on the share of prefill, one ratio a phase and scope; "
    "see fleetplan.perfmodel.calibrate.ratios"
)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Phase(_Record):
    ratio: float = Field(gt=0)
    """Measured over predicted time."""
    row_weight: float = Field(ge=0)


class _Residual(_Record):
    line: int
    figure: Literal["ttft_ms", "tpot_ms"]
    measured_ms: float
    predicted_ms: float


class _Scope(_Record):
    hardware: str
    framework: str
    framework_version: str
    model: str
    weights: str
    kv: str
    prefill: _Phase
    decode: _Phase
    rows: int
    error_before: float
    error_after: float
    residuals: list[_Residual]


class _Measurements(_Record):
    path: str
    sha256: str
    rows: int
    rows_used: int


class _Document(_Record):
    version: Literal[1]
    created: str
    fleetplan_version: str
    method: str
    measurements: _Measurements
    scopes: list[_Scope]


def write_calibration(fit: CalibrationFit, measurements: Path, out: Path) -> None:
    """Write what was fitted, as YAML and as JSON beside it.

    Parameters
    ----------
    fit : CalibrationFit
        Scopes and counts.
    measurements : Path
        The file that they come from.
    out : Path
        The calibration file: JSON if its name ends in .json, otherwise YAML; the other format is written
        beside it under the same name. Its folder is created if necessary. Both can be read.
    """
    document = _Document(
        version=1,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        fleetplan_version=installed_version("fleetplan"),
        method=METHOD,
        measurements=_Measurements(
            path=measurements.name,
            sha256=input_sha256(measurements),
            rows=fit.n_rows,
            rows_used=fit.n_used,
        ),
        scopes=[_of_scope(each) for each in fit.scopes],
    )
    in_yaml = yaml_text(document.model_dump(), allow_unicode=True, width=110)
    in_json = document.model_dump_json(indent=2) + "\n"
    is_json = out.suffix == ".json"
    write_whole(out, in_json if is_json else in_yaml)
    write_whole(beside(out), in_yaml if is_json else in_json)


def beside(out: Path) -> Path:
    """Return the path of the other format of a calibration file."""
    return out.with_suffix(".yaml" if out.suffix == ".json" else ".json")


def read_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises
    ------
    InputError
        It cannot be read, or is not a calibration of a known version.
    """
    try:
        content = read_bytes(path, MAX_CONFIG_BYTES)
        issues: list[Issue] = []
        root = compose(text_of(content), str(path), issues)
        if issues:
            raise InputError(issues)
        document = _Document.model_validate(None if root is None else root.plain())
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from error
    except NotTextError as error:
        raise _unreadable(path, f"cannot be read: {error}") from error
    except ValidationError as error:
        issues = [
            Issue(
                str(path),
                0,
                0,
                ".".join(str(part) for part in each["loc"]),
                f"is not a calibration: {each['msg']}",
            )
            for each in error.errors()
        ]
        raise InputError(issues) from error
    return Calibration(
        path=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        measurements=document.measurements.path,
        measurements_sha256=document.measurements.sha256,
        created=document.created,
        fleetplan_version=document.fleetplan_version,
        scopes=tuple(_to_scope(each) for each in document.scopes),
    )


def _of_scope(each: ScopeCalibration) -> _Scope:
    scope = each.scope
    return _Scope(
        hardware=scope.hardware,
        framework=scope.framework,
        framework_version=scope.version,
        model=scope.model,
        weights=scope.weights,
        kv=scope.kv,
        prefill=_Phase(ratio=each.prefill.ratio, row_weight=round(each.prefill.row_weight, 3)),
        decode=_Phase(ratio=each.decode.ratio, row_weight=round(each.decode.row_weight, 3)),
        rows=each.n_rows,
        error_before=round(each.error_before_ratio, 4),
        error_after=round(each.error_after_ratio, 4),
        residuals=[
            _Residual(
                line=residual.line,
                figure="ttft_ms" if residual.figure == "ttft_ms" else "tpot_ms",
                measured_ms=residual.measured_ms,
                predicted_ms=round(residual.predicted_ms, 4),
            )
            for residual in each.residuals
        ],
    )


def _to_scope(each: _Scope) -> ScopeCalibration:
    return ScopeCalibration(
        CalibrationScope(
            each.hardware, each.framework, each.framework_version, each.model, each.weights, each.kv
        ),
        PhaseFit(each.prefill.ratio, each.prefill.row_weight),
        PhaseFit(each.decode.ratio, each.decode.row_weight),
        each.rows,
        each.error_before,
        each.error_after,
        tuple(
            Residual(found.line, found.figure, found.measured_ms, found.predicted_ms)
            for found in each.residuals
        ),
    )


def _unreadable(path: Path, why: str) -> InputError:
    return InputError([Issue(str(path), 0, 0, "", why)])
