"""Hardware with large prediction errors is named before results that depend on it."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console
from tests.measured import needs_tables
from tests.planner.verify.plans import PLANS

from fleetplan.planner.candidates import build_candidates, model_errors
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.coverage import print_coverage
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.report.inaccurate_hardware import blind_error_text, print_weak_parts
from fleetplan.scenarios.load import load_fleet

FLEET = """
version: 1
name: weak
offers: [{name: rack, hardware: Arc-Pro-B60, rent_usd_per_accelerator_hour: 4}]
services:
  - name: chat
    model: llama3.1-8b
    precision: {weights: bf16, kv: bf16}
    workload: {input_tokens: 500, output_tokens: 100}
    demand: 10
    runtimes: [aggregated]
    search: {max_accelerators: 2}
"""


TABLES, ROOFLINE = {"given": 0.0, "interpolated": 1.0, "roofline": 0.0}, {"given": 0.0, "roofline": 1.0}
"""Shares of a latency by kind of number."""


def printed(*hardware: str, shares: Mapping[str, float] = TABLES) -> str:
    out = io.StringIO()
    print_weak_parts(model_errors((name, shares) for name in hardware), Console(file=out, width=200))
    return out.getvalue()


def test_weak_parts_are_named_with_their_error() -> None:
    assert "Arc-Pro-B60 29% (median of 6 rows)" in printed("H100-SXM", "Arc-Pro-B60")
    assert "H20-SXM 45% (median of 15 rows)" in printed("H20-SXM")


def test_nothing_is_said_of_parts_that_are_known_well_or_not_at_all() -> None:
    assert printed("H100-SXM", "MI325X", "TPU-v6e") == ""


def test_the_error_of_tables_is_none_of_the_roofline() -> None:
    assert printed("Arc-Pro-B60", shares=ROOFLINE) == ""
    known = {
        error.hardware: error.rows for error in model_errors([("H100-SXM", ROOFLINE), ("MI300X", ROOFLINE)])
    }
    assert known["H100-SXM"] == 0
    assert known["MI300X"] > 0
    # One row from tables is enough, rates of one's own have no error of the model.
    both = model_errors([("H100-SXM", ROOFLINE), ("H100-SXM", TABLES), ("B200-SXM", {"given": 1.0})])
    assert [error.hardware for error in both] == ["H100-SXM"]
    assert both[0].rows > 0


@needs_tables
def test_check_says_that_tables_are_missing_and_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No name of the fleet is one whose landscape another test has cached.
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("Arc-Pro-B60", "H100-SXM"))
    fleet = load_fleet(path)
    assert not any("no measured tables" in line for line in build_candidates(fleet, lambda _: None).warnings)
    monkeypatch.setattr("fleetplan.planner.candidates.build.table_roots", tuple)
    (said,) = [
        line for line in build_candidates(fleet, lambda _: None).warnings if "no measured tables" in line
    ]
    assert said.startswith("H100-SXM: no measured tables")
    assert "`plan optables use DIR`" in said
    # A part without tables needs none.
    path.write_text(FLEET.replace("Arc-Pro-B60", "MI300X"))
    found = build_candidates(load_fleet(path), lambda _: None)
    assert not any("no measured tables" in line for line in found.warnings)


@needs_tables
def test_check_names_weak_parts(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    fleet = load_fleet(path)
    out = io.StringIO()
    print_coverage(fleet, build_candidates(fleet, lambda _: None), Console(file=out, width=300))
    assert "Weak predictions: published TPOT differs by Arc-Pro-B60 29%" in out.getvalue()


def test_a_plan_names_weak_parts_before_its_purchases() -> None:
    plan = PLANS["scarce"]()[1]
    weak = plan.provenance.model_copy(update={"model_errors": model_errors([("Arc-Pro-B60", TABLES)])})
    out = io.StringIO()
    print_plan(plan.model_copy(update={"provenance": weak}), Console(file=out, width=200))
    screen = out.getvalue()
    assert screen.index("Weak predictions") < screen.index("Cost:")


def test_the_page_says_how_far_predictions_are_from_what_users_published() -> None:
    plan = PLANS["scarce"]()[1]
    predicted = plan.provenance.model_copy(update={"model_errors": model_errors([("H100-SXM", TABLES)])})
    page = report_page(plan.model_copy(update={"provenance": predicted}))
    assert blind_error_text() in page
    assert blind_error_text() not in report_page(plan)
