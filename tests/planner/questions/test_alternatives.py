"""Alternatives and frontiers of small fleets, against hand calculations and all sets of hardware."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import first_parts
from tests.planner.builders import buy_offer, fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import tiny_case
from typer.testing import CliRunner

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner import cli
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.alternatives import alternatives, fewest_kinds, kinds_of
from fleetplan.planner.questions.fleet_question import FleetAnswer, FleetQuestion
from fleetplan.planner.questions.pareto import (
    AGAINST,
    ParetoPoint,
    known_from_later,
    pareto,
    pareto_table,
    point_count,
    require_figures,
)
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.report.what_if_console import pareto_figure

pytestmark = pytest.mark.usefixtures("plain_folders")

HOURS = 2190.0


def best_plan(question: Fleet, baseline: Plan | None = None) -> Plan:
    plan = Resolver(EXACT, baseline=baseline).solve(question).plan
    assert plan is not None
    return plan


def mixed(**changes: object) -> Fleet:
    """A prefills and B decodes for 30 USD/h; either alone costs more."""
    table = engine_table(
        [
            ("prefill", "A", 1, 10.0),
            ("decode", "A", 1, 4.0),
            ("prefill", "B", 1, 9.0),
            ("decode", "B", 1, 20.0),
        ],
        power_kw=1.0,
    )
    fields: dict[str, object] = {
        "services": [service("chat", 180.0, engines=table)],
        "hardware": [hardware("A", 1, 1000.0), hardware("B", 1, 1000.0)],
        "offers": [rent_offer("A", 1.0), rent_offer("B", 1.2)],
        "regions": [region("here", grid_kg_co2_per_kwh=(0.5,), pue=1.0)],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


def test_one_kind_within_the_allowance_is_found_and_none_beyond_it() -> None:
    # 18 A and 9 B are 28.8 USD/h, 29 B are 34.8: 21 % more; 63 A are 63.
    plan = best_plan(mixed())
    assert plan.objective_usd == pytest.approx(28.8 * HOURS)
    enough = next(alternatives(plan, mixed(), 0.22, Resolver(EXACT)))
    assert enough.plan is not None
    assert kinds_of(enough.plan) == {"B"}
    assert enough.usd == pytest.approx(34.8 * HOURS)
    assert enough.proven
    none = next(alternatives(plan, mixed(), 0.2, Resolver(EXACT)))
    assert none.plan is None
    assert none.proven


@pytest.mark.parametrize(
    ("within", "fewest"), [(0.22, {"B"}), (0.2, {"A", "B"})], ids=("one is enough", "none is enough")
)
def test_each_kind_is_asked_once_where_a_plan_has_two(
    within: float, fewest: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five kinds have thirty sets; whether a plan on one is within the cap decides it."""
    others = ("C", "D", "E")
    kinds = [
        ("prefill", "A", 1, 10.0),
        ("decode", "A", 1, 4.0),
        ("prefill", "B", 1, 9.0),
        ("decode", "B", 1, 20.0),
    ]
    kinds += [(phase, name, 1, 5.0) for name in others for phase in ("prefill", "decode")]
    question = mixed(
        services=[service("chat", 180.0, engines=engine_table(kinds, power_kw=1.0))],
        hardware=[hardware(name, 1, 1000.0) for name in ("A", "B", *others)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.2), *(rent_offer(name, 9.0) for name in others)],
    )
    plan = best_plan(question)
    assert kinds_of(plan) == {"A", "B"}
    asked: list[int] = []
    answers = Resolver.answers

    def noted(resolver: Resolver, questions: Sequence[FleetQuestion]) -> Iterator[FleetAnswer]:
        asked.append(len(questions))
        return answers(resolver, questions)

    monkeypatch.setattr(Resolver, "answers", noted)
    found = fewest_kinds(plan, question, plan.objective_usd * (1 + within), Resolver(EXACT))
    assert kinds_of(found.plan or plan) == fewest
    assert found.proven
    assert asked == [5]


