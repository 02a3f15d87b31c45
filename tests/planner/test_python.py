"""The planner from Python: paths and mappings in, tables out, and a quick import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.measured import needs_tables
from tests.parts import first_of
from tests.planner.whole_fleet import EVIL, whole_plan

import fleetplan
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.planner.python import SolvedFleet

TINY = Path(__file__).parents[2] / "scenarios" / "tiny.yaml"


def mapping() -> dict[str, object]:
    read = read_yaml(TINY.read_text(encoding="utf-8"))
    assert isinstance(read, dict)
    return read


@pytest.fixture(scope="module")
def solved() -> SolvedFleet:
    return fleetplan.solve(TINY)


def test_a_file_and_what_stands_in_it_have_the_same_plan(solved: SolvedFleet) -> None:
    other = fleetplan.solve(mapping())
    assert other.tco_usd == pytest.approx(solved.tco_usd)
    assert other.plan.provenance.inputs_sha256.keys() == {"fleet.yaml"}
    assert solved.gap <= 0.005


@needs_tables
def test_tables_are_those_of_the_plan(solved: SolvedFleet, tmp_path: Path) -> None:
    assert isinstance(solved.placements, pd.DataFrame)
    assert len(solved.placements) == len(solved.plan.placements)
    assert solved.tables["bill"]["usd"].sum() == pytest.approx(solved.tco_usd)
    assert set(solved.costs["scope"]) == {"period", "service", "pool"}
    folder = solved.write(tmp_path / "out")
    written = {path.name for path in folder.iterdir()}
    assert written >= {"plan.json", "report.html", "plan.xlsx", "placements.csv", "frontiers.csv"}
    assert "<!doctype html>" in solved.report_html()
    assert repr(solved).startswith("<SolvedFleet 'tiny': TCO $51.")


def test_assignments_and_a_baseline_count() -> None:
    cheap = fleetplan.solve(TINY, assignments=["services.chat.demand=10"])
    again = fleetplan.solve(TINY, baseline=cheap.plan)
    assert cheap.tco_usd < again.tco_usd
    assert "Against the plan in force" in again.report_html()


def test_mistakes_and_impossible_fleets_are_told_apart() -> None:
    broken = {**mapping(), "pols": []}
    with pytest.raises(InputError, match="pools"):
        fleetplan.solve(broken)
    with pytest.raises(InputError, match="work only in files"):
        fleetplan.solve({**mapping(), "imports": ["tiny.yaml"]})
    with pytest.raises(fleetplan.InfeasibleFleetError, match="cannot be served") as found:
        fleetplan.solve(TINY, assignments=["services.chat.slo.ttft_ms=0.5"])
    assert found.value.outcome.shortages


def test_a_landscape_is_a_table_within_the_limits() -> None:
    table = fleetplan.landscape(TINY, service="chat")
    assert (table["requests_per_s_per_accelerator"] > 0).all()
    assert set(table["phase"]) <= {"prefill", "decode", "aggregated"}
    asked = fleetplan.landscape(
        model="llama3.1-8b", hardware=["H100-SXM"], input_tokens=500, output_tokens=100, tpot_ms=20.0,
        max_accelerators=2,
    )  # fmt: skip
    assert set(asked["hardware"]) == {"H100-SXM"}
    assert asked["tpot_ms"].dropna().max() <= 20.0
    assert asked["accelerators_per_replica"].max() <= 2
    with pytest.raises(InputError):
        fleetplan.landscape(TINY, model="llama3.1-8b")


def test_cases_may_be_a_table_or_rows() -> None:
    row = {
        "case_id": "a", "model": "llama3.1-8b", "hardware": "H100-SXM", "weights": "bf16", "mode": "decode",
        "tp": 1, "pp": 1, "ep": 1, "dp": 1, "input_tokens": 1000, "output_tokens": 100, "batch": 8,
    }  # fmt: skip
    from_rows = fleetplan.predict([row])
    pd.testing.assert_frame_equal(from_rows, fleetplan.predict(pd.DataFrame([row])))
    assert from_rows.loc[0, "status"] == "ok"


def test_a_notebook_shows_names_as_text() -> None:
    plan = whole_plan().plan
    assert plan is not None
    shown = SolvedFleet(plan, whole_plan().problem.fleet)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert EVIL not in shown
    assert shown.count("<tr>") == len(plan.placements) + 1


@pytest.mark.parametrize("then", first_of(("dir(fleetplan)", "fleetplan.solve"), 1))
def test_importing_fleetplan_loads_nothing_heavy(then: str) -> None:
    """What is asked of it then is loaded, which takes a second of a core; other tests ask it here."""
    heavy = "{'pandas', 'numpy', 'ortools', 'matplotlib', 'jinja2', 'xlsxwriter', 'pyarrow'}"
    code = f"import sys, fleetplan; found = {heavy} & set(sys.modules); assert not found, found; {then}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    with pytest.raises(AttributeError, match="slove"):
        fleetplan.slove  # type: ignore[attr-defined]  # noqa: B018
    assert {"solve", "landscape", "predict"} <= set(dir(fleetplan))
