"""Candidates: configurations that may serve, evaluated under load, without dominated ones.

In: a resolved fleet, from its own rates or from perfmodel. Out: a `CandidateSet` with the rejections. Entry
points: `prepare` (with the problem), `kept_candidates` (from the user's cache), `build_candidates`,
`service_evaluator`.
"""

from typing import TYPE_CHECKING

from fleetplan.fleet.packages import imported_when_asked

if TYPE_CHECKING:
    from fleetplan.planner.candidates.build import build_candidates
    from fleetplan.planner.candidates.calibrations import Calibrator
    from fleetplan.planner.candidates.candidate_cache import found_before, kept_candidates
    from fleetplan.planner.candidates.candidate_set import CandidateSet
    from fleetplan.planner.candidates.dominance import replaces
    from fleetplan.planner.candidates.figures import supplied_hardware
    from fleetplan.planner.candidates.load_question import front_end_of, request_kind
    from fleetplan.planner.candidates.preparation import prepare
    from fleetplan.planner.candidates.published_errors import model_errors
    from fleetplan.planner.candidates.rejections import (
        BELOW_QUALITY_FLOOR,
        DOMINATED,
        NO_FRAMEWORK,
        NO_SUPPLY,
        NOT_ALLOWED,
        UNDER_LOAD,
        RejectionLog,
    )
    from fleetplan.planner.candidates.service_evaluation import (
        service_evaluator,
        service_scheduling,
        service_space,
    )
    from fleetplan.planner.candidates.time_limit_error import OutOfTimeError
    from fleetplan.planner.candidates.variants import service_variants
else:
    __getattr__ = imported_when_asked(__name__)

__all__ = [
    "BELOW_QUALITY_FLOOR",
    "DOMINATED",
    "NOT_ALLOWED",
    "NO_FRAMEWORK",
    "NO_SUPPLY",
    "UNDER_LOAD",
    "Calibrator",
    "CandidateSet",
    "OutOfTimeError",
    "RejectionLog",
    "build_candidates",
    "found_before",
    "front_end_of",
    "kept_candidates",
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
