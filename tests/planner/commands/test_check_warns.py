"""`plan check` warns early about inputs that make a plan impossible or doubtful."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.command_line import run

FLEET = """\
version: 1
offers: [{name: rent, hardware: big, rent_usd_per_accelerator_hour: 2}]
hardware: {big: {accelerators_per_host: 1}}
services:
  - {name: slow, engines: engines.csv, slo: {ttft_ms: 100}, demand: 1}
  - {name: fast, engines: engines.csv, slo: {ttft_ms: 10}, demand: 1}
  - {name: later, engines: engines.csv, slo: {ttft_ms: 10}, demand: 0}
finance: {max_price_age_days: 30}
"""
ENGINES = """\
phase,hardware,accelerators_per_replica,config,requests_per_s,ttft_ms
aggregated,big,1,one,2,50
"""


def test_services_that_nothing_serves_and_prices_without_a_date_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "engines.csv").write_text(ENGINES, encoding="utf-8")
    (tmp_path / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    assert run("check", tmp_path / "fleet.yaml") == 0
    shown = capsys.readouterr()
    assert [line.split(":")[0].strip() for line in shown.out.splitlines() if "nothing can serve" in line] == [
        "nothing can serve fast"
    ]
    assert "prices without a date (price_as_of): offer rent" in shown.err
