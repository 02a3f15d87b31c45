"""`plan solve --baseline` and `plan verify --baseline`: changes against the plan in force."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.command_line import in_folder, run

from fleetplan.planner.plan import Plan

pytestmark = pytest.mark.usefixtures("plain_folders")

FLEET = """\
version: 1
hardware: {A: {accelerators_per_host: 1}, B: {accelerators_per_host: 1}}
offers:
  - {name: a, hardware: A, per: accelerator, rent_usd_per_accelerator_hour: 1.0}
  - {name: b, hardware: B, per: accelerator, rent_usd_per_accelerator_hour: 1.1}
services: [{name: chat, engines: engines.csv, demand: 2}]
policy: {transition_usd_per_accelerator: 300}
"""
ENGINES = "phase,hardware,config,accelerators_per_replica,requests_per_s\n" + "".join(
    f"aggregated,{name},one,1,1\n" for name in "AB"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)


def test_the_plan_in_force_is_kept_where_changing_costs_more(capsys: pytest.CaptureFixture[str]) -> None:
    # B alone for now; then A is offered, 219 USD a quarter cheaper for each accelerator. To change one of two
    # is 0.4 % from the best, so only a gap of 0 tells the one from the other.
    assert run("solve", "fleet.yaml", "--out", "before", "--set", "services.chat.hardware=[B]") == 0
    assert "no effect: one period, and no plan in force" in capsys.readouterr().err
    before = "before/plan.json"
    exact = ("--gap", "0")
    assert run("solve", "fleet.yaml", "--out", "kept", "--baseline", before, *exact) == 0
    assert "no effect" not in capsys.readouterr().err
    kept = Plan.read(Path("kept/plan.json"))
    assert {row.hardware for row in kept.placements} == {"B"}
    assert kept.transitions == ()
    cheap = ("--set", "policy.transition_usd_per_accelerator=200")
    assert run("solve", "fleet.yaml", "--out", "changed", "--baseline", before, *cheap, *exact) == 0
    assert "Changes now: 2 accelerators start ($400), 2 are freed" in capsys.readouterr().out
    changed = Plan.read(Path("changed/plan.json"))
    assert changed.cost_breakdown == pytest.approx({"rent": 2 * 2190.0, "transition": 400.0})
    assert Path("changed/transitions.csv").is_file()
    assert run("verify", "changed/plan.json", "fleet.yaml", "--baseline", before, *cheap) == 0
    capsys.readouterr()
    # Without the plan in force its cost of change cannot be explained.
    assert run("verify", "changed/plan.json", "fleet.yaml", *cheap) == 2
    assert "transition" in capsys.readouterr().out


def test_a_baseline_that_is_no_plan_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("plan.json").write_text("{}", encoding="utf-8")
    assert run("solve", "fleet.yaml", "--baseline", "plan.json") == 2
    assert "is not a plan" in capsys.readouterr().err
    assert run("solve", "fleet.yaml", "--baseline", "none.json") == 2
    assert "none.json" in capsys.readouterr().err
    assert run("verify", "fleet.yaml", "plan.json") == 2
    assert "this looks like a fleet file; `plan FLEET.yaml --out DIR` writes DIR" in capsys.readouterr().err
    Path("out").mkdir()
    Path("plan.json").rename("out/plan.json")
    assert run("explain", "out") == 2
    assert "it is a folder; did you mean out/plan.json?" in capsys.readouterr().err


def test_options_are_refused_before_anything_is_solved(capsys: pytest.CaptureFixture[str]) -> None:
    """Invalid options are refused before the search starts."""
    for options, said in (
        (("--out", "fleet.yaml"), "'--out': 'fleet.yaml' is a file, not a folder"),
        (("--gap", "5"), "'--gap': '5' is not a ratio below 1; write 0.5% or 0.005"),
    ):
        assert run("solve", "fleet.yaml", *options) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert said in told
        assert "solving" not in told