@pytest.mark.parametrize("seeds", first_parts(([10, 12, 16, 17], range(6, 18)), 1), ids=("first", "all"))
def test_the_fewest_kinds_are_those_of_trying_every_set(seeds: Sequence[int]) -> None:
    fewer, allowance = 0, 0.3
    for seed in seeds:
        question = with_engine_tables(tiny_case(seed))
        answer = Resolver(EXACT).solve(question)
        if answer.plan is None:
            continue
        cap_usd = answer.plan.objective_usd * (1 + allowance)
        found = fewest_kinds(answer.plan, question, cap_usd, Resolver(EXACT))
        sizes = [len(kinds_of(answer.plan))]
        for kinds in all_sets(question):
            alone = Resolver(EXACT).solve(
                question, lambda each, kinds=kinds: each if each.hardware in kinds else None
            )
            if alone.plan is not None and alone.plan.objective_usd <= cap_usd:
                sizes.append(len(kinds))
        best = len(kinds_of(answer.plan if found.plan is None else found.plan))
        assert found.proven, seed
        assert best == min(sizes), seed
        fewer += found.plan is not None
    assert fewer >= 1


def all_sets(question: Fleet) -> list[frozenset[str]]:
    names = list(question.hardware)
    return [frozenset(c) for n in range(1, len(names) + 1) for c in itertools.combinations(names, n)]


def test_plans_without_a_purchase_and_with_nothing_new() -> None:
    rates = engine_table([("aggregated", "A", 1, 10.0)])
    question = mixed(
        services=[service("chat", 100.0, engines=rates)],
        pools=[owned_pool("own", 9, 16_000.0, hardware="A", per_host=1)],
        offers=[
            buy_offer("buy", 16_000.0, hardware="A", per_unit=1),
            rent_offer("rent", 0.5, hardware="A"),
        ],
    )
    plan = best_plan(question)
    found = {each.name: each for each in alternatives(plan, question, 0.05, Resolver(EXACT))}
    # The tenth card costs 1,000 USD bought and 1,095 rented.
    assert found["no purchase"].usd == pytest.approx(9_000 + 0.5 * HOURS)
    assert found["nothing new"].plan is None
    figure = "the plan has 1 accelerator bought and rented; there is no plan without them"
    assert found["nothing new"].figure == figure
    nearer = {each.name: each for each in alternatives(plan, question, 0.005, Resolver(EXACT))}
    assert nearer["no purchase"].plan is None


def test_fewer_changes_than_the_cheapest_plan_makes() -> None:
    """B would be 2 % cheaper from today on, and everything would start anew."""
    table = engine_table([("aggregated", "A", 1, 10.0), ("aggregated", "B", 1, 10.0)])
    before = mixed(
        services=[service("chat", 100.0, engines=table)], offers=[rent_offer("A", 1.0), rent_offer("B", 2.0)]
    )
    after = replace(before, offers=(rent_offer("A", 1.0), rent_offer("B", 0.98)))
    running = best_plan(before)
    plan = best_plan(after, running)
    assert kinds_of(plan) == {"B"}
    found = {each.name: each for each in alternatives(plan, after, 0.03, Resolver(EXACT, baseline=running))}[
        "fewest changes"
    ]
    assert found.plan is not None
    assert kinds_of(found.plan) == {"A"}
    assert found.usd == pytest.approx(10 * HOURS)
    assert found.figure == "0 accelerators start, in the plan 10"


def points(question: Fleet, against: str) -> list[ParetoPoint]:
    require_figures(question, against)
    return list(pareto(best_plan(question), question, against, Resolver(EXACT)))


