"""Parts on which predictions were far off are named before anything that rests on them."""

import io
from pathlib import Path

from rich.console import Console
from tests.planner.verify.plans import PLANS

from fleetplan.planner.candidates import build_candidates, model_errors
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.coverage import print_coverage
from fleetplan.planner.report.weak_parts import print_weak_parts
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


def printed(*hardware: str) -> str:
    out = io.StringIO()
    print_weak_parts(model_errors(hardware), Console(file=out, width=200))
    return out.getvalue()


def test_weak_parts_are_named_with_their_error() -> None:
    assert "Arc-Pro-B60 29% (median of 6 rows)" in printed("H100-SXM", "Arc-Pro-B60")


def test_nothing_is_said_of_parts_that_are_known_well_or_not_at_all() -> None:
    assert printed("H100-SXM", "MI300X", "TPU-v6e") == ""


def test_check_names_weak_parts(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    fleet = load_fleet(path)
    out = io.StringIO()
    print_coverage(fleet, build_candidates(fleet, lambda _: None), Console(file=out, width=300))
    assert "Weak predictions: published TPOT differs by Arc-Pro-B60 29%" in out.getvalue()


def test_a_plan_names_weak_parts_before_its_purchases() -> None:
    plan = PLANS["scarce"]()[1]
    weak = plan.provenance.model_copy(update={"model_errors": model_errors(["Arc-Pro-B60"])})
    out = io.StringIO()
    print_plan(plan.model_copy(update={"provenance": weak}), Console(file=out, width=200))
    screen = out.getvalue()
    assert screen.index("Weak predictions") < screen.index("Cost:")
