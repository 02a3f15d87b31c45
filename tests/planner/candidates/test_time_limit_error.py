"""Candidates beyond the time limit end with one sentence; evaluated ones are kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cache_home import own_cache_home
from tests.planner.command_line import run
from tests.planner.questions.comparing import whole_comparison

from fleetplan.fleet.files import user_cache
from fleetplan.perfmodel import interruption
from fleetplan.perfmodel.landscape import cache
from fleetplan.perfmodel.replay import EnginePool, LoadTarget
from fleetplan.planner import api
from fleetplan.planner.candidates import OutOfTimeError, build_candidates, prepare, rate_cache
from fleetplan.planner.commands import shared
from fleetplan.planner.commands.page.child import Planner
from fleetplan.planner.commands.page.messages import PlanRequest, Settings
from fleetplan.planner.questions import compare
from fleetplan.planner.questions.counterfactuals import Counterfactual, FleetOption
from fleetplan.planner.questions.fleet_question import FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import Deadline, SearchLimits, deadline
from fleetplan.scenarios.load import load_fleet

pytestmark = pytest.mark.usefixtures("plain_folders")

FLEET = """\
version: 1
offers:
  - {name: one, hardware: MI300X, rent_usd_per_accelerator_hour: 2.0}
  - {name: other, hardware: H100-SXM, rent_usd_per_accelerator_hour: 2.0}
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 500, output_tokens: 100}
    slo: {ttft_ms: 2000, tpot_ms: 60}
    demand: 1
"""


@pytest.fixture
def fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path / "cache")))
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return path


def test_what_was_evaluated_in_time_is_kept(fleet_file: Path) -> None:
    fleet = load_fleet(fleet_file)
    with pytest.raises(OutOfTimeError, match="1 of 2 pairs of a service and hardware evaluated and kept"):
        build_candidates(fleet, lambda _: None, out_of_time=lambda: any(cache.cache_folder().glob("*.npz")))
    (kept,) = cache.cache_folder().glob("*.npz")
    written = kept.stat().st_ino
    assert {each.hardware for each in build_candidates(fleet, lambda _: None).candidates} == {
        "MI300X",
        "H100-SXM",
    }
    assert kept.stat().st_ino == written


def test_a_pair_ends_at_any_of_its_steps(fleet_file: Path) -> None:
    """The evaluation of a pair stops at the first step after the limit; later answers stay the same."""
    fleet = load_fleet(fleet_file, (), ("services.chat.hardware=[MI300X]",))
    asked = 0

    def counted() -> bool:
        nonlocal asked
        asked += 1
        return asked > limit

    limit = 10**9
    build_candidates(fleet, lambda _: None, out_of_time=counted)
    steps = asked
    assert steps > 20
    for until in (0, 1, 2, steps // 2, steps - 1):
        asked, limit = 0, until
        shutil.rmtree(user_cache("landscapes"))
        cache.forget()
        with pytest.raises(OutOfTimeError, match="0 of 1 pair of a service and hardware evaluated and kept"):
            build_candidates(fleet, lambda _: None, out_of_time=counted)
        assert asked == until + 1
        # What was left half done does not change the answer.
        limit = 10**9
        assert build_candidates(fleet, lambda _: None, out_of_time=counted).candidates


def test_a_simulation_ends_at_any_of_its_requests(fleet_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    under_load = ("services.chat.slo.ttft_p95_ms=2000", "services.chat.runtimes=[aggregated]")
    fleet = load_fleet(fleet_file, (), (*under_load, "services.chat.hardware=[MI300X]"))
    simulate, asked = rate_cache.sustained_rate_per_s, [-1]

    def begun(pool: EnginePool, target: LoadTarget, most_per_s: float) -> float:
        asked[0] = 0
        return simulate(pool, target, most_per_s)

    def simulating() -> bool:
        asked[0] += asked[0] >= 0
        return asked[0] > 5

    monkeypatch.setattr(rate_cache, "sustained_rate_per_s", begun)
    with pytest.raises(OutOfTimeError):
        build_candidates(fleet, lambda _: None, out_of_time=simulating)
    assert asked == [6]
    assert not list(rate_cache.rates_folder().glob("*.json"))


def test_a_service_with_limits_under_load_gets_further_with_each_run(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run keeps its simulations, so repeated runs complete under a limit shorter than all of them."""
    limited = ("services.chat.slo.ttft_p95_ms=2000", "services.chat.runtimes=[aggregated]")
    fleet = load_fleet(fleet_file, (), limited)
    simulated: list[float] = []

    def counted(pool: EnginePool, target: LoadTarget, most_per_s: float) -> float:
        simulated.append(most_per_s)
        return most_per_s / 2

    monkeypatch.setattr(rate_cache, "sustained_rate_per_s", counted)
    runs, found = 0, None
    while found is None and runs < 20:
        runs += 1
        # Each run has the time for one simulation.
        done = len(simulated)
        with suppress(OutOfTimeError):
            found = build_candidates(fleet, lambda _: None, out_of_time=lambda n=done: len(simulated) > n)
    assert found is not None
    assert {each.hardware for each in found.candidates} == {"MI300X", "H100-SXM"}
    assert 4 <= len(simulated) <= runs <= 10


