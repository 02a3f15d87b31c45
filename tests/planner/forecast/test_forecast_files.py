"""`plan forecast` reads history from files and servers, and writes demand into a fleet file."""

from __future__ import annotations

import json
import math
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.planner.command_line import in_folder, run

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.planner.forecast import History, forecast_demand, read_history
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2]}   # half a year
regions: {us: {}, eu: {}}
hardware: {A: {accelerators_per_host: 1}}
offers: [{name: a, hardware: A, per: accelerator, regions: [us, eu], rent_usd_per_accelerator_hour: 1.0}]
services:
  # People wait for it.
  - name: chat
    engines: engines.csv
    workload: {input_tokens: 900, output_tokens: 100}
    demand: {us: 20, eu: {2027Q1: 5, 2027Q2: 6}}   # last year's
    headroom: 0.1   # ours
  - {name: batch, engines: engines.csv, offline: {requests_per_day: {us: 5000}}}
  - {name: safety, engines: engines.csv, follows: {service: chat, ratio: 2}}
"""
ENGINES = "phase,hardware,config,accelerators_per_replica,requests_per_s\naggregated,A,one,1,1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch, FLEET, ENGINES)


def rows(values: dict[date, float], service: str = "chat", region: str = "us") -> list[str]:
    return [f"{day},{service},{region},{value}" for day, value in values.items()]


def table(column: str, *parts: list[str], path: str = "history.csv") -> Path:
    Path(path).write_text(
        "\n".join([f"date,service,region,{column}", *(r for p in parts for r in p)]), "utf-8"
    )
    return Path(path)


def days(n_days: int, start: date = date(2026, 1, 5)) -> list[date]:
    return [start + timedelta(days=k) for k in range(n_days)]


def test_days_become_their_busiest_of_a_week() -> None:
    values = {day: 100.0 + k % 7 for k, day in enumerate(days(25))}
    found = read_history(table("requests_per_s", rows(values), rows(values)), ["chat"], ["us"], {})[0]
    # Rows of the same day are added; three whole weeks, and four days of a fourth that do not count.
    assert (found.step, found.first, found.busiest_days) == ("week", date(2026, 1, 5), True)
    assert found.values.tolist() == [212.0, 212.0, 212.0]


def test_totals_of_weeks_and_months_are_those_of_a_mean_day() -> None:
    weekly = {date(2026, 1, 5) + timedelta(weeks=k): 700.0 for k in range(4)}
    found = read_history(table("tokens", rows(weekly)), ["chat"], ["us"], {})[0]
    assert (found.counted, found.total, found.step, found.busiest_days) == ("tokens", True, "week", False)
    assert found.values.tolist() == [100.0] * 4
    monthly = [
        f"2026-0{month},chat,us,{100 * length}" for month, length in ((1, 31), (2, 28), (3, 31), (4, 30))
    ]
    found = read_history(table("requests", monthly), ["chat"], ["us"], {})[0]
    assert (found.step, found.first) == ("month", date(2026, 1, 1))
    assert found.values.tolist() == [100.0] * 4


def test_hours_become_the_peak_of_a_day_and_holes_stay_holes() -> None:
    hours = [
        f"{day}T{hour:02}:00,chat,us,{0 if week == 1 else 50 if hour == 12 else 10}"
        for week in range(3)
        for day in days(7, date(2026, 1, 5) + timedelta(weeks=week))
        for hour in range(24)
    ]
    found = read_history(table("requests_per_s", hours), ["chat"], ["us"], {})[0]
    peak = float(np.percentile([50] + [10] * 23, 99))
    assert np.array_equal(found.values, [peak, np.nan, peak], equal_nan=True)


HEAD = "date,service,region,tokens"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("date,service,rate\n", "rate: unknown column"),
        ("date,service,region\n2026-01-01,chat,us\n", "needs a column of values; one of requests_per_s"),
        (HEAD + ",requests\n2026-01-01,chat,us,1,1\n", "several columns of values: requests, tokens"),
        ("date,service,tokens\n2026-01-01,chat,1\n", "region: is a required column"),
        (HEAD + "\n", "has a header and no rows"),
        (HEAD + "\n2026-13-01,chat,us,1\n", "history.csv:2:1: date: is not a date: '2026-13-01'"),
        (HEAD + "\n2026-01-01,cat,us,1\n", "there is no service 'cat'"),
        (HEAD + "\n2026-01-01,chat,asia,1\n", "there is no region 'asia'"),
        (HEAD + "\n2026-01-01,chat,us,-1\n", "must be a number from 0, not '-1'"),
        (HEAD + "\n2026-01-01,chat,,1\n", "region: is missing"),
        (HEAD + "\n2026-01-01,chat,us,1,5\n", "has 5 cells, the header 4"),
        (HEAD + "\n2026-01-01,chat,us,1\n2026-07-01,chat,us,1\n", "rows are 181 days apart"),
        (HEAD + "\n2026-01-01,safety,us,1\n2026-01-02,safety,us,1\n", "no whole week"),
        (HEAD + "\n" + "\n".join(f"{d},chat,us,5" for d in days(70)), "has 10 weeks; needs 16"),
        (HEAD + "\n" + "\n".join(f"{d},chat,us,5" for d in days(200, date(2027, 2, 1))),
         "the history begins in or after 2027Q1"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("history.csv").write_text(text, "utf-8")
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml") == 2
    assert said in capsys.readouterr().err
    assert not Path("new.yaml").exists()


def weekly_rates(
    n_weeks: int = 60, level: float = 20.0, first: date = date(2025, 11, 3)
) -> dict[date, float]:
    return {
        first + timedelta(weeks=k): round(level * 1.004**k * (1 + 0.02 * math.sin(k)), 3)
        for k in range(n_weeks)
    }


def test_the_fleet_file_has_the_demand_and_keeps_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    table("requests_per_s", rows(weekly_rates()), rows(weekly_rates(level=5.0), region="eu"))
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml", "--json") == 0
    printed = capsys.readouterr()
    assert "no history, demand unchanged: batch" in printed.err
    found = json.loads(printed.out)
    text = Path("new.yaml").read_text("utf-8")
    for comment in ("# half a year", "# People wait for it.", "# ours", "median error"):
        assert comment in text
    read: Any = read_yaml(text)
    before: Any = read_yaml(FLEET)
    estimates = {(f["region"], p): e for f in found["forecasts"] for p, e in f["estimates"].items()}
    assert read["services"][0].pop("demand") == {
        region: {period: estimates[region, period] for period in ("2027Q1", "2027Q2")}
        for region in ("eu", "us")
    }
    before["services"][0].pop("demand")
    scenarios = read.pop("uncertainty")["scenarios"]
    assert read == before
    assert [(s["estimate"], s["probability"]) for s in scenarios] == [
        ("low", 0.3),
        ("mid", 0.4),
        ("high", 0.3),
    ]
    fleet = load_fleet("new.yaml")
    chat = next(service for service in fleet.services if service.name == "chat")
    assert chat.demand.peak["us", "2027Q2", "all"] == pytest.approx(estimates["us", "2027Q2"]["high"])
    # A second forecast writes over the first one, if it may.
    assert run("forecast", "history.csv", "new.yaml", "--out", "new.yaml") == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert run("forecast", "history.csv", "new.yaml", "--out", "new.yaml", "--force") == 0
    assert Path("new.yaml").read_text("utf-8").count("uncertainty:") == 1


def test_rows_of_a_service_with_demand_in_one_region_need_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A history needs no region column for a service with demand in one region."""
    Path("fleet.yaml").write_text(FLEET.replace(", eu: {2027Q1: 5, 2027Q2: 6}", ""), "utf-8")
    lines = [f"{day},chat,{86_400 * rate:.0f}" for day, rate in weekly_rates().items()]
    Path("history.csv").write_text("\n".join(["date,service,requests", *lines]), "utf-8")
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml") == 0
    shown = capsys.readouterr().out
    assert " k requests/day" in shown
    assert "e+0" not in shown
    read: Any = read_yaml(Path("new.yaml").read_text("utf-8"))
    assert list(read["services"][0]["demand"]) == ["us"]


