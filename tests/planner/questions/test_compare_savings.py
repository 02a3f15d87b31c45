"""The saving in `plan compare`: its range, and options that need no search."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from tests.parts import first_parts
from tests.planner.builders import HOURS_PER_QUARTER, fleet, rent_offer, service
from tests.planner.questions.comparing import (
    EXACT,
    RATES,
    RULES,
    chat,
    chosen_plan,
    compared,
    engines,
    hourly,
    named,
    only,
    plan_of,
    two_kinds,
    vendored,
    whole_comparison,
)

from fleetplan.fleet.figures import money
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import NoPlanFoundError, Planned, Purpose
from fleetplan.planner.questions import compare
from fleetplan.planner.questions.comparison import Saving
from fleetplan.planner.report.compare_console import print_comparison
from fleetplan.planner.search.result import SearchLimits


def test_the_same_question_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    solve = compare.solve_problem

    def counted(*arguments: object) -> Planned:
        asked.append(arguments)
        return solve(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "solve_problem", counted)
    found = compared(two_kinds(), "homogeneous", "single-vendor", "without:A", "without:B")
    assert len(asked) == 3
    assert [hourly(chosen_plan(row)) for row in found.rows] == pytest.approx([32.0, 32.0, 32.0, 42.0])


def test_the_interval_of_the_saving_holds_both_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = compare.solve_problem

    def with_a_gap(*arguments: object) -> Planned:
        planned = solve(*arguments)  # type: ignore[arg-type]
        plan = plan_of(planned.outcome)
        return replace(planned, outcome=plan.model_copy(update={"bound_usd": 0.9 * plan.objective_usd}))

    monkeypatch.setattr(compare, "solve_problem", with_a_gap)
    saving = only(compared(two_kinds(), "without:A")).saving
    assert saving is not None
    hours = HOURS_PER_QUARTER
    # The plan costs 24 and at least 21.6, the other 32 and at least 28.8.
    assert saving.usd == pytest.approx(8 * hours)
    assert saving.least_usd == pytest.approx(4.8 * hours)
    assert saving.most_usd == pytest.approx(10.4 * hours)


def test_an_option_without_a_plan_in_time_may_still_be_the_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = compare.solve_problem

    def in_vain_on_a(candidates: object, problem: object, *rest: object) -> Planned:
        if {each.hardware for each in problem.candidates} == {"A"}:  # type: ignore[attr-defined]
            raise NoPlanFoundError("no plan within 1 s")
        return solve(candidates, problem, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "solve_problem", in_vain_on_a)
    row = only(compared(two_kinds(), "homogeneous"))
    assert hourly(chosen_plan(row)) == pytest.approx(32.0)
    assert row.bound_usd == pytest.approx(24 * HOURS_PER_QUARTER)
    assert row.saving is not None
    assert not row.saving.proven
    assert [(trial.infeasible, trial.reasons) for trial in row.trials if trial.plan is None] == [
        (False, ("no plan within 1 s",))
    ]


def test_rows_are_known_as_they_are_solved_and_ctrl_c_ends_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = compare.solve_problem
    purposes: list[object] = []

    def interrupted_at_the_third(*arguments: object) -> Planned:
        purposes.append(arguments[-1])
        if len(purposes) == 3:
            raise KeyboardInterrupt
        return solve(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "solve_problem", interrupted_at_the_third)
    question, known = two_kinds(), list[int]()
    steps = compare.comparisons(question, named(question, "without:A", "without:B"), EXACT)
    with pytest.raises(KeyboardInterrupt):
        known.extend(len(found.rows) for found in steps)
    assert known == [0, 1]
    # Ctrl-C keeps the best plan of the fleet itself, and ends the question after that.
    assert purposes == [Purpose.ANSWER, Purpose.ROW, Purpose.ROW]


def test_different_unmet_demand_is_no_saving() -> None:
    question = replace(two_kinds(), offers=(rent_offer("A", 1.0), rent_offer("B", 2.0, maximum=10)))
    lenient = replace(question, policy=replace(question.policy, unmet="penalise"))
    row = only(compared(lenient, "without:A"))
    assert [each.requests_per_s for each in chosen_plan(row).unmet] == [pytest.approx(48.0)]
    assert row.saving is None
    assert "different demand unmet" in row.notes[-1]


def test_candidates_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    build = compare.kept_candidates

    def counted(question: Fleet, *rest: object) -> object:
        evaluated.append(question)
        return build(question, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "kept_candidates", counted)
    question = two_kinds()
    dearer = replace(question, offers=(rent_offer("A", 2.0), rent_offer("B", 4.0)))
    found = compared(
        question, *RULES, "without:A", "more", "dearer",
        scenarios={"more": replace(question, services=(chat(240.0),)), "dearer": dearer},
    )  # fmt: skip
    assert len(evaluated) == 1
    more, both = found.rows[-2:]
    assert [hourly(chosen_plan(row)) for row in (more, both)] == [pytest.approx(48.0)] * 2
    assert more.notes == (
        "it serves a different demand: 240 instead of 120 requests/s over all services and periods",
    )
    assert both.notes == ()
    slower = {key: rate / 2 for key, rate in RATES.items()}
    halved = replace(question, services=(chat(rates=slower),))
    row = only(compared(question, "slower", scenarios={"slower": halved}))
    assert len(evaluated) == 3
    assert hourly(chosen_plan(row)) == pytest.approx(48.0)


def many_kinds(seed: int) -> Fleet:
    """Three kinds of hardware at random rates and prices; each can serve everything alone."""
    drawn = random.Random(seed)
    phases = ("prefill", "decode", "aggregated")
    rates = {(phase, kind): drawn.uniform(2.0, 12.0) for phase in phases for kind in "ABC"}
    code = service("code", drawn.uniform(5.0, 90.0), engines=engines(rates))
    return fleet(
        services=[chat(drawn.uniform(80.0, 400.0), rates), code],
        hardware=[vendored(kind, f"vendor {kind}") for kind in "ABC"],
        offers=[rent_offer(kind, drawn.uniform(0.8, 2.5)) for kind in "ABC"],
    )


def offering(question: Fleet, kind: str) -> Fleet:
    return replace(question, offers=tuple(each for each in question.offers if each.hardware == kind))


@pytest.mark.parametrize("seed", first_parts(range(6), 1, more=1))
def test_options_that_are_dearer_for_certain_change_no_saving(seed: int) -> None:
    question = many_kinds(seed)
    row = only(compared(question, "homogeneous"))
    # Every option alone, solved to its end.
    labels = [trial.label for trial in row.trials]
    each_alone = [whole_comparison(offering(question, label), [], EXACT).outcome for label in labels]
    alone = {label: plan_of(found).objective_usd for label, found in zip(labels, each_alone, strict=True)}
    assert row.saving is not None
    assert chosen_plan(row).objective_usd == pytest.approx(min(alone.values()))
    assert row.bound_usd == pytest.approx(min(alone.values()))
    for trial in row.trials:
        plan = plan_of(trial.plan)
        assert plan.bound_usd <= alone[trial.label] * (1 + 1e-9)
        assert plan.objective_usd >= alone[trial.label] * (1 - 1e-9)
        if not trial.dearer:
            assert plan.objective_usd == pytest.approx(alone[trial.label])


def test_a_dearer_option_is_told_as_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    found = compared(two_kinds(), "homogeneous")
    row = only(found)
    (cheap, dear) = sorted(row.trials, key=lambda trial: plan_of(trial.plan).objective_usd)
    loose = plan_of(dear.plan).model_copy(update={"bound_usd": plan_of(cheap.plan).objective_usd})
    trials = (cheap, replace(dear, plan=loose, dearer=True))
    print_comparison(plan_of(found.outcome), (replace(row, trials=trials),), Console(width=120))
    told = capsys.readouterr().out
    assert f"{money(loose.bound_usd)} to {money(loose.objective_usd)}, dearer than the cheapest" in told


@pytest.mark.parametrize(("usd", "advised"), [(0.0, False), (5.0, True)])
def test_a_smaller_gap_is_advised_between_plans_of_different_cost(
    usd: float, advised: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(two_kinds(), "homogeneous")
    saving = Saving(usd=usd, least_usd=usd - 9.0, most_usd=usd + 9.0, of_usd=1000.0)
    print_comparison(plan_of(found.outcome), (replace(only(found), saving=saving),), Console(width=120))
    assert ("try a smaller --gap" in capsys.readouterr().out) == advised


def test_an_option_is_not_searched_once_another_one_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SearchLimits] = []
    first = compare.solve_problem

    def noted(candidates: Any, problem: Any, limits: SearchLimits, *others: Any) -> Planned:
        asked.append(limits)
        return first(candidates, problem, limits, *others)

    monkeypatch.setattr(compare, "solve_problem", noted)
    row = only(compared(two_kinds(), "homogeneous"))
    of_plan, *of_options = asked
    assert of_plan.thresholds is None
    assert [limits.thresholds is None for limits in of_options] == [True] + [False] * (len(of_options) - 1)
    assert of_options[-1].thresholds is not None
    costs = [plan_of(trial.plan).objective_usd for trial in row.trials]
    assert of_options[-1].thresholds.above_usd in costs
