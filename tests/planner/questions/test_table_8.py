"""Table 8 of "Optimizing Deployment Configurations for LLM Inference" (Meta) as a question of prices.

Requests/s of Llama 3 405B on 256 accelerators, online, the two phases apart. A request costs c/r in each
phase, at price c an accelerator-hour and r requests/s an accelerator, so each phase may choose its hardware.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.parts import first_of
from tests.planner.builders import fleet, hardware, rent_offer, service
from tests.planner.questions.comparing import whole_comparison
from tests.planner.questions.tiny import engine_table

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.counterfactuals import Sources, counterfactual
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.why_not.answer import WhyNot, why_not
from fleetplan.planner.questions.why_not.subject import read_subject
from fleetplan.planner.search.result import SearchLimits

PREFILL = {"GPU-A": 88.0, "GPU-B": 88.0, "GPU-C": 85.0}
DECODE = {"GPU-A": 77.0, "GPU-B": 276.0, "GPU-C": 277.0}
ACCELERATORS = 256
LIMITS = SearchLimits(30.0, 0.0, 1, 1)
WHOLE_CARDS = 2e-3
"""What whole cards change in a fleet of this size."""


def table_8(usd: Mapping[str, float]) -> Fleet:
    """The parts that have a price, at 600 requests/s."""
    rows = [("prefill", name, 1, PREFILL[name] / ACCELERATORS) for name in usd]
    rows += [("decode", name, 1, DECODE[name] / ACCELERATORS) for name in usd]
    return fleet(
        services=[service("llama-405b", 600.0, engines=engine_table(rows))],
        hardware=[hardware(name, 1) for name in usd],
        offers=[rent_offer(f"{name}-rent", price, hardware=name) for name, price in usd.items()],
    )


def best_plan(question: Fleet) -> Plan:
    plan = Resolver(LIMITS).solve(question).plan
    assert plan is not None
    return plan


def asked(question: Fleet, name: str) -> WhyNot:
    # At least half of a phase: a card or two of another kind may round a fleet of whole cards up better.
    subject = read_subject(name, question, 0.5)
    return why_not(best_plan(question), question, subject, Resolver(LIMITS), 30.0)


def cost(usd: Mapping[str, float], prefill: str, decode: str) -> float:
    """Of a request each second. [USD/h]"""
    return ACCELERATORS * (usd[prefill] / PREFILL[prefill] + usd[decode] / DECODE[decode])


@pytest.mark.parametrize("other", first_of(("GPU-B", "GPU-C"), 1))
def test_gpu_a_prefills_from_the_closed_form_price_on(other: str) -> None:
    """Dearer than that, the other part does both; the break-even is its price times 88/88 or 88/85."""
    usd = {"GPU-A": 6.0, other: 3.0}
    answer = asked(table_8(usd), "GPU-A")
    exact = usd[other] * PREFILL["GPU-A"] / PREFILL[other]
    assert answer.price is not None
    assert answer.price.proven_in is not None
    assert answer.price.proven_in * usd["GPU-A"] == pytest.approx(exact, rel=WHOLE_CARDS)
    assert answer.price.proven_out is not None
    assert answer.price.proven_out * usd["GPU-A"] == pytest.approx(exact, rel=WHOLE_CARDS)


@pytest.mark.parametrize("other", first_of(("GPU-B", "GPU-C"), 1))
def test_gpu_a_alone_is_cheapest_below_the_other_closed_form(other: str) -> None:
    """Cheap enough, A decodes too; the other part comes in below c_A * 276/77 or 277/77."""
    usd = {"GPU-A": 1.0, other: 5.0}
    answer = asked(table_8(usd), other)
    exact = usd["GPU-A"] * DECODE[other] / DECODE["GPU-A"]
    assert answer.price is not None
    assert answer.price.proven_in is not None
    assert answer.price.proven_in * usd[other] == pytest.approx(exact, rel=WHOLE_CARDS)


@pytest.mark.parametrize(
    ("usd", "saving"),
    [
        ({"GPU-A": 2.0, "GPU-C": 2.5}, 0.17),
        ({"GPU-A": 2.0, "GPU-B": 3.0}, 0.25),
        ({"GPU-A": 2.0, "GPU-B": 3.0, "GPU-C": 2.5}, 0.17),
        ({"GPU-A": 2.0, "GPU-B": 3.0, "GPU-C": 1.0}, 0.0),
        ({"GPU-A": 3.6, "GPU-B": 3.0}, 0.0),
        ({"GPU-A": 1.5, "GPU-B": 3.0, "GPU-C": 2.5}, 0.286),
    ],
)
def test_what_heterogeneity_saves_is_the_closed_form_at_every_price(
    usd: dict[str, float], saving: float
) -> None:
    """15 to 25 % at some prices, nothing at others: the claim is one about prices."""
    question = table_8(usd)
    sources = Sources((), lambda _: question, lambda _: best_plan(question))
    found = whole_comparison(question, [counterfactual("homogeneous", question, sources)], LIMITS)
    (row,) = found.rows
    assert row.saving is not None
    one_kind = min(cost(usd, name, name) for name in usd)
    mixed = min(cost(usd, first, second) for first in usd for second in usd)
    exact = 1 - mixed / one_kind
    assert row.saving.ratio(row.saving.usd) == pytest.approx(exact, abs=WHOLE_CARDS)
    assert exact == pytest.approx(saving, abs=0.005)
