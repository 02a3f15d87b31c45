"""Questions with little or nothing to report, and counts without duplicates."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.planner.command_line import in_folder, run

pytestmark = pytest.mark.usefixtures("plain_folders")

FLEET = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2], slices: [{name: night, hours: 12}, {name: day, hours: 12}]}
hardware:
  card: {vendor: A, bf16_tflops: 900, hbm_gib: 80, hbm_gb_per_s: 3000, scale_up_gb_per_s: 450, tdp_w: 700}
offers:
  - {name: cloud, hardware: card, per: accelerator, rent_usd_per_accelerator_hour: 2}
services:
  - {name: api, engines: engines.csv, demand: 25}
"""
ENGINES = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,card,1,c1,10\n"


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)
    assert run("solve", "fleet.yaml", "--out", "out", "--time-limit", 60) == 0
    capsys.readouterr()
    return Path("out/plan.json")


def test_a_card_that_runs_at_every_moment_is_one_card(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A card counts once, in however many periods and slices it runs."""
    assert run("explain", plan, "--service", "api") == 0
    assert "3 accelerators in the plan" in capsys.readouterr().out
    assert run("explain", plan, "--why-not", "card") == 0
    said = capsys.readouterr().out
    assert "card is in the plan: 3 accelerators" in said
    assert "without it, no plan serves everything (proven)" in said
    assert run("sweep", "fleet.yaml", "--grid", "demand=1,2", "--out", "sweep", "--time-limit", 60) == 0
    assert [line.split()[-2:] for line in capsys.readouterr().out.splitlines()[1:3]] == [
        ["card", "3"],
        ["card", "5"],
    ]


def test_nothing_is_worth_anything_where_nothing_is_limited(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explain", plan, "--marginal") == 0
    assert "The fleet has no limits" in capsys.readouterr().out


def test_cases_of_stress_that_do_not_arise_are_named(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cases that do not apply to a plan are named with the reason."""
    assert run("stress", plan, "--demand", "10%", "--price", "", "--slower", "", "--late", 1) == 0
    said = capsys.readouterr().out
    assert "Not applicable: late purchases: the plan buys nothing; a lost region: there is one region" in said


def test_a_frontier_of_latency_needs_a_limit(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A frontier of latency is refused where no service has a latency limit."""
    assert run("pareto", plan, "--against", "latency") == 2
    assert "no service has a latency limit that could be tighter" in capsys.readouterr().err


def test_a_replay_of_nothing_confirms_nothing(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", plan, "fleet.yaml", "--duration", 5) == 0
    said = capsys.readouterr().out
    assert "Nothing was simulated, so no limit is confirmed." in said
    assert "Every limit holds" not in said


def test_a_script_without_a_command_is_not_written(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", plan, "--as", "launch", "--out", "launch") == 2
    assert "launch cannot express any part of the plan" in capsys.readouterr().err
    assert not Path("launch").exists()


def test_what_cannot_run_gives_its_reasons_and_no_empty_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES.replace(",10\n", ",0\n"))
    assert run("solve", "fleet.yaml", "--time-limit", 30) == 3
    said = capsys.readouterr().out
    assert "missing: a configuration that meets the SLO and fits memory" in said
    assert "()" not in said


def test_one_host_is_no_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = FLEET.replace("per: accelerator, ", "max_hosts: 1, ")
    in_folder(tmp_path, monkeypatch, one, ENGINES)
    assert run("solve", "fleet.yaml", "--time-limit", 30) == 3
    assert "offer cloud supplies at most 1 host of card" in capsys.readouterr().out


def test_a_frontier_of_headroom_keeps_the_bound_of_the_point_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounding of energy in two models does not withdraw the bound of a point."""
    energy = "regions: {paris: {pue: 1.2, energy_usd_per_kwh: 0.15}}\nhardware:\n"
    fleet = FLEET.replace("hardware:\n", energy).replace("tdp_w: 700", "tdp_w: 700, all_in_w: 500")
    fleet = fleet.replace("_hour: 2", "_hour: 0.1").replace("demand: 25", "demand: 3.4722")
    fleet = "\n".join(line for line in fleet.splitlines() if not line.startswith("horizon"))
    in_folder(tmp_path, monkeypatch, fleet, ENGINES.replace(",10\n", ",6.77\n"))
    assert run("solve", "fleet.yaml", "--out", "out", "--time-limit", 60) == 0
    assert run("pareto", "out/plan.json", "--against", "headroom", "--csv", "points.csv") == 0
    points = pd.read_csv("points.csv")
    # What both models round energy by is taken off the bound.
    assert (points["tco_bound_usd"] >= 0.999 * points["tco_usd"]).all()


SOLD = """\
version: 1
horizon: {periods: [2027Q1]}
hardware:
  card: {vendor: A, accelerators_per_host: 1, all_in_w: 700}
regions: {default: {energy_usd_per_kwh: 0.1, pue: 1.2}}
pools:
  - name: old
    hardware: card
    hosts: 9
    owned: {capex_usd_per_host: 1000, in_service: 2026Q1, resale_usd_per_host: 50000}
services:
  - {name: api, engines: engines.csv, demand: 25}
"""


def test_a_frontier_and_alternatives_of_a_plan_that_earns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cost cap relative to a negative cost leaves room for plans."""
    in_folder(tmp_path, monkeypatch, SOLD, ENGINES)
    assert run("solve", "fleet.yaml", "--out", "out", "--time-limit", 60) == 0
    assert "TCO -$" in capsys.readouterr().out
    assert run("pareto", "out/plan.json", "--against", "energy", "--csv", "frontier.csv") == 0
    assert "no plan" not in capsys.readouterr().out
    points = pd.read_csv("frontier.csv")
    assert (points["tco_usd"] < 0).all()
    assert points["value"].is_monotonic_decreasing
    assert run("alternatives", "out/plan.json", "--within", "5%") == 0
