"""Calibrations of a fleet file: applied to evaluators, and recorded for the plan's provenance."""

from __future__ import annotations

from pathlib import Path

from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.evaluator import (
    Calibration,
    Evaluator,
    ScopeCalibration,
    holds_for,
    with_calibration,
)
from fleetplan.planner.plan import CalibrationUse


class Calibrator:
    """Applies the calibration of a fleet, and records which of its scopes applied.

    Parameters
    ----------
    fleet : Fleet
        Fleet whose `calibration` is read; without one nothing changes.

    Raises
    ------
    InputError
        If the file is not a calibration.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._calibration = None if fleet.calibration is None else _read(fleet.calibration)
        self._used: dict[CalibrationUse, None] = {}

    def apply(self, evaluator: Evaluator, framework: str) -> Evaluator:
        """Return the evaluator with the ratios of the matching scope."""
        if self._calibration is None:
            return evaluator
        found = holds_for(evaluator, framework, self._calibration)
        if found is not None:
            self._used[_use(found, self._calibration)] = None
        return with_calibration(evaluator, framework, self._calibration)

    def used(self) -> tuple[CalibrationUse, ...]:
        """Return the scopes that applied, in the order of first use."""
        return tuple(self._used)

    def warnings(self) -> tuple[str, ...]:
        """Warn of a calibration that applied to no deployment."""
        if self._calibration is None or self._used:
            return ()
        return (
            f"{self._calibration.path}: applies to no service of this fleet; its scopes: "
            + ", ".join(each.scope.label for each in self._calibration.scopes),
        )


def _read(path: Path) -> Calibration:
    # Imported here because it takes a tenth of the imports of a first check, and most fleets do not need it.
    from fleetplan.perfmodel.calibrate import read_calibration  # noqa: PLC0415

    return read_calibration(path)


def _use(found: ScopeCalibration, calibration: Calibration) -> CalibrationUse:
    scope = found.scope
    return CalibrationUse(
        hardware=scope.hardware,
        framework=scope.framework,
        framework_version=scope.version,
        model=scope.model,
        weights=scope.weights,
        kv=scope.kv,
        prefill_ratio=found.prefill.ratio,
        decode_ratio=found.decode.ratio,
        rows=found.n_rows,
        error_before=found.error_before_ratio,
        error_after=found.error_after_ratio,
        created=calibration.created,
        path=calibration.path,
        sha256=calibration.sha256,
        measurements=calibration.measurements,
        measurements_sha256=calibration.measurements_sha256,
    )
