"""Uncertain demand: one set of purchases, placements by scenario, expected cost or least regret."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from tests.oracles.highs import highs_usd
from tests.planner.builders import buy_offer, candidate, fleet, hardware, region, rent_offer, service
from tests.planner.families import solved_example
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import solve
from tests.planner.uncertain_demand import RUNS, bought, planned, question

from fleetplan.fleet.inventory import Budget, DemandScenario, MustUse
from fleetplan.planner.api import solve_problem
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.plan import UNMET_GAP_RATIO, Plan
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.problem.scenarios import FixedSupply
from fleetplan.planner.report.common_purchases import purchases_by_scenario
from fleetplan.planner.report.day_console import UNMET_AT_MOST, print_scenarios
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.search import scenarios, uncertain_demand
from fleetplan.planner.search.result import SearchLimits, SearchResult, SolveStatus
from fleetplan.planner.units import USD_RESOLUTION
from fleetplan.planner.verify import verify

KEY = ("here", "now", "all")


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("regret")
    assert solved.plan is not None
    assert bought(solved.plan) == {"A": 5, "B": 5}


def test_expected_cost_buys_for_what_is_likely() -> None:
    plan = planned(question())
    assert bought(plan) == {"A": 10}
    assert plan.objective_usd == pytest.approx(20_000)
    assert {row.name: (row.usd, row.regret_usd) for row in plan.demand_scenarios} == {
        "low": (pytest.approx(20_000), pytest.approx(10_000)),
        "high": (pytest.approx(20_000), pytest.approx(0, abs=0.01)),
    }


def test_expected_cost_weighs_what_runs_by_its_probability() -> None:
    scenarios = (DemandScenario("low", 0.6), DemandScenario("high", 0.4))
    plan = planned(question(demand_scenarios=scenarios))
    # Five always run; the other five run with 0.4, where B costs 1000 + 0.4 * 1200 and A 2000.
    assert bought(plan) == {"A": 5, "B": 5}
    assert plan.objective_usd == pytest.approx(5 * 2000 + 5 * 1000 + 0.4 * 5 * 1200)
    assert [row.usd for row in plan.demand_scenarios] == pytest.approx([15_000, 21_000])
    assert plan.cost_breakdown["energy"] == pytest.approx(0.4 * 5 * 1200)


def test_least_regret_looks_at_both_scenarios_alike() -> None:
    plan = planned(question("least-regret"))
    assert bought(plan) == {"A": 5, "B": 5}
    assert {row.name: row.regret_usd for row in plan.demand_scenarios} == pytest.approx(
        {"low": 5000, "high": 1000}
    )
    assert plan.goal is not None
    assert (plan.goal.objective, plan.goal.unit) == ("least-regret", "USD")
    assert plan.goal.value == pytest.approx(5000)
    assert plan.goal.bound == pytest.approx(5000)


def test_what_is_not_proven_of_a_scenario_alone_is_part_of_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps of the single scenarios' optima are part of the gap of the regret."""
    original = uncertain_demand.with_scenario_optima

    def doubtful(problem: Problem, *given: Any) -> tuple[Problem, dict[str, SearchResult]]:
        found, results = original(problem, *given)
        optima = found.scenario_optima or {}
        lower = {name: replace(best, bound_usd=best.usd - 2000.0) for name, best in optima.items()}
        return replace(found, scenario_optima=lower), results

    monkeypatch.setattr(uncertain_demand, "with_scenario_optima", doubtful)
    plan = planned(question("least-regret"))
    assert plan.goal is not None
    assert (plan.goal.value, plan.goal.bound) == pytest.approx((5000, 5000))
    # The cheapest scenario alone costs 10,000 USD.
    assert plan.goal.gap == pytest.approx(2000 / 10_000)
    assert plan.status == "limit"
    assert plan.open_gap == plan.goal.gap


