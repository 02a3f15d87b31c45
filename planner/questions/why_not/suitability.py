"""Explain what speaks against an item in an infeasible fleet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.why_not.assumed_offer import supplied
from fleetplan.planner.questions.why_not.reasons import Reason, standing_reasons
from fleetplan.planner.questions.why_not.subject import Subject


@dataclass(frozen=True, slots=True)
class Suitability:
    """Suitability of an item for a fleet without a plan.

    Attributes
    ----------
    subject : Subject
        The item.
    reasons : tuple[Reason, ...]
        Reasons against the item.
    services : tuple[str, ...]
        Services with configurations that use the item and meet their limits.
    """

    subject: Subject
    reasons: tuple[Reason, ...]
    services: tuple[str, ...]


def suitability(fleet: Fleet, subject: Subject, resolver: Resolver) -> Suitability:
    """Return the reasons against an item in an infeasible fleet.

    Parameters
    ----------
    fleet : Fleet
        Infeasible fleet.
    subject : Subject
        The item.
    resolver : Resolver
        Evaluates candidates; keeps the configurations of the item.
    """
    offered = supplied(fleet, subject)
    candidates = replace(resolver, keep=subject.configurations).candidates(offered)
    reasons = tuple(standing_reasons(subject, offered, candidates))
    suited = dict.fromkeys(each.service for each in candidates.candidates if subject.matches(each))
    return Suitability(subject, reasons, tuple(suited))
