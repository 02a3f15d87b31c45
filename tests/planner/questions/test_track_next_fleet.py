"""`plan track --next`: the fleet file of the next plan, from plan and measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import in_folder, run
from tests.planner.questions.tracked import ENGINES, FLEET, happened, planned, tracked

from fleetplan.fleet.document import read_document
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.questions.track.moved_files import moved_files
from fleetplan.scenarios.load import load_fleet

pytestmark = pytest.mark.usefixtures("plain_folders")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)


@pytest.mark.parametrize(
    ("demand", "growth", "expected"),
    [
        ("{us: 15, eu: 8}", "", {("us", "2027Q2"): 18.0, ("eu", "2027Q3"): 9.6}),
        ("{us: 15, eu: 8}", "21 %/quarter", {("us", "2027Q2"): 21.78, ("us", "2027Q3"): 26.3538}),
        ("{us: 15, eu: 8}", "{us: 10 %/quarter}", {("us", "2027Q2"): 19.8, ("eu", "2027Q2"): 9.6}),
        ("{us: {2027Q1: 15}, eu: 1}", "10 %/quarter", {("us", "2027Q2"): 19.8, ("us", "2027Q3"): 21.78}),
        ("{2027Q1: {us: 15}, 2027Q3: {us: 20}}", "", {("us", "2027Q2"): 18.0, ("us", "2027Q3"): 24.0}),
        ("{us: 54 k requests/h}", "", {("us", "2027Q2"): 18.0}),
        ("{us: {2027Q1: 15, 2027Q2: {low: 10, mid: 20, high: 30}}}", "", {("us", "2027Q2"): 36.0}),
    ],
)
def test_demand_goes_on_from_what_was_measured(
    demand: str, growth: str, expected: dict[tuple[str, str], float]
) -> None:
    lines = f"demand: {demand}" + (f"\n    growth: {growth}" if growth else "")
    happened(planned(FLEET.replace("demand: {us: 15, eu: 8}", lines)), "2027Q1", {"chat": 1.2}, {})
    tracked("--next", "next.yaml")
    chat = next(each for each in load_fleet("next.yaml").services if each.name == "chat")
    for (region, period), rate in expected.items():
        assert chat.demand.peak[region, period, "all"] == pytest.approx(rate, rel=1e-3)


def test_pools_are_those_of_today() -> None:
    rent = "regions: [us, eu], per: accelerator, rent_usd_per_accelerator_hour: 2.0"
    assert rent in FLEET
    fleet = FLEET.replace(rent, f"{rent}, term_quarters: 2, max_accelerators: {{2027Q1: 400, 2027Q2: 400}}")
    fleet = (
        fleet.replace("hosts: 6", "hosts: 2").replace("2027Q2: 7", "2027Q2: 30")
        + "budget: {capex_usd: {2027Q1: 9e6, 2027Q2: 8e6}}\n"
    )
    plan = planned(fleet)
    happened(plan, "2027Q1", {}, {})
    tracked("--next", "next.yaml")
    text = Path("next.yaml").read_text("utf-8")
    read: Any = read_yaml(text)
    assert read["budget"]["capex_usd"] == {"2027Q2": 8e6}
    assert read["offers"][1]["max_accelerators"] == {"2027Q2": 400}
    pools = {pool["name"]: pool for pool in read["pools"]}
    for row in plan.purchases:
        if row.period != "2027Q1":
            continue
        found = [
            pool for name, pool in pools.items() if name.startswith(row.pool) and name not in ("us-a", "eu-a")
        ]
        (pool,) = [each for each in found if each.get("hosts", each.get("accelerators")) == row.units]
        if row.kind == "buy":
            # Ordered in 2027Q1 with a lead time of a quarter: it is there now.
            assert pool["owned"]["in_service"] == "2027Q2"
            assert "maintenance_hosts" not in pool
        else:
            # Two quarters from 2027Q1 on: a lease that is over with 2027Q2.
            assert (pool["rented"]["usd_per_accelerator_hour"], pool["rented"]["lease_end"]) == (
                2.0,
                "2027Q3",
            )
            assert "maintenance_hosts" not in pool
    assert {row.kind for row in plan.purchases if row.period == "2027Q1"} == {"buy", "reserve"}
    load_fleet("next.yaml")


def test_pools_that_are_gone_are_left_out_and_single_accelerators_stay_counted() -> None:
    leased = "rented: {usd_per_accelerator_hour: 1.0, lease_end: 2027Q2}"
    pools = f"""\
  # over after a quarter
  - {{name: us-b, region: us, hardware: B, accelerators: 3, {leased}}}
  - {{name: eu-b, region: eu, hardware: B, accelerators: 2, {leased.replace("2027Q2", "2027Q3")}}}
