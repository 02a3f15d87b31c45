"""Commands that import user measurements, and plans based on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.planner.command_line import run

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.calibrate import read_calibration
from fleetplan.perfmodel.evaluator import build_evaluator, holds_for
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.optables.own import store as own_tables
from fleetplan.perfmodel.predict import predict

pytestmark = pytest.mark.usefixtures("plain_folders")

PART = "MI300X"
FLEET = f"""\
version: 1
pools: [{{name: p, hardware: {PART}, hosts: 4, rented: {{usd_per_accelerator_hour: 2}}}}]
services:
  - name: chat
    model: llama3.1-8b
    workload: {{input_tokens: 500, output_tokens: 200}}
    slo: {{ttft_ms: 2000, tpot_ms: 100}}
    demand: 5
    runtimes: [aggregated]
"""
TABLE = "operator,dtype,m,n,k,latency_us\n" + "".join(
    f"gemm,bf16,{m},4096,4096,{10 + m / 100}\n" for m in (1, 64, 4096)
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_tables, "own_tables_folder", lambda: tmp_path / "data")
    monkeypatch.setenv("FLEETPLAN_LANDSCAPE_CACHE", "off")
    Path("fleet.yaml").write_text(FLEET, encoding="utf-8")
    operator_source.cache_clear()
    yield tmp_path
    operator_source.cache_clear()


def planned(*arguments: str) -> dict[str, object]:
    assert run("solve", "fleet.yaml", "--out", "out", *arguments) == 0
    provenance = json.loads(Path("out/plan.json").read_text(encoding="utf-8"))["provenance"]
    assert isinstance(provenance, dict)
    return provenance


def measurements(slower: float) -> pd.DataFrame:
    frame = pd.DataFrame({"case_id": range(6), "concurrency": [1, 2, 4, 8, 16, 32]})
    frame = frame.assign(model="llama3.1-8b", hardware=PART, backend="vllm", weights="bf16", tp=1)
    frame = frame.assign(mode="closed_loop", input_tokens=500, output_tokens=200)
    tpot_ms = predict(frame)["tpot_ms"] * slower
    return frame.rename(columns={"backend": "framework"}).assign(framework_version="0.9", tpot_ms=tpot_ms)


def test_an_imported_table_is_listed_and_planned_with(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.csv").write_text(TABLE + "gemm,bf16,x,4096,4096,1\n", encoding="utf-8")
    assert run("optables", "import", "own.csv", "--hardware", PART, "--framework", "vllm") == 0
    captured = capsys.readouterr()
    assert "3 of 4 rows accepted, 1 refused" in captured.out
    assert "own.csv:5:1: m: must be a whole number" in captured.err
    operator_source.cache_clear()
    assert run("optables", "list", "--hardware", PART) == 0
    assert "gemm" in capsys.readouterr().out
    assert run("optables", "report", "--hardware", PART) == 0
    assert "1 table;" in capsys.readouterr().out
    (source,) = planned()["table_sources"]  # type: ignore[misc]
    assert (source["package"], source["system"], source["framework"]) == ("own table", PART, "vllm")
    assert len(source["sha256"]) == 64


def test_nothing_is_kept_of_a_file_without_a_good_row(folder: Path) -> None:
    Path("own.csv").write_text("operator,dtype,latency_us\ngemm,bf16,3\n", encoding="utf-8")
    assert run("optables", "import", "own.csv", "--hardware", PART) == 2
    assert run("optables", "import", "own.csv", "--hardware", PART, "--framework", "vlm") == 2
    assert not (folder / "data").exists()


def test_a_table_of_a_part_that_there_is_not_is_not_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.csv").write_text("operator,dtype,m,n,k,latency_us\ngemm,bf16,1,64,64,3\n", encoding="utf-8")
    assert run("optables", "import", "own.csv", "--hardware", "nope") == 2
    assert "--hardware: 'nope' is not in the catalogue; allowed: " in capsys.readouterr().err
    assert run("optables", "import", "own.csv", "--hardware", "MI300") == 2
    assert "did you mean 'MI300X'?" in capsys.readouterr().err
    assert not (folder / "data").exists()


def test_unknown_names_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("optables", "report", "--hardware", "MI300") == 2
    assert "did you mean 'MI300X'?" in capsys.readouterr().err


def test_a_calibration_slows_the_plan_and_stands_in_its_provenance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measurements(1.3).to_csv("bench.csv", index=False)
    assert run("calibrate", "--measurements", "bench.csv", "--out", "calibration.yaml") == 0
    captured = capsys.readouterr()
    assert "from 6 rows" in captured.out
    assert "6 of 6 rows used" in captured.err
    assert planned()["calibrations"] == []
    (used,) = planned("--calibration", "calibration.yaml")["calibrations"]  # type: ignore[misc]
    assert (used["hardware"], used["framework_version"], used["rows"]) == (PART, "0.9", 6)
    assert 1.15 < used["decode_ratio"] < 1.3
    Path("fleet.yaml").write_text(FLEET + "calibration: calibration.yaml\n", encoding="utf-8")
    assert planned()["calibrations"] == [used | {"path": "calibration.yaml"}]


@pytest.mark.parametrize(("out", "other"), [("c.yaml", "c.json"), ("c.json", "c.yaml")])
def test_a_calibration_is_there_as_yaml_and_as_json(
    out: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    measurements(1.3).to_csv("bench.csv", index=False)
    assert run("calibrate", "--measurements", "bench.csv", "--out", f"made/{out}") == 0
    assert f"written to made/{out} and made/{other}" in capsys.readouterr().err
    found = [read_calibration(Path("made") / name) for name in (out, other)]
    assert found[0].scopes == found[1].scopes
    assert len(found[0].scopes) == 1
    document = json.loads(Path("made/c.json").read_text(encoding="utf-8"))
    assert document["scopes"][0]["framework_version"] == "0.9"
    assert sorted(path.name for path in Path("made").iterdir()) == ["c.json", "c.yaml"]


def test_a_version_of_the_framework_takes_its_own_calibration_alone() -> None:
    measurements(1.3).to_csv("bench.csv", index=False)
    assert run("calibrate", "--measurements", "bench.csv", "--out", "calibration.yaml") == 0
    calibration = read_calibration(Path("calibration.yaml"))
    # The calibration is one of a part without tables; it is read here for one with tables.
    scope = replace(calibration.scopes[0].scope, hardware="H100-SXM")
    moved = replace(calibration, scopes=(replace(calibration.scopes[0], scope=scope),))
    part = accelerators()["H100-SXM"]
    for version, holds in (("", True), ("0.9", True), ("0.24.0", False)):
        source = operator_source(part, "vllm", version)
        own = build_evaluator("llama3.1-8b", part, "vllm", Precision("bf16", "bf16"), Path())
        assert (holds_for(replace(own, source=source), "vllm", moved) is not None) is holds


def test_a_calibration_that_holds_for_nothing_is_warned_of() -> None:
    measurements(1.3).to_csv("bench.csv", index=False)
    assert run("calibrate", "--measurements", "bench.csv", "--out", "calibration.yaml") == 0
    found = planned("--calibration", "calibration.yaml", "--set", "services.chat.framework=sglang")
    assert found["calibrations"] == []
    assert any("applies to no service" in str(warning) for warning in found["warnings"])  # type: ignore[attr-defined]


def test_predict_takes_a_calibration() -> None:
    measured = measurements(1.3)
    measured.to_csv("bench.csv", index=False)
    cases = measured.rename(columns={"framework": "backend"}).drop(columns=["tpot_ms", "framework_version"])
    cases.to_csv("cases.csv", index=False)
    assert run("calibrate", "--measurements", "bench.csv", "--out", "calibration.yaml") == 0
    assert run("predict", "cases.csv", "--out", "plain.csv") == 0
    assert run("predict", "cases.csv", "--out", "own.csv", "--calibration", "calibration.yaml") == 0
    plain, own = (pd.read_csv(name)["tpot_ms"] for name in ("plain.csv", "own.csv"))
    assert ((own / plain) > 1.15).all()
    assert (own - measured["tpot_ms"]).abs().sum() < (plain - measured["tpot_ms"]).abs().sum()


def test_a_maturity_factor_is_named() -> None:
    assert any("maturity factor of 1.14" in str(warning) for warning in planned()["warnings"])  # type: ignore[attr-defined]
