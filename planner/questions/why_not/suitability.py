"""What stands against something in a fleet that has no plan which could have it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.why_not.assumed_offer import supplied
from fleetplan.planner.questions.why_not.reasons import Reason, standing_reasons
from fleetplan.planner.questions.why_not.subject import Subject


@dataclass(frozen=True, slots=True)
class Suitability:
    """What may be said of something where there is no plan that could have it.

    Attributes
    ----------
    subject : Subject
        What is asked about.
    reasons : tuple[Reason, ...]
        What stands against it.
    services : tuple[str, ...]
        Services with configurations that run on it, or are it, and keep their limits.
    """

    subject: Subject
    reasons: tuple[Reason, ...]
    services: tuple[str, ...]


def suitability(fleet: Fleet, subject: Subject, resolver: Resolver) -> Suitability:
    """Say what stands against something in a fleet that has no plan.

    Parameters
    ----------
    fleet : Fleet
        That has no plan.
    subject : Subject
        What is asked about.
    resolver : Resolver
        Evaluates; keeps the configurations of the subject.
    """
    offered = supplied(fleet, subject)
    candidates = replace(resolver, keep=subject.configurations).candidates(offered)
    reasons = tuple(standing_reasons(subject, offered, candidates))
    suited = dict.fromkeys(each.service for each in candidates.candidates if subject.matches(each))
    return Suitability(subject, reasons, tuple(suited))
