"""Objectives that come before TCO, against optima computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.parts import first_of
from tests.planner.builders import (
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.formulation.goals import QUARTER_H, RUNS, question, reached, runs
from tests.planner.random_fleets import tiny_case
from tests.planner.solving import solve

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.formulation import goal_of
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.search.result import SolveStatus
from fleetplan.planner.verify import verify
from fleetplan.scenarios.load import load_fleet


def test_the_cheapest_plan_is_the_default() -> None:
    solved = solve(question("tco"), RUNS)
    assert solved.plan is not None
    assert (runs(solved), solved.plan.goal) == ({"hot": 2}, None)


def test_hosts_of_other_parts_of_the_fleet_are_decided_there() -> None:
    """A part of the fleet ignores pools of other parts, also pools with a reserve at least energy."""
    here, there = (region(name, pue=1.2) for name in ("here", "there"))
    kept = rented_pool("kept", 1, 1.0, hardware="cool", per_host=1, region="there")
    asked = fleet(
        services=[service("chat", 3.0), service("talk", 1.0, regions=("there",))],
        hardware=[hardware("cool", 1, idle_w=100.0)],
        pools=[replace(kept, reserve_hosts=1)],
        offers=[rent_offer("cool", 3.0, regions=("here", "there"))],
        regions=[here, there],
    )
    runs = [candidate(name, "cool", 1.0, power_kw=0.5) for name in ("chat", "talk")]
    solved = solve(replace(asked, objective="energy"), runs)
    # Three run here; there one, and one stands by.
    assert reached(solved).value == pytest.approx((3 * 0.5 + 0.5 + 0.1) * 1.2 * QUARTER_H)


def test_least_energy_takes_the_cool_ones_at_the_least_price() -> None:
    solved = solve(question("energy"), RUNS)
    goal = reached(solved)
    assert runs(solved) == {"cool": 3}
    # Three replicas of 0.5 kW at full load.
    assert (goal.unit, goal.value) == ("kWh", pytest.approx(3 * 0.5 * 1.2 * QUARTER_H))
    assert goal.gap == pytest.approx(0.0, abs=1e-4)
    # Equal in energy, so TCO decides between the two offers.
    assert solved.usd == pytest.approx(3 * 2.0 * QUARTER_H)
    assert solved.result.status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("objective", ["energy", "carbon"])
def test_a_few_load_units_are_told_apart(objective: str) -> None:
    """Whole load units would have it that the hot ones draw less: 3 of 0.97 against 6 of 0.5."""
    tiny = (service("chat", 1e-4),)
    runs_of = (
        candidate("chat", "hot", 1.9, power_kw=0.97),
        candidate("chat", "cool", 1.0, power_kw=0.5),
    )
    solved = solve(question(objective, services=tiny), runs_of)
    assert runs(solved) == {"cool": 1}
    kwh = 1e-4 * 0.5 * 1.2 * QUARTER_H
    assert reached(solved).value == pytest.approx(kwh * (0.4 if objective == "carbon" else 1.0))
    assert reached(solved).bound == pytest.approx(reached(solved).value)


@pytest.mark.parametrize("objective", ["energy", "carbon"])
def test_the_little_that_is_served_of_a_huge_demand_counts(objective: str) -> None:
    """What is left of the whole demand's draw less that of unmet demand is not the sum of their roundings."""
    huge = (service("chat", 1e9 - 1),)
    offers = (rent_offer("hot", 1.0, maximum=3), rent_offer("cool", 3.0, maximum=3))
    asked = question(objective, services=huge, offers=offers)
    solved = solve(replace(asked, policy=replace(asked.policy, unmet="penalise")), RUNS)
    # All six at full load, within the rate unit of ten requests/s.
    kwh = (3 * 1.5 + 3 * 0.5) * 1.2 * QUARTER_H
    assert reached(solved).value <= kwh * (0.4 if objective == "carbon" else 1.0) * (1 + 1e-6)


def test_shares_of_the_periods_are_exact() -> None:
    """A third in millionths would tell plans apart that run as many accelerators."""
    periods = ("2026Q1", "2026Q2", "2026Q3")
    asked = replace(
        question("accelerators"), periods=periods, services=(service("chat", 3.0, periods=periods),)
    )
    goal = goal_of(build_problem(replace(asked, regions=(), offers=()), ()))
    assert goal is not None
    assert goal.resolution == 3


def test_least_carbon_counts_the_grid_of_each_period() -> None:
    periods = ("2026Q1", "2026Q2")
    asked = question("carbon")
    asked = replace(
        asked,
        periods=periods,
        regions=(region(pue=1.2, grid_kg_co2_per_kwh=(0.4, 0.1)),),
        services=(service("chat", 3.0, periods=periods),),
        offers=tuple(
            rent_offer(name, usd, hardware=part, periods=periods)
            for name, usd, part in (("hot", 1.0, "hot"), ("cool", 3.0, "cool"))
        ),
        budget=replace(asked.budget, capex_usd_by_period=(None, None)),
    )
    goal = reached(solve(asked, RUNS))
    assert (goal.unit, goal.value) == ("kg CO2", pytest.approx(3 * 0.5 * 1.2 * QUARTER_H * 0.5))


def test_fewest_accelerators_take_the_fast_ones() -> None:
    asked = question("accelerators", services=(service("chat", 4.0),))
    dear = (replace(asked.offers[0], rent_usd_per_accelerator_hour=(9.0,)), *asked.offers[1:])
    solved = solve(replace(asked, offers=dear), RUNS)
    assert runs(solved) == {"hot": 2}
    assert (reached(solved).value, reached(solved).unit) == (pytest.approx(2.0), "accelerators")


