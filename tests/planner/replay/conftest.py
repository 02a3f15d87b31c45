"""A small fleet with a plan to replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
name: small
horizon: {periods: [2027Q1]}
regions: {east: {}}
offers: [{name: rent, hardware: MI300X, per: accelerator, rent_usd_per_accelerator_hour: 2}]
services:
  - name: chat
    model: llama3-8b
    workload: {lengths: lengths.csv}
    slo: {ttft_p95_ms: 400, tpot_p95_ms: 30}
    traffic: {burstiness: 2}
    demand: 60
  - name: split
    model: llama3-8b
    workload: {input_tokens: 1000, output_tokens: 100}
    slo: {ttft_ms: 300, tpot_ms: 30}
    runtimes: [disaggregated]
    demand: 30
"""
LENGTHS = """\
input_from,input_to,output_from,output_to,share
100,400,20,100,0.6
400,2000,20,200,0.3
2000,4000,20,400,0.1
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay")
    (path / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    (path / "lengths.csv").write_text(LENGTHS, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def planned(folder: Path) -> tuple[Problem, Plan]:
    fleet = load_fleet(folder / "fleet.yaml")
    found = plan_fleet(fleet, SearchLimits(20.0, 1e-3, seed=1, workers=2))
    assert isinstance(found.outcome, Plan)
    (folder / "plan.json").write_text(found.outcome.model_dump_json(), encoding="utf-8")
    return found.problem, found.outcome
