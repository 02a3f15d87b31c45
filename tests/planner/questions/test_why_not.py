"""Reasons of `--why-not`, against hand calculations."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.planner.builders import region, rent_offer, service
from tests.planner.questions.tiny import engine_table
from tests.planner.questions.why_not_asked import HOURS, asked, best_plan, causes, two_kinds

from fleetplan.fleet.errors import InputError
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.why_not.assumed_offer import ASSUMED_OFFER
from fleetplan.planner.questions.why_not.reasons import Cause
from fleetplan.planner.questions.why_not.subject import SubjectKind, read_subject
from fleetplan.scenarios.load import load_fleet


def test_a_larger_share_costs_more() -> None:
    answer = asked(two_kinds(), "B", share=0.5)
    assert answer.extra is not None
    # 10 B carry 15 requests/s: 20 USD/h for 15.
    assert answer.extra.most_usd == pytest.approx(5 * HOURS)


def test_what_is_in_the_plan_is_said_to_be_with_what_it_saves() -> None:
    for text in ("B", "rent-B"):
        answer = asked(two_kinds(usd_b=1.0), text)
        assert sum(row.accelerators for row in answer.used) == 20
        assert answer.reasons == ()
        assert answer.extra is not None
        assert answer.extra.least_usd == pytest.approx(10 * HOURS)


def test_hardware_that_the_fleet_cannot_get_is_priced_as_if_it_could(monkeypatch: pytest.MonkeyPatch) -> None:
    part = "MI300X"
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", part, 8, 12.0)])
    monkeypatch.setattr(
        "fleetplan.planner.questions.why_not.assumed_offer.price_book",
        lambda: {part: {}},
    )
    answer = asked(two_kinds(table=rates), part)
    assert causes(answer) == [Cause.SUPPLY, Cause.PRICE]
    assert [offer.name for offer in answer.priced] == [ASSUMED_OFFER]
    assert answer.price is not None
    # Two hosts of eight carry 24 requests/s and 6 A the rest, 24 USD/h saved: 1.5 USD/h a card.
    assert answer.price.proven_in == pytest.approx(1.5)
    assert answer.extra is not None
    assert answer.extra.most_usd == pytest.approx((2 * 8 + 6 - 30) * HOURS)


def late(ttft_ms: float) -> pd.DataFrame:
    table = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.5)])
    table["ttft_ms"] = [100.0, ttft_ms]
    return table


def test_a_latency_limit_that_it_misses_is_named_with_the_one_it_needs() -> None:
    question = two_kinds(usd_b=1.0, services=[service("chat", 30.0, engines=late(240.0), ttft_ms=200.0)])
    answer = asked(question, "B")
    assert causes(answer) == [Cause.LATENCY]
    assert [needed.text for needed in answer.latency] == ["TTFT 200 -> 240 ms for chat"]
    (needed,) = answer.latency
    assert needed.extra is not None
    # There 20 B serve everything.
    assert needed.extra.most_usd == pytest.approx(-10 * HOURS)
    relaxed = fleet_edits.latency_limits_changed(question, "chat", lambda _: 240.0, ttft=True, tpot=False)
    assert best_plan(relaxed).objective_usd == pytest.approx(20 * HOURS)


def test_a_policy_that_forbids_it_is_named() -> None:
    rates = engine_table([("aggregated", "A", 1, 1.0), ("prefill", "B", 1, 5.0), ("decode", "B", 1, 5.0)])
    allowed = service("chat", 30.0, engines=rates, allowed_hardware=("A",))
    assert causes(asked(two_kinds(services=[allowed]), "B")) == [Cause.POLICY]
    together = service("chat", 30.0, engines=rates, runtimes=("aggregated",))
    assert causes(asked(two_kinds(services=[together]), "disaggregated")) == [Cause.POLICY]


def test_an_offer_that_brings_nothing_is_forbidden_by_its_maximum() -> None:
    offers = [rent_offer("rent-A", 1.0, hardware="A"), rent_offer("rent-B", 0.1, hardware="B", maximum=0)]
    answer = asked(two_kinds(offers=offers), "rent-B")
    assert causes(answer) == [Cause.SUPPLY, Cause.LIMITS]
    assert answer.conflict is not None
    assert answer.conflict.core is not None
    core = [each.name for each in answer.conflict.core.requirements]
    assert "offer rent-B supplies at most 0 accelerators of B" in core
    gives = [give.text for way, _ in answer.conflict.ways for give in way.gives]
    assert "1 B accelerator more from offer rent-B" in gives


def test_a_dominated_configuration_names_what_replaces_it() -> None:
    rates = engine_table(
        [("aggregated", "A", 1, 1.0), ("aggregated", "A", 2, 1.5), ("aggregated", "B", 1, 1.5)]
    )
    answer = asked(two_kinds(table=rates), "x2")
    assert causes(answer) == [Cause.DOMINATED, Cause.PRICE]
    assert answer.reasons[0].text == "aggregated on A: 2 x x1 (2 requests/s) fit in place of x2 (1.5)"
    assert answer.extra is not None
    # One x2 and 29 x1 on 31 cards.
    assert answer.extra.most_usd == pytest.approx(HOURS)


def test_a_region_that_nobody_asks_in() -> None:
    places = [region("here"), region("there")]
    offers = [rent_offer("rent-A", 1.0, hardware="A", regions=["here", "there"])]
    rates = engine_table([("aggregated", "A", 1, 1.0)])
    answer = asked(two_kinds(regions=places, offers=offers, table=rates), "there")
    assert causes(answer)[0] is Cause.POLICY
    assert causes(answer)[-1] is Cause.LIMITS
    assert asked(two_kinds(regions=places, offers=offers, table=rates), "here").used


def test_names_that_mean_nothing_or_two_things() -> None:
    question = two_kinds(offers=[rent_offer("A", 1.0), rent_offer("B", 2.0)])
    with pytest.raises(InputError, match=r"names 2 different things; write hardware:B or offer:B"):
        read_subject("B", question, 0.1)
    assert read_subject("offer:B", question, 0.1).kind is SubjectKind.OFFER
    with pytest.raises(InputError, match=r"not a hardware kind, offer, runtime.*'MI300X'"):
        read_subject("MI-300Y", question, 0.1)
    # A name that others give a part is that part.
    assert read_subject("MI-300X", question, 0.1).name == "MI300X"
    with pytest.raises(InputError, match=r"did you mean 'x1'"):
        read_subject("X-1", question, 0.1)


def test_a_configuration_that_the_framework_cannot_run_says_so(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(
        """\
version: 1
offers: [{name: o, hardware: MI300X, per: accelerator, rent_usd_per_accelerator_hour: 2}]
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 500, output_tokens: 50}
    slo: {tpot_ms: 50}
    demand: 5
""",
        encoding="utf-8",
    )
    question = load_fleet(str(path))
    answer = asked(question, "DP4-TP4 b8")
    assert causes(answer) == [Cause.SHAPE] * 3
    first = answer.reasons[0]
    assert first.service == "chat"
    assert "cannot run DP4-TP4 for prefill: attention data parallelism" in first.text
    assert "data_parallel_deployment" in first.text
    assert answer.forced is None
    with pytest.raises(InputError, match="is not a hardware kind"):
        asked(question, "DP4 x")