def test_offline_work_and_tokens_are_written_as_quantities() -> None:
    table("tokens", rows(weekly_rates(level=7e9), "batch"), rows(weekly_rates(level=2e6), "chat"))
    Path("fleet.yaml").write_text(
        FLEET.replace("follows: {service: chat, ratio: 2}", "demand: {us: 1}"), "utf-8"
    )
    text = (
        Path("fleet.yaml")
        .read_text("utf-8")
        .replace(
            "offline: {requests", "workload: {input_tokens: 500, output_tokens: 500}, offline: {requests"
        )
    )
    Path("fleet.yaml").write_text(text, "utf-8")
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml") == 0
    read: Any = read_yaml(Path("new.yaml").read_text("utf-8"))
    per_day = read["services"][1]["offline"]["requests_per_day"]["us"]["2027Q1"]["mid"]
    assert per_day.endswith(" B tokens/day")
    assert float(per_day.split()[0]) == pytest.approx(1.0 * 1.004**73, rel=0.1)
    assert read["services"][0]["demand"]["us"]["2027Q1"]["mid"].endswith(" k tokens/day")
    batch = next(each for each in load_fleet("new.yaml").services if each.name == "batch")
    # 1e9 tokens a day are 1e6 requests of a thousand tokens.
    assert batch.demand.peak["us", "2027Q1", "all"] == pytest.approx(1e6 * 1.004**73 / 86_400, rel=0.2)