def test_a_large_replica_blocks_whole_hosts() -> None:
    asked = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("A", 8), hardware("B", 8)],
        offers=[
            rent_offer("A", 1.0, unit="host", per_unit=8),
            rent_offer("B", 1.0, unit="host", per_unit=8),
        ],
    )
    wide, narrow = candidate("chat", "A", 3.0, accelerators=10), candidate("chat", "B", 1.0, accelerators=4)
    solved = solve(replace(asked, objective="accelerators"), (wide, narrow))
    assert reached(solved).value == pytest.approx(12.0)
    assert runs(solved) == {"B": 3}


def test_regions_that_share_nothing_add_up() -> None:
    places = (region("east", pue=1.2), region("west", pue=1.5))
    asked = replace(
        question("energy"),
        regions=places,
        services=(service("chat", 1.0, regions=("east", "west")),),
        offers=(rent_offer("cool", 3.0, regions=("east", "west")),),
    )
    goal = reached(solve(asked, RUNS[1:]))
    assert goal.value == pytest.approx(0.5 * (1.2 + 1.5) * QUARTER_H)
    assert goal.bound <= goal.value


@pytest.mark.parametrize("objective", ["energy", "carbon", "accelerators", "served"])
@pytest.mark.parametrize("seed", first_of(range(4), 2))
def test_no_other_plan_is_better(objective: str, seed: int) -> None:
    case = tiny_case(seed)
    powered = tuple(
        replace(one, power_kw=0.4 + 0.1 * (i % 5) * one.accelerators) for i, one in enumerate(case.candidates)
    )
    regions = tuple(
        replace(one, grid_kg_co2_per_kwh=(0.3 + 0.1 * i,) * len(case.fleet.periods))
        for i, one in enumerate(case.fleet.regions)
    )
    asked = replace(case.fleet, regions=regions)
    cheapest, best = solve(asked, powered), solve(replace(asked, objective=objective), powered)
    if cheapest.plan is None:
        assert objective == "served" or best.plan is None
        return
    assert cheapest.usd is not None
    assert best.usd is not None
    goal = reached(best)
    assert best.usd >= cheapest.usd * (1 - 1e-6)
    # The cheapest plan, stated as one of this goal, is no better than its bound.
    stated = cheapest.plan.model_copy(update={"goal": goal})
    found = [v.message for v in verify(best.problem, stated) if "better than the bound" in v.message]
    assert found == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"value": 1.0}, "the plan states 1.0 kWh"),
        ({"bound": 1e9}, "better than the bound"),
        ({"gap": 0.5}, "gap of energy: the plan states 0.5"),
        ({"objective": "carbon"}, "the plan states carbon"),
    ],
)
def test_a_plan_that_states_another_goal_is_rejected(change: dict[str, object], text: str) -> None:
    solved = solve(question("energy"), RUNS)
    assert solved.plan is not None
    tampered = solved.plan.model_copy(update={"goal": reached(solved).model_copy(update=change)})
    found = [violation for violation in verify(solved.problem, tampered) if text in violation.message]
    assert {violation.family for violation in found} == {"goal"}


def test_a_plan_without_its_goal_is_rejected() -> None:
    solved = solve(question("energy"), RUNS)
    assert solved.plan is not None
    nothing = solved.plan.model_copy(update={"goal": None})
    assert "goal" in {violation.family for violation in verify(solved.problem, nothing)}


def test_the_report_names_the_goal_and_the_document_keeps_it() -> None:
    solved = solve(question("energy"), RUNS)
    assert solved.plan is not None
    console = Console(width=200, record=True, quiet=False, file=None, force_terminal=False)
    with console.capture() as captured:
        print_plan(solved.plan, console)
    assert "energy 3,942 kWh, gap 0.00% (lower bound 3,942)" in captured.get()
    assert Plan.model_validate_json(solved.plan.model_dump_json()).goal == solved.plan.goal


FILE = """\
version: 1
regions: {{here: {{{region}}}}}
hardware: {{own: {{{figures}}}}}
offers: [{{name: rent, hardware: own, rent_usd_per_accelerator_hour: 2}}]
services: [{{name: chat, engines: rates.csv, demand: 2, priority: 2{service}}}]
objective: {objective}
"""


def loaded(folder: Path, objective: str, region: str = "", figures: str = "", service: str = "") -> Fleet:
    path = folder / "fleet.yaml"
    text = FILE.format(objective=objective, region=region, figures=figures, service=service)
    path.write_text(text, encoding="utf-8")
    table = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,own,1,x1,1\n"
    (folder / "rates.csv").write_text(table, encoding="utf-8")
    return load_fleet(path)


def test_the_objective_of_a_file(tmp_path: Path) -> None:
    asked = loaded(tmp_path, "served")
    assert (asked.objective, asked.services[0].served_weight) == ("served", 0.5)
    assert loaded(tmp_path, "served", service=", served_weight: 4").services[0].served_weight == 4
    assert any(
        "served_weight: has no effect" in text
        for text in loaded(tmp_path, "tco", service=", served_weight: 4").warnings
    )


@pytest.mark.parametrize(
    ("objective", "region", "figures", "expected"),
    [
        ("energy", "", "all_in_w: 900", "regions.here.pue: is required for the objective energy"),
        ("energy", "pue: 1.2", "", "own has no power figure, for chat"),
        ("carbon", "pue: 1.2", "all_in_w: 900", "regions.here.grid_kg_co2_per_kwh: is required"),
    ],
)
def test_what_an_objective_counts_must_be_given(
    tmp_path: Path, objective: str, region: str, figures: str, expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, objective, region, figures)
    assert expected in str(caught.value)
    loaded(tmp_path, "tco", region, figures)
