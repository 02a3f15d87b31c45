"""The commands `plan report`, `plan export` and `plan dump`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.planner.command_line import run
from tests.planner.export.launched_plans import plan
from tests.planner.whole_fleet import EVIL, FORMULA

from fleetplan.planner.export.files import write_plan

TINY = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan().model_dump_json(), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("launch", "launch.sh"),
        ("dynamo", "*.dynamo.yaml"),
        ("llm-d", "*.llm-d.yaml"),
        ("lws", "*.lws.yaml"),
        ("kueue", "*.kueue.yaml"),
        ("node-pools", "node-pools.csv"),
        ("purchases", "purchases.json"),
        ("workbook", "plan.xlsx"),
    ],
)
def test_every_format_is_written(plan_file: Path, tmp_path: Path, form: str, written: str) -> None:
    assert run("export", str(plan_file), "--as", form, "--out", str(tmp_path / "out")) == 0
    assert [*(tmp_path / "out").glob(written)]


def test_manifests_of_before_are_named_and_left_alone(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Manifests of an earlier plan in the folder are named, because applying the folder would start them."""
    out = tmp_path / "out"
    asked = ("export", str(plan_file), "--as", "kueue", "--out", str(out))
    assert run(*asked) == 0
    assert "an earlier export" not in capsys.readouterr().err
    for name in ("chat.dynamo.yaml", "notes.txt", *(f"z{number}.yaml" for number in range(5))):
        (out / name).write_text("kept", encoding="utf-8")
    assert run(*asked) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "an earlier export: chat.dynamo.yaml, z0.yaml, z1.yaml, z2.yaml, z3.yaml and 1 more" in said
    assert "notes.txt" not in said
    assert (out / "chat.dynamo.yaml").read_text("utf-8") == "kept"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as", "lunch"], "did you mean 'launch'"),
        (["--as", "launch", "--framework", "vlm"], "vllm"),
        (["--as", "launch", "--period", "2027Q9"], "2027Q"),
        (["--as", "workbook", "--period", "2027Q1"], "whole horizon"),
        (["--as", "dynamo", "--framework", "vllm"], "the framework of each service"),
    ],
)
def test_mistakes_are_named(
    plan_file: Path, tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("export", str(plan_file), *options, "--out", str(tmp_path / "out")) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_report_is_written_beside_the_plan(plan_file: Path) -> None:
    assert run("report", str(plan_file), "--baseline", str(plan_file)) == 0
    assert "Against the plan in force" in plan_file.with_name("report.html").read_text(encoding="utf-8")


def test_solve_writes_report_workbook_and_tables_that_can_be_read(tmp_path: Path) -> None:
    assert run("solve", str(TINY), "--out", str(tmp_path)) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Pareto frontiers" in page
    assert "No frontiers" not in page
    assert (tmp_path / "plan.xlsx").stat().st_size > 5000
    for name in ("frontiers", "bill", "prices", "demand", "retirements", "region_losses"):
        assert len(pd.read_csv(tmp_path / f"{name}.csv").columns) > 3, name


def test_a_dump_holds_the_tables_and_the_model(tmp_path: Path) -> None:
    assert run("dump", str(TINY), "--out", str(tmp_path)) == 0
    candidates = pd.read_csv(tmp_path / "candidates.csv")
    assert set(candidates["service"]) == {"chat"}
    assert (candidates["requests_per_s"] >= 0).all()
    shares = candidates.filter(like="share_").sum(axis=1)
    assert shares.to_numpy() == pytest.approx(1.0)
    demand = pd.read_csv(tmp_path / "demand.csv")
    assert demand["requests_per_s"].sum() > 0
    model = (tmp_path / "model.txtpb").read_text(encoding="utf-8")
    assert "coverage[" in model
    assert "objective" in model
    assert len(pd.read_csv(tmp_path / "acquisitions.csv")) == len(
        pd.read_csv(tmp_path / "acquisitions.csv").drop_duplicates()
    )


def test_names_stay_text_in_every_table(tmp_path: Path) -> None:
    write_plan(plan(), tmp_path)
    for name in ("placements", "demand", "bill"):
        services = set(pd.read_csv(tmp_path / f"{name}.csv")["service"].dropna())
        assert f"'{FORMULA}" in services, name
        assert EVIL in services, name
        assert FORMULA not in services, name