offers:
"""
    plan = planned(FLEET.replace("offers:\n", pools))
    assert {(row.pool, row.period, row.hosts, row.unit) for row in plan.retirements} == {
        ("us-b", "2027Q2", 3, "accelerator"),
        ("eu-b", "2027Q3", 2, "accelerator"),
    }
    happened(plan, "2027Q1", {}, {})
    tracked("--next", "next.yaml")
    assert [pool.name for pool in load_fleet("next.yaml").pools][:3] == ["us-a", "eu-a", "eu-b"]
    happened(plan, "2027Q2", {}, {})
    tracked("--next", "later.yaml")
    assert "eu-b" not in {pool.name for pool in load_fleet("later.yaml").pools}


def test_links_of_pools_that_are_gone_are_left_out() -> None:
    leased = "rented: {usd_per_accelerator_hour: 1.0, lease_end: 2027Q2}"
    pools = f"  - {{name: us-b, region: us, hardware: B, accelerators: 3, {leased}}}\noffers:\n"
    links = """\
kv_links:
  # caches within the owned pool
  - {prefill: us-a, decode: us-a, gb_per_s: 40}
  - {prefill: us-b, decode: us-a, gb_per_s: 50}
"""
    happened(planned(FLEET.replace("offers:\n", pools) + links), "2027Q1", {}, {})
    tracked("--next", "next.yaml")
    assert [(link.prefill, link.decode) for link in load_fleet("next.yaml").kv_links] == [("us-a", "us-a")]


def test_the_next_fleet_of_another_folder_names_files_from_there() -> None:
    happened(planned(), "2027Q1", {}, {})
    Path("later").mkdir()
    tracked("--next", "later/next.yaml")
    assert "engines: ../engines.csv" in Path("later/next.yaml").read_text("utf-8")
    assert len(load_fleet("later/next.yaml").services) == 2


def test_files_of_imports_are_named_from_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "demand").mkdir()
    workload = "workload: {lengths: chat-lengths.csv}"
    variants = "variants: [{model: small/config.json}]"
    Path("demand/demand.yaml").write_text(
        f"services:\n  - {{name: chat, model: llama3.1-8b, {workload}, {variants}}}\n"
        f"  - {{name: own, engines: {tmp_path}/engines.csv}}\n"
    )
    Path("fleet.yaml").write_text("version: 1\nimports: [demand/demand.yaml]\ncalibration: kept.json\n")
    moved = dict(moved_files(read_document(Path("fleet.yaml")), tmp_path))
    assert moved == {
        ("services", 0, "workload", "lengths"): "demand/chat-lengths.csv",
        ("services", 0, "variants", 0, "model"): "demand/small/config.json",
    }


def test_after_the_last_period_as_many_follow() -> None:
    happened(planned(), "2027Q3", {}, {})
    tracked("--next", "next.yaml")
    assert load_fleet("next.yaml").periods == ("2027Q4", "2028Q1", "2028Q2")
    code = next(each for each in load_fleet("next.yaml").services if each.name == "code")
    assert code.demand.peak["us", "2027Q4", "all"] == pytest.approx(8.8)


def test_the_ratios_to_several_leaders_follow_what_all_of_them_brought() -> None:
    check = """\
  - name: check
    engines: engines.csv
    follows: [{service: chat, ratio: 0.5}, {service: code, ratio: 0.5}]   # behind both
"""
    plan = planned(FLEET + check)
    # Chat brings half of 23 requests/s, code half of 6: half more of the first is 1.397 times all of them.
    brought = (1.5 * 23 + 6) / 29
    for measured, ratio in ((brought, 0.5), (2 * brought, 1.0)):
        happened(plan, "2027Q1", {"chat": 1.5, "check": measured}, {})
        Path("next.yaml").unlink(missing_ok=True)
        tracked("--next", "next.yaml")
        services = read_yaml(Path("next.yaml").read_text("utf-8"))["services"]
        assert [each["ratio"] for each in services[2]["follows"]] == pytest.approx([ratio, ratio], rel=1e-4)


@pytest.mark.parametrize(
    "refused",
    [("--next", "next.yaml", "--fleet", "nan"), ("--next", "q1/plan.json"), ("--next", "no/next.yaml")],
)
def test_nothing_is_written_where_the_next_fleet_is_refused(refused: tuple[str, ...]) -> None:
    happened(planned(), "2027Q1", {"chat": 1.0, "code": 1.0}, {})
    assert run("track", "q1/plan.json", "actuals.csv", "--out", "track", *refused) == 2
    assert not Path("track").exists()
    assert not Path("next.yaml").exists()
