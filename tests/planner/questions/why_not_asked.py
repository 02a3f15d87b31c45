"""Small fleets for questions of `--why-not`."""

from __future__ import annotations

import pandas as pd
from tests.planner.builders import fleet, hardware, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.why_not.answer import WhyNot, why_not
from fleetplan.planner.questions.why_not.reasons import Cause
from fleetplan.planner.questions.why_not.subject import read_subject

HOURS = 2190.0


def best_plan(question: Fleet) -> Plan:
    plan = Resolver(EXACT).solve(question).plan
    assert plan is not None
    return plan


def asked(question: Fleet, text: str, share: float = 0.001) -> WhyNot:
    subject = read_subject(text, question, share)
    resolver = Resolver(EXACT, keep=subject.configurations)
    return why_not(best_plan(question), question, subject, resolver, 60.0)


def causes(answer: WhyNot) -> list[Cause]:
    return [reason.cause for reason in answer.reasons]


def two_kinds(
    usd_b: float = 2.0, table: pd.DataFrame | None = None, demand: float = 30.0, **changes: object
) -> Fleet:
    """A serves 1 request/s for 1 USD/h, B 1.5 requests/s: B belongs in below 1.5 USD/h."""
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.5)])
    fields: dict[str, object] = {
        "services": [service("chat", demand, engines=rates if table is None else table)],
        "hardware": [hardware("A", 1), hardware("B", 1), hardware("C", 1)],
        "offers": [rent_offer("rent-A", 1.0, hardware="A"), rent_offer("rent-B", usd_b, hardware="B")],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]
