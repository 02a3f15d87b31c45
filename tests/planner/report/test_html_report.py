"""The page of the report: everything in it, nothing from outside, names kept as text."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.planner.whole_fleet import EVIL, FORMULA, PERIODS, whole_fleet, whole_plan

from fleetplan.fleet.figures import money
from fleetplan.fleet.inventory import LatencyLimit, Traffic
from fleetplan.planner.assemble.inputs import _load_limits
from fleetplan.planner.landscape.frontier_points import FrontierPoint, frontier_table, read_frontier
from fleetplan.planner.plan import (
    Conflict,
    DemandScenarioCost,
    GivenWay,
    Infeasible,
    Plan,
    Rejections,
    Shortage,
    StatedGoal,
    StatedWayOut,
    WrongForecast,
)
from fleetplan.planner.plan.inputs import VariantInput
from fleetplan.planner.report.html.fleet_map import fleet_pictures, service_styles
from fleetplan.planner.report.html.frontier_view import frontiers
from fleetplan.planner.report.html.money_view import by_kind, by_service, changes
from fleetplan.planner.report.html.page import infeasible_page, report_page
from fleetplan.planner.report.html.purchases_view import timeline
from fleetplan.planner.report.html.service_views import CapacityView, capacities, capacity_bars, latency_rows
from fleetplan.planner.report.html.svg import short, thousands
from fleetplan.planner.report.html.write import write_report

SECTIONS = {
    "map", "placements", "capacity", "purchases", "cost", "latency", "frontiers", "evidence", "limits",
    "rejections", "assumptions",
}  # fmt: skip

LARGEST_BYTES = 3_000_000


def plan() -> Plan:
    found = whole_plan().plan
    assert found is not None
    left_out = Rejections(service=EVIL, counts={"ttft": 7}, by_hardware={"A": {"ttft": 7}})
    return found.model_copy(update={"rejections": (left_out,)})


FRONTIER = tuple(
    FrontierPoint(EVIL, "decode", hardware, f"x{n}", "all", 10.0 * n, rate * n)
    for hardware, rate in (("A", 5.0), ("B", 9.0))
    for n in (1, 2, 3)
)


class ReportPage(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words += f" {data}"


@cache
def text() -> str:
    return report_page(plan(), FRONTIER, plan())


def test_every_section_is_there() -> None:
    page = ReportPage(text())
    ids = [value for name, value in page.attributes if name == "id"]
    assert set(ids) >= SECTIONS | {"changes"}
    assert len(ids) == len(set(ids))
    links = {value[1:] for name, value in page.attributes if name == "href" and value.startswith("#")}
    assert {link for link in links if link in SECTIONS | {"changes"}} == SECTIONS | {"changes"}
    assert links <= set(ids)


def test_nothing_comes_from_outside_and_no_script_runs() -> None:
    page = ReportPage(text())
    assert not {"script", "iframe", "object", "embed", "img", "form"} & set(page.tags)
    assert [value for name, value in page.attributes if name == "src"] == []
    targets = [value for name, value in page.attributes if name in {"href", "xlink:href", "action"}]
    assert all(value.startswith("#") or value == "data:," for value in targets)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "@import" not in text()
    assert not re.findall(r"url\((?!#)", text())
    assert len(text().encode()) < LARGEST_BYTES


def test_names_stay_text_in_tables_and_figures() -> None:
    page = ReportPage(text())
    assert EVIL in page.words
    assert FORMULA in page.words
    assert "<script" not in text()
    # In a figure: mathematics is not read into a name.
    drawn = re.findall(r"<text[^>]*>(.*?)</text>", text(), flags=re.DOTALL)
    assert any("$y$" in label for label in drawn)


def test_headline_costs_and_sources_are_those_of_the_plan() -> None:
    words = " ".join(ReportPage(text()).words.replace("\u00a0", " ").split())
    assert f"{money(plan().objective_usd)} total cost of ownership" in words
    assert "proven by" in words
    for price in ("old purchase", "hired rent", "new purchase", "energy here 2027Q2"):
        assert price in words
    assert "2026-05" in words
    assert "misses the TTFT limit 7" in words


def test_a_plan_without_frontier_baseline_or_inputs_has_a_page() -> None:
    old = plan().model_copy(update={"inputs": None})
    words = ReportPage(report_page(old)).words
    assert "states no demand" in words
    assert "frontiers.csv" in words
    assert "Against the plan in force" not in words


def test_a_fleet_without_a_plan_says_what_is_short() -> None:
    short = Shortage(
        period="2027Q1",
        region="here",
        service=EVIL,
        request_class="all",
        unmet_requests_per_s=3.0,
        demand_requests_per_s=9.0,
        accelerators_short={"A": 2},
        reason="capacity",
    )
    outcome = Infeasible(
        fleet="f",
        shortages=(short,),
        rejections=plan().rejections,
        provenance=plan().provenance,
        solve=plan().solve,
    )
    given = GivenWay(requirement="power of here", change="500 kW more", least=True)
    way = StatedWayOut(gives=(given,), objective_usd=1234.0, bound_usd=1200.0)
    found = Conflict(requirements=("demand", "power of here"), minimal=True, ways_out=(way,), complete=True)
    page = ReportPage(infeasible_page(outcome.model_copy(update={"conflict": found})))
    for said in ("power of here", "500 kW more", "$1.234\u00a0k"):
        assert said in page.words
    assert "Without any one of these, the others can be met together." in page.words
    assert "not proven minimal" not in page.words
    late = found.model_copy(update={"minimal": False, "complete": False, "ways_out": ()})
    none_left = found.model_copy(update={"ways_out": ()})
    page = ReportPage(infeasible_page(outcome.model_copy(update={"conflict": late})))
    assert "Removing any one of these" not in page.words
    assert "not proven minimal" in page.words
    assert "No resolution was found within the time limit." in page.words
    assert "time limit ended the analysis early" in " ".join(page.words.split())
    page = ReportPage(infeasible_page(outcome.model_copy(update={"conflict": none_left})))
    assert "No resolution was found." in page.words
    power = short.model_copy(update={"power_short_kw": 12.5})
    assert "12.5 kW" in ReportPage(infeasible_page(outcome.model_copy(update={"shortages": (power,)}))).words
    page = ReportPage(infeasible_page(outcome))
    assert "Resolutions" not in page.words
    assert EVIL in page.words
    assert "2 A" in page.words
    assert "3 of 9" in page.words


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


def test_a_large_plan_has_a_page_of_the_allowed_size() -> None:
    many = plan()
    assert many.inputs is not None
    lines = many.inputs.cost_lines * 20
    slices = [f"part {n}" for n in range(30)]
    changed = {
        "placements": tuple(
            row.model_copy(update={"slice": each}) for each in slices for row in many.placements
        )
        * 2,
        "pools": tuple(row.model_copy(update={"slice": each}) for each in slices for row in many.pools),
        "inputs": many.inputs.model_copy(update={"cost_lines": lines}),
    }
    large = report_page(many.model_copy(update=changed))
    assert len(large.encode()) < LARGEST_BYTES
    words = ReportPage(large).words
    for said in ("placements.csv", "bill.csv", "The first 12 of 90 moments"):
        assert said in words


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


def test_limits_under_load_are_said_in_words() -> None:
    limits = (LatencyLimit(0.95, 500.0), LatencyLimit(None, 300.0))
    stated = _load_limits(replace(whole_fleet().services[0], traffic=Traffic(ttft=limits)))
    assert stated == ("TTFT 500 ms for 95 % of the requests", "TTFT 300 ms in the mean")
    whole = plan()
    assert whole.inputs is not None
    first, *others = whole.inputs.services
    services = (first.model_copy(update={"load_limits": stated}), *others)
    later = whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"services": services})})
    assert "TTFT 500 ms for 95 % of the requests" in ReportPage(report_page(later)).words
    assert "limited under load" not in ReportPage(text()).words


def test_uncertain_demand_has_its_costs_and_regrets() -> None:
    rows = (
        DemandScenarioCost(
            name="low", probability=0.3, usd=90_000.0, unmet_requests_per_s=0.0, best_usd=80_000.0,
            regret_usd=10_000.0,
        ),
        DemandScenarioCost(name="<i>high</i>", probability=0.7, usd=120_000.0, unmet_requests_per_s=2.5),
    )  # fmt: skip
    wrong = WrongForecast(planned_for="low", turns_out="<i>high</i>", usd=130_000.0, extra_usd=5_000.0)
    changed = {"demand_scenarios": rows, "wrong_forecasts": (wrong,), "demand_objective": "least-regret"}
    page = ReportPage(report_page(plan().model_copy(update=changed)))
    words = page.words.replace("\u00a0", " ")
    for said in ("<i>high</i>", "the largest regret", "$10 k", "$130 k", "2.5", "not computed"):
        assert said in words
    assert ("id", "uncertain") in page.attributes
    assert "Demand scenarios" not in ReportPage(text()).words


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


def test_a_printed_table_repeats_its_head() -> None:
    rows = re.findall(r"(<thead>)?<tr><th", text())
    assert rows
    assert all(rows)


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


def test_an_objective_before_cost_stands_in_the_headline() -> None:
    goal = StatedGoal(objective="energy", unit="kWh", value=1200.0, bound=1100.0, gap=0.0833)
    words = ReportPage(report_page(plan().model_copy(update={"goal": goal}))).words
    assert "First objective, energy" in words
    assert "1,200 kWh" in words


def test_requests_of_one_token_are_seen_by_their_first_one() -> None:
    """Their TPOT was `not known`, and their frontier was not drawn."""
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
