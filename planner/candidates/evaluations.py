"""Evaluation of a fleet's services by the performance model, one hardware after the other.

All services of a step are evaluated on one hardware before the next, so one process reads its operator
tables, whichever processes evaluate other steps (`fleetplan.planner.candidates.parallel_evaluation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Hardware, Service
from fleetplan.perfmodel.architecture import UnsupportedArchitecture
from fleetplan.perfmodel.interruption import WorkInterruptedError, interruptible
from fleetplan.perfmodel.landscape import runs_on
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.planner.candidates.calibrations import Calibrator
from fleetplan.planner.candidates.figures import supplied_hardware
from fleetplan.planner.candidates.rejections import NO_FRAMEWORK, NOT_ALLOWED, RejectionLog
from fleetplan.planner.candidates.remote import candidates_over_ways
from fleetplan.planner.candidates.time_limit_error import OutOfTimeError
from fleetplan.planner.candidates.variants import service_variants
from fleetplan.planner.candidates.waiting_service import WaitingService, waiting_service
from fleetplan.planner.plan import StatedTable
from fleetplan.planner.problem import Candidate
from fleetplan.planner.problem.file_positions import service_issue

SERVICES_OF_A_STEP: Final = 16
"""Largest number of services evaluated on one hardware before the next. Their results are held until all
hardware is done: about a hundred candidates of 1 kB per pair of service and hardware."""


_Waiting = dict[str, list[tuple[str, WaitingService]]]
"""Pending variants of the services of a step, with their names, by service."""


@dataclass(frozen=True, slots=True)
class HardwareStep:
    """Some services on one hardware.

    Attributes
    ----------
    services : tuple[Service, ...]
        Services that the performance model evaluates there.
    hardware : str
        Hardware name.
    """

    services: tuple[Service, ...]
    hardware: str


class Evaluations:
    """Evaluates the services of a fleet within a time limit.

    Parameters
    ----------
    fleet : Fleet
        Resolved fleet.
    announce : callable
        Called with the service and hardware under evaluation.
    out_of_time : callable
        Returns whether time is over.
    prunes : bool
        Whether to remove what `prune_dominated` would, where numbers alone suffice.

    Attributes
    ----------
    log : RejectionLog
        Rejections.
    calibrator : Calibrator
        Calibrations applied.
    tables : dict[StatedTable, None]
        Operator tables read, in the order of first use.
    steps : tuple[HardwareStep, ...]
        Steps in order of evaluation.
    """

    def __init__(
        self,
        fleet: Fleet,
        announce: Callable[[str], None] = lambda _: None,
        out_of_time: Callable[[], bool] = lambda: False,
        prunes: bool = False,
    ) -> None:
        self._fleet = fleet
        self._announce = announce
        self._out_of_time = out_of_time
        self._prunes = prunes
        self._supplied = supplied_hardware(fleet)
        self._done = 0
        self._rounds = [
            fleet.services[start : start + SERVICES_OF_A_STEP]
            for start in range(0, len(fleet.services), SERVICES_OF_A_STEP)
        ]
        self.steps = tuple(step for services in self._rounds for step in self._steps_of(services))
        self._asked = sum(len(step.services) for step in self.steps)
        self.log = RejectionLog(service.name for service in fleet.services)
        self.calibrator = Calibrator(fleet)
        self.tables: dict[StatedTable, None] = {}

    def by_service(
        self, about_to_evaluate: Callable[[int], None]
    ) -> Iterator[tuple[Service, list[Candidate]]]:
        """Yield each service with its candidates on all hardware; those with their own rates have none.

        Parameters
        ----------
        about_to_evaluate : callable
            Called before a service is evaluated on one hardware, with the number of such pairs left.

        Raises
        ------
        OutOfTimeError
            If time runs out before the last evaluation.
        InputError
            If a model has layers that the performance model does not support.
        """
        for services in self._rounds:
            found: dict[str, list[Candidate]] = {service.name: [] for service in services}
            for step in self._steps_of(services):
                waiting: _Waiting = {}
                for service in step.services:
                    about_to_evaluate(self._asked - self._done)
                    place = f"({self._done + 1} of {self._asked})"
                    self._announce(f"evaluating {service.name} on {step.hardware} {place}")
                    found[service.name] += self._on(service, step, waiting)
            for service in services:
                if service.engines is not None:
                    self._announce(f"reading the rates of {service.name}")
                for name in self._supplied if service.engines is None else ():
                    reason = _refusal(service, self._fleet.hardware[name])
                    if reason is not None:
                        self.log.add(service.name, name, reason)
                yield service, found[service.name]

    def evaluate(self, steps: Iterable[HardwareStep]) -> None:
        """Evaluate steps, the last services first, only to fill the caches.

        Raises
        ------
        OutOfTimeError, InputError
            As in `by_service`.
        """
        for step in steps:
            waiting: _Waiting = {}
            for service in reversed(step.services):
                self._on(service, step, waiting)

    def _steps_of(self, services: tuple[Service, ...]) -> Iterator[HardwareStep]:
        for name in self._supplied:
            hardware = self._fleet.hardware[name]
            asked = (each for each in services if each.engines is None and _refusal(each, hardware) is None)
            step = HardwareStep(tuple(asked), name)
            if step.services:
                yield step

    def _on(self, service: Service, step: HardwareStep, waiting: _Waiting) -> list[Candidate]:
        """Return the candidates of one service of a step; on first use, prepares all services of the step."""
        if self._out_of_time():
            raise self._cut_short
        found: list[Candidate] = []
        try:
            with interruptible(self._out_of_time, self._announce):
                if not waiting:
                    waiting |= self._waiting(step)
                for name, variant in waiting.pop(service.name):
                    candidates, sources = candidates_over_ways(self._fleet, variant, self.log, self._prunes)
                    found += [
                        each.running(replace(each.configuration, variant=name)) if name else each
                        for each in candidates
                        if each.configuration is not None
                    ]
                    self.tables.update(dict.fromkeys(sources))
        except WorkInterruptedError as error:
            raise self._cut_short from error
        self._done += 1
        return found

    def _waiting(self, step: HardwareStep) -> _Waiting:
        """Prepare the variants of all services of a step, with shared look-ups in the hardware's tables."""
        hardware, lookups = self._fleet.hardware[step.hardware], SharedLookups()
        waiting: _Waiting = {}
        for service in step.services:
            try:
                waiting[service.name] = [
                    (name, waiting_service(self._fleet, variant, hardware, self.calibrator, lookups))
                    for name, variant in service_variants(service, hardware.name, self.log)
                ]
            except UnsupportedArchitecture as error:
                issue = service_issue(self._fleet, service.name, "model", str(error))
                raise InputError([issue]) from error
        return waiting

    @property
    def _cut_short(self) -> OutOfTimeError:
        pairs = f"{self._done} of {counted(self._asked, 'pair')} of a service and hardware"
        return OutOfTimeError(f"{pairs} evaluated and kept")


def _refusal(service: Service, hardware: Hardware) -> str | None:
    """Return why a service is not evaluated on a hardware; None if it is."""
    if service.allowed_hardware is not None and hardware.name not in service.allowed_hardware:
        return NOT_ALLOWED
    if hardware.accelerator is not None and not runs_on(service.framework, hardware.accelerator.vendor):
        return NO_FRAMEWORK
    return "no figures and no engine table" if hardware.accelerator is None else None
