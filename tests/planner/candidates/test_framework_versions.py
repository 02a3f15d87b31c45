"""A service that names the version of its framework: whose tables its plan rests on, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.optables import measured_versions
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.planner.cli import main

pytestmark = pytest.mark.usefixtures("plain_folders")

FLEET = """\
version: 1
pools: [{{name: p, hardware: {hardware}, hosts: 2, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - name: chat
    model: llama3.1-8b
    framework: vllm
    framework_version: {version}
    workload: {{input_tokens: 500, output_tokens: 200}}
    slo: {{ttft_ms: 2000, tpot_ms: 100}}
    demand: 5
    runtimes: [aggregated]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLEETPLAN_LANDSCAPE_CACHE", "off")


def solve(text: str) -> int:
    Path("fleet.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["solve", "fleet.yaml", "--out", "out"])
    return int(stopped.value.code or 0)


def test_the_plan_says_which_version_it_rests_on() -> None:
    known = measured_versions(accelerators()["H100-SXM"], "vllm")
    assert len(known) >= 2
    versions = {}
    for version in (known[0], known[-1]):
        assert solve(FLEET.format(hardware="H100-SXM", version=version)) == 0
        provenance = json.loads(Path("out/plan.json").read_text(encoding="utf-8"))["provenance"]
        read = [
            each["framework_version"] for each in provenance["table_sources"] if each["framework"] == "vllm"
        ]
        versions[version] = read
    assert versions[known[0]][0] == known[0]
    assert known[-1] in versions[known[-1]]
    assert known[-1] not in versions[known[0]]


@pytest.mark.parametrize(
    ("hardware", "version", "message"),
    [
        ("H100-SXM", "0.24.1", "no table has vllm 0.24.1; allowed: .*did you mean '0.24.0'"),
        ("MI300X", "0.24.0", "none of the service's hardware was measured under vllm; leave it out"),
    ],
)
def test_a_version_without_tables_is_refused(
    hardware: str, version: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert solve(FLEET.format(hardware=hardware, version=version)) == 2
    shown = " ".join(capsys.readouterr().err.split())
    row, column = next(
        (n, line.index(version) + 1)
        for n, line in enumerate(FLEET.format(hardware=hardware, version=version).splitlines(), 1)
        if "framework_version" in line
    )
    assert f"fleet.yaml:{row}:{column}: services.chat.framework_version" in shown
    assert pd.Series([shown]).str.contains(message).all(), shown


def test_an_engine_table_has_no_operators_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.csv").write_text("hardware,config,phase,accelerators,requests_per_s\n", encoding="utf-8")
    text = FLEET.format(hardware="H100-SXM", version="0.24.0")
    assert solve(text.replace("model: llama3.1-8b", "engines: own.csv")) == 2
    assert "rates come from the engine table" in " ".join(capsys.readouterr().err.split())
