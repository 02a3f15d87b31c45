"""Configurations that may serve: evaluated, under load, without those that others dominate.

In: a resolved fleet, from its own rates or from perfmodel. Out: a `CandidateSet` with the rejections.
Entry points: `prepare.prepare` (with the problem), `build.build_candidates`, `landscape.service_evaluator`.
"""

from fleetplan.planner.candidates.build import CandidateSet, build_candidates
from fleetplan.planner.candidates.calibrations import Calibrator
from fleetplan.planner.candidates.dominance import replaces
from fleetplan.planner.candidates.figures import supplied_hardware
from fleetplan.planner.candidates.landscape import (
    service_evaluator,
    service_scheduling,
    service_space,
)
from fleetplan.planner.candidates.load_question import front_end_of, request_kind
from fleetplan.planner.candidates.model_errors import model_errors
from fleetplan.planner.candidates.out_of_time import OutOfTimeError
from fleetplan.planner.candidates.prepare import prepare
from fleetplan.planner.candidates.rejections import (
    BELOW_QUALITY_FLOOR,
    DOMINATED,
    NO_SUPPLY,
    NOT_ALLOWED,
    UNDER_LOAD,
    RejectionLog,
)
from fleetplan.planner.candidates.variants import service_variants

__all__ = [
    "BELOW_QUALITY_FLOOR",
    "DOMINATED",
    "NOT_ALLOWED",
    "NO_SUPPLY",
    "UNDER_LOAD",
    "Calibrator",
    "CandidateSet",
    "OutOfTimeError",
    "RejectionLog",
    "build_candidates",
    "front_end_of",
    "model_errors",
    "prepare",
    "replaces",
    "request_kind",
    "service_evaluator",
    "service_scheduling",
    "service_space",
    "service_variants",
    "supplied_hardware",
]
