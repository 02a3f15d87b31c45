"""Reasons against an item that follow from supply and from the candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.perfmodel.landscape import DATA_TYPE
from fleetplan.planner.candidates import (
    BELOW_QUALITY_FLOOR,
    DOMINATED,
    NO_FRAMEWORK,
    NO_SUPPLY,
    NOT_ALLOWED,
    UNDER_LOAD,
    CandidateSet,
    replaces,
)
from fleetplan.planner.problem import Candidate
from fleetplan.planner.questions.why_not.subject import RUNTIME_PHASES, Subject, SubjectKind


class Cause(StrEnum):
    """Kind of a reason."""

    SUPPLY = "supply"
    MEMORY = "memory"
    LATENCY = "latency"
    DATA_TYPE = "data type"
    POLICY = "policy"
    SHAPE = "shape"
    DOMINATED = "dominated"
    LIMITS = "limits"
    PRICE = "price"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason against an item.

    Attributes
    ----------
    cause : Cause
        Kind of the reason.
    service : str or None
        Affected service; None for all.
    text : str
        Explanation with figures.
    """

    cause: Cause
    service: str | None
    text: str


CAUSES: Final = {
    "ttft": Cause.LATENCY,
    "tpot": Cause.LATENCY,
    UNDER_LOAD: Cause.LATENCY,
    DATA_TYPE: Cause.DATA_TYPE,
    NOT_ALLOWED: Cause.POLICY,
    BELOW_QUALITY_FLOOR: Cause.POLICY,
    NO_FRAMEWORK: Cause.POLICY,
    NO_SUPPLY: Cause.SUPPLY,
    DOMINATED: Cause.DOMINATED,
}
"""Cause by reason for exclusion; memory and runtimes have several reasons each."""


def cause_of(rejection: str) -> Cause:
    """Return the cause of a reason for exclusion."""
    if rejection.startswith("memory"):
        return Cause.MEMORY
    if rejection.startswith("runtime"):
        return Cause.POLICY
    return CAUSES.get(rejection, Cause.SHAPE)


def standing_reasons(subject: Subject, fleet: Fleet, candidates: CandidateSet) -> Iterator[Reason]:
    """Yield the reasons against an item that do not depend on price.

    Parameters
    ----------
    subject : Subject
        The item.
    fleet : Fleet
        Fleet that supplies the item, if necessary by an assumed offer.
    candidates : CandidateSet
        Candidates of that fleet, including the configurations of the item even if dominated.
    """
    if not subject.supplied:
        yield Reason(Cause.SUPPLY, None, f"no pool or offer supplies {subject.name}")
    if subject.kind is SubjectKind.OFFER:
        yield from _offer_reasons(subject, fleet)
    if subject.kind is SubjectKind.REGION:
        yield from _region_reasons(subject, fleet)
    for name, text in subject.refused:
        yield Reason(Cause.SHAPE, name, text)
    for service in fleet.services:
        if subject.must_use.service not in (None, service.name):
            continue
        own = [each for each in candidates.candidates if each.service == service.name]
        matching = [each for each in own if subject.matches(each)]
        if subject.kind in (SubjectKind.HARDWARE, SubjectKind.RUNTIME) and not matching:
            yield from _rejected(subject, service, candidates)
        if subject.kind is SubjectKind.CONFIGURATION:
            yield from _dominators(matching, own, fleet)


def _offer_reasons(subject: Subject, fleet: Fleet) -> Iterator[Reason]:
    offer = next(each for each in fleet.offers if each.name == subject.name)
    if all(limit == 0 for limit in offer.max_units):
        yield Reason(Cause.SUPPLY, None, "its maximum is 0")
    if offer.lead_time_periods >= len(fleet.periods):
        text = (
            f"orders arrive after {counted(offer.lead_time_periods, str(fleet.calendar.kind))}, "
            f"beyond the horizon"
        )
        yield Reason(Cause.SUPPLY, None, text)


def _region_reasons(subject: Subject, fleet: Fleet) -> Iterator[Reason]:
    places = {pool.region for pool in fleet.pools} | {
        region for offer in fleet.offers for region in offer.regions
    }
    if subject.name not in places:
        yield Reason(Cause.SUPPLY, None, f"{subject.name} has no pool and no offer")
    asked = {
        region
        for service in fleet.services
        for (region, _, _), rate in service.demand.peak.items()
        if rate > 0
    }
    if subject.name not in asked:
        yield Reason(Cause.POLICY, None, f"no service has demand in {subject.name}")


def _wanted_types(service: Service) -> str:
    """Return the data types that a service needs and the hardware lacks; A100 has no FP8, for example."""
    own = service.precision
    wanted = {(each.weights, each.kv) for each in service.variants} or {(own.weights, own.kv)}
    types = " or ".join(f"weights in {weights} and a KV cache in {kv}" for weights, kv in sorted(wanted))
    return f"the hardware has no matrix units for {types}"


def _rejected(subject: Subject, service: Service, candidates: CandidateSet) -> Iterator[Reason]:
    """Yield why a service has no configuration with the item, most frequent reason first."""
    if subject.kind is SubjectKind.RUNTIME and subject.name not in service.runtimes:
        yield Reason(Cause.POLICY, service.name, f"uses only the runtime {', '.join(service.runtimes)}")
        return
    one_token = service.engines is None and service.ends_with_prompts
    if subject.kind is SubjectKind.RUNTIME and subject.name == "disaggregated" and one_token:
        # Its prefill replicas count as aggregated; user tables may have rates of both phases.
        yield Reason(Cause.SHAPE, service.name, "its requests of one token need no decode")
        return
    counts: Counter[str] = Counter()
    for row in candidates.rejections:
        if row.service == service.name:
            for hardware, by_reason in row.by_hardware.items():
                if subject.must_use.hardware in (None, hardware):
                    counts.update(by_reason)
    counts.pop(DOMINATED, None)
    total = counts.total()
    for reason, count in counts.most_common():
        of_all = "" if total == 1 else f" ({count:,} of {counted(total, 'configuration')})"
        text = f"{reason}: {_wanted_types(service)}" if reason == DATA_TYPE else reason
        yield Reason(cause_of(reason), service.name, f"{text}{of_all}")
    if not counts:
        phases = " and ".join(subject.must_use.phases or RUNTIME_PHASES["aggregated"])
        yield Reason(Cause.SHAPE, service.name, f"it has no configuration of {phases}")


def _dominators(matching: Sequence[Candidate], own: Sequence[Candidate], fleet: Fleet) -> Iterator[Reason]:
    """Yield configurations that fit wherever the item does, with at least its rate at no more power."""
    for candidate in matching:
        per_host = fleet.hardware[candidate.hardware].accelerators_per_host
        for other in own:
            alike = (other.phase, other.hardware) == (candidate.phase, candidate.hardware)
            if alike and other.key != candidate.key and replaces(other, candidate, per_host):
                count = candidate.accelerators // other.accelerators
                text = (
                    f"{candidate.phase} on {candidate.hardware}: {count} x {other.config} "
                    f"({_rates(other, count)} requests/s) fit in place of {candidate.config} "
                    f"({_rates(candidate, 1)})"
                )
                yield Reason(Cause.DOMINATED, candidate.service, text)
                break


def _rates(candidate: Candidate, count: int) -> str:
    return ", ".join(f"{count * rate:.4g}" for rate in candidate.requests_per_s)
