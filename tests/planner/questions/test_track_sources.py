"""`plan track` with a FOCUS bill and Prometheus, against hand calculations."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import in_folder, run

pytestmark = pytest.mark.usefixtures("plain_folders")

FLEET = """\
version: 1
name: bay
horizon: {periods: [2026Q4, 2027Q1]}
regions: {east: {}, west: {}}
hardware: {h100: {like: H100-SXM}}
pools:
  - {name: east-lease, region: east, hardware: h100, hosts: 3, rented: {usd_per_accelerator_hour: 2.0}}
  - {name: west-lease, region: west, hardware: h100, hosts: 2, rented: {usd_per_accelerator_hour: 2.2}}
offers:
  - {name: p5, hardware: h100, regions: [east], rent_usd_per_accelerator_hour: 4.0, max_hosts: 6}
services:
  - {name: chat, engines: engines.csv, demand: {east: 30, west: 12}, slo: {ttft_ms: 600}}
  - {name: code, engines: engines.csv, demand: {east: 6}}
"""
ENGINES = """\
phase,hardware,config,accelerators_per_replica,requests_per_s,ttft_ms,tpot_ms
aggregated,h100,one,1,1.25,400,30
"""
START = datetime(2026, 10, 1, tzinfo=UTC)
DAYS = 31
REGIONS = ("--region", "us-east-1=east", "--region", "us-west-2=west")
HEAD = (
    "EffectiveCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity,"
    "ConsumedUnit,PricingCategory,RegionId,SkuPriceDetails"
)


_SOLVED: list[bytes] = []
"""plan.json of the fleet, which is the same in every test."""


@pytest.fixture(autouse=True)
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)
    if not _SOLVED:
        assert run("solve", "fleet.yaml", "--out", "q4", "--time-limit", "20", "--gap", "0.1%") == 0
        _SOLVED.append(Path("q4/plan.json").read_bytes())
    Path("q4").mkdir(exist_ok=True)
    Path("q4/plan.json").write_bytes(_SOLVED[0])


def bill(usd_per_hour: dict[tuple[str, str], tuple[int, float]]) -> None:
    """Days of October: machines of eight H100 by region and category, and what each costs an hour."""
    rows = [HEAD]
    for day in range(DAYS):
        span = [f"{START + timedelta(days=k):%Y-%m-%dT%H:%M:%SZ}" for k in (day, day + 1)]
        for (region, category), (machines, usd) in usd_per_hour.items():
            hours = machines * 24
            rows.append(
                f"{hours * usd},USD,Usage,{','.join(span)},{hours},Hours,{category},{region},p5.48xlarge"
            )
        rows.append(f"5,USD,Usage,{','.join(span)},24,Hours,Standard,us-east-1,m5.large")
    Path("bill.csv").write_text("\n".join(rows), "utf-8")


def saved(name: str, *series: tuple[dict[str, str], Callable[[datetime], float]]) -> None:
    hours = [START + timedelta(hours=k) for k in range(DAYS * 24)]
    result = [
        {"metric": labels, "values": [[at.timestamp(), str(value(at))] for at in hours]}
        for labels, value in series
    ]
    Path("saved").mkdir(exist_ok=True)
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    Path(f"saved/{name}.json").write_text(json.dumps(answer), "utf-8")


def tracked(*more: str) -> dict[str, Any]:
    assert run("track", "q4/plan.json", *more, "--out", "track") == 0
    found: dict[str, Any] = json.loads(Path("track/track.json").read_text("utf-8"))
    return found


def findings(report: dict[str, Any]) -> dict[tuple[str, str, str], tuple[float, float]]:
    return {
        (each["assumption"], each["service"], each["place"]): (each["ratio"], each["usd"])
        for each in report["findings"]
        if abs(each["ratio"] - 1) >= 0.02
    }


def test_a_bill_of_a_month_names_the_price_of_each_pool(capsys: pytest.CaptureFixture[str]) -> None:
    # The plan: three leased hosts and one by the hour in east, (24 x 2 + 8 x 4) USD/h; two hosts in west.
    # Paid: 2.12 USD/h a leased accelerator in east, all else as planned.
    bill({("us-east-1", "Committed"): (3, 16.96), ("us-east-1", "Standard"): (1, 32.0),
          ("us-west-2", "Committed"): (2, 17.6)})  # fmt: skip
    report = tracked("bill.csv", *REGIONS)
    pools = {row["pool"]: row for row in report["pools"]}
    assert pools["east-lease"]["actual_accelerators"] == pytest.approx(32)
    assert pools["east-lease"]["actual_usd"] == pytest.approx((24 * 2.12 + 8 * 4) * 2190)
    assert pools["west-lease"]["actual_usd"] == pytest.approx(16 * 2.2 * 2190)
    ratio = (24 * 2.12 + 8 * 4) / (24 * 2 + 8 * 4)
    # An accelerator of the pool costs 2.5 USD/h in the plan; chat holds 24 of them, code 5.
    assert findings(report) == {
        ("price", "chat", "east-lease"): pytest.approx((ratio, 24 * 2.5 * 2190 * (ratio - 1))),
        ("price", "code", "east-lease"): pytest.approx((ratio, 5 * 2.5 * 2190 * (ratio - 1))),
    }
    said = " ".join(capsys.readouterr().err.split())
    assert "2026Q4: the bill has 744 hours; costs are scaled to the plan's 2,190" in said
    assert "bill.csv: 93 rows taken, 31 not" in said


def test_pools_of_one_kind_and_region_share_what_was_paid(capsys: pytest.CaptureFixture[str]) -> None:
    twice = FLEET.replace("hosts: 3", "hosts: 2") + (
        "imports: [more.yaml]\n"  # Another lease of the same hardware in the same place.
    )
    Path("more.yaml").write_text(
        "pools:\n- {name: east-old, region: east, hardware: h100, hosts: 1, "
        "rented: {usd_per_accelerator_hour: 2.0}}\n",
        "utf-8",
    )
    Path("fleet.yaml").write_text(twice, "utf-8")
    assert run("solve", "fleet.yaml", "--out", "q4", "--time-limit", "20", "--gap", "0.1%") == 0
    bill({("us-east-1", "Committed"): (3, 20.0)})
    capsys.readouterr()
    pools = {row["pool"]: row for row in tracked("bill.csv", *REGIONS)["pools"]}
    # What is rented by the hour joins one of them; of what is committed, one has two hosts and one has one.
    assert pools["east-lease"]["actual_usd"] == pytest.approx(2 * 20 * 2190)
    assert pools["east-old"]["actual_usd"] == pytest.approx(20 * 2190)
    assert "is divided between" in capsys.readouterr().err


def test_a_bill_of_nothing_planned_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    bill({("eu-west-1", "Standard"): (1, 32.0)})
    assert run("track", "q4/plan.json", "bill.csv", "--out", "track") == 2
    assert "bill.csv:1:1: has no costs of the plan" in capsys.readouterr().err
    assert not Path("track").exists()


def test_monitoring_names_the_region_that_asked_for_more(capsys: pytest.CaptureFixture[str]) -> None:
    def level(high: float) -> Callable[[datetime], float]:
        """As high from 9 to 21 o'clock, half at night; a third of all on Sundays."""
        return lambda at: high * (1.0 if 9 <= at.hour < 21 else 0.5) * (1 / 3 if at.weekday() == 6 else 1)

    saved("requests", ({"model_name": "chat", "region": "east"}, level(36)),
          ({"model_name": "chat", "region": "west"}, level(12)),
          ({"model_name": "code", "region": "east"}, level(6)),
          ({"model_name": "toy", "region": "east"}, level(1)))  # fmt: skip
    for name, each, count in (("ttft", 0.7, 20), ("tpot", 0.033, 6000)):
        saved(f"{name}_sum", ({"model_name": "chat"}, lambda _, each=each, count=count: each * count))
        saved(f"{name}_count", ({"model_name": "chat"}, lambda _, count=count: count))
    asked = ("saved", "--system", "vllm", "--region-label", "region")
    report = tracked(*asked)
    # Only east asked for a fifth more, and only its cost counts: 24 accelerators at 2.5 USD/h.
    assert findings(report) == {("demand", "chat", "east"): pytest.approx((1.2, 0.2 * 24 * 2.5 * 2190))}
    assert {(row["service"], row["figure"]): row["actual_ms"] for row in report["latencies"]} == {
        ("chat", "ttft_ms"): pytest.approx(700),
        ("chat", "tpot_ms"): pytest.approx(33),
    }
    told = capsys.readouterr()
    assert "TTFT of chat in 2026Q4: 700 ms, limit 600 ms" in told.out
    assert "toy in east: skipped: the plan has chat, code" in " ".join(told.err.split())
    # A bill and monitoring make one account.
    bill({("us-east-1", "Committed"): (3, 16.0), ("us-east-1", "Standard"): (2, 32.0),
          ("us-west-2", "Committed"): (2, 17.6)})  # fmt: skip
    both = tracked("bill.csv", *asked, *REGIONS)
    assert both["demand_ratio"]["chat"] == {"east": pytest.approx(1.2), "west": pytest.approx(1)}
    assert both["costs"][0]["actual"] == pytest.approx((24 * 2 + 16 * 4 + 16 * 2.2) * 2190)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "--system: is missing: name the system whose metrics saved has"),
        (("--system", "vllm"), "chat: a series without a region, and the plan has east, west"),
    ],
)
def test_what_monitoring_leaves_open_is_asked_for(
    more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved("requests", ({"model_name": "chat"}, lambda _: 30.0))
    assert run("track", "q4/plan.json", "saved", *more) == 2
    assert said in " ".join(capsys.readouterr().err.split())
