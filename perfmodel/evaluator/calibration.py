"""Calibration by the user's benchmarks: ratios by deployment, with their errors.

A calibration belongs to one scope: hardware, framework, framework version and checkpoint (a model with the
data types of its weights and KV cache). Wider scopes do not transfer: one scalar for a framework on a part
made predictions of other models worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from fleetplan.perfmodel.evaluator.phase_ratios import PhaseRatios
from fleetplan.perfmodel.optables import OperatorSource

if TYPE_CHECKING:
    from fleetplan.perfmodel.evaluator.step import StepEvaluator

    EvaluatorKind = TypeVar("EvaluatorKind", bound=StepEvaluator)


@dataclass(frozen=True, slots=True)
class CalibrationScope:
    """Deployments that a calibration applies to.

    Attributes
    ----------
    hardware, framework, version, model : str
        `version` is that of the framework; `model` is the HF id of the catalogue, or the path of a config as
        the measurements name it.
    weights, kv : str
        Data types of the checkpoint and of its KV cache.
    """

    hardware: str
    framework: str
    version: str
    model: str
    weights: str
    kv: str

    @property
    def label(self) -> str:
        """The scope in words."""
        framework = f"{self.framework} {self.version}".strip()
        return f"{self.model} ({self.weights}, KV cache {self.kv}) on {self.hardware} with {framework}"


@dataclass(frozen=True, slots=True)
class PhaseFit:
    """Fit of one phase.

    Attributes
    ----------
    ratio : float
        Measured over predicted time, shrunk towards 1 the more, the fewer rows there are.
    row_weight : float
        Rows that speak for this phase: each figure counts by the part of its time that the phase is.
    """

    ratio: float
    row_weight: float


@dataclass(frozen=True, slots=True)
class Residual:
    """Calibrated prediction of one measurement.

    Attributes
    ----------
    line : int
        Line of the measurement in its file.
    figure : str
        ttft_ms or tpot_ms.
    measured_ms, predicted_ms : float
        The figure, and its prediction with the calibration. [ms]
    """

    line: int
    figure: str
    measured_ms: float
    predicted_ms: float


@dataclass(frozen=True, slots=True)
class ScopeCalibration:
    """The calibration of one scope.

    Attributes
    ----------
    scope : CalibrationScope
        Deployments that it applies to.
    prefill, decode : PhaseFit
        Its ratios.
    n_rows : int
        Measurements that decided it.
    error_before_ratio, error_after_ratio : float
        Median of ``|predicted / measured - 1|`` without and with it, of the measurements that it was
        fitted on.
    residuals : tuple[Residual, ...]
        One per figure.
    """

    scope: CalibrationScope
    prefill: PhaseFit
    decode: PhaseFit
    n_rows: int
    error_before_ratio: float
    error_after_ratio: float
    residuals: tuple[Residual, ...]

    @property
    def ratios(self) -> PhaseRatios:
        """Return the ratios that the evaluator multiplies by."""
        return PhaseRatios(self.prefill.ratio, self.decode.ratio)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibrations of several scopes, from one file of measurements.

    Attributes
    ----------
    path : str
        The calibration file; empty before it is written.
    sha256 : str
        Hash of its contents; empty before it is written.
    measurements : str
        The file of measurements.
    measurements_sha256 : str
        Hash of its contents.
    created : str
        Time of the fit, ISO 8601 in UTC.
    fleetplan_version : str
        Program version of the predictions.
    scopes : tuple[ScopeCalibration, ...]
        One entry per scope.
    """

    path: str
    sha256: str
    measurements: str
    measurements_sha256: str
    created: str
    fleetplan_version: str
    scopes: tuple[ScopeCalibration, ...]

    def find(
        self, hardware: str, framework: str, model: str, weights: str, kv: str, version: str | None = None
    ) -> ScopeCalibration | None:
        """Return the calibration of a deployment; None without one.

        Parameters
        ----------
        hardware, framework, model, weights, kv
            As in `CalibrationScope`; the case of names does not count.
        version : str, optional
            Version of the framework; the newest that was calibrated if left out.
        """
        wanted = tuple(name.lower() for name in (hardware, framework, model, weights, kv))
        found = [each for each in self.scopes if _key(each.scope) == wanted]
        if version is not None:
            found = [each for each in found if each.scope.version == version]
        return max(found, key=lambda each: _version_order(each.scope.version), default=None)


def holds_for(evaluator: StepEvaluator, framework: str, calibration: Calibration) -> ScopeCalibration | None:
    """Return the calibration of an evaluator's deployment; None without one."""
    precision = evaluator.precision
    name = evaluator.architecture.name
    # A fit to another version does not apply to a chosen version of the framework.
    version = (isinstance(evaluator.source, OperatorSource) and evaluator.source.version) or None
    return calibration.find(
        evaluator.accelerator.name, framework, name, precision.weights, precision.kv, version
    )


def with_calibration(
    evaluator: EvaluatorKind, framework: str, calibration: Calibration | None
) -> EvaluatorKind:
    """Return the evaluator with calibrated times; itself without a calibration."""
    found = None if calibration is None else holds_for(evaluator, framework, calibration)
    return evaluator if found is None else replace(evaluator, phase_ratios=found.ratios)


def _key(scope: CalibrationScope) -> tuple[str, ...]:
    names = (scope.hardware, scope.framework, scope.model, scope.weights, scope.kv)
    return tuple(name.lower() for name in names)


def _version_order(version: str) -> tuple[tuple[int, ...], str]:
    return tuple(int(number) for number in re.findall(r"\d+", version)), version
