"""The command `plan replay`: output, files and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fleetplan.planner.cli import main
from fleetplan.planner.commands.replay import ROUTERS
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.replay.outcome import ReplayOutcome
from fleetplan.planner.replay.run import ReplayScope, replay_plan
from fleetplan.planner.replay.traffic import Arrivals, TrafficChoice


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        main(["replay", *arguments])
        code = 0
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_command_prints_and_writes(
    folder: Path, planned: tuple[Problem, Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    files = (str(folder / "plan.json"), str(folder / "fleet.yaml"))
    out = folder / "out"
    code, printed, _ = run(capsys, *files, "--duration", "30", "--out", str(out))
    assert code == 0
    assert "TTFT p95" in printed
    assert "Every limit holds." in printed
    outcome = ReplayOutcome.model_validate_json((out / "replay.json").read_text(encoding="utf-8"))
    assert outcome.duration_s == 30.0
    limits = pd.read_csv(out / "replay_limits.csv")
    assert limits["service"].tolist() == ["chat", "chat", "split", "split"]
    assert len(pd.read_csv(out / "replay_timeline.csv")) == sum(len(p.timeline) for p in outcome.places)
    for name in ("latencies", "timeline"):
        assert (out / f"{name}.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    code, printed, _ = run(capsys, *files, "--duration", "30", "--poisson", "--json")
    assert json.loads(printed)["arrivals"] == "Poisson"


def test_a_trace_file_is_replayed(
    folder: Path, planned: tuple[Problem, Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{i * 0.1},{300 + i},{20}\n" for i in range(200))
    (folder / "trace.csv").write_text(f"arrival_s,input_tokens,output_tokens\n{rows}", encoding="utf-8")
    files = (str(folder / "plan.json"), str(folder / "fleet.yaml"))
    code, printed, _ = run(capsys, *files, "--duration", "20", "--trace", str(folder / "trace.csv"))
    assert code == 0
    assert "arrivals trace" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--poisson", "--mmpp"], "choose one of"),
        (["--mmpp", "--busy-ratio", "9"], "exceeds all requests"),
        (["--router", "rondom"], "did you mean 'random'"),
        (["--trace", "none.csv"], "cannot be read"),
        (["--service", "chart"], "did you mean 'chat'"),
    ],
)
def test_mistakes_are_named(
    folder: Path,
    planned: tuple[Problem, Plan],
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, errors = run(capsys, str(folder / "plan.json"), str(folder / "fleet.yaml"), *options)
    assert code == 2
    assert message in errors


@pytest.mark.parametrize("router", ROUTERS)
def test_every_router_that_is_offered_exists(planned: tuple[Problem, Plan], router: str) -> None:
    choice = TrafficChoice(Arrivals.POISSON, 10.0)
    assert replay_plan(*planned, choice, ReplayScope("2027Q1", router=router)).requests > 0  # type: ignore[arg-type]
