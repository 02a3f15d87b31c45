"""`plan diff`: every difference has a line, and every dollar of difference a cost."""

from __future__ import annotations

import functools
import io
import itertools
from pathlib import Path

import pytest
from rich.console import Console
from tests.planner.builders import HOURS_PER_QUARTER, candidate, fleet, hardware, rent_offer, service
from tests.planner.random_fleets import tiny_case
from tests.planner.solving import solve

from fleetplan.planner import cli
from fleetplan.planner.plan import Plan, Retired, Unmet
from fleetplan.planner.questions.diff import IDLE, Action, DiffSubject, FigureChange, PlanDiff, diff
from fleetplan.planner.report.diff_console import print_diff


def plan_for(
    demand: float,
    *,
    usd_a: float = 1.0,
    period: str = "now",
    with_b: float = 0.0,
    maximum_a: int | None = None,
) -> Plan:
    """One service on A at 1 request/s an accelerator, and one on B where it has any demand."""
    periods = (period,)
    services = [service("chat", demand, periods=periods)]
    if with_b:
        services.append(service("voice", with_b, periods=periods))
    question = fleet(
        services=services,
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[
            rent_offer("A", usd_a, periods=periods, maximum=maximum_a),
            rent_offer("B", 3.0, periods=periods),
        ],
        periods=periods,
    )
    runs = [candidate("chat", "A", 1.0), candidate("chat", "B", 1.0), candidate("voice", "B", 2.0)]
    plan = solve(question, runs).plan
    assert plan is not None
    return plan


@functools.cache
def random_plans(count: int) -> tuple[Plan, ...]:
    """Plans of the first random fleets that have one."""
    cases = map(tiny_case, itertools.count())
    plans = (plan for case in cases if (plan := solve(case.fleet, case.candidates).plan) is not None)
    return tuple(itertools.islice(plans, count))


def line(found: PlanDiff, subject: DiffSubject, hardware_name: str) -> FigureChange:
    (change,) = [
        each for each in found.changes if each.subject is subject and f" {hardware_name} " in f"{each.name} "
    ]
    return change


def figures(change: FigureChange) -> dict[str, tuple[float, float]]:
    return {each.name: (each.before, each.after) for each in change.quantities}


def test_a_plan_does_not_differ_from_itself() -> None:
    plan = plan_for(3.0, with_b=2.0)
    found = diff(plan, plan)
    assert found.changes == ()
    assert not found.differs
    assert found.notes == ()


def test_growth_and_a_new_service_are_worked_out_by_hand() -> None:
    # 3 -> 5 accelerators A at 1 USD an hour, 0 -> 2 B at 3 USD an hour.
    found = diff(plan_for(3.0), plan_for(5.0, with_b=4.0))
    assert [(each.action.value, each.subject.value) for each in found.changes] == [
        ("~", "placement"),
        ("+", "placement"),
        ("~", "purchase"),
        ("+", "purchase"),
        ("~", "pool"),
        ("+", "pool"),
    ]
    grown = line(found, DiffSubject.PLACEMENT, "A")
    assert figures(grown) == {"replicas": (3, 5), "accelerators": (3, 5), "requests/s all": (3.0, 5.0)}
    assert line(found, DiffSubject.PURCHASE, "B").delta("units") == 2
    assert found.count(Action.ADD) == 3
    assert found.count(Action.CHANGE) == 3
    assert found.count(Action.REMOVE) == 0
    assert found.count(Action.ADD, DiffSubject.POOL) == 1
    assert found.tco.delta_usd == pytest.approx((2 * 1.0 + 2 * 3.0) * HOURS_PER_QUARTER)
    by_service = {cost.name: cost.delta_usd for cost in found.cost_by_service}
    assert by_service == pytest.approx(
        {"chat": 2 * HOURS_PER_QUARTER, "voice": 6 * HOURS_PER_QUARTER, IDLE: 0.0}, abs=1e-6
    )


def test_what_is_taken_away_is_a_minus() -> None:
    found = diff(plan_for(3.0, with_b=4.0), plan_for(3.0))
    assert {each.action for each in found.changes} == {Action.REMOVE}
    assert line(found, DiffSubject.PLACEMENT, "B").delta("replicas") == -2


def test_a_price_alone_is_a_difference_without_a_line() -> None:
    found = diff(plan_for(3.0), plan_for(3.0, usd_a=1.1))
    assert found.changes == ()
    assert found.differs
    assert found.tco.delta_usd == pytest.approx(0.3 * HOURS_PER_QUARTER)
    assert [cost.name for cost in found.cost_by_kind if not cost.same] == ["rent"]


def test_quarters_are_compared_in_order() -> None:
    found = diff(plan_for(3.0, period="2026Q4"), plan_for(4.0, period="2027Q1"))
    assert {(each.action, each.period) for each in found.changes} == {(Action.CHANGE, "2027Q1")}
    assert "2026Q4 with 2027Q1" in found.notes[0]


def test_periods_that_only_one_plan_covers_are_added() -> None:
    plan = plan_for(3.0)
    longer = plan.model_copy(
        update={
            "periods": ("now", "later"),
            "placements": (*plan.placements, plan.placements[0].model_copy(update={"period": "later"})),
        }
    )
    found = diff(plan, longer)
    assert [(each.action, each.period) for each in found.changes] == [(Action.ADD, "later")]
    assert "added or removed" in found.notes[0]


