"""Where a plan comes from: tables, calibrations, errors of the model, and how it was solved."""

from __future__ import annotations

from fleetplan.planner.plan.record import Record


class Rejections(Record):
    """Why configurations of a service are not candidates."""

    service: str
    counts: dict[str, int]
    """By reason, over all hardware."""
    by_hardware: dict[str, dict[str, int]]


class StatedTable(Record):
    """One file of measured operator times."""

    package: str
    package_version: str
    system: str
    framework: str
    framework_version: str
    path: str
    """Within the package."""
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
    """Measured over predicted time of prompts."""
    decode_ratio: float
    """Measured over predicted time of generated tokens."""
    rows: int
    """Measurements that decided it."""
    error_before: float
    """Median error of predicting these measurements without it."""
    error_after: float
    """The same with it."""
    created: str
    path: str
    sha256: str
    measurements: str
    measurements_sha256: str


class ModelError(Record):
    """How far predicted TPOT was from published measurements on one hardware."""

    hardware: str
    median_ratio: float | None
    """None where no measurement is published: nothing is known."""
    p90_ratio: float | None
    rows: int


class PlanProvenance(Record):
    """Where the plan's numbers come from."""

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
    """Share of the placements' spend by how their rates were obtained."""
    warnings: tuple[str, ...] = ()
    model_errors: tuple[ModelError, ...] = ()
    """By hardware whose rates the performance model gave; docs/accuracy.md has the rest."""
    calibrations: tuple[CalibrationUse, ...] = ()
    """Calibrations that held for a service on some hardware; all other rates are uncalibrated."""
    fleet_file: str = ""
    """As it was named; what `plan explain` reads again."""
    scenarios: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    """What was laid on the file, in order: names of its scenarios, then `key.path=value`."""
    baseline_file: str = ""
    """The plan in force, as it was named; empty without one."""
    baseline_sha256: str = ""


class Solve(Record):
    """How the plan was found."""

    wall_s: float
    deterministic_time: float
    status: str
    bound_source: str
    """Who proved the bound, or that there is no plan: `HiGHS`, `CP-SAT, confirmed by HiGHS`,
    `CP-SAT, confirmed without presolve`, `CP-SAT without presolve`, a part of the search over blocks
    (`pricing of blocks`), or `bounds of the variables`; of parts that share nothing each one, with `;`
    between."""
