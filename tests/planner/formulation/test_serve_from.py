"""Demand that another region serves, the way there within the TTFT limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.planner.builders import candidate, service
from tests.planner.formulation.two_regions import PLACES, RENT, plan_of, question, timed
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates.build import build_candidates
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.candidates.remote import ways_in_time, ways_ms
from fleetplan.planner.export.files import plan_tables
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Candidate, Phase, build_problem
from fleetplan.planner.problem.independent_parts import components
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.verify import verify
from fleetplan.scenarios.load import load_fleet

SLOW, FAST = timed(1.0, 290.0, "slow"), timed(0.5, 240.0, "fast")


def test_what_is_in_time_is_served_where_it_is_cheap() -> None:
    solved = solve(question(), (timed(1.0, 240.0, "x"),))
    # Two for the west and the one that is left of three for the east; one stays.
    assert solved.usd == pytest.approx((3 * 1.0 + 1 * 3.0) * RENT)
    (far,) = solved.rows(region="west")
    assert far.requests_per_s == pytest.approx(3.0)
    assert far.requests_per_s_by_origin == {"east": {"all": pytest.approx(1.0)}}


@pytest.mark.parametrize(("ttft_ms", "usd"), [(240.0, 6.0), (240.001, 8.0)])
def test_the_way_counts_against_ttft(ttft_ms: float, usd: float) -> None:
    assert solve(question(), (timed(1.0, ttft_ms, "x"),)).usd == pytest.approx(usd * RENT)


@pytest.mark.parametrize(("reach_ms", "usd"), [(60.0, 6.0), (59.999, 8.0), (None, 6.0)])
def test_limits_under_load_hold_over_ways_that_are_short_enough(reach_ms: float | None, usd: float) -> None:
    assert solve(question(), (timed(1.0, 200.0, "x", reach_ms=reach_ms),)).usd == pytest.approx(usd * RENT)
    without = question(ttft_ms=None)
    assert solve(without, (timed(1.0, 200.0, "x", reach_ms=reach_ms),)).usd == pytest.approx(usd * RENT)


def test_the_verifier_knows_how_far_limits_under_load_hold() -> None:
    solved = solve(question(), (timed(1.0, 200.0, "x", reach_ms=60.0),))
    nearer = replace(solved.problem, candidates=(timed(1.0, 200.0, "x", reach_ms=59.0),))
    (found,) = verify(nearer, plan_of(solved))
    assert found.family == "latency"
    assert "the round trip is 60.0 ms, limits under load allow 59.0 ms" in found.message


def test_other_times_outside_inference_count_as_well() -> None:
    asked = question()
    slower = replace(asked.services[0].outside_ms, safety_ms=1.0)
    asked = replace(asked, services=(replace(asked.services[0], outside_ms=slower),))
    assert solve(asked, (timed(1.0, 240.0, "x"),)).usd == pytest.approx(8.0 * RENT)


def test_a_faster_configuration_goes_where_the_slower_cannot() -> None:
    asked = question()
    asked = replace(
        asked, services=(service("chat", {("east", "now", "all"): 1.0}, regions=PLACES, ttft_ms=300.0),)
    )
    asked = replace(asked, services=(replace(asked.services[0], serve_from={"east": ("west",)}),))
    solved = solve(asked, (SLOW, FAST))
    # Two fast ones far away cost less than a slow one here.
    assert [(row.region, row.config, row.replicas) for row in solved.rows()] == [("west", "fast", 2)]


def test_nobody_serves_a_region_that_is_not_named() -> None:
    assert solve(question(serve_from={}), (timed(1.0, 240.0, "x"),)).usd == pytest.approx(8.0 * RENT)
    other = question(serve_from={"west": ("east",)})
    assert solve(other, (timed(1.0, 240.0, "x"),)).usd == pytest.approx(8.0 * RENT)


def test_a_service_need_not_run_where_it_is_asked_for() -> None:
    asked = question(allowed_regions=("west",))
    assert solve(asked, (timed(1.0, 240.0, "x"),)).usd is None
    enough = replace(asked, offers=(replace(asked.offers[1], max_units=(None,)),))
    assert solve(enough, (timed(1.0, 240.0, "x"),)).usd == pytest.approx(4.0 * RENT)


def test_phases_of_a_request_meet_in_one_region() -> None:
    runs = tuple(
        replace(candidate("chat", "A", 1.0, phase=phase), ttft_ms=(None if phase == "decode" else 200.0,))
        for phase in ("prefill", "decode")
    )
    asked = question()
    five = replace(asked, offers=(asked.offers[0], replace(asked.offers[1], max_units=(5,))))
    # Four serve the west; one of a phase is no use to the east.
    assert solve(five, runs).usd == pytest.approx((4 * 1.0 + 4 * 3.0) * RENT)
    six = replace(asked, offers=(asked.offers[0], replace(asked.offers[1], max_units=(6,))))
    solved = solve(six, runs)
    assert solved.usd == pytest.approx((6 * 1.0 + 2 * 3.0) * RENT)
    for phase in ("prefill", "decode"):
        (far,) = solved.rows(region="west", phase=phase)
        assert far.requests_per_s_by_origin == {"east": {"all": pytest.approx(1.0)}}
    flows = {(flow.origin, flow.prefill_pool, flow.decode_pool) for flow in plan_of(solved).kv_flows}
    assert flows == {("east", "west/cheap", "west/cheap"), ("east", "east/dear", "east/dear")}


def test_regions_that_serve_each_other_are_solved_together() -> None:
    assert len(components(build_problem(question(), (SLOW,)))) == 1
    assert len(components(build_problem(question(serve_from={}), (SLOW,)))) == 2


def test_pruning_keeps_what_only_far_requests_need() -> None:
    asked = question().services[0]
    ways = ways_ms(question(), asked)
    assert ways == (60.0,)
    kinds = question().hardware
    assert prune_dominated((SLOW, FAST), kinds, RejectionLog()) == [SLOW]
    kept = prune_dominated((SLOW, FAST), kinds, RejectionLog(), ways=ways_in_time(asked, ways))
    assert kept == [SLOW, FAST]
    near, far = timed(1.0, 200.0, "near", reach_ms=0.0), timed(0.5, 200.0, "far", reach_ms=60.0)
    assert prune_dominated((near, far), kinds, RejectionLog(), ways=ways_in_time(asked, ways)) == [near, far]
    faster = timed(1.0, 230.0, "both")
    assert (
        prune_dominated((SLOW, FAST, faster), kinds, RejectionLog(), ways=ways_in_time(asked, ways))
        == [faster]
        or SLOW.requests_per_s == faster.requests_per_s
    )


FILE = """\
version: 1
regions:
  east: {{round_trip_ms: {{west: {way}}}}}
  west: {{}}
