"""The candidates of a fleet, with what was left out and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.planner.plan import CalibrationUse, Rejections, StatedTable
from fleetplan.planner.problem import Candidate


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates with what was left out.

    Attributes
    ----------
    candidates : tuple[Candidate, ...]
        In the order of services, phases, hardware.
    rejections : tuple[Rejections, ...]
        Counts of excluded configurations by service and reason.
    table_sources : tuple[StatedTable, ...]
        Operator tables behind the rates.
    warnings : tuple[str, ...]
        What was assumed.
    calibrations : tuple[CalibrationUse, ...]
        Calibrations behind the rates.
    """

    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejections, ...]
    table_sources: tuple[StatedTable, ...]
    warnings: tuple[str, ...]
    calibrations: tuple[CalibrationUse, ...] = ()
