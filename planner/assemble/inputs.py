"""Record the inputs of a plan in its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from fleetplan.fleet.inventory import RequestClass, Service
from fleetplan.planner.assemble.bill import cost_lines
from fleetplan.planner.assemble.launches import launches_of, variants_of
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import Placement
from fleetplan.planner.plan.inputs import (
    ClassInput,
    CurrencyInput,
    DemandInput,
    HardwareInput,
    PeriodInput,
    PlanInputs,
    RegionInput,
    ServiceInput,
)
from fleetplan.planner.problem import Problem


def state_inputs(
    problem: Problem, solution: Solution, placements: tuple[Placement, ...], costs: Mapping[str, float]
) -> PlanInputs:
    """Return the inputs of a plan.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Solver values.
    placements : tuple[Placement, ...]
        Placements of the plan.
    costs : Mapping[str, float]
        TCO by kind. [USD]
    """
    currency = problem.fleet.finance.currency
    lines, prices = cost_lines(problem, solution, placements, costs)
    return PlanInputs(
        services=tuple(_service(service) for service in problem.fleet.services),
        demand=_demand(problem),
        regions=tuple(
            RegionInput(
                name=region.name,
                pue=region.pue,
                power_kw={}
                if region.power_kw is None
                else dict(zip(problem.periods, region.power_kw, strict=True)),
            )
            for region in problem.fleet.regions
        ),
        hardware=tuple(
            HardwareInput(
                name=hardware.name,
                accelerators_per_host=hardware.accelerators_per_host,
                vendor=None if hardware.accelerator is None else hardware.accelerator.vendor,
                part=hardware.part,
                power_cap_w=hardware.power_cap_w,
            )
            for hardware in problem.hardware.values()
        ),
        prices=prices,
        cost_lines=lines,
        launches=launches_of(problem, placements),
        periods=_periods(problem),
        currency=None if currency is None else CurrencyInput(**asdict(currency)),
    )


def _periods(problem: Problem) -> tuple[PeriodInput, ...]:
    dated = ((name, problem.fleet.calendar.dates(name)) for name in problem.periods)
    return tuple(
        PeriodInput(name=name, first_day=dates[0], day_after=dates[1])
        for name, dates in dated
        if dates is not None
    )


def _service(service: Service) -> ServiceInput:
    techniques, draft = service.techniques, service.techniques.speculative
    sessions, offload = techniques.persistent_kv, techniques.offload
    return ServiceInput(
        name=service.name,
        framework=service.framework,
        variants=variants_of(service),
        classes=tuple(_class(each) for each in service.classes),
        ttft_ms=service.ttft_ms,
        tpot_ms=service.tpot_ms,
        outside_ms=service.outside_ms.total_ms,
        load_limits=_load_limits(service),
        headroom=service.headroom,
        priority=service.priority,
        chunk_tokens=techniques.chunk_tokens,
        draft_tokens=None if draft is None else draft.draft_tokens,
        draft_method=None if draft is None else draft.method,
        draft_model=None if draft is None else draft.draft_model,
        prefix_caching=service.keeps_prefixes,
        session_gib={}
        if sessions is None
        else {each.tier: each.gib_per_accelerator for each in sessions.tiers},
        offloaded={} if offload is None else {"weights": offload.weights_ratio, "kv": offload.kv_ratio},
        expert_overlap=techniques.expert_overlap,
    )


def _load_limits(service: Service) -> tuple[str, ...]:
    """Return the limits under load in words, such as `TTFT 500 ms for 95 % of the requests`."""
    if service.traffic is None:
        return ()
    limits = [("TTFT", each) for each in service.traffic.ttft] + [
        ("TPOT", each) for each in service.traffic.tpot
    ]
    return tuple(
        f"{name} {each.limit_ms:g} ms "
        + ("in the mean" if each.share is None else f"for {100 * each.share:g} % of the requests")
        for name, each in limits
    )


def _class(request_class: RequestClass) -> ClassInput:
    return ClassInput(
        name=request_class.name,
        input_tokens=request_class.input_tokens,
        output_tokens=request_class.output_tokens,
        context_tokens=request_class.context_tokens,
    )


def _demand(problem: Problem) -> tuple[DemandInput, ...]:
    """Return the demand of every cell and class."""
    return tuple(
        DemandInput(
            service=cell.service,
            region=cell.region,
            **problem.row_moment(cell.moment),
            request_class=request_class.name,
            requests_per_s=rate,
        )
        for cell in problem.cells
        for request_class, rate in zip(
            problem.services[cell.service].classes, cell.requests_per_s, strict=True
        )
    )
