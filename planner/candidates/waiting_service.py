"""Service on one hardware, whose landscapes share table look-ups with those of other services."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.fleet.inventory import Fleet, Hardware, RequestClass, Service
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import LandscapeQuestion, LatencyTarget, RequestShape, WaitingLandscape
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.planner.candidates.calibrations import Calibrator
from fleetplan.planner.candidates.service_evaluation import (
    service_evaluator,
    service_scheduling,
    service_space,
)


@dataclass(frozen=True, slots=True)
class WaitingService:
    """Inputs of a service's candidates on one hardware.

    Attributes
    ----------
    service : Service
        Service with `model`.
    hardware : Hardware
        Hardware with figures.
    evaluator : Evaluator
        Calibrated evaluator.
    landscapes : tuple[WaitingLandscape, ...]
        One per class, for local requests.
    """

    service: Service
    hardware: Hardware
    evaluator: Evaluator
    landscapes: tuple[WaitingLandscape, ...]


def waiting_service(
    fleet: Fleet, service: Service, hardware: Hardware, calibrator: Calibrator, lookups: SharedLookups
) -> WaitingService:
    """Prepare the landscapes of a service on one hardware for a shared look-up.

    Parameters
    ----------
    fleet : Fleet
        Fleet whose folder model paths are relative to.
    service : Service
        Service with `model`.
    hardware : Hardware
        Hardware with figures.
    calibrator : Calibrator
        Applies the fleet's calibration.
    lookups : SharedLookups
        Collects operators for look-ups shared with other services.

    Raises
    ------
    InputError, UnsupportedArchitecture
        As in `service_evaluator`.
    """
    evaluator = calibrator.apply(service_evaluator(fleet, service, hardware), service.framework)
    scheduling, space = service_scheduling(service, evaluator), service_space(service)
    target = LatencyTarget(service.inner_ttft_ms, service.tpot_ms)
    questions = (
        LandscapeQuestion(
            evaluator, _request(service, each), target, space, service.layout_framework, scheduling
        )
        for each in service.classes
    )
    return WaitingService(
        service, hardware, evaluator, tuple(WaitingLandscape(each, lookups) for each in questions)
    )


def _request(service: Service, request_class: RequestClass) -> RequestShape:
    if request_class.input_tokens is None or request_class.output_tokens is None:
        raise ValueError(f"class {request_class.name!r} of {service.name!r} has no lengths")
    return RequestShape(request_class.input_tokens, request_class.output_tokens, request_class.context_tokens)