@pytest.mark.parametrize(
    ("service", "change", "said"),
    [
        ("safety", ("", ""), "safety has the demand of chat; give the history of chat"),
        ("batch", ("", ""), "is offline: its history is a total, not a rate"),
        ("chat", ("headroom: 0.1", "headroom: 0.1\n    demand_by_slice: {x: 1}"), "demand_by_slice"),
    ],
)
def test_demand_that_a_service_cannot_have_is_refused(
    service: str, change: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("fleet.yaml").write_text(FLEET.replace(*change) if change[0] else FLEET, "utf-8")
    table("requests_per_s", rows(weekly_rates(), service))
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml") == 2
    assert said in capsys.readouterr().err
    assert not Path("new.yaml").exists()


def test_a_service_of_an_imported_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("top.yaml").write_text("imports: [fleet.yaml]\nname: top\n", "utf-8")
    table("requests_per_s", rows(weekly_rates()))
    assert run("forecast", "history.csv", "top.yaml", "--out", "new.yaml") == 2
    assert "fleet.yaml:8:11: services.chat: is in an imported file" in capsys.readouterr().err


def test_classes_without_shares_are_refused_before_anything_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokens = "{input_tokens: 9, output_tokens: 1}"
    classes = f"workload: {{classes: {{a: {tokens}, b: {tokens}}}}}"
    text = FLEET.replace("workload: {input_tokens: 900, output_tokens: 100}", classes)
    text = text.replace("{us: 20, eu: {2027Q1: 5, 2027Q2: 6}}", "{us: {a: 1, b: 2}}")
    Path("fleet.yaml").write_text(text.replace("engines.csv", "classes.csv", 1), "utf-8")
    Path("classes.csv").write_text(
        "phase,hardware,config,accelerators_per_replica,requests_per_s,class\n"
        "aggregated,A,one,1,1,a\naggregated,A,one,1,1,b\n", "utf-8"
    )  # fmt: skip
    table("requests_per_s", rows(weekly_rates()))
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml") == 2
    assert "new.yaml:" in capsys.readouterr().err
    assert not list(Path().glob("*new*"))


def test_without_the_library_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table("requests_per_s", rows(weekly_rates()))
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.statespace.structural", None)
    assert run("forecast", "history.csv", "fleet.yaml", "--out", "new.yaml") == 2
    said = capsys.readouterr().err
    assert "forecasts need statsmodels, which is not installed; pip install 'fleetplan[forecast]'" in said


def test_saved_answers_of_prometheus_are_a_history() -> None:
    hour_s, first_s = 3600, 1_762_128_000  # 2025-11-03, a Monday
    times = first_s + hour_s * np.arange(24 * 7 * 60)
    k = np.arange(times.size) // (24 * 7)
    rate = 20 * 1.004**k * np.where(np.arange(times.size) % 24 == 12, 1.0, 0.5)
    rate = rate * (1 + 0.01 * np.sin(k))
    series = {
        "metric": {"model_name": "chat", "region": "us"},
        "values": [[int(t), str(v)] for t, v in zip(times, rate, strict=True)],
    }
    Path("saved").mkdir()
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    Path("saved/requests.json").write_text(json.dumps(answer), "utf-8")
    options = ("--system", "vllm", "--region-label", "region")
    assert run("forecast", "saved", "fleet.yaml", "--out", "new.yaml", *options) == 0
    read: Any = read_yaml(Path("new.yaml").read_text("utf-8"))
    # The 99th percentile of a day's 24 hours lies between its peak and the next hour.
    peak = float(np.percentile([1.0] + [0.5] * 23, 99))
    assert read["services"][0]["demand"]["us"]["2027Q1"]["mid"] == pytest.approx(
        20 * peak * 1.004**73, rel=0.05
    )


def test_a_forecast_needs_no_more_than_its_error_says() -> None:
    history = History("chat", None, "requests", False, "month", date(2026, 1, 1), np.ones(3), True)
    with pytest.raises(InputError, match="has 3 months; needs 12"):
        forecast_demand([history], ["2027Q1"], QUARTERS, lambda _: None)


def test_a_server_with_a_login_gets_the_token_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("token").write_text("two words", encoding="utf-8")
    asked = ("forecast", "http://127.0.0.1:9", "fleet.yaml", "--system", "vllm", "--out", "next.yaml")
    assert run(*asked, "--token-file", "token") == 2
    assert "contains no token" in capsys.readouterr().err
    Path("token").write_text("secret\n", encoding="utf-8")
    assert run(*asked, "--token-file", "token") == 2
    said = capsys.readouterr().err
    assert "127.0.0.1:9" in said
    assert "secret" not in said
    assert not Path("next.yaml").exists()
