"""`plan track`: variances by cause, over a year of consecutive plans."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import in_folder, run
from tests.planner.questions.tracked import ENGINES, FLEET, happened, planned, tracked

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.plan import Plan
from fleetplan.scenarios.load import load_fleet

pytestmark = pytest.mark.usefixtures("plain_folders")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)


def history() -> None:
    first, rows = date(2025, 9, 29), ["date,service,region,requests_per_s"]
    for k in range(66):
        for region, level in (("us", 12.0), ("eu", 6.0)):
            value = level * 1.004**k * (1 + 0.03 * math.sin(1.7 * k))
            rows.append(f"{first + timedelta(weeks=k)},chat,{region},{value:.4f}")
    Path("history.csv").write_text("\n".join(rows), "utf-8")


def test_a_year_from_history_to_the_next_plan(capsys: pytest.CaptureFixture[str]) -> None:
    history()
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "q1.yaml") == 0
    assert run("solve", "q1.yaml", "--out", "q1", "--time-limit", "20", "--gap", "1%") == 0
    plan = Plan.read(Path("q1/plan.json"))
    assert [row.name for row in plan.demand_scenarios] == ["low", "expected", "high"]
    happened(plan, "2027Q1", demand={"chat": 1.2}, rates={"code": 0.9})
    capsys.readouterr()
    following = ("--next", "q2.yaml", "--solve", "q2", "--time-limit", "20", "--gap", "1%")
    assert run("track", "q1/plan.json", "actuals.csv", "--out", "track", *following) == 0
    printed = capsys.readouterr().out
    report = json.loads(Path("track/track.json").read_text("utf-8"))
    # Both assumptions are named first, with the money of the standard costs.
    notable = [each for each in report["findings"] if abs(each["ratio"] - 1) >= 0.02]
    found = {(each["assumption"], each["service"]): each for each in notable}
    assert set(found) == {("demand", "chat"), ("rates", "code")}
    usd = {
        name: sum(row.usd for row in plan.placements if (row.service, row.period) == (name, "2027Q1"))
        for name in ("chat", "code")
    }
    assert found["demand", "chat"]["ratio"] == pytest.approx(1.2)
    assert found["demand", "chat"]["usd"] == pytest.approx(0.2 * usd["chat"])
    assert found["rates", "code"]["ratio"] == pytest.approx(0.9)
    assert found["rates", "code"]["usd"] == pytest.approx((1 / 0.9 - 1) * usd["code"])
    assert "demand of chat (eu, us): 20.0% above the plan" in printed
    assert "rates of code on A: 10.0% below the plan" in printed
    # The next fleet begins in the next quarter, with what was measured, its comments kept.
    text = Path("q2.yaml").read_text("utf-8")
    assert "# What people talk to; imports nothing." in text
    assert "# until 2028" in text
    read: Any = read_yaml(text)
    assert read["horizon"]["periods"] == ["2027Q2", "2027Q3"]
    before, after = (load_fleet(name) for name in ("q1.yaml", "q2.yaml"))
    old, new = ({each.name: each for each in fleet.services} for fleet in (before, after))
    for key, rate in new["chat"].demand.peak.items():
        assert rate == pytest.approx(1.2 * old["chat"].demand.peak[key], rel=1e-3)
    assert new["code"].demand.peak == {
        key: rate for key, rate in old["code"].demand.peak.items() if key[1] != "2027Q1"
    }
    assert new["code"].rate_ratio["A"] == pytest.approx(0.9, rel=1e-4)
    bought = [row for row in plan.purchases if row.kind == "buy" and row.period == "2027Q1"]
    owned = sum(pool.hosts for pool in after.pools if pool.owned is not None)
    assert owned == 6 + sum(row.units for row in bought)
    # The plan of the next quarters knows the plan in force.
    again = Plan.read(Path("q2/plan.json"))
    assert again.periods == ("2027Q2", "2027Q3")
    assert again.provenance.baseline_file == "q1/plan.json"
    page = Path("track/track.html").read_text("utf-8")
    assert "demand of chat" in page
    assert "rates of code on A" in page
    assert run("verify", "q2/plan.json", "q2.yaml", "--baseline", "q1/plan.json") == 0


def test_variances_add_up_to_the_cost_of_what_happened() -> None:
    plan = planned()
    happened(plan, "2027Q2", {"chat": 1.3, "code": 0.7}, {"chat": 1.1, "code": 0.8}, price=1.25)
    report = tracked()
    (cost,) = report["costs"]
    flexed = 0.0
    demand, rates = {"chat": 1.3, "code": 0.7}, {"chat": 1.1, "code": 0.8}
    running = 0.0
    for row in plan.placements:
        if row.period == "2027Q2":
            price = 1.25 if row.pool == "eu-a" else 1.0
            flexed += row.usd * demand[row.service] / rates[row.service] * price
            running += row.running_usd
    idle = sum(row.idle_usd for row in plan.pools if row.period == "2027Q2")
    assert cost["flexed"] == pytest.approx(flexed + idle, rel=1e-6)
    assert cost["planned"] == pytest.approx(
        next(row.usd for row in plan.costs if (row.scope, row.name) == ("period", "2027Q2")), rel=1e-6
    )
    pools = [row for row in plan.pools if row.period == "2027Q2"]
    paid = sum(row.usd * (1.25 if row.pool == "eu-a" else 1.0) for row in pools)
    assert cost["actual"] == pytest.approx(paid, rel=1e-6)
    assert {each["assumption"] for each in report["findings"]} == {"demand", "rates", "price"}


def test_what_went_as_planned_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    happened(planned(), "2027Q1", {}, {})
    report = tracked("--next", "next.yaml")
    assert all(abs(each["ratio"] - 1) < 1e-9 for each in report["findings"])
    assert "No variance of 2 % or more." in capsys.readouterr().out
    old, new = load_fleet("fleet.yaml"), load_fleet("next.yaml")
    for before, after in zip(old.services, new.services, strict=True):
        assert after.demand.peak == {
            key: rate for key, rate in before.demand.peak.items() if key[1] != "2027Q1"
        }
        assert after.rate_ratio == {}


HEAD = "period,service,region,pool,requests_per_s,accelerators,utilisation,usd\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("service\nchat\n", "needs one of the columns period and date; periods of the plan: 2027Q1"),
        (HEAD + "2026Q4,chat,us,,1,,,\n", "actuals.csv:2:1: period: there is no period '2026Q4'"),
        (
            "date,service,region,requests_per_s\n2026-12-31,chat,us,1\n",
            "2026-12-31 lies in no period of the plan",
        ),
        (HEAD + "2027Q1,chet,us,,1,,,\n", "there is no service 'chet'"),
        (HEAD + "2027Q1,chat,,,1,,,\n", "region: is missing; the plan has several"),
        (HEAD + "2027Q1,,us,,1,,,\n", "service: is missing, as is the pool"),
        (HEAD + "2027Q1,chat,,us-a,1,4,,\n", "requests_per_s, accelerators and utilisation together"),
        (HEAD + "2027Q1,chat,,us-a,1,4,1.5,\n", "must be from 0 to 1, not 1.5"),
        (HEAD + "2027Q1,chat,,us-a,1,4,0.5,99\n", "belongs to a pool, not to a service in it"),
        (HEAD + "2027Q1,,,us-b,,,,99\n", "there is no pool 'us-b'"),
    ],
)
def test_a_mistake_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    planned()
    Path("actuals.csv").write_text(text, "utf-8")
    assert run("track", "q1/plan.json", "actuals.csv", "--out", "track") == 2
    assert said in capsys.readouterr().err
    assert not Path("track").exists()


def test_days_of_a_quarter_are_its_largest_demand_and_its_whole_cost() -> None:
    plan = planned()
    usd = {row.pool: row.usd for row in plan.pools if row.period == "2027Q1"}
    rows = ["date,service,region,pool,requests_per_s,accelerators,usd"]
    for day, rate in (("2027-01-10", 10), ("2027-02-10", 30), ("2027-03", 20)):
        rows.append(f"{day},chat,us,,{rate},,")
        rows += [f"{day},,,{pool},,1,{cost / 3}" for pool, cost in usd.items() if cost]
    Path("actuals.csv").write_text("\n".join(rows), "utf-8")
    report = tracked()
    (demand,) = report["demand"]
    assert (demand["planned"], demand["actual"]) == (pytest.approx(15), 30)
    assert report["costs"][0]["actual"] == pytest.approx(sum(usd.values()))


def test_demand_is_off_where_it_is_and_counts_where_none_was_planned() -> None:
    plan = planned()
    usd = {
        (service, region): sum(
            row.usd
            for row in plan.placements
            if (row.service, row.region, row.period) == (service, region, "2027Q1")
        )
        for service, region in (("chat", "us"), ("chat", "eu"), ("code", "us"))
    }
    head = "period,service,region,requests_per_s\n"
    rows = ["2027Q1,chat,us,18", "2027Q1,chat,eu,8", "2027Q1,code,us,6", "2027Q1,code,eu,3"]
    Path("actuals.csv").write_text(head + "\n".join(rows), "utf-8")
    found = {(each["service"], each["place"]): each for each in tracked()["findings"]}
    # Requests are served where they come from, so the cost of a region is that of its own placements.
    assert not any(row.requests_per_s_by_origin for row in plan.placements if row.period == "2027Q1")
    assert found["chat", "us"]["usd"] == pytest.approx(0.2 * usd["chat", "us"])
    assert found["chat", "eu"]["usd"] == pytest.approx(0)
    assert found["code", "eu, us"]["usd"] == pytest.approx(0.5 * usd["code", "us"])


def test_costs_of_one_month_are_prices_of_the_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned()
    pools = {row.pool: row for row in plan.pools if row.period == "2027Q1" and row.accelerators}
    rows = ["date,pool,accelerators,usd"]
    for name, row in pools.items():
        rows.append(f"2027-01,{name},{row.accelerators},{1.1 * row.usd / 3}")
    Path("actuals.csv").write_text("\n".join(rows), "utf-8")
    report = tracked()
    assert report["price_ratio"] == {name: pytest.approx(1.1) for name in pools}
    assert "2027Q1: costs of 1 month are scaled to the 3 of the period" in capsys.readouterr().err