def test_the_page_counts_candidates_against_its_limit(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "EXPLANATION_S", api.LEAST_EXPLANATION_S - 1.0)
    planner = Planner(Settings(fleet_file, 0.5, 0.01, 1), lambda _: None)
    answer = planner.answer(PlanRequest(1, (), ()))
    assert answer.outcome is None
    assert "0 of 2 pairs of a service and hardware evaluated and kept within 0.5 s" in answer.reason


def test_plan_says_how_far_it_came(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A solve that ends among its candidates says how many pairs are evaluated and writes no plan."""
    monkeypatch.setattr(api, "EXPLANATION_S", api.LEAST_EXPLANATION_S - 1.0)
    assert run("solve", fleet_file, "--time-limit", 0.5, "--out", fleet_file.parent / "out") == 4
    said = capsys.readouterr().err
    assert "0 of 2 pairs of a service and hardware evaluated and kept within 0.5 s" in said
    assert "run again or raise --time-limit" in said
    assert not (fleet_file.parent / "out").exists()


@pytest.mark.parametrize("command", ["check", "dump"])
def test_a_command_that_solves_nothing_keeps_its_limit(
    command: str, fleet_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    after_a_pair = SimpleNamespace(monotonic=lambda: 3.0 * len(list(cache.cache_folder().glob("*.npz"))))
    monkeypatch.setattr(shared, "time", after_a_pair)
    options = ("--out", fleet_file.parent / "out") if command == "dump" else ()
    assert run(command, fleet_file, *options, "--time-limit", 2) == 4
    said = capsys.readouterr().err
    assert "1 of 2 pairs of a service and hardware evaluated and kept within 2 s; run again" in said
    assert not (fleet_file.parent / "out").exists()
    monkeypatch.setattr(shared, "time", time)
    assert run(command, fleet_file, *options) == 0


def test_plan_verify_and_replay_keep_their_limits(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = fleet_file.parent / "out/plan.json"
    assert run("solve", fleet_file, "--out", plan.parent) == 0
    shutil.rmtree(user_cache("candidates"))
    late = SimpleNamespace(monotonic=iter((0.0, *[9.0] * 9)).__next__)
    monkeypatch.setattr(shared, "time", late)
    assert run("verify", plan, fleet_file, "--time-limit", 1) == 4
    assert "0 of 2 pairs" in capsys.readouterr().err
    monkeypatch.setattr(shared, "time", SimpleNamespace(monotonic=iter((0.0, 9.0)).__next__))
    assert run("replay", plan, fleet_file, "--duration", 5, "--time-limit", 1, "--json") == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert "0 of 1 service in a region simulated; choose a --service" in said.err


def test_a_question_evaluates_the_fleet_of_its_plan_whatever_a_solve_may_take(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question evaluates all candidates of its plan, however short its time limit."""
    plan = fleet_file.parent / "out/plan.json"
    assert run("solve", fleet_file, "--out", plan.parent) == 0
    for kept in ("candidates", "landscapes"):
        shutil.rmtree(user_cache(kept))
    monkeypatch.setattr(api, "EXPLANATION_S", api.LEAST_EXPLANATION_S - 1.0)
    run("alternatives", plan, "--time-limit", 0.5)
    said = capsys.readouterr()
    assert "evaluating chat on" in said.err
    assert "evaluated and kept within" not in said.err
    assert "fewest kinds of hardware" in said.out


def test_compare_counts_candidates_against_the_limit_of_their_fleet(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("compare", fleet_file, "--against", "without:MI300X", "--time-limit", 0.5)
    monkeypatch.setattr(api, "EXPLANATION_S", api.LEAST_EXPLANATION_S - 1.0)
    assert run(*asked) == 4
    assert "0 of 2 pairs of a service and hardware evaluated and kept within 0.5 s" in capsys.readouterr().err


def test_an_alternative_whose_candidates_take_too_long_is_undecided(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = load_fleet(fleet_file)
    longer = load_fleet(fleet_file, (), ("services.chat.workload.output_tokens=200",))
    within = api.evaluate_within
    times_s = iter((20.0, -9.0))

    def in_less_time(limits: SearchLimits, evaluated: Any) -> Any:
        return within(replace(limits, time_limit_s=next(times_s)), evaluated)

    monkeypatch.setattr(compare, "evaluate_within", in_less_time)
    against = Counterfactual("longer", "longer answers", (FleetOption("", lambda _: True),), longer)
    (row,) = whole_comparison(fleet, (against,), SearchLimits(time_limit_s=20.0)).rows
    assert row.chosen is None
    assert [(each.infeasible, each.plan) for each in row.trials] == [(False, None)]
    assert "0 of 2 pairs of a service and hardware evaluated and kept" in row.trials[0].reasons[0]


def test_a_changed_fleet_of_a_question_keeps_the_limit_of_a_solve(
    fleet_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "EXPLANATION_S", api.LEAST_EXPLANATION_S - 1.0)
    resolver = Resolver(SearchLimits(time_limit_s=0.5))
    answer = resolver.answer(FleetQuestion(load_fleet(fleet_file)))
    assert answer.plan is None
    assert not answer.infeasible
    (reason,) = answer.reasons
    assert reason.startswith("0 of 2 pairs of a service and hardware evaluated and kept within 0.5 s; run")


def test_candidates_and_search_share_the_time(fleet_file: Path) -> None:
    fleet = load_fleet(fleet_file)
    limits = SearchLimits(time_limit_s=5.0, latest=Deadline.after(3.0))
    *_, left = api.prepare_within(limits, lambda late: prepare(fleet, lambda _: None, None, late))
    assert left.latest.left_s <= 3.0
    # Where the clock must not decide, it does not decide here.
    repeated = SearchLimits(time_limit_s=0.0, reproducible=True)
    candidates, _, left = api.prepare_within(
        repeated, lambda late: prepare(fleet, lambda _: None, None, late)
    )
    assert candidates.candidates
    assert left is repeated


def test_what_is_done_once_per_installation_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is done once per installation does not count against a time limit."""
    clock = SimpleNamespace(monotonic=lambda: now_s)
    for module in (interruption, deadline, shared):
        monkeypatch.setattr(module, "time", clock)
    now_s, told = 100.0, list[str]()

    def evaluated(late: Callable[[], bool]) -> str:
        nonlocal now_s
        assert not late()
        with interruption.interruptible(late, told.append), interruption.once_per_installation("compiling"):
            now_s += 60.0
        assert not late()
        now_s += 3.0
        assert not late()
        return "found"

    found, limits = api.evaluate_within(SearchLimits(time_limit_s=5.0), evaluated)
    assert found == "found"
    assert told == ["compiling"]
    # Five seconds and what comes after them, of which three are over.
    assert limits.explained.left_s == pytest.approx(2.0 + api.EXPLANATION_S)
    # A question of many solves ends when it was to end.
    whole = SearchLimits(time_limit_s=5.0, latest=deadline.Deadline.after(70.0))
    _, limits = api.evaluate_within(whole, evaluated)
    assert limits.explained.left_s == pytest.approx(7.0)
    with shared.time_for_candidates(4.0) as late:
        evaluated(late)
        now_s += 2.0
        assert late()