def test_fewer_accelerators_and_less_energy_for_more_money() -> None:
    """27 cards are the fewest by cost; more money does not need fewer (18 A and 9 B, or 29 B)."""
    found = points(mixed(), "accelerators")
    assert [point.value for point in found] == pytest.approx([27.0] * 5)
    assert all(point.proven_value == pytest.approx(point.value) for point in found)
    efficient = engine_table([("aggregated", "A", 1, 10.0), ("aggregated", "B", 1, 10.0)])
    efficient["power_kw"] = [2.0, 1.0]
    question = mixed(
        services=[service("chat", 100.0, engines=efficient)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.1)],
    )
    energy, carbon = points(question, "energy"), points(question, "carbon")
    # 0.1 USD/h more a B: none, 1, 2, 5 and 10 of ten within 0, 1, 2, 5 and 10 %.
    kilowatts = [20 - count for count in (0, 1, 2, 5, 10)]
    assert [point.value for point in energy] == pytest.approx([kw * HOURS for kw in kilowatts], rel=1e-3)
    assert [point.value for point in carbon] == pytest.approx([kw * HOURS / 2 for kw in kilowatts], rel=1e-3)
    assert [point.usd for point in energy] == sorted(point.usd or 0.0 for point in energy)
    table = pareto_table(energy)
    assert list(table["unit"].unique()) == ["kWh"]
    (axes,) = pareto_figure(energy, "energy").axes
    assert axes.get_xlabel() == "energy [kWh]"


class Tired(Resolver):
    """Finds a plan for its first caps alone, and remembers where its searches began."""

    def answer(self, asked: FleetQuestion) -> FleetAnswer:
        begun.append(asked.begin)
        answer = super().answer(asked)
        return (
            answer if len(begun) <= 3 else FleetAnswer(answer.problem, None, False, ("no plan within 1 s",))
        )


begun: list[Plan | None] = []


def test_a_point_without_a_plan_of_its_own_is_the_best_one_before_it() -> None:
    begun.clear()
    efficient = engine_table([("aggregated", "A", 1, 10.0), ("aggregated", "B", 1, 10.0)])
    efficient["power_kw"] = [2.0, 1.0]
    question = mixed(
        services=[service("chat", 100.0, engines=efficient)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.1)],
    )
    plan = best_plan(question)
    found = list(pareto(plan, question, "energy", Tired(EXACT)))
    assert [point.value for point in found] == pytest.approx(
        [kw * HOURS for kw in (20, 19, 18, 18, 18)], rel=1e-3
    )
    assert [point.usd for point in found[2:]] == [found[2].usd] * 3
    assert [point.proven_value is None for point in found] == [False, False, False, True, True]
    # Each search begins with the best plan before it.
    assert begun[0] is plan
    figures = [sum(row.energy_usd for row in each.placements) for each in begun if each is not None]
    assert figures == sorted(figures, reverse=True)
    assert len(begun) == 5
    assert begun[4] is begun[3]


def test_a_regret_does_not_come_before_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frontier of a figure minimises that figure's expected value, not the regret."""
    asked: list[str] = []
    real = Resolver.answer

    def solved(self: Resolver, question: FleetQuestion) -> FleetAnswer:
        asked.append(question.fleet.demand_objective)
        return real(self, question)

    question = mixed()
    plan = best_plan(question)
    monkeypatch.setattr(Resolver, "answer", solved)
    regretful = replace(question, demand_objective="least-regret")
    assert len(list(pareto(plan, regretful, "accelerators", Resolver(EXACT)))) == point_count("accelerators")
    assert set(asked) == {"expected-cost"}


def test_tighter_latency_and_more_headroom_cost_more() -> None:
    table = engine_table([("aggregated", "A", 1, 10.0), ("aggregated", "B", 1, 10.0)])
    table["ttft_ms"] = [95.0, 65.0]
    question = mixed(services=[service("chat", 100.0, engines=table, ttft_ms=100.0)])
    latency = points(question, "latency")
    assert [point.usd for point in latency] == [
        pytest.approx(10.0 * HOURS),
        *[pytest.approx(12.0 * HOURS)] * 3,
        None,
        None,
    ]
    headroom = points(question, "headroom")
    assert [point.usd for point in headroom] == pytest.approx([n * HOURS for n in (10, 11, 11, 12, 13)])


