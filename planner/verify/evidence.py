"""What a plan says of the configurations that it chose from, held against what the program finds now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fleetplan.planner.plan import CalibrationUse, Plan, Rejections, StatedTable
from fleetplan.planner.verify.records import compared
from fleetplan.planner.verify.violations import Violation

TABLE_KEY = ("package", "system", "framework", "path")
CALIBRATION_KEY = ("hardware", "framework", "framework_version", "model", "weights", "kv")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What candidates come from.

    Attributes
    ----------
    rejections : tuple[Rejections, ...]
        Why configurations are no candidates.
    table_sources : tuple[StatedTable, ...]
        Operator tables behind the rates.
    calibrations : tuple[CalibrationUse, ...]
        Calibrations behind the rates.
    baseline_sha256 : str or None
        Of the file of the plan in force; empty without one, None where nothing is known of it.
    """

    rejections: tuple[Rejections, ...]
    table_sources: tuple[StatedTable, ...]
    calibrations: tuple[CalibrationUse, ...]
    baseline_sha256: str | None = None


def check_evidence(plan: Plan, evidence: Evidence) -> Iterator[Violation]:
    """What was left out and why, and which tables and calibrations gave the rates."""
    provenance = plan.provenance
    yield from compared("evidence", plan.rejections, evidence.rejections, ("service",))
    yield from compared("evidence", provenance.table_sources, evidence.table_sources, TABLE_KEY)
    yield from compared("evidence", provenance.calibrations, evidence.calibrations, CALIBRATION_KEY)
    known, stated = evidence.baseline_sha256, provenance.baseline_sha256
    # A plan made from Python knows of no file.
    if known is not None and (stated or provenance.baseline_file) and stated != known:
        yield Violation("evidence", f"a plan in force of hash {stated} stated, {known or 'none'} found")
