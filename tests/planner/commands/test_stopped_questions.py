"""After SIGINT or SIGTERM, every question prints and keeps its finished rows."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tests.parts import each_once
from tests.warm import WarmProcess
from typer.testing import CliRunner

from fleetplan.planner import cli
from fleetplan.planner.plan import read_plan

FLEET = """
version: 1
name: two-kinds
hardware: {A: {accelerators_per_host: 1}, B: {accelerators_per_host: 1}}
pools:
  - {name: own-a, hardware: A, hosts: 2, owned: {capex_usd_per_host: 20000}}
  - {name: own-b, hardware: B, hosts: 2, owned: {capex_usd_per_host: 30000}}
offers:
  - {name: a, hardware: A, per: accelerator, rent_usd_per_accelerator_hour: 1, max_accelerators: 30}
  - {name: b, hardware: B, per: accelerator, rent_usd_per_accelerator_hour: 2, max_accelerators: 30}
services:
  - {name: chat, engines: engines.csv, demand: 120}
"""
ENGINES = """
phase,hardware,accelerators_per_replica,config,requests_per_s
aggregated,A,1,one,5
aggregated,B,1,one,8
"""

STOPPED_IN_A_SEARCH = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from fleetplan.planner import api
from fleetplan.planner.questions.time_estimates import RemainingTime
real, told, rows = api._searched, RemainingTime.next, []
def next_row(self):
    rows.append(self)
    return told(self)
def searched(problem, evaluation, watch, forecasts):
    if rows:
        print("searching", file=sys.stderr, flush=True)
        while not evaluation.stop.requested:
            time.sleep(0.01)
    return real(problem, evaluation, watch, forecasts)
RemainingTime.next, api._searched = next_row, searched
from fleetplan.planner.start import main
main()
"""
"""`plan` that hears Ctrl-C even where tests are a background job, and searches until it is stopped once it
has a row."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet with its plan."""
    found = tmp_path_factory.mktemp("two-kinds")
    (found / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    (found / "engines.csv").write_text(ENGINES.lstrip(), encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["solve", str(found / "fleet.yaml"), "--out", str(found)])
    assert result.exit_code == 0
    return found


def stopped(arguments: list[str], number: signal.Signals, folder: Path) -> tuple[str, str]:
    """What a question prints and says that a signal stops in its first search after its first row."""
    process = WarmProcess(
        ["-c", STOPPED_IN_A_SEARCH, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    said = []
    try:
        for line in process.stderr:
            said.append(line.decode())
            if said[-1] == "searching\n":
                process.send_signal(number)
                break
        out, rest = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    text = "".join(said) + rest.decode()
    assert process.returncode == 4, text
    assert "Traceback" not in text
    return out.decode(), text


def rows_of(path: Path) -> int:
    return len(pd.read_csv(path))


def a_plan(path: Path) -> int:
    return len(read_plan(path).placements)


QUESTIONS: list[tuple[list[str], str, Callable[[Path], int]]] = [
    (["explain", "plan.json", "--marginal", "--csv", "rows.csv"], "rows.csv", rows_of),
    (["stress", "plan.json", "--csv", "rows.csv"], "rows.csv", rows_of),
    (["pareto", "plan.json", "--against", "accelerators", "--csv", "rows.csv"], "rows.csv", rows_of),
    (["alternatives", "plan.json", "--within", "60%", "--out", "rows"], "", lambda _: 1),
    (
        ["compare", "fleet.yaml", "--against", "without:A", "--against", "without:B", "--out", "rows"],
        "rows/against-without-A/plan.json",
        a_plan,
    ),
    (
        ["sweep", "fleet.yaml", "--grid", "demand=1,0.5", "--out", "rows", "--jobs", "1"],
        "rows/sweep.csv",
        rows_of,
    ),
]


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize(
    ("question", "number"),
    each_once(QUESTIONS, SIGNALS, pytest.mark.more),
    ids=[f"{question[0][0]}-{number.name}" for question in QUESTIONS for number in SIGNALS],
)
def test_rows_are_kept(
    question: tuple[list[str], str, Callable[[Path], int]],
    number: signal.Signals,
    folder: Path,
    tmp_path: Path,
) -> None:
    arguments, file, count = question
    for name in ("fleet.yaml", "engines.csv", "plan.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    printed, said = stopped(arguments, number, tmp_path)
    before_the_first_row = said.partition("(1 of ")[0]
    assert re.search(r"^\d+ [a-z ]+, about \d+ (s|min)( at most)?$", before_the_first_row, re.MULTILINE), said
    assert "(1 of " in said
    assert "left)" in said
    assert "stopped: " in said
    assert printed.strip()
    assert count(tmp_path / file) >= 1