def test_figures_that_are_not_there_are_named() -> None:
    with pytest.raises(InputError, match=r"regions.here.grid_kg_co2_per_kwh: is missing"):
        require_figures(mixed(regions=[region("here")]), "carbon")
    with pytest.raises(InputError, match=r"hardware.A.all_in_w: is missing"):
        require_figures(mixed(hardware=[hardware("A", 1), hardware("B", 1)]), "energy")
    with pytest.raises(InputError, match=f"allowed: {', '.join(AGAINST)}; did you mean 'energy'"):
        require_figures(mixed(), "enrgy")


SCENARIO = Path(__file__).parents[3] / "scenarios" / "bring-your-own-rates" / "fleet.yaml"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def test_the_commands(tmp_path: Path) -> None:
    plan = tmp_path / "out" / "plan.json"
    run("solve", SCENARIO, "--out", tmp_path / "out")
    stressed = run("stress", plan, "--demand", "100%,-50%", "--slower", "", "--csv", tmp_path / "stress.csv")
    assert "demand +100%" in stressed
    assert "prices of offers +20%" in stressed
    assert "slower" not in stressed
    assert (tmp_path / "stress.csv").read_text(encoding="utf-8").startswith("case,service,region")
    other = run("alternatives", plan, "--within", "60%", "--out", tmp_path / "others")
    assert (
        "fewest kinds of hardware: 1 kind (big-gpu), the plan has 2; TCO $16.07 k (+$5.825 k, 57%)" in other
    )
    assert (tmp_path / "others" / "fewest-kinds-of-hardware" / "plan.json").exists()
    drawn = tmp_path / "plots" / "frontier.svg"
    front = run("pareto", plan, "--against", "headroom", "--csv", tmp_path / "p.csv", "--plot", drawn)
    assert "headroom +30%" in front
    assert drawn.exists()
    with pytest.raises(InputError, match="there is no region 'moon'"):
        run("stress", plan, "--lose", "moon")


def test_points_take_what_later_ones_do_better() -> None:
    """A point takes the plan of a later, tighter point that is cheaper."""
    asked = [ParetoPoint(f"+{n}", usd, 9.0, n / 10, "of demand") for n, usd in enumerate((10.0, 12.0, 11.5))]
    assert [point.usd for point in known_from_later(asked, "headroom")] == [10.0, 11.5, 11.5]
    lost = [*asked, ParetoPoint("+3", None, None, 0.3, "of demand")]
    assert [point.usd for point in known_from_later(lost, "headroom")] == [10.0, 11.5, 11.5, None]
    values = ((26.0, 23.3), (26.0, 23.3), (25.98, 23.2), (26.5, 23.0))
    capped = [ParetoPoint("cap", usd, 25.0, value, "kg CO2", 22.9) for usd, value in values]
    found = known_from_later(capped, "carbon")
    assert [(point.usd, point.value) for point in found] == [(25.98, 23.2)] * 3 + [(26.5, 23.0)]
    assert [point.bound_usd for point in found] == [None, None, 25.0, 25.0]
    # What nothing within a cap is below, nothing within a lower cap is.
    proven = [ParetoPoint("cap", 26.0, 25.0, 23.3, "kg CO2", least) for least in (22.9, 22.7, 22.8)]
    assert [point.proven_value for point in known_from_later(proven, "carbon")] == [22.9, 22.8, 22.8]
    # The plan of a later point is often that of the one before, found again; its bound is still one.
    again = [ParetoPoint("cap", usd, 25.0, 23.3, "kg CO2", 22.9) for usd in (26.0, 26.0 - 1e-7)]
    assert known_from_later(again, "carbon") == again
