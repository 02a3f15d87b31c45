"""Settings of service evaluation: evaluator by hardware, scheduling, and search space."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fleetplan.fleet.errors import InputError, names_hint
from fleetplan.fleet.inventory import Fleet, Hardware, Service
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator, matured
from fleetplan.perfmodel.landscape import SearchSpace
from fleetplan.perfmodel.optables import measured_versions, newest_first, operator_source
from fleetplan.perfmodel.serving import Scheduling, default_scheduling
from fleetplan.perfmodel.steps import expert_kernels, state_slots
from fleetplan.perfmodel.techniques import technique_problem
from fleetplan.planner.candidates.load_question import front_end_of
from fleetplan.planner.problem.file_positions import service_issue

EVERYTHING: Final = SearchSpace()
"""Search space without restrictions."""


def service_evaluator(fleet: Fleet, service: Service, hardware: Hardware) -> Evaluator:
    """Return the evaluator of a service on one hardware.

    Raises
    ------
    InputError
        If the model does not support one of the service's techniques, or no table has its framework version.
    UnsupportedArchitecture
        If the model is an unsupported decoder.
    """
    if service.model is None or hardware.accelerator is None:
        raise ValueError(f"no figures to evaluate {service.name!r} on {hardware.name!r}")
    architecture = load_architecture(service.model, fleet.path.parent)
    problem = technique_problem(architecture, service.framework, service.techniques)
    if problem:
        raise InputError([service_issue(fleet, service.name, "techniques", problem)])
    check_framework_version(fleet, service)
    accelerator = matured(hardware.accelerator, service.framework)
    kernels = expert_kernels(service.framework, accelerator.measured_system, architecture.model_type)
    source = operator_source(
        accelerator, service.framework, service.framework_version, expert_kernels=kernels
    )
    slots = state_slots(
        service.framework, accelerator.vendor, architecture, prefix_cache=service.keeps_prefixes
    )
    return Evaluator(
        architecture,
        accelerator,
        source,
        service.precision,
        techniques=service.techniques,
        state_slots=slots,
    )


def service_scheduling(service: Service, evaluator: Evaluator) -> Scheduling:
    """Return how the framework schedules iterations: its defaults, and the service's settings."""
    default = default_scheduling(
        service.framework,
        evaluator.accelerator,
        evaluator.software_date,
        service.techniques.chunk_tokens,
        evaluator.overlaps_host,
    )
    return replace(default, front_end=front_end_of(service))


def check_framework_version(fleet: Fleet, service: Service) -> None:
    """Reject a framework version that none of the service's hardware was measured with.

    Hardware measured with other versions only borrows from them; hardware without tables has no versions to
    choose from.

    Raises
    ------
    InputError
        With the available versions, and the nearest of them.
    """
    if not service.framework_version:
        return
    allowed = service.allowed_hardware or tuple(fleet.hardware)
    parts = [fleet.hardware[name].accelerator for name in allowed]
    found = [measured_versions(part, service.framework) for part in parts if part is not None]
    known = newest_first({version for versions in found for version in versions})
    if service.framework_version in known:
        return
    key = "framework_version"
    if not known:
        message = f"none of the service's hardware was measured under {service.framework}"
        raise InputError([service_issue(fleet, service.name, key, message, "leave it out")])
    message = f"no table has {service.framework} {service.framework_version}"
    hint = names_hint(service.framework_version, known)
    raise InputError([service_issue(fleet, service.name, key, message, hint)])


def is_prefill_alone(service: Service) -> bool:
    """Return whether a service needs only prefill replicas.

    Requests of one token leave nothing to decode. Aggregated servers then only prefill, and prefill servers
    hand over no cache: both are the same, and count as aggregated.
    """
    return service.ends_with_prompts and "aggregated" in service.runtimes


def service_space(service: Service, space: SearchSpace = EVERYTHING) -> SearchSpace:
    """Return the search space of a service, within a given space.

    Parameters
    ----------
    service : Service
        Gives runtimes and search settings.
    space : SearchSpace
        Gives batch sizes, and the largest replica if set.
    """
    asked = service.search
    return replace(
        space,
        runtimes=("disaggregated",) if is_prefill_alone(service) else service.runtimes,
        max_accelerators=space.max_accelerators or asked.max_accelerators,
        pipeline_stages=asked.pipeline_stages or space.pipeline_stages,
        context_ranks=asked.context_ranks or space.context_ranks,
    )
