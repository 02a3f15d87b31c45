"""The command `plan compare`: output, files and exit codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.planner.questions.comparing import (
    EXACT,
    RATES,
    chosen_plan,
    engines,
    hourly,
    named,
    only,
    plan_of,
    two_kinds,
    whole_comparison,
)

from fleetplan.planner import cli
from fleetplan.planner.plan import Plan

FLEET = """
version: 1
name: two-kinds
hardware: {A: {accelerators_per_host: 1}, B: {accelerators_per_host: 1}}
offers:
  - {name: a, hardware: A, per: accelerator, rent_usd_per_accelerator_hour: 1}
  - {name: b, hardware: B, per: accelerator, rent_usd_per_accelerator_hour: 2}
services:
  - {name: chat, engines: engines.csv, demand: 120}
scenarios:
  more: {services: [{name: chat, demand: 240}]}
"""


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["compare", *map(str, arguments)])
    return int(stopped.value.code or 0)


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    engines(RATES).drop(columns="ttft_ms").to_csv(tmp_path / "engines.csv", index=False)
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return path


def test_the_command_prints_a_line_for_each_and_writes_their_plans(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = fleet_file.parent / "out"
    against = ["--against", "homogeneous", "--against", "more", "--against", "without:A"]
    assert run(fleet_file, *against, "--out", out, "--gap", "0") == 0
    printed = capsys.readouterr().out
    assert "homogeneous (B)" in printed
    assert "+$17.52 k (+25.0%)" in printed
    assert "a different demand: 240 instead of 120" in printed
    assert "accelerators in use: A 0 -> 12, B 16 -> 6" in printed
    plans = {path.parent.name: Plan.read(path) for path in sorted(out.glob("*/plan.json"))}
    assert {name: hourly(plan) for name, plan in plans.items()} == pytest.approx(
        {"plan": 24.0, "against-homogeneous": 32.0, "against-more": 48.0, "against-without-A": 32.0}
    )
    # A plan that it wrote is a counterfactual of the next question.
    assert run(fleet_file, "--against", out / "against-homogeneous" / "plan.json") == 0


def test_the_command_says_what_hardware_that_stands_idle_costs(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 12 A are rented already: they cost 12 USD an hour of the 44 where nothing may run on them.
    pool = "pools=[{name: own, hardware: A, accelerators: 12, rented: {usd_per_accelerator_hour: 1}}]"
    assert run(fleet_file, "--against", "without:A", "--set", pool) == 0
    assert (
        "$26.28 k pays for owned or rented hardware that runs nothing; without it the TCO would be $70.08 k"
        in (capsys.readouterr().out)
    )


def test_the_command_exits_with_2_for_every_mistake_at_once(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fleet_file, "--against", "les", "--against", "nowhere.json", "--against", "without:C") == 2
    errors = capsys.readouterr().err
    assert all(text in errors for text in ("--against les", "nowhere.json", "no pool or offer supplies 'C'"))


def test_the_command_says_that_the_fleet_itself_is_infeasible(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = ["--set", "offers.a.max_accelerators=1", "--set", "offers.b.max_accelerators=1"]
    assert run(fleet_file, "--against", "homogeneous", *limited) == 3
    assert "cannot be served" in capsys.readouterr().out


def test_the_command_says_what_an_infeasible_counterfactual_lacks(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = ["--set", "offers.b.max_accelerators=6"]
    assert run(fleet_file, "--against", "without:A", *limited) == 0
    printed = capsys.readouterr().out
    assert "infeasible" in printed
    assert "requests/s unserved" in printed


def test_a_plan_in_force_counts_in_every_fleet_that_is_compared() -> None:
    """Starting a card costs 4,380 USD, two dollars an hour; 16 B run already."""
    question = two_kinds()
    question = replace(question, policy=replace(question.policy, transition_usd_per_accelerator=4380.0))
    (homogeneous,) = named(question, "homogeneous")
    running = chosen_plan(only(whole_comparison(question, [homogeneous], EXACT)))
    found = whole_comparison(question, [homogeneous], EXACT, baseline=running)
    row = only(found)
    # 12 A and 6 B would start 12 cards: 24 + 24 USD/h against 32 of the B that run.
    assert hourly(plan_of(found.outcome)) == pytest.approx(32.0)
    assert row.saving is not None
    assert row.saving.usd == pytest.approx(0.0, abs=1e-6)
    assert {trial.label: hourly(plan_of(trial.plan)) for trial in row.trials} == pytest.approx(
        {"A": 42.0 + 42 * 2.0, "B": 32.0}
    )
