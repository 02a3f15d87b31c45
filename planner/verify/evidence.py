"""Verify the plan's statements on its candidates against the present evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fleetplan.planner.plan import CalibrationUse, Plan, Rejections, StatedTable
from fleetplan.planner.verify.records import compared
from fleetplan.planner.verify.violations import Violation, misstated

TABLE_KEY = ("package", "system", "framework", "path")
CALIBRATION_KEY = ("hardware", "framework", "framework_version", "model", "weights", "kv")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Origin of the candidates.

    Attributes
    ----------
    rejections : tuple[Rejections, ...]
        Reasons for excluded configurations.
    table_sources : tuple[StatedTable, ...]
        Operator tables behind the rates.
    calibrations : tuple[CalibrationUse, ...]
        Calibrations behind the rates.
    baseline_sha256 : str or None
        Hash of the file of the plan in force; empty without one, None if unknown.
    """

    rejections: tuple[Rejections, ...]
    table_sources: tuple[StatedTable, ...]
    calibrations: tuple[CalibrationUse, ...]
    baseline_sha256: str | None = None


def check_evidence(plan: Plan, evidence: Evidence) -> Iterator[Violation]:
    """Check the reasons for exclusion, the operator tables and the calibrations."""
    provenance = plan.provenance
    yield from compared("evidence", plan.rejections, evidence.rejections, ("service",))
    yield from compared("evidence", provenance.table_sources, evidence.table_sources, TABLE_KEY)
    yield from compared("evidence", provenance.calibrations, evidence.calibrations, CALIBRATION_KEY)
    known, stated = evidence.baseline_sha256, provenance.baseline_sha256
    # A plan made in Python has no file.
    if known is not None and (stated or provenance.baseline_file) and stated != known:
        yield Violation("evidence", misstated("hash of the plan in force", stated, known or None))
