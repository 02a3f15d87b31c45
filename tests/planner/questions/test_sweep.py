"""`plan sweep`: points, grids, tables and repeated points."""

from __future__ import annotations

import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from tests.parts import first_of
from tests.planner.questions.swept import SCENARIO, SCENARIOS, run, swept
from tests.planner.random_fleets import large_case, tiny_case
from tests.planner.solving import solve_unchecked

from fleetplan.fleet.errors import InputError
from fleetplan.planner.cells import csv_text
from fleetplan.planner.commands.run_sweep import GridBase, SweptGrid, print_sweep, sweep, tasks_of
from fleetplan.planner.problem import build_problem
from fleetplan.planner.questions.sweep.axes import SweepPoint, grid_points, read_axes, split_values
from fleetplan.planner.questions.sweep.plots import write_sweep_plots
from fleetplan.planner.questions.sweep.results import (
    PointResult,
    point_key,
    read_result,
    result_file,
    sweep_table,
    write_result,
)
from fleetplan.planner.questions.sweep.run import run_sweep
from fleetplan.planner.report.headline import status_words
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import SearchLimits, SolveStatus
from fleetplan.planner.search.solvers import reproducible
from fleetplan.scenarios.load import load_fleet

LIMITS = SearchLimits(60.0, 0.0, 1, 1, reproducible=True)


def test_every_point_is_the_plan_of_its_fleet(whole_sweep: Path) -> None:
    table = pd.read_csv(whole_sweep / "sweep.csv")
    tco = table[table["metric"] == "tco"].set_index(["demand", "price.big-gpu"])["value"]
    assert len(tco) == 6
    # One big card and one small one, the big one at four fifths of its price.
    assert tco[1.0, 1.0] == pytest.approx(4.68 * 2190)
    assert tco[1.0, 0.8] == pytest.approx((0.8 * 3.67 + 1.01) * 2190)
    used = table[table["metric"] == "in use: big-gpu"].set_index(["demand", "price.big-gpu"])["value"]
    assert used[1.0, 1.0] == 1
    assert set(table["status"]) == {"optimal"}
    drawn = {path.name for path in (whole_sweep / "plots").iterdir()}
    assert drawn == {"tco.svg", "hardware.svg", "heatmap.svg"}


def test_a_point_is_solved_again_when_anything_it_depends_on_changes(tmp_path: Path) -> None:
    for name in ("fleet.yaml", "engines.csv"):
        shutil.copy(SCENARIO.with_name(name), tmp_path / name)
    path = tmp_path / "fleet.yaml"
    point = SweepPoint((("demand", "1"),))
    fleet = load_fleet(path)
    key = point_key(fleet, point, LIMITS)
    assert key == point_key(load_fleet(path), point, LIMITS)
    others = [
        point_key(fleet, SweepPoint((("demand", "2"),)), LIMITS),
        point_key(load_fleet(path, (), ["services.chat.headroom=0.1"]), point, LIMITS),
        point_key(fleet, point, SearchLimits(60.0, 0.1, 1, 1, reproducible=True)),
    ]
    rates = tmp_path / "engines.csv"
    rates.write_text(rates.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    others.append(point_key(load_fleet(path), point, LIMITS))
    assert len({key, *others}) == 5


def test_a_damaged_result_is_solved_again(whole_sweep: Path, tmp_path: Path) -> None:
    shutil.copytree(whole_sweep, tmp_path, dirs_exist_ok=True)
    table = (whole_sweep / "sweep.csv").read_text(encoding="utf-8")
    victim = next((tmp_path / "points").glob("*.json"))
    victim.write_text('{"point": [', encoding="utf-8")
    assert read_result(victim) is None
    assert swept(tmp_path) == table
    assert read_result(victim) is not None


def test_points_without_a_plan_have_a_row(tmp_path: Path) -> None:
    grid = ("offers.big-rent.max_accelerators=0,1", "offers.small-rent.max_accelerators=0,1")
    swept(tmp_path, "--set", "policy={unmet: forbid}", grid=grid)
    table = pd.read_csv(tmp_path / "sweep.csv")
    assert list(table["status"].unique()) == ["infeasible", "optimal"]
    nothing = table[table["status"] == "infeasible"]
    assert nothing["metric"].isna().all()
    assert len(nothing) == 3
    code, out = run(
        "sweep",
        SCENARIO,
        "--grid",
        grid[0],
        "--out",
        tmp_path,
        "--set",
        "offers.small-rent.max_accelerators=0",
        "--set",
        "policy={unmet: forbid}",
    )
    assert code == 0
    assert "infeasible" in out


def test_a_grid_over_scenarios_keys_and_latency(tmp_path: Path) -> None:
    axes = read_axes(["scenario=base,slides", "services.llama-405b.demand=20,40", "slo.llama-405b=1,2"])
    ground = GridBase(SCENARIOS / "meta-405b-heterogeneous.yaml", (), ())
    tasks = tasks_of(ground, axes, LIMITS)
    assert [task.point.text for task in tasks][:2] == [
        "scenario=base, services.llama-405b.demand=20, slo.llama-405b=1",
        "scenario=base, services.llama-405b.demand=20, slo.llama-405b=2",
    ]
    assert [task.fleet.scenarios for task in tasks] == [()] * 4 + [("slides",)] * 4
    assert tasks[1].fleet.services[0].ttft_ms == 800
    assert tasks[2].fleet.services[0].demand.peak["default", "now", "all"] == 40
    assert tasks[4].fleet.offers[2].rent_usd_per_accelerator_hour == (1.0,)


def test_a_price_axis_takes_any_name_of_the_hardware() -> None:
    for name in ("H200-SXM", "H200", "p5en.48xlarge"):
        (task,) = tasks_of(GridBase(SCENARIOS / "tiny.yaml", (), ()), read_axes([f"price.{name}=2"]), LIMITS)
        (offer,) = task.fleet.offers
        assert offer.rent_usd_per_accelerator_hour == pytest.approx((5.0,))


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("demand", "must be key=value,value"),
        ("demand=", "must be key=value,value"),
        ("demand.chta=1", "did you mean 'chat'"),
        ("price.big=1", "no offer is or brings 'big'"),
        ("slo.chta=1", "there is no service"),
        ("demand=-1", "is not a ratio above 0"),
        ("demand=much", "is not a ratio above 0"),
        ("services.chta.headroom=1", "did you mean 'chat'"),
        ("services.chta.headroom=1,2", "^--grid services.chta.headroom=1: [^\n]*$"),
        ("services.chat.headroom=-1,x", "^--grid [^\n]*\n--grid services.chat.headroom=x: [^\n]*$"),
        ("demnd=1,2", "^--grid demnd=1,2: there is no axis 'demnd'; [^\n]*did you mean 'demand'"),
        ("scenario=growth", "there is no scenario"),
    ],
)
def test_a_grid_that_means_nothing_is_refused_before_anything_is_solved(grid: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tasks_of(GridBase(SCENARIO, (), ()), read_axes([grid]), LIMITS)


def test_an_axis_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="given twice"):
        read_axes(["demand=1", "demand=2"])


