"""Candidates whose limits hold under load: what they carry, and that plans with them cost what load costs."""

from pathlib import Path

import numpy as np
import pytest

from fleetplan.perfmodel.queueing import POOL_SIZES
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.candidates.build import build_candidates
from fleetplan.planner.candidates.load_question import derived_headroom
from fleetplan.planner.candidates.queueing import lines_of
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
name: small
horizon: {periods: [2027Q1]}
regions: {east: {}}
offers: [{name: rent, hardware: MI300X, per: accelerator, rent_usd_per_accelerator_hour: 2}]
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 1000, output_tokens: 100}
    slo: {ttft_ms: 300, tpot_ms: 30}
    runtimes: [disaggregated]
    demand: 2000
"""


def fleet_file(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = FLEET
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def candidates(tmp_path: Path, *changes: tuple[str, str]) -> dict[tuple[str, str], Candidate]:
    fleet = load_fleet(fleet_file(tmp_path, *changes))
    found = build_candidates(fleet, lambda _: None).candidates
    return {(each.phase, each.config.split()[0]): each for each in found}


def plan_usd(tmp_path: Path, *changes: tuple[str, str]) -> float:
    fleet = load_fleet(fleet_file(tmp_path, *changes))
    outcome = plan_fleet(fleet, SearchLimits(20.0, 1e-4, seed=1, workers=2)).outcome
    assert isinstance(outcome, Plan)
    return outcome.objective_usd


def test_limits_on_means_leave_candidates_as_they_were(tmp_path: Path) -> None:
    assert all(candidate.pooling == () for candidate in candidates(tmp_path).values())


def test_percentiles_give_every_candidate_lines(tmp_path: Path) -> None:
    both = ("[disaggregated]", "[disaggregated, aggregated]")
    found = candidates(tmp_path, ("ttft_ms: 300", "ttft_p95_ms: 300"), both)
    assert {phase for phase, _ in found} == set(Phase)
    for (phase, _), candidate in found.items():
        assert candidate.pooling
        assert candidate.carried(1) <= 1.0
        each = [candidate.carried(n) / n for n in (1, 2, 4, 16, 64)]
        assert each == sorted(each)
        if phase is not Phase.AGGREGATED:
            assert each[-1] > each[0]


@pytest.mark.parametrize(
    "change",
    [
        ("ttft_ms: 300", "ttft_p95_ms: 300"),
        ("    demand", "    traffic: {burstiness: 1}\n    demand"),
        ("tpot_ms: 30", "tpot_ms: 30, goodput_ratio: 0.97"),
    ],
)
def test_limits_under_load_cost_more(tmp_path: Path, change: tuple[str, str]) -> None:
    assert plan_usd(tmp_path, change) > plan_usd(tmp_path)


def test_tighter_percentiles_and_bursts_are_never_cheaper(tmp_path: Path) -> None:
    p95 = plan_usd(tmp_path, ("ttft_ms: 300", "ttft_p95_ms: 300"))
    assert plan_usd(tmp_path, ("ttft_ms: 300", "ttft_p99_ms: 300")) >= p95
    assert plan_usd(tmp_path, ("ttft_ms: 300", "ttft_p95_ms: 240")) >= p95
    bursts = ("    demand", "    traffic: {burstiness: 4}\n    demand")
    assert plan_usd(tmp_path, ("ttft_ms: 300", "ttft_p95_ms: 300"), bursts) >= p95


def test_large_services_pool_better(tmp_path: Path) -> None:
    percentile = ("ttft_ms: 300", "ttft_p99_ms: 300")
    small = plan_usd(tmp_path, percentile, ("demand: 2000", "demand: 100"))
    large = plan_usd(tmp_path, percentile, ("demand: 2000", "demand: 2000"))
    assert large < 20 * small


def test_headroom_is_derived_unless_it_is_given(tmp_path: Path) -> None:
    percentile = ("ttft_ms: 300", "ttft_p95_ms: 300")
    derived = candidates(tmp_path, percentile)
    given = candidates(tmp_path, percentile, ("    demand", "    headroom: 0\n    demand"))
    for key in derived.keys() & given.keys():
        assert derived[key].carried(8) < given[key].carried(8)


def test_headroom_is_that_of_the_work_of_five_minutes() -> None:
    # 300 requests of constant length, Poisson: a standard deviation of 1 / sqrt(300).
    assert derived_headroom(1.0, 1.0, 0.0) == pytest.approx(2.33 / np.sqrt(300))
    assert derived_headroom(100.0, 1.0, 0.0) == pytest.approx(derived_headroom(1.0, 1.0, 0.0) / 10)
    assert derived_headroom(1.0, 2.0, 2.0) == pytest.approx(2 * derived_headroom(1.0, 1.0, 0.0))


def test_lines_of_simulated_pools_are_steps() -> None:
    each = np.where(POOL_SIZES >= 8, 0.9, 0.6)
    small, large = lines_of([POOL_SIZES * each], [3.0], simulated=True)
    assert (small.slope, small.loss, small.least) == (0.6, 0.0, 1)
    assert (large.slope, large.loss, large.least) == (0.9, 0.0, 8)


def test_classes_share_the_least_of_their_lines() -> None:
    much, little = POOL_SIZES * 0.9 - 0.5, POOL_SIZES * 0.8 - 0.2
    lines = lines_of([much, little], [2.0, 30.0], simulated=False)
    for line in lines:
        values = line.slope * POOL_SIZES - line.loss
        assert (values <= np.minimum(much, little) + 1e-9).all()
    assert lines_of([POOL_SIZES.astype(float)], [3.0], simulated=False) == ()


FAR = (
    (
        "regions: {east: {}}",
        "regions: {east: {round_trip_ms: {west: 80}}, west: {round_trip_ms: {east: 80}}}",
    ),
    ("    demand: 2000", "    serve_from: any\n    demand: {east: 2000, west: 1000}"),
    ("ttft_ms: 300", "ttft_p95_ms: 300"),
    ("per: accelerator,", "per: accelerator, regions: [east, west],"),
)
"""Both regions may serve each other over a way of 80 ms."""


def test_candidates_for_a_way_carry_what_a_limit_without_it_leaves(tmp_path: Path) -> None:
    fleet = load_fleet(fleet_file(tmp_path, *FAR))
    found = build_candidates(fleet, lambda _: None).candidates
    prompts = [each for each in found if each.phase is Phase.PREFILL]
    assert {each.reach_ms for each in prompts} == {0.0, 80.0}
    assert all(each.reach_ms is None for each in found if each.phase is Phase.DECODE)
    nearer = tuple((old, new.replace("80", "0.001")) for old, new in FAR[:1])
    less = load_fleet(fleet_file(tmp_path, *nearer, FAR[1], FAR[3], ("ttft_ms: 300", "ttft_p95_ms: 220")))
    same = {
        (each.config.split("@")[0], each.requests_per_s, each.pooling)
        for each in build_candidates(less, lambda _: None).candidates
        if each.phase is Phase.PREFILL and each.reach_ms == 0.0
    }
    far = {
        (each.config.split("@")[0], each.requests_per_s, each.pooling)
        for each in prompts
        if each.reach_ms == 80.0
    }
    assert far == same


def test_a_reach_that_costs_nothing_makes_no_second_candidate(tmp_path: Path) -> None:
    simulated = ("[disaggregated]", "[aggregated]")
    lasting = (FAR[0], FAR[1], FAR[3], ("ttft_ms: 300", "ttft_p95_ms: 30000"), simulated)
    fleet = load_fleet(fleet_file(tmp_path, *lasting))
    found = build_candidates(fleet, lambda _: None).candidates
    assert {each.reach_ms for each in found} == {80.0}
    assert not any("@" in each.config for each in found)


def test_a_service_that_is_served_elsewhere_pays_for_the_way(tmp_path: Path) -> None:
    only_east = ("per: accelerator,", "per: accelerator, regions: [east],")
    at_home = plan_usd(tmp_path, ("demand: 2000", "demand: 3000"), FAR[2])
    assert plan_usd(tmp_path, *FAR[:3], only_east) > at_home
