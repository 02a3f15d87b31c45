"""Provenance of a plan: operator tables, calibrations, model errors, and the solve."""

from __future__ import annotations

from fleetplan.planner.plan.record import Record


class Rejections(Record):
    """Reasons for excluded configurations of a service."""

    service: str
    counts: dict[str, int]
    """Counts by reason, over all hardware."""
    by_hardware: dict[str, dict[str, int]]


class StatedTable(Record):
    """One file of measured operator times."""

    package: str
    package_version: str
    system: str
    framework: str
    framework_version: str
    path: str
    """Path within the package."""
    sha256: str


class CalibrationUse(Record):
    """A calibration behind the rates."""

    hardware: str
    framework: str
    framework_version: str
    model: str
    weights: str
    kv: str
    prefill_ratio: float
    """Ratio of measured to predicted time of prompts."""
    decode_ratio: float
    """Ratio of measured to predicted time of generated tokens."""
    rows: int
    """Number of measurements used."""
    error_before: float
    """Median error of predicting these measurements without the calibration."""
    error_after: float
    """Median error with the calibration."""
    created: str
    path: str
    sha256: str
    measurements: str
    measurements_sha256: str


class ModelError(Record):
    """Error of predicted TPOT against published measurements on one hardware."""

    hardware: str
    median_ratio: float | None
    """None without published measurements: the error is unknown."""
    p90_ratio: float | None
    rows: int


class PlanProvenance(Record):
    """Sources of the plan's numbers."""

    fleetplan_version: str
    created: str
    inputs_sha256: dict[str, str]
    table_sources: tuple[StatedTable, ...]
    price_sources: tuple[str, ...]
    versions: dict[str, str]
    seed: int
    time_limit_s: float
    gap_limit: float
    spend_share: dict[str, float]
    """Share of the placements' spend by source of their rates."""
    warnings: tuple[str, ...] = ()
    model_errors: tuple[ModelError, ...] = ()
    """Errors of hardware with rates from the performance model; docs/accuracy.md has the others."""
    calibrations: tuple[CalibrationUse, ...] = ()
    """Calibrations used for a service on some hardware; all other rates are uncalibrated."""
    fleet_file: str = ""
    """Path as given; `plan explain` reads the file again."""
    scenarios: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    """Scenarios and assignments (`key.path=value`) applied to the file, in order."""
    baseline_file: str = ""
    """Path of the plan in force as given; empty without one."""
    baseline_sha256: str = ""


class Solve(Record):
    """Record of the search for the plan."""

    wall_s: float
    deterministic_time: float
    status: str
    bound_source: str
    """Prover of the bound or of infeasibility: `HiGHS`, `CP-SAT, confirmed by HiGHS`, `CP-SAT, confirmed
    without presolve`, `CP-SAT without presolve`, a part of the block search (`pricing of blocks`), or `bounds
    of the variables`; for independent parts one each, separated by `;`.
    """
