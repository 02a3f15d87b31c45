"""`plan track`: a year played through, from history over the plan to what happened and the next plan."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import in_folder, run

from fleetplan.fleet.document import read_document
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.track.moved_files import moved_files
from fleetplan.scenarios.load import load_fleet

pytestmark = pytest.mark.usefixtures("plain_folders")

FLEET = """\
version: 1
name: studio
horizon: {periods: [2027Q1, 2027Q2, 2027Q3]}   # three quarters
regions: {us: {}, eu: {}}
hardware: {A: {accelerators_per_host: 4}, B: {accelerators_per_host: 1}}
pools:
  - {name: us-a, region: us, hardware: A, hosts: 6, owned: {capex_usd_per_host: 100000, in_service: 2026Q1}}
  - {name: eu-a, region: eu, hardware: A, hosts: 4, rented: {usd_per_accelerator_hour: 1.5}}   # until 2028
offers:
  - {name: a-buy, hardware: A, regions: [us], capex_usd_per_host: 100000, lead_time_quarters: 1}
  - {name: b-rent, hardware: B, regions: [us, eu], per: accelerator, rent_usd_per_accelerator_hour: 2.0}
services:
  # What people talk to; imports nothing.
  - name: chat
    engines: engines.csv
    slo: {tpot_ms: 50}
    demand: {us: 15, eu: 8}
  - name: code
    engines: engines.csv
    demand: {us: {2027Q1: 6, 2027Q2: 7, 2027Q3: 8}}   # as sales says
    growth: 10 %/quarter
"""
ENGINES = """\
phase,hardware,config,accelerators_per_replica,requests_per_s,tpot_ms
aggregated,A,one,1,1,30
aggregated,B,one,1,1,35
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)


def happened(
    plan: Plan, period: str, demand: dict[str, float], rates: dict[str, float], price: float = 1.0
) -> None:
    """Write what was measured if demand and rates were such multiples of the plan, and prices of eu-a."""
    likely = max(plan.demand_scenarios, key=lambda row: row.probability, default=None)
    scenario = None if likely is None else likely.name
    assert plan.inputs is not None
    lines = ["period,service,region,pool,requests_per_s,accelerators,utilisation,tpot_ms,usd"]
    for asked in plan.inputs.demand:
        if (asked.period, asked.scenario) == (period, scenario):
            rate = asked.requests_per_s * demand.get(asked.service, 1.0)
            lines.append(f"{period},{asked.service},{asked.region},,{rate},,,,")
    for row in plan.placements:
        if (row.period, row.scenario) == (period, scenario):
            served = row.requests_per_s * demand.get(row.service, 1.0)
            busy = served / rates.get(row.service, 1.0)
            # More replicas are started so that each is as busy as 80 %.
            lines.append(f"{period},{row.service},,{row.pool},{served},{busy / 0.8},0.8,{row.tpot_ms},")
    for pool in plan.pools:
        if (pool.period, pool.scenario) == (period, scenario) and pool.accelerators:
            usd = sum(row.usd for row in plan.pools if (row.pool, row.period) == (pool.pool, period))
            usd *= price if pool.pool == "eu-a" else 1.0
            lines.append(f"{period},,,{pool.pool},,{pool.accelerators},{pool.utilisation},,{usd}")
    Path("actuals.csv").write_text("\n".join(lines) + "\n", "utf-8")


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


_SOLVED: dict[str, bytes] = {}
"""plan.json of the fleets that were planned before: most tests ask what happened to the same plan."""


def planned(fleet: str = FLEET) -> Plan:
    Path("fleet.yaml").write_text(fleet, encoding="utf-8")
    written = Path("q1/plan.json")
    if fleet in _SOLVED:
        written.parent.mkdir()
        written.write_bytes(_SOLVED[fleet])
    else:
        assert run("solve", "fleet.yaml", "--out", "q1", "--time-limit", "20", "--gap", "0.1%") == 0
        _SOLVED[fleet] = written.read_bytes()
    return Plan.read(written)


def tracked(*more: str) -> dict[str, Any]:
    assert run("track", "q1/plan.json", "actuals.csv", "--out", "track", *more) == 0
    found: dict[str, Any] = json.loads(Path("track/track.json").read_text("utf-8"))
    return found


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
        (HEAD + "2027Q1,chat,,,1,,,\n", "region: is missing: there are several"),
        (HEAD + "2027Q1,,us,,1,,,\n", "service: is missing, and so is the pool"),
        (HEAD + "2027Q1,chat,,us-a,1,4,,\n", "requests_per_s, accelerators and utilisation together"),
        (HEAD + "2027Q1,chat,,us-a,1,4,1.5,\n", "must be from 0 to 1, not 1.5"),
        (HEAD + "2027Q1,chat,,us-a,1,4,0.5,99\n", "is of a pool, not of a service in it"),
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
