"""Candidates of a fleet, with rejections, sources and assumptions."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import CalibrationUse, Rejections, StatedTable
from fleetplan.planner.problem import Candidate


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates with the configurations that were rejected.

    Attributes
    ----------
    candidates : tuple[Candidate, ...]
        In the order of services, phases and hardware.
    rejections : tuple[Rejections, ...]
        Counts of rejected configurations by service and reason.
    table_sources : tuple[StatedTable, ...]
        Operator tables behind the rates.
    warnings : tuple[str, ...]
        Assumptions.
    calibrations : tuple[CalibrationUse, ...]
        Calibrations behind the rates.
    """

    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejections, ...]
    table_sources: tuple[StatedTable, ...]
    warnings: tuple[str, ...]
    calibrations: tuple[CalibrationUse, ...] = ()