def test_a_regret_over_a_plan_that_may_serve_more_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A regret is proven only against scenario plans that are proven to serve all that is possible."""
    original = scenarios.search

    def serves_nothing(problem: Problem, *limits: Any) -> SearchResult:
        if problem.fleet.demand_scenarios[0].name == "low":
            return original(problem, *limits)
        found = original(replace(problem, fixed_supply=FixedSupply({}, {})), *limits)
        unmet = {priority: replace(left, bound=0.0) for priority, left in found.unmet.items()}
        return replace(found, unmet=unmet, status=SolveStatus.LIMIT)

    lenient = question("least-regret", policy=replace(question().policy, unmet="penalise"))
    proven = planned(lenient, forecasts=False).goal
    assert proven is not None
    assert (proven.value, proven.bound) == pytest.approx((5000, 5000))
    monkeypatch.setattr(scenarios, "search", serves_nothing)
    plan = planned(lenient, forecasts=False)
    low, high = plan.demand_scenarios
    assert (high.best_unmet_requests_per_s, high.best_unmet_gap) == (10.0, 1.0)
    assert low.best_unmet_gap == 0.0
    assert plan.goal is not None
    assert plan.goal.bound <= proven.value < plan.goal.value
    assert plan.status == "limit"
    # Nor may a document claim it.
    problem = build_problem(lenient, RUNS)
    goal = plan.goal.model_copy(update={"bound": plan.goal.value, "gap": 0.0})
    assert "goal" in {each.family for each in verify(problem, plan.model_copy(update={"goal": goal}))}


def test_other_commands_minimise_the_regret_too() -> None:
    plan = planned(question("least-regret"), forecasts=False)
    assert bought(plan) == {"A": 5, "B": 5}
    assert plan.wrong_forecasts == ()


def test_being_wrong_costs_in_either_direction() -> None:
    plan = planned(question())
    wrong = {(row.planned_for, row.turns_out): row for row in plan.wrong_forecasts}
    assert set(wrong) == {("low", "high"), ("high", "low")}
    # Planned for the low demand: five of A, and half of the high one goes unserved.
    short = wrong["low", "high"]
    assert short.usd == pytest.approx(10_000)
    assert short.unmet_requests_per_s == pytest.approx(5.0)
    assert short.extra_usd == pytest.approx(-10_000)
    assert short.unmet_gap == pytest.approx(0.0, abs=UNMET_GAP_RATIO)
    # Planned for the high demand: ten of A, half of them idle.
    idle = wrong["high", "low"]
    assert (idle.usd, idle.unmet_requests_per_s) == (pytest.approx(20_000), 0.0)
    assert idle.extra_usd == pytest.approx(10_000)


@pytest.mark.usefixtures("plain_figures")
def test_unmet_demand_after_a_wrong_forecast_is_at_most_what_no_proof_came_for() -> None:
    """Unmet demand without a proof is stated as "at most"."""
    plan = planned(question())
    short, idle = plan.wrong_forecasts
    assert "at most 5" not in printed(plan)
    open_gap, false_gap = (short.model_copy(update={"unmet_gap": gap}) for gap in (0.4, 1.4))
    unproven = plan.model_copy(update={"wrong_forecasts": (open_gap, idle)})
    assert "$10 k, at most 5 req/s unmet on average" in printed(unproven)
    assert UNMET_AT_MOST in printed(unproven)
    assert "at most 5" in report_page(unproven)
    problem = build_problem(question(), RUNS)
    assert not verify(problem, unproven)
    false = plan.model_copy(update={"wrong_forecasts": (false_gap, idle)})
    assert {violation.family for violation in verify(problem, false)} == {"demand_scenarios"}


def printed(plan: Plan) -> str:
    stream = io.StringIO()
    print_scenarios(plan, Console(file=stream, width=200))
    return stream.getvalue()


def test_purchases_that_hold_in_every_scenario_are_known() -> None:
    plan = planned(question("least-regret"))
    alone = {(row.scenario, row.offer): row.units for row in plan.scenario_purchases}
    (cheap,) = {row.offer for row in plan.scenario_purchases}
    # Five of A are best for the low demand and ten for the high one; the plan has five, and five of B.
    assert alone == {("low", cheap): 5, ("high", cheap): 10}
    rows = purchases_by_scenario(plan)
    assert {row.offer: (row.planned, row.alone, row.sure) for row in rows if row.offer == cheap} == {
        cheap: (5, (5, 10), 5)
    }
    assert {row.sure for row in rows if row.offer != cheap} == {0}
    problem = build_problem(question("least-regret"), RUNS)
    assert not verify(problem, plan)
    lost = plan.scenario_purchases[0].model_copy(update={"offer": "nobody"})
    assert verify(problem, plan.model_copy(update={"scenario_purchases": (lost,)}))


def test_placements_are_made_for_each_scenario() -> None:
    solved = solve(question(), RUNS)
    assert {(row.scenario, row.replicas) for row in solved.rows()} == {("low", 5), ("high", 10)}
    assert sum(row.usd for row in solved.rows()) == pytest.approx(20_000 - 0.1 * 10_000)
    assert sum(use.idle_usd for use in solved.plan.pools if solved.plan) == pytest.approx(0.1 * 10_000)


def test_unmet_demand_weighs_its_probability() -> None:
    # The budget pays for one accelerator: the service that is likely to be asked for gets it.
    asked = fleet(
        services=[
            service("rare", 1.0, ratios={(None, "other"): {KEY: 0.0}}),
            service("likely", 1.0, ratios={(None, "one"): {KEY: 0.0}}),
        ],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.0)],
        policy={"unmet": "penalise"},
        budget={"tco_usd": 2200.0},
    )
    for probability, unserved in ((0.2, "rare"), (0.8, "likely")):
        scenarios = (DemandScenario("one", probability), DemandScenario("other", 1 - probability))
        runs = [candidate("rare", "A", 1.0), candidate("likely", "B", 1.0)]
        solved = solve(replace(asked, demand_scenarios=scenarios), runs)
        assert solved.plan is not None
        assert [row.service for row in solved.plan.unmet] == [unserved]


def test_purchases_of_all_periods_hold_for_every_scenario() -> None:
    periods = ("2027Q1", "2027Q2")
    first, second = (("here", q, "all") for q in periods)
    chat = service(
        "chat",
        {first: 2.0, second: 6.0},
        periods=periods,
        ratios={(None, "slow"): {second: 0.5}},
    )
    asked = replace(
        fleet(
            services=[chat],
            hardware=[hardware("A", 1)],
            offers=[
                buy_offer("buy", 16_000, hardware="A", per_unit=1, lead=1, periods=periods),
                rent_offer("rent", 2.0, hardware="A", periods=periods),
            ],
            regions=[region()],
            periods=periods,
        ),
        demand_scenarios=(DemandScenario("slow", 0.5), DemandScenario("fast", 0.5)),
    )
    runs = [candidate("chat", "A", 1.0)]
    solved = solve(asked, runs)
    # Two are rented in the first quarter, six bought for the second, though one scenario needs three.
    assert solved.usd == pytest.approx(2 * 2 * 2190 + 6 * 1000)
    assert solved.usd == pytest.approx(highs_usd(build_problem(asked, runs)), rel=1e-6)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_another_solver_agrees(probability: float) -> None:
    scenarios = (DemandScenario("low", probability), DemandScenario("high", 1 - probability))
    asked = question(demand_scenarios=scenarios)
    found = solve(asked, RUNS).usd
    assert found == pytest.approx(highs_usd(build_problem(asked, RUNS)), rel=1e-6)


def test_a_limit_of_tco_holds_in_the_mean_and_not_in_the_dearest_scenario() -> None:
    """A limit on TCO holds for the mean of the scenarios, not for each."""
    free = planned(question("least-regret"))
    costs = {row.name: row.usd for row in free.demand_scenarios}
    assert min(costs.values()) < free.objective_usd < max(costs.values())
    capped = planned(question("least-regret", budget=Budget((None,), None, None, free.objective_usd)))
    assert capped.goal == free.goal
    assert capped.objective_usd == pytest.approx(free.objective_usd)


def test_a_regret_of_nothing_is_nothing_but_for_floats() -> None:
    sure = question("least-regret", services=(service("chat", 10.0),))
    problem = build_problem(sure, RUNS)
    limits = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)
    found = solve_problem(
        CandidateSet(RUNS, (), (), ()), problem, limits, None, lambda _: None, forecasts=False
    )
    plan = found.outcome
    assert isinstance(plan, Plan)
    assert plan.goal is not None
    assert plan.goal.value == pytest.approx(0.0, abs=1e-6)
    for noise in (1e-9, -1e-9):
        goal = plan.goal.model_copy(update={"value": noise, "bound": 2 * noise, "gap": 0.0})
        assert not verify(found.problem, plan.model_copy(update={"goal": goal}))
    # Ten dollars are none.
    goal = plan.goal.model_copy(update={"bound": plan.goal.value + 10.0})
    assert "goal" in {each.family for each in verify(found.problem, plan.model_copy(update={"goal": goal}))}


def test_a_regret_has_a_range_where_sales_bring_more_than_everything_costs() -> None:
    best = EXAMPLES["regret"]().scenario_optima or {}
    earning = {name: replace(each, usd=-each.usd, bound_usd=-each.usd) for name, each in best.items()}
    problem = replace(build_problem(question("least-regret"), RUNS), scenario_optima=earning)
    (regret,) = build_model(problem, allow_unmet=False).variables.regret.values()
    low, high = regret.proto.domain
    assert low < 0 < high
    assert high >= 20_000 * USD_RESOLUTION


def test_a_regret_is_no_less_than_what_is_proven_of_each_scenario_alone() -> None:
    """The bound of the regret uses the bounds of single scenarios, also if time allows only a first plan."""

    def least_usd(allow_unmet: bool = False, **changes: object) -> float:
        problem = replace(build_problem(question("least-regret", **changes), RUNS), scenario_optima=open_ones)
        (regret,) = build_model(problem, allow_unmet).variables.regret.values()
        return float(regret.proto.domain[0]) / USD_RESOLUTION

    best = EXAMPLES["regret"]().scenario_optima or {}
    # By 300 and by 50 USD may there be cheaper plans for one scenario: no regret is below -50.
    gaps = dict(zip(best, (300.0, 50.0), strict=True))
    open_ones = {name: replace(each, bound_usd=each.usd - gaps[name]) for name, each in best.items()}
    assert -50 - 2 < least_usd() <= -50
    # What stays unmet costs nothing, a limit of operating cost holds in the mean alone, and what must be used
    # is used in some scenario.
    assert least_usd(allow_unmet=True) < -1e5
    assert least_usd(budget=Budget((None,), None, 1e6, None)) < -1e5
    used = replace(question().policy, must_use=(MustUse("A", hardware="A"),))
    assert least_usd(policy=used) < -1e5


def test_a_plan_that_states_another_cost_of_a_scenario_is_rejected() -> None:
    problem = build_problem(question(), RUNS)
    plan = planned(question())

    def families(**changes: object) -> set[str]:
        first = plan.demand_scenarios[0].model_copy(update=changes)
        tampered = plan.model_copy(update={"demand_scenarios": (first, *plan.demand_scenarios[1:])})
        return {violation.family for violation in verify(problem, tampered)}

    assert families() == set()
    assert families(usd=19_000.0) == {"demand_scenarios"}
    assert families(unmet_requests_per_s=1.0) == {"demand_scenarios"}
    assert families(best_bound_usd=11_000.0) == {"demand_scenarios"}
    assert families(regret_usd=0.0) == {"demand_scenarios"}
    assert families(name="medium") == {"demand_scenarios"}
    wrong = plan.wrong_forecasts[0].model_copy(update={"extra_usd": 0.0})
    tampered = plan.model_copy(update={"wrong_forecasts": (wrong,)})
    assert {violation.family for violation in verify(problem, tampered)} == {"demand_scenarios"}
