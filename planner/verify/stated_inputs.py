"""Verify the inputs and the quality stated in a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision, Service
from fleetplan.fleet.inventory.techniques import Offload, PersistentKv
from fleetplan.perfmodel.predict.published_error import TPOT_ERROR
from fleetplan.planner.plan import ModelError
from fleetplan.planner.plan.inputs import (
    ClassInput,
    DemandInput,
    HardwareInput,
    PeriodInput,
    RegionInput,
    ServiceInput,
    VariantInput,
)
from fleetplan.planner.verify.costs import cost_kinds, model_rounding_usd
from fleetplan.planner.verify.goals import goal_rounding
from fleetplan.planner.verify.placement_figures import expected_placements
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.records import (
    FORMATS_WITHOUT_PARTS,
    FORMATS_WITHOUT_PERIOD_DATES,
    FORMATS_WITHOUT_POWER_CAPS,
    compared,
)
from fleetplan.planner.verify.rounding import SHARE_FLOOR, UNMET_RATIO, differs
from fleetplan.planner.verify.violations import Violation, misstated

FORMATS_WITHOUT_INPUTS: Final = ("1.0",)
"""Formats of plan.json without inputs."""


def check_inputs(check: PlanCheck) -> Iterator[Violation]:
    """Check that services, demand, regions, hardware and sources are those of the fleet."""
    plan, fleet = check.plan, check.problem.fleet
    provenance = plan.provenance
    sources = {offer.price_source for offer in fleet.offers}
    sources |= {pool.rented.price_source for pool in fleet.pools if pool.rented is not None}
    for name, stated, found in (
        (
            "extension_periods",
            plan.extension_periods,
            fleet.periods[len(fleet.periods) - fleet.extended_by :],
        ),
        ("demand_objective", plan.demand_objective, fleet.demand_objective),
        ("provenance.scenarios", provenance.scenarios, fleet.scenarios),
        ("provenance.assignments", provenance.assignments, fleet.assignments),
        ("provenance.inputs_sha256", dict(provenance.inputs_sha256), dict(fleet.input_hashes)),
        ("provenance.price_sources", provenance.price_sources, tuple(sorted(sources))),
        ("solve.status", plan.solve.status, plan.status),
    ):
        if stated != found:
            yield Violation("inputs", misstated(name, stated, found))
    yield from _evidence_of_spend(check)
    yield from _status(check)
    yield from _stated_inputs(check)


def _stated_inputs(check: PlanCheck) -> Iterator[Violation]:
    inputs, fleet, periods = check.plan.inputs, check.problem.fleet, check.problem.periods
    if inputs is None:
        if check.plan.format_version not in FORMATS_WITHOUT_INPUTS:
            yield Violation("inputs", "the plan does not state its inputs")
        return
    currency = None if fleet.finance.currency is None else asdict(fleet.finance.currency)
    stated = None if inputs.currency is None else inputs.currency.model_dump()
    if stated != currency:
        yield Violation("inputs", misstated("currency", stated, currency))
    services = [_service(service) for service in fleet.services]
    regions = [
        RegionInput(
            name=region.name,
            pue=region.pue,
            power_kw={} if region.power_kw is None else dict(zip(periods, region.power_kw, strict=True)),
        )
        for region in fleet.regions
    ]
    hardware = [
        HardwareInput(
            name=each.name,
            accelerators_per_host=each.accelerators_per_host,
            vendor=None if each.accelerator is None else each.accelerator.vendor,
            part=None if check.plan.format_version in FORMATS_WITHOUT_PARTS else each.part,
            power_cap_w=None if check.plan.format_version in FORMATS_WITHOUT_POWER_CAPS else each.power_cap_w,
        )
        for each in fleet.hardware.values()
    ]
    yield from compared("inputs", inputs.services, services, ("name",))
    yield from compared("inputs", inputs.regions, regions, ("name",))
    yield from compared("inputs", inputs.hardware, hardware, ("name",))
    key = ("service", "region", "period", "request_class", "slice", "scenario")
    if check.plan.format_version not in FORMATS_WITHOUT_PERIOD_DATES:
        yield from compared("inputs", inputs.periods, list(_periods(check)), ("name",))
    yield from compared("inputs", inputs.demand, list(_demand(check)), key)


def _periods(check: PlanCheck) -> Iterator[PeriodInput]:
    for name in check.problem.periods:
        dates = check.problem.fleet.calendar.dates(name)
        if dates is not None:
            yield PeriodInput(name=name, first_day=dates[0], day_after=dates[1])


def _demand(check: PlanCheck) -> Iterator[DemandInput]:
    for cell in check.problem.cells:
        period, part, scenario = check.key_of(check.problem.moments[cell.moment])
        for each, rate in zip(check.problem.services[cell.service].classes, cell.requests_per_s, strict=True):
            yield DemandInput(
                service=cell.service,
                region=cell.region,
                period=period,
                slice=part,
                scenario=scenario,
                request_class=each.name,
                requests_per_s=rate,
            )


def _service(service: Service) -> ServiceInput:
    techniques, outside = service.techniques, service.outside_ms
    longer = [each for each in service.classes if (each.context_tokens or 0) > (each.input_tokens or 0)]
    variants = [
        _variant(each.name, each.model, Precision(each.weights, each.kv), each.checkpoint)
        for each in service.variants
    ]
    if not variants and service.model is not None:
        variants = [_variant("", service.model, service.precision, service.checkpoint)]
    speculative = techniques.speculative
    return ServiceInput(
        name=service.name,
        framework=service.framework,
        variants=tuple(variants),
        classes=tuple(
            ClassInput(
                name=each.name,
                input_tokens=each.input_tokens,
                output_tokens=each.output_tokens,
                context_tokens=each.context_tokens,
            )
            for each in service.classes
        ),
        ttft_ms=service.ttft_ms,
        tpot_ms=service.tpot_ms,
        outside_ms=outside.network_ms
        + outside.load_balancing_ms
        + outside.media_download_ms
        + outside.safety_ms,
        load_limits=_load_limits(service),
        headroom=service.headroom,
        priority=service.priority,
        chunk_tokens=techniques.chunk_tokens,
        draft_tokens=None if speculative is None else speculative.draft_tokens,
        prefix_caching=bool(longer)
        or techniques.shared_prefix_tokens > 0
        or techniques.persistent_kv is not None,
        draft_method=None if speculative is None else speculative.method,
        draft_model=None if speculative is None else speculative.draft_model,
        session_gib=_session_gib(techniques.persistent_kv),
        offloaded=_offloaded(techniques.offload),
        expert_overlap=techniques.expert_overlap,
    )


def _session_gib(sessions: PersistentKv | None) -> dict[str, float]:
    return {} if sessions is None else {tier.tier: tier.gib_per_accelerator for tier in sessions.tiers}


def _offloaded(offload: Offload | None) -> dict[str, float]:
    return {} if offload is None else {"kv": offload.kv_ratio, "weights": offload.weights_ratio}


def _variant(name: str, model: str, precision: Precision, checkpoint: str | None) -> VariantInput:
    if checkpoint is None and model.endswith(".json"):
        # A model file with another name than config.json only states shapes and cannot be launched.
        checkpoint = str(Path(model).parent) if Path(model).name == "config.json" else ""
    return VariantInput(
        name=name, model=model, weights=precision.weights, kv=precision.kv, checkpoint=checkpoint
    )


def _load_limits(service: Service) -> tuple[str, ...]:
    """Return the limits under load in words."""
    if service.traffic is None:
        return ()
    words = []
    for name, limits in (("TTFT", service.traffic.ttft), ("TPOT", service.traffic.tpot)):
        for each in limits:
            share = "in the mean" if each.share is None else f"for {100 * each.share:g} % of the requests"
            words.append(f"{name} {each.limit_ms:g} ms {share}")
    return tuple(words)


def _evidence_of_spend(check: PlanCheck) -> Iterator[Violation]:
    """Check the share of the spend by kind of evidence, and the errors of the model."""
    rows = expected_placements(check)
    total = sum(row.usd for row in rows)
    shares: dict[str, float] = {}
    for row in rows:
        for kind, share in row.provenance.items():
            shares[kind] = shares.get(kind, 0.0) + share * row.usd
    shares = {kind: usd / total for kind, usd in shares.items()} if total > 0 else {}
    stated = check.plan.provenance.spend_share
    if any(
        differs(stated.get(kind, 0.0), shares.get(kind, 0.0), SHARE_FLOOR)
        for kind in stated.keys() | shares.keys()
    ):
        yield Violation("inputs", misstated("shares of the spend", stated, shares))
    expected = []
    for name in {row.hardware for row in rows if row.provenance.get("given", 0.0) < 1}:
        own = [
            row.provenance for row in rows if row.hardware == name and row.provenance.get("given", 0.0) < 1
        ]
        part = accelerators().get(name)
        # Published errors apply to hardware through its operator tables.
        measured = part is not None and part.measured_system is not None
        without = measured and all(each.get("roofline", 0.0) > 1 - SHARE_FLOOR for each in own)
        known = None if without else TPOT_ERROR.get(name)
        median, p90, count = (
            (None, None, 0) if known is None else (known.median_ratio, known.p90_ratio, known.rows)
        )
        expected.append(ModelError(hardware=name, median_ratio=median, p90_ratio=p90, rows=count))
    yield from compared("inputs", check.plan.provenance.model_errors, expected, ("hardware",))


def _status(check: PlanCheck) -> Iterator[Violation]:
    """Check that the status of a plan matches its gaps."""
    plan = check.plan
    cost = plan.objective_usd
    rounding = model_rounding_usd(check, cost_kinds(check)) / abs(cost) if cost else 0.0
    goal_gap = 0.0
    if plan.goal is not None:
        figure = max(abs(plan.goal.value), abs(plan.goal.bound))
        off_by = goal_rounding(check, plan.goal.objective, figure) / figure if figure > 0 else 0.0
        goal_gap = plan.goal.gap - off_by
    unmet_gap = max((each.gap for each in plan.unmet_gaps if each.gap > UNMET_RATIO), default=0.0)
    # A cost or a regret may have a negative bound and a gap above 1; unmet demand may not.
    allowed = {
        "optimal": SHARE_FLOOR,
        "within_gap": plan.provenance.gap_limit + SHARE_FLOOR,
        "limit": math.inf,
    }
    if plan.status not in allowed:
        yield Violation("inputs", f"{plan.status!r} is no status of a plan")
    elif unmet_gap > 1.0 or not max(plan.gap - rounding, goal_gap, unmet_gap) <= allowed[plan.status]:
        gaps = f"{plan.gap}, {goal_gap} and {unmet_gap}"
        text = f"the status is {plan.status}; the gaps of cost, goal and unmet demand are {gaps}"
        yield Violation("inputs", text)
