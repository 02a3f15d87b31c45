"""Marginal values equal the difference of two optima by brute force."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.oracles import brute_force
from tests.oracles.brute_force import TooLargeError, brute_force_usd
from tests.parts import first_parts
from tests.planner.builders import fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import tiny_case

from fleetplan.fleet.inventory import Budget, Fleet
from fleetplan.planner.commands.run_marginal import marginal_figure
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.fleet_question import FleetAnswer, FleetQuestion
from fleetplan.planner.questions.marginal import (
    ExtraUnit,
    UnitValue,
    by_worth,
    marginal_table,
    one_more,
    unit_values,
)
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search.result import SearchLimits

MOST_PLANS_TRIED = 200
"""Fleets with more plans than this are left out: the oracle would take most of the time of the suite."""


def worth_of(more: ExtraUnit, plan: Plan, question: Fleet, resolver: Resolver) -> UnitValue:
    (found,) = unit_values([more], plan, question, resolver)
    return found


def exact_usd(question: Fleet) -> float | None:
    return brute_force_usd(Resolver(EXACT).problem(question)[1])


@pytest.mark.parametrize("fleets", first_parts((6, 35), 1))
def test_marginal_values_are_brute_force_differences(monkeypatch: pytest.MonkeyPatch, fleets: int) -> None:
    monkeypatch.setattr(brute_force, "MAX_COMBINATIONS", MOST_PLANS_TRIED)
    worth, nothing = 0, 0
    for seed in range(fleets):
        question = with_engine_tables(tiny_case(seed))
        try:
            before = exact_usd(question)
        except TooLargeError:
            continue
        resolver = Resolver(EXACT)
        plan = resolver.solve(question).plan
        if before is None or plan is None:
            continue
        for more in one_more(question):
            found = worth_of(more, plan, question, resolver)
            try:
                after = exact_usd(more.edit(question))
            except TooLargeError:
                continue
            # What is dearer than its worth within a budget is not taken.
            expected = 0.0 if after is None else max(0.0, before - (after - found.price_usd))
            assert found.least_usd == pytest.approx(expected, rel=1e-5, abs=0.5), (seed, more.name)
            assert found.most_usd == pytest.approx(expected, rel=1e-5, abs=0.5), (seed, more.name)
            worth += expected > 1
            nothing += expected <= 1
    assert worth >= fleets // 12
    assert nothing >= fleets // 3


@pytest.mark.parametrize("fleets", first_parts((2, 12), 1))
def test_limits_that_are_relaxed_together_hold_what_each_is_worth(fleets: int) -> None:
    """The bound for limits relaxed together covers the value of each limit alone."""
    apart, together = Resolver(EXACT), Resolver(replace(EXACT, gap_ratio=0.1))
    for seed in range(fleets):
        question = with_engine_tables(tiny_case(seed))
        plan = apart.solve(question).plan
        if plan is None:
            continue
        limits = [more for more in one_more(question) if more.is_limit]
        found = {
            (row.more.name, row.more.amount): row for row in unit_values(limits, plan, question, together)
        }
        assert len(found) == len(limits)
        for more in limits:
            alone, row = worth_of(more, plan, question, apart), found[more.name, more.amount]
            assert row.least_usd <= alone.least_usd + 0.5, (seed, more.name)
            assert row.most_usd >= alone.most_usd - 0.5, (seed, more.name)


def test_what_saves_less_together_than_the_gap_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = [rent_offer(name, usd, hardware="A", maximum=40) for name, usd in (("a", 3.0), ("b", 9.0))]
    # Hosts and cards in turn, as offers of a fleet are.
    by_host = rent_offer("c", 9.5, hardware="A", maximum=40, unit="host", per_unit=8)
    question = short(offers=[offers[0], by_host, offers[1]])
    resolver = Resolver(EXACT)
    plan = resolver.solve(question).plan
    assert plan is not None
    solved: list[Fleet] = []
    solve = Resolver.answer

    def counted(self: Resolver, asked: FleetQuestion) -> FleetAnswer:
        solved.append(asked.fleet)
        return solve(self, asked)

    monkeypatch.setattr(Resolver, "answer", counted)
    limits = [more for more in one_more(question) if more.is_limit]
    rows = list(unit_values(limits, plan, question, resolver))
    assert [(row.more.name, row.most_usd) for row in rows] == [
        (f"maximum of offer {name}", pytest.approx(0.0, abs=0.01)) for name in "acb"
    ]
    assert len(solved) == 1
    raised = {offer.name: offer.max_units for offer in solved[0].offers}
    assert raised == dict.fromkeys("abc", (41,))


def short(**changes: object) -> Fleet:
    """One host of 8 cards, 100 requests/s of 10 a pair of cards; the rest is rented at 3 USD/h a card."""
    rates = engine_table([("aggregated", "A", 2, 10.0)], power_kw=2.0)
    fields: dict[str, object] = {
        "services": [service("chat", 100.0, engines=rates)],
        "hardware": [hardware("A", 8, 1000.0)],
        "pools": [owned_pool("own", 1, 160_000.0, hardware="A")],
        "offers": [rent_offer("rent", 3.0, hardware="A", maximum=40)],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


def values(question: Fleet, limits: SearchLimits = EXACT) -> dict[str, UnitValue]:
    resolver = Resolver(limits)
    plan = resolver.solve(question).plan
    assert plan is not None
    rows = by_worth(unit_values(list(one_more(question)), plan, question, resolver))
    assert rows == sorted(rows, key=lambda row: -row.least_usd)
    return {f"{row.more.amount:g} {row.more.name}": row for row in rows}


def test_a_host_saves_the_rent_of_its_cards() -> None:
    found = values(short())["1 pool own"]
    assert found.least_usd == pytest.approx(8 * 3.0 * 2190)
    assert found.most_usd == pytest.approx(8 * 3.0 * 2190)
    assert found.price_usd == pytest.approx(160_000 / 16)
    assert found.proven


def test_kilowatts_are_worth_something_once_a_replica_fits() -> None:
    """Cheap cards draw more: 2 kW a replica for 1 USD/h, or 1 kW for 3 USD/h; ten replicas."""
    rates = engine_table([("aggregated", "A", 1, 10.0), ("aggregated", "B", 1, 10.0)])
    rates["power_kw"] = [2.0, 1.0]
    question = fleet(
        services=[service("chat", 100.0, engines=rates)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 3.0)],
        regions=[region("here", power_kw=(15.5,))],
    )
    found = values(question)
    # 5 of each fit; half a kilowatt is left, so one more brings one A for one B, ten bring all.
    assert found["1 power of here"].least_usd == pytest.approx(2.0 * 2190)
    assert found["10 power of here"].least_usd == pytest.approx(5 * 2.0 * 2190)


def test_a_dollar_and_a_percent_of_a_budget() -> None:
    question = short(budget={"tco_usd": 1e6, "opex_usd": 1e6, "capex_usd_by_period": (5e5,)})
    found = values(question)
    assert found["1 tco budget"].most_usd == pytest.approx(0.0, abs=1e-3)
    assert {"1 opex budget", "10000 tco budget", "1 capex budget of now", "5000 capex budget of now"} <= set(
        found
    )
    budgets = [more.edit(question).budget for more in one_more(question) if "budget" in more.name]
    assert Budget((500_001.0,), None, 1e6, 1e6) in budgets
    assert Budget((5e5,), None, 1e6, 1_010_000.0) in budgets


def test_a_millisecond_that_lets_a_faster_configuration_in() -> None:
    rates = engine_table([("aggregated", "A", 2, 10.0), ("aggregated", "A", 1, 10.0)])
    rates["ttft_ms"] = [100.0, 205.0]
    asked = service("chat", 100.0, engines=rates, ttft_ms=200.0, tpot_ms=50.0)
    found = values(short(services=[asked]))
    assert found["1 TTFT limit of chat"].most_usd == pytest.approx(0.0, abs=1e-3)
    # 10 cards for 20, 8 of which stand.
    assert found["10 TTFT limit of chat"].least_usd == pytest.approx(10 * 3.0 * 2190)
    assert found["10 TPOT limit of chat"].most_usd == pytest.approx(0.0, abs=1e-3)


def test_what_the_gaps_hide_is_stated_as_hidden() -> None:
    question = short()
    resolver = Resolver(EXACT)
    plan = resolver.solve(question).plan
    assert plan is not None
    loose = plan.model_copy(update={"bound_usd": plan.objective_usd * 0.1})
    host = next(one_more(question))
    found = worth_of(host, loose, question, resolver)
    assert found.least_usd == 0.0
    assert not found.proven
    assert found.most_usd == pytest.approx(8 * 3.0 * 2190)


def test_the_table_and_the_figure_have_every_row() -> None:
    rows = list(values(short()).values())
    table = marginal_table(rows)
    assert list(table["more_of"]) == [row.more.name for row in rows]
    assert (table["worth_least_usd"] <= table["worth_most_usd"] + 1e-6).all()
    (axes,) = marginal_figure(rows).axes
    assert len(axes.get_yticklabels()) == sum(row.most_usd >= 1 for row in rows)
    assert list(marginal_table([]).columns) == list(table.columns)
    with_price = replace(rows[0], price_usd=1.0)
    assert marginal_table([with_price])["price_usd"].tolist() == [1.0]


def test_amounts_are_written_as_people_write_them() -> None:
    """One per cent of a budget of two million is written without an exponent."""
    budget = ExtraUnit("capex budget", 20_000.0, "USD", lambda fleet: fleet)
    assert budget.amount_text == "20,000 USD"
    assert replace(budget, amount=0.5, unit="kW").amount_text == "0.5 kW"