offers:
  - {{name: e, regions: [east], hardware: H100-SXM, rent_usd_per_accelerator_hour: 3}}
  - {{name: w, regions: [west], hardware: H100-SXM, rent_usd_per_accelerator_hour: 1}}
services:
  - name: chat
    model: llama3-8b
    workload: {{input_tokens: 2000, output_tokens: 100}}
    slo: {{ttft_ms: 160, tpot_ms: 20}}
    demand: {{east: 20, west: 5}}
    {rule}
"""


def candidates_of(folder: Path, way: float, rule: str) -> tuple[Fleet, tuple[Candidate, ...]]:
    path = folder / "fleet.yaml"
    path.write_text(FILE.format(way=way, rule=rule), encoding="utf-8")
    asked = load_fleet(path)
    return asked, build_candidates(asked, lambda _: None).candidates


def test_the_landscape_is_searched_at_every_way(tmp_path: Path) -> None:
    asked, near = candidates_of(tmp_path, 90, "")
    _, both = candidates_of(tmp_path, 90, "serve_from: {east: [west]}")
    assert {one.key for one in near} < {one.key for one in both}
    limit = 160 - 90
    far = [one for one in both if one.phase is not Phase.DECODE and one.ttft_ms[0] is not None]
    assert any(one.ttft_ms[0] is not None and one.ttft_ms[0] <= limit for one in far)
    best_near = max(one.requests_per_s[0] / one.accelerators for one in near if one.phase is Phase.PREFILL)
    best_far = max(
        one.requests_per_s[0] / one.accelerators
        for one in both
        if one.phase is Phase.PREFILL and (one.ttft_ms[0] or 0) <= limit
    )
    assert best_far < best_near
    solved = solve(load_fleet(tmp_path / "fleet.yaml"), both, gap=0.01)
    alone = solve(asked, near, gap=0.01)
    assert solved.usd is not None
    assert alone.usd is not None
    assert solved.usd < alone.usd
    assert any(row.requests_per_s_by_origin for row in solved.rows(region="west"))


def test_a_way_that_leaves_nothing_adds_no_candidates(tmp_path: Path) -> None:
    _, near = candidates_of(tmp_path, 160, "")
    _, both = candidates_of(tmp_path, 160, "serve_from: {east: [west]}")
    assert near == both


def tampered(plan: Plan, **change: object) -> Plan:
    rows: list[Placement] = []
    for row in plan.placements:
        rows.append(row.model_copy(update=change) if row.requests_per_s_by_origin else row)
    return plan.model_copy(update={"placements": tuple(rows)})


@pytest.mark.parametrize(
    ("origin", "family"),
    [
        ({"east": {"all": 2.0}}, "coverage"),
        ({"east": {"all": 4.0}}, "placement"),
        ({"east": {"all": -1.0}}, "placement"),
        ({"west": {"all": 1.0}}, "placement"),
        ({"moon": {"all": 1.0}}, "placement"),
        ({}, "coverage"),
    ],
)
def test_a_plan_that_states_other_origins_is_rejected(
    origin: dict[str, dict[str, float]], family: str
) -> None:
    solved = solve(question(), (timed(1.0, 240.0, "x"),))
    plan = tampered(plan_of(solved), requests_per_s_by_origin=origin)
    assert family in {violation.family for violation in verify(solved.problem, plan)}


def test_a_plan_is_checked_against_who_may_serve_and_how_far_it_is() -> None:
    solved = solve(question(), (timed(1.0, 240.0, "x"),))
    alone = replace(solved.problem.services["chat"], serve_from={})
    found = verify(replace(solved.problem, services={"chat": alone}), plan_of(solved))
    assert any("west may not serve requests from east" in violation.message for violation in found)
    east = replace(solved.problem.regions["east"], round_trip_ms={"west": 61.0})
    regions = {**solved.problem.regions, "east": east}
    found = verify(replace(solved.problem, regions=regions), plan_of(solved))
    assert any(
        "from east: TTFT is 301.0 ms, above the limit of 300.0 ms" in violation.message for violation in found
    )


def test_the_report_says_who_serves_whom() -> None:
    console = Console(width=160)
    with console.capture() as captured:
        print_plan(plan_of(solve(question(), (timed(1.0, 240.0, "x"),))), console)
    assert "Served from other regions: chat: 1 requests/s of east by west" in captured.get()


def test_of_many_flows_the_largest_are_named_and_the_others_added() -> None:
    """The console names the largest flows between regions and sums the others."""
    plan = plan_of(solve(question(), (timed(1.0, 240.0, "x"),)))
    away = next(row for row in plan.placements if row.requests_per_s_by_origin)
    flows = {f"r{k}": {"all": float(k)} for k in range(1, 8)}
    row = away.model_copy(update={"requests_per_s_by_origin": flows})
    console = Console(width=400)
    with console.capture() as captured:
        print_plan(plan.model_copy(update={"placements": (row,)}), console)
    shown = next(line for line in captured.get().splitlines() if "Served from" in line)
    assert "chat: 7 requests/s of r7 by west, 6 requests/s of r6 by west" in shown
    assert shown.rstrip().endswith("4 requests/s of r4 by west and 3 more, 28 requests/s in all")


def test_the_tables_have_a_column_for_each_origin() -> None:
    runs = tuple(
        replace(candidate("chat", "A", 1.0, phase=phase), ttft_ms=(None if phase == "decode" else 200.0,))
        for phase in ("prefill", "decode")
    )
    asked = question()
    six = replace(asked, offers=(asked.offers[0], replace(asked.offers[1], max_units=(6,))))
    tables = plan_tables(plan_of(solve(six, runs)))
    column = tables["placements"]["requests_per_s_by_origin.east.all"]
    assert sorted(column.fillna(0.0)) == pytest.approx([0.0, 0.0, 1.0, 1.0])
    assert set(tables["kv_flows"]["prefill_pool"]) == {"east/dear", "west/cheap"}