def test_the_periods_of_both_plans_have_a_cost_of_their_own() -> None:
    old, new = plan_for(3.0), plan_for(4.0)
    later = [
        row.model_copy(update={"name": "later", "usd": 99.0}) for row in new.costs if row.scope == "period"
    ]
    new = new.model_copy(
        update={
            "periods": ("now", "later"),
            "costs": (*new.costs, *later),
            "objective_usd": new.objective_usd + 99,
        }
    )
    found = diff(old, new)
    assert found.shared is not None
    assert (found.shared.name, found.shared.delta_usd) == ("now", pytest.approx(HOURS_PER_QUARTER))
    screen = io.StringIO()
    print_diff(found, Console(file=screen, width=160))
    assert "Cost of now $6.57 k -> $8.76 k: +$2.19 k (+33.33%)" in screen.getvalue()
    assert diff(old, old).shared is None


def test_retirements_and_unmet_demand_are_lines_too() -> None:
    plan = plan_for(3.0)
    gone = Retired(period="now", pool="old", region="here", hardware="A", hosts=2, usd=-5.0, resale_usd=5.0)
    unmet = Unmet(period="now", region="here", service="chat", request_class="all", requests_per_s=0.5)
    found = diff(plan, plan.model_copy(update={"retirements": (gone,), "unmet": (unmet,)}))
    assert [(each.subject, each.action) for each in found.changes] == [
        (DiffSubject.RETIREMENT, Action.ADD),
        (DiffSubject.UNMET, Action.ADD),
    ]


def test_turned_round_every_line_turns_round() -> None:
    turned = {Action.ADD: Action.REMOVE, Action.REMOVE: Action.ADD, Action.CHANGE: Action.CHANGE}
    for old, new in itertools.pairwise(random_plans(6)):
        forth, back = diff(old, new), diff(new, old)
        assert forth.differs
        assert forth.tco.delta_usd == pytest.approx(-back.tco.delta_usd)
        assert [(turned[each.action], each.name) for each in forth.changes] == [
            (each.action, each.name) for each in back.changes
        ]


def test_the_changes_lead_from_the_old_figures_to_the_new() -> None:
    for old, new in itertools.pairwise(random_plans(6)):
        found = diff(old, new)
        for subject, rows in ((DiffSubject.PLACEMENT, "placements"), (DiffSubject.PURCHASE, "purchases")):
            before, after = (sum(row.accelerators for row in getattr(plan, rows)) for plan in (old, new))
            moved = sum(each.delta("accelerators") for each in found.changes if each.subject is subject)
            assert before + moved == after


def test_costs_add_up_to_the_tco() -> None:
    for old, new in itertools.pairwise(random_plans(6)):
        found = diff(old, new)
        for costs in (found.cost_by_kind, found.cost_by_service):
            assert sum(cost.before_usd for cost in costs) == pytest.approx(old.objective_usd)
            assert sum(cost.after_usd for cost in costs) == pytest.approx(new.objective_usd)


def test_kinds_of_cost_are_printed_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    plan = random_plans(1)[0]
    changed = plan.model_copy(update={"cost_breakdown": {**plan.cost_breakdown, "idle_energy": 12.0}})
    print_diff(diff(plan, changed), Console(width=200))
    assert "idle energy" in capsys.readouterr().out


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["diff", *map(str, arguments)])
    return int(stopped.value.code or 0)


def written(folder: Path, name: str, plan: Plan) -> Path:
    path = folder / name
    path.write_text(plan.model_dump_json(), encoding="utf-8")
    return path


def test_the_command_prints_signs_counts_and_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = written(tmp_path, "old.json", plan_for(3.0))
    new = written(tmp_path, "new.json", plan_for(5.0, with_b=4.0))
    assert run(old, new) == 0
    out = capsys.readouterr().out
    assert "  ~ now here: chat aggregated x1 on A in here/A: replicas 3 -> 5" in out
    assert "  + now here: voice aggregated x1 on B in here/B: replicas 2" in out
    assert "Plan: 3 to add, 3 to change, 0 to remove" in out
    assert "TCO $6.57 k -> $24.09 k: +$17.52 k (+266.67%)" in out
    assert out.index("TCO") < out.index("By service") < out.index("Pools") < out.index("Placements")


def test_exit_code_5_says_that_plans_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = written(tmp_path, "old.json", plan_for(3.0)), written(tmp_path, "new.json", plan_for(4.0))
    dearer = written(tmp_path, "dearer.json", plan_for(3.0, usd_a=1.1))
    assert run(old, new, "--exit-code") == 5
    assert run(old, dearer, "--exit-code") == 5
    assert run(old, old, "--exit-code") == 0
    assert "No changes" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "{", '{"fleet": "x"}', b"\xff\xfe"])
def test_what_is_no_plan_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | bytes | None
) -> None:
    good, bad = written(tmp_path, "good.json", plan_for(3.0)), tmp_path / "bad.json"
    if content is not None:
        bad.write_bytes(content.encode() if isinstance(content, str) else content)
    assert run(good, bad, "--exit-code") == 2
    assert "bad.json" in capsys.readouterr().err