def test_unknown_backends_are_refused(tmp_path: Path) -> None:
    tasks = tasks_of(GridBase(SCENARIO, (), ()), read_axes(["demand=1"]), LIMITS)
    with pytest.raises(InputError, match="there is no such backend; local, dask://"):
        list(run_sweep(tasks, tmp_path, 1, "ray://"))
    with pytest.raises(InputError, match="there is no such backend"):
        sweep(GridBase(SCENARIO, (), ()), ["demand=1"], LIMITS, tmp_path / "out", (1, "ray://"))
    assert not (tmp_path / "out").exists()


def test_points_say_how_they_ended_in_words() -> None:
    axes = read_axes(["demand=1"])
    nothing = PointResult(point=(("demand", "1"),), status="no_plan", figures=())
    stream = StringIO()
    print_sweep(SweptGrid(axes, (nothing,), ()), Console(file=stream, width=160))
    assert "no plan within the time limit" in stream.getvalue()
    assert status_words("within_gap") == "within the requested gap"


def test_values_keep_their_commas_in_brackets_and_quotes() -> None:
    assert split_values("1,{a: 1, b: 2},[3, 4],'x,y'") == ["1", "{a: 1, b: 2}", "[3, 4]", "'x,y'"]
    assert len(grid_points(read_axes(["a=1,1,2", "b=3,4"]))) == 4


def test_the_table_of_one_axis_and_of_none_that_is_solved(tmp_path: Path) -> None:
    axes = read_axes(["demand=1,2"])
    nothing = [PointResult(point=(("demand", str(i)),), status="infeasible", figures=()) for i in (1, 2)]
    table = sweep_table(axes, nothing)
    assert list(table.columns) == ["demand", "status", "metric", "unit", "value"]
    assert write_sweep_plots(axes, table, tmp_path / "plots") == []
    path = result_file(tmp_path, "key")
    write_result(path, nothing[0])
    assert read_result(path) == nothing[0]
    swept(tmp_path / "one", grid=("demand=1,2",), drawn=True)
    assert {path.name for path in (tmp_path / "one" / "plots").iterdir()} == {"tco.svg", "hardware.svg"}


def test_a_part_of_a_grid_is_written_as_in_the_whole() -> None:
    axes = read_axes(["demand=1,1.5", "services.chat.slo.ttft_ms=200,300", "power=10,1.5,none"])
    points = [PointResult(point=point.values, status="infeasible", figures=()) for point in grid_points(axes)]
    whole = csv_text(sweep_table(axes, points)).splitlines()
    assert whole[1].startswith("1.0,200,10,")
    for count in range(len(points)):
        assert csv_text(sweep_table(axes, points[:count])).splitlines() == whole[: count + 1]
        assert csv_text(sweep_table(axes, points[count:])).splitlines() == [whole[0], *whole[count + 1 :]]


@pytest.mark.parametrize("seed", first_of(range(12), 5))
def test_the_reproducible_search_agrees_with_the_race(seed: int) -> None:
    case = tiny_case(seed)
    raced = solve_unchecked(case.fleet, case.candidates)
    found = search(build_problem(case.fleet, case.candidates), LIMITS)
    assert found.status == raced.result.status
    if found.status is SolveStatus.OPTIMAL:
        assert found.objective_usd == pytest.approx(raced.result.objective_usd, rel=1e-6)


def test_the_reproducible_search_finds_the_same_plan_beside_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CP-SAT's share is too small for a plan, so that HiGHS decides: coarsely, then to the gap."""
    monkeypatch.setattr(reproducible, "FIRST_SEARCH", 1e-6)
    case = large_case(4, n_services=3, n_regions=1, n_hardware=3)
    limits = SearchLimits(60.0, 0.03, 1, 1, reproducible=True)
    problem = build_problem(case.fleet, case.candidates)
    first = search(problem, limits)
    assert first.bound_source == "HiGHS"
    busy = subprocess.Popen([sys.executable, "-c", "import os\nwhile os.getppid() > 1: pass"])
    try:
        again = search(problem, limits)
    finally:
        busy.kill()
        busy.wait()
    assert again.solution == first.solution
    assert (again.objective_usd, again.bound_usd) == (first.objective_usd, first.bound_usd)
