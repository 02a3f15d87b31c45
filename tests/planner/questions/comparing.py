"""Fleets with two kinds of hardware, and their comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from tests.planner.builders import HOURS_PER_QUARTER, fleet, rent_offer, service

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Fleet, Hardware, Service
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.compare import comparisons
from fleetplan.planner.questions.comparison import Compared, Comparison
from fleetplan.planner.questions.counterfactuals import Counterfactual, Sources, counterfactual
from fleetplan.planner.search.result import SearchLimits

EXACT = SearchLimits(time_limit_s=30.0, gap_ratio=0.0, workers=1)


RULES = ("homogeneous", "no-disaggregation", "single-vendor")


RATES = {
    ("prefill", "A"): 10.0,
    ("decode", "A"): 4.0,
    ("prefill", "B"): 12.0,
    ("decode", "B"): 20.0,
    ("aggregated", "A"): 2.0,
    ("aggregated", "B"): 6.0,
}
"""Requests/s an accelerator: A reads prompts well, B generates."""


def engines(rates: Mapping[tuple[str, str], float], ttft_ms: float | None = None) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "phase": phase,
                "hardware": kind,
                "config": "x1",
                "accelerators_per_replica": 1,
                "requests_per_s": rate,
                "ttft_ms": ttft_ms,
            }
            for (phase, kind), rate in rates.items()
        ]
    )


def chat(demand: float = 120.0, rates: Mapping[tuple[str, str], float] = RATES, **changes: object) -> Service:
    return service("chat", demand, engines=engines(rates), **changes)


def vendored(name: str, vendor: str) -> Hardware:
    part = replace(accelerators()["H100-SXM"], name=name, vendor=vendor)
    return Hardware(name, 1, part, None)


def two_kinds(usd_a: float = 1.0, usd_b: float = 2.0, services: Sequence[Service] = ()) -> Fleet:
    return fleet(
        services=services or [chat()],
        hardware=[vendored("A", "one"), vendored("B", "two")],
        offers=[rent_offer("A", usd_a), rent_offer("B", usd_b)],
    )


def no_scenario(name: str) -> Fleet:
    raise AssertionError(name)


def named(
    question: Fleet, *texts: str, plan: Plan | None = None, scenarios: Mapping[str, Fleet] | None = None
) -> list[Counterfactual]:
    def read(_: Path) -> Plan:
        assert plan is not None
        return plan

    known = scenarios or {}
    sources = Sources(tuple(known), known.__getitem__ if known else no_scenario, read)
    return [counterfactual(text, question, sources) for text in texts]


def whole_comparison(
    question: Fleet,
    counterfactuals: Sequence[Counterfactual],
    limits: SearchLimits = EXACT,
    baseline: Plan | None = None,
) -> Comparison:
    """Return the comparison after the last solve."""
    *_, found = comparisons(question, counterfactuals, limits, baseline=baseline)
    return found


def compared(question: Fleet, *texts: str, **sources: object) -> Comparison:
    return whole_comparison(question, named(question, *texts, **sources))  # type: ignore[arg-type]


def only(found: Comparison) -> Compared:
    (row,) = found.rows
    return row


def plan_of(outcome: Plan | Infeasible | None) -> Plan:
    assert isinstance(outcome, Plan)
    return outcome


def chosen_plan(row: Compared) -> Plan:
    assert row.chosen is not None
    return plan_of(row.chosen.plan)


def hourly(plan: Plan) -> float:
    return plan.objective_usd / HOURS_PER_QUARTER
