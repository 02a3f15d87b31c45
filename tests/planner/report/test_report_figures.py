"""Figures of the report: content, legends and element names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.report.report_pages import FRONTIER, ReportPage, plan
from tests.planner.whole_fleet import EVIL, FORMULA, PERIODS

from fleetplan.planner.landscape.frontier_points import FrontierPoint, frontier_table, read_frontier
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import VariantInput
from fleetplan.planner.report.html.fleet_map import fleet_pictures, service_styles
from fleetplan.planner.report.html.frontier_view import frontiers
from fleetplan.planner.report.html.money_view import by_kind, by_service, changes
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.report.html.purchases_view import timeline
from fleetplan.planner.report.html.service_views import CapacityView, capacities, capacity_bars, latency_rows
from fleetplan.planner.report.html.svg import short, thousands
from fleetplan.planner.report.html.write import write_report


def test_the_parts_of_a_pool_are_the_pool() -> None:
    pictures = fleet_pictures(plan())
    assert [each.label for each in pictures] == list(PERIODS)
    pools = [pool for picture in pictures for region in picture.regions for pool in region.pools]
    assert {pool.use.pool for pool in pools} == {use.pool for use in plan().pools if use.accelerators}
    for pool in pools:
        assert sum(part.accelerators for part in pool.segments) == pool.use.accelerators
        assert sum(part.share for part in pool.segments) == pytest.approx(1)
    (old,) = [pool for pool in pools if pool.use.pool == "old" and pool.use.period == "2027Q2"]
    assert {part.name: part.accelerators for part in old.segments} == {EVIL: 9, FORMULA: 3}


def test_many_small_services_share_a_colour() -> None:
    whole = plan()
    row = next(row for row in whole.placements if row.pool == "hired" and row.period == "2027Q1")
    many = tuple(
        row.model_copy(update={"service": f"tail-{n}", "usd": 1.0 - n / 100, "accelerators": 1})
        for n in range(13)
    )
    later = whole.model_copy(update={"placements": (row.model_copy(update={"accelerators": 2}), *many)})
    styles = service_styles(later)
    assert (len(styles), styles[FORMULA], styles["tail-9"]) == (11, "s0", "s10")
    (hired,) = [
        pool
        for region in fleet_pictures(later)[0].regions
        for pool in region.pools
        if pool.use.pool == "hired"
    ]
    parts = {part.name: (part.style, part.accelerators) for part in hired.segments}
    assert parts["3 other services"] == ("other", 3)
    assert "other services" in ReportPage(report_page(later.model_copy(update={"inputs": None}))).words


def test_reserve_and_what_is_out_of_service_are_not_idle() -> None:
    kept = {"reserve_accelerators": 2, "maintenance_accelerators": 1}
    pools = tuple(use.model_copy(update=kept) if use.pool == "hired" else use for use in plan().pools)
    picture = fleet_pictures(plan().model_copy(update={"pools": pools}))[0]
    (hired,) = [pool for region in picture.regions for pool in region.pools if pool.use.pool == "hired"]
    parts = {part.name: part.accelerators for part in hired.segments}
    assert parts == {FORMULA: 4, "reserve": 2, "out of service": 1, "idle": 1}


def test_hosts_that_a_replica_takes_whole_are_not_idle() -> None:
    """Accelerators that share a host with an exclusive replica are drawn as in use, as in the tables."""
    pools = tuple(
        use.model_copy(update={"used_accelerators": use.used_accelerators + 2, "accelerators": 9})
        if (use.pool, use.period) == ("hired", "2027Q1")
        else use
        for use in plan().pools
    )
    picture = fleet_pictures(plan().model_copy(update={"pools": pools}))[0]
    (hired,) = [pool for region in picture.regions for pool in region.pools if pool.use.pool == "hired"]
    parts = {part.name: part.accelerators for part in hired.segments}
    assert parts == {FORMULA: 4, "rest of its hosts": 2, "idle": 3}


def test_waterfalls_add_up() -> None:
    for steps in (by_kind(plan()), by_service(plan())):
        *parts, total = steps
        assert sum(step.usd for step in parts) == pytest.approx(total.usd)
        assert total.usd == plan().objective_usd


def test_a_change_of_cost_leads_from_the_old_total_to_the_new_one() -> None:
    from fleetplan.planner.questions.diff import diff  # noqa: PLC0415

    older = plan().model_copy(
        update={
            "objective_usd": plan().objective_usd - 5000.0,
            "cost_breakdown": {**plan().cost_breakdown, "rent": plan().cost_breakdown["rent"] - 5000.0},
        }
    )
    first, *steps, last = changes(diff(older, plan()), diff(older, plan()).cost_by_kind)
    assert [step.name for step in steps] == ["rent"]
    assert first.usd + sum(step.usd for step in steps) == pytest.approx(last.usd)


def test_capacity_covers_the_demand_that_is_planned_for() -> None:
    inputs = plan().inputs
    assert inputs is not None
    evil, formula = sorted(capacities(plan(), inputs), key=lambda each: each.service, reverse=True)
    if evil.service != EVIL:
        evil, formula = formula, evil
    assert evil.demand == (40.0, 90.0, 120.0)
    assert evil.planned == pytest.approx((44.0, 99.0, 132.0))
    assert formula.demand == (60.0, 60.0, 60.0)
    # Of the two phases the one that sustains less: two prefill replicas of 30/s, then decode ones of 12/s.
    assert evil.by_hardware == {"B": pytest.approx((60.0, 0.0, 0.0)), "A": pytest.approx((0.0, 108.0, 132.0))}
    for each in (evil, formula):
        for position, planned in enumerate(each.planned):
            assert sum(values[position] for values in each.by_hardware.values()) >= planned * (1 - 1e-9)


def alone() -> Plan:
    """The plan of the first period alone."""
    whole = plan()
    assert whole.inputs is not None
    demand = tuple(row for row in whole.inputs.demand if row.period == PERIODS[0])
    return whole.model_copy(
        update={
            "periods": PERIODS[:1],
            "placements": tuple(row for row in whole.placements if row.period == PERIODS[0]),
            "pools": tuple(row for row in whole.pools if row.period == PERIODS[0]),
            "purchases": (),
            "retirements": (),
            "inputs": whole.inputs.model_copy(update={"demand": demand}),
        }
    )


def test_services_of_one_moment_share_a_chart() -> None:
    inputs = alone().inputs
    assert inputs is not None
    views = capacities(alone(), inputs)
    bars = {bar.service: bar for bar in capacity_bars(views)}
    evil = bars[EVIL]
    assert (evil.sustained, evil.demand, evil.planned) == pytest.approx((60.0, 40.0, 44.0))
    # Peak demand is at the same place in every bar, and a part is as long beside it as in requests/s.
    assert {bar.demand_at for bar in bars.values()} == {evil.demand_at}
    assert sum(width for _, width in evil.parts) == pytest.approx(1.5 * evil.demand_at)
    assert evil.planned_at == pytest.approx(1.1 * evil.demand_at)
    page = report_page(alone(), FRONTIER)
    assert "capacity against demand of" not in page
    assert "60 requests/s; peak 40, with headroom 44" in ReportPage(page).words
    assert capacity_bars(capacities(plan(), inputs)) == ()


def test_a_bar_far_above_its_demand_is_cut() -> None:
    view = CapacityView("s", ("2027Q1",), {"A": (30.0,), "B": (900.0,)}, (20.0,), (22.0,))
    (bar,) = capacity_bars((view,))
    assert (bar.demand_at, bar.parts) == (0.5, (("A", 0.75), ("B", 0.25)))
    assert bar.sustained == 930.0


def legend(page: str, section: str) -> str:
    part = page[page.index(f'<section id="{section}">') :]
    return part[part.index('<p class="legend">') : part.index("</p>", part.index('<p class="legend">'))]


def test_legends_name_what_is_drawn() -> None:
    drawn = (*FRONTIER, FrontierPoint(EVIL, "decode", "card-in-a-frontier", "x1", "all", 10.0, 5.0))
    page = report_page(plan(), drawn)
    assert "card-in-a-frontier" in legend(page, "frontiers")
    assert "card-in-a-frontier" not in legend(page, "capacity")
    services = {f"tail-{n}" for n in range(11)}
    row = plan().placements[0]
    twelve = (row, *(row.model_copy(update={"service": name}) for name in sorted(services)))
    styles = service_styles(plan().model_copy(update={"placements": twelve}))
    # The twelfth colour is for the twelfth service as long as there are no others.
    assert (len(styles), len(set(styles.values()))) == (12, 12)


def test_variants_of_a_model_are_one_line() -> None:
    whole = plan()
    assert whole.inputs is not None
    variants = tuple(VariantInput(name=name, model="m", weights="fp8", kv="fp8") for name in ("fp8", "int8"))
    services = tuple(each.model_copy(update={"variants": variants}) for each in whole.inputs.services)
    later = whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"services": services})})
    points = tuple(
        FrontierPoint(EVIL, "decode", f"{variant}/A", "x1", "all", latency_ms, rate)
        for variant, latency_ms, rate in (
            ("fp8", 10.0, 5.0), ("fp8", 30.0, 9.0), ("int8", 20.0, 7.0), ("int8", 25.0, 6.0)
        )
    )  # fmt: skip
    (found,) = frontiers(later, points, [EVIL])
    assert list(found.lines) == ["A"]
    assert [point.latency_ms for point in found.lines["A"]] == [10.0, 20.0, 30.0]


def test_ticks_are_written_out() -> None:
    assert [thousands(tick) for tick in (0.0, 0.1 + 0.2, 17_500.0, 949_290.0)] == [
        "0", "0.3", "17,500", "949,290",
    ]  # fmt: skip


def test_latency_stands_against_its_limit_with_the_time_outside() -> None:
    rows = {(row.service, row.region): row for row in latency_rows(plan())}
    there = rows[FORMULA, "there"]
    assert there.ttft is not None
    assert (there.ttft.value_ms, there.ttft.limit_ms) == (170.0, 200.0)
    assert there.ttft.ratio == pytest.approx(0.85)
    assert there.tpot is not None
    assert there.tpot.ratio is None
    evil = rows[EVIL, "here"]
    assert evil.tpot is not None
    assert evil.tpot.ratio == pytest.approx(25 / 30)


def test_the_timeline_shows_order_arrival_and_leaving() -> None:
    rows = {row.detail: row for row in timeline(plan())}
    assert [each.state for each in rows["new in here"].stretches] == ["", "ordered", "serves"]
    assert [each.text for each in rows["new in here"].stretches] == ["", "order", "8"]
    assert [each.state for each in rows["old in here"].stretches] == ["gone", "gone", "gone"]
    assert [each.text for each in rows["aged in there"].stretches] == ["", "leaves", ""]
    assert rows["aged in there"].stretches[0].state == "serves"


def test_the_frontier_is_read_as_it_was_written(tmp_path: Path) -> None:
    points = (*FRONTIER, FrontierPoint(FORMULA, "aggregated", "A", "x1", "all", 40.0, 9.0))
    write_report(plan(), tmp_path, points)
    assert read_frontier(tmp_path / "frontiers.csv") == points
    assert len(frontier_table(points)) == len(points)
    # A spreadsheet takes what begins so for text.
    assert frontier_table(points)["service"].iloc[-1] == f"'{FORMULA}"
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert read_frontier(tmp_path / "nothing.csv") == ()


def test_a_long_name_is_cut_in_figures_alone() -> None:
    assert short("x" * 36) == "x" * 36
    assert short("x" * 37) == "x" * 35 + "…"


def test_requests_of_one_token_are_seen_by_their_first_one() -> None:
    """Requests of one token have no TPOT; their frontier is drawn by TTFT."""
    whole = plan()
    assert whole.inputs is not None
    (service, *_) = whole.inputs.services
    classes = tuple(each.model_copy(update={"output_tokens": 1}) for each in service.classes)
    short_one = service.model_copy(update={"classes": classes, "ttft_ms": 300.0, "outside_ms": 50.0})
    row = whole.placements[0].model_copy(
        update={"service": service.name, "phase": "aggregated", "ttft_ms": 90.0, "tpot_ms": None}
    )
    changes = {"inputs": whole.inputs.model_copy(update={"services": (short_one,)}), "placements": (row,)}
    later = whole.model_copy(update=changes)
    (meters,) = latency_rows(later)
    assert (meters.tpot, meters.no_tpot) == (None, "one token")
    points = (FrontierPoint(service.name, "aggregated", "B", "x1", "all", 120.0, 30.0),)
    (frontier,) = frontiers(later, points, [service.name])
    assert (frontier.latency, frontier.limit_ms) == ("TTFT", 250.0)
    assert [each.latency_ms for each in frontier.chosen] == [90.0]


def test_a_frontier_has_the_limit_that_is_left_to_inference_and_what_runs() -> None:
    whole = plan()
    assert whole.inputs is not None
    services = tuple(
        each.model_copy(update={"outside_ms": 50.0, "ttft_ms": 300.0}) for each in whole.inputs.services
    )
    later = whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"services": services})})
    points = (FrontierPoint(EVIL, "prefill", "B", "x1", "all", 120.0, 30.0), *FRONTIER)
    prefill, decode = frontiers(later, points, [EVIL, FORMULA])
    assert (prefill.phase, prefill.latency, prefill.limit_ms) == ("prefill", "TTFT", 250.0)
    assert (decode.phase, decode.latency, decode.limit_ms) == ("decode", "TPOT", 30.0)
    assert [point.latency_ms for point in decode.lines["A"]] == [10.0, 20.0, 30.0]
    (ring,) = decode.chosen
    assert (ring.hardware, ring.latency_ms) == ("A", 25.0)
    assert ring.requests_per_s_per_accelerator == pytest.approx(12.0)
