"""The page of the report: everything in it, nothing from outside, names kept as text."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.planner.whole_fleet import EVIL, FORMULA, PERIODS, whole_plan

from fleetplan.planner.frontier_points import FrontierPoint, frontier_table, read_frontier
from fleetplan.planner.plan import (
    Conflict,
    GivenWay,
    Goal,
    Infeasible,
    Plan,
    Rejections,
    Shortage,
    WayOut,
)
from fleetplan.planner.report.html.fleet_map import fleet_pictures
from fleetplan.planner.report.html.money_view import by_kind, by_service, changes
from fleetplan.planner.report.html.page import infeasible_page, report_page
from fleetplan.planner.report.html.purchases_view import timeline
from fleetplan.planner.report.html.service_views import capacities, latency_rows
from fleetplan.planner.report.html.svg import short
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


class Page(HTMLParser):
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
    page = Page(text())
    ids = [value for name, value in page.attributes if name == "id"]
    assert set(ids) >= SECTIONS | {"changes"}
    assert len(ids) == len(set(ids))
    links = {value[1:] for name, value in page.attributes if name == "href" and value.startswith("#")}
    assert {link for link in links if link in SECTIONS | {"changes"}} == SECTIONS | {"changes"}
    assert links <= set(ids)


def test_nothing_comes_from_outside_and_no_script_runs() -> None:
    page = Page(text())
    assert not {"script", "iframe", "object", "embed", "img", "form"} & set(page.tags)
    assert [value for name, value in page.attributes if name == "src"] == []
    targets = [value for name, value in page.attributes if name in {"href", "xlink:href", "action"}]
    assert all(value.startswith("#") or value == "data:," for value in targets)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "@import" not in text()
    assert not re.findall(r"url\((?!#)", text())
    assert len(text().encode()) < LARGEST_BYTES


def test_names_stay_text_in_tables_and_figures() -> None:
    page = Page(text())
    assert EVIL in page.words
    assert FORMULA in page.words
    assert "<script" not in text()
    # In a figure: mathematics is not read into a name.
    figures = "".join(re.findall(r"<svg.*?</svg>", text(), flags=re.DOTALL))
    assert "$y$" in figures


def test_headline_costs_and_sources_are_those_of_the_plan() -> None:
    words = " ".join(Page(text()).words.replace("\u00a0", " ").split())
    assert "$378.9 k total cost of ownership" in words
    assert "proven by" in words
    for price in ("old purchase", "hired rent", "new purchase", "energy here 2027Q2"):
        assert price in words
    assert "2026-05" in words
    assert "misses the TTFT limit 7" in words


def test_a_plan_without_frontier_baseline_or_inputs_has_a_page() -> None:
    old = plan().model_copy(update={"inputs": None})
    words = Page(report_page(old)).words
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
    way = WayOut(gives=(given,), objective_usd=1234.0, bound_usd=1200.0)
    found = Conflict(requirements=("demand", "power of here"), minimal=True, ways_out=(way,), complete=True)
    page = Page(infeasible_page(outcome.model_copy(update={"conflict": found})))
    for said in ("power of here", "500 kW more", "$1.234\u00a0k"):
        assert said in page.words
    page = Page(infeasible_page(outcome))
    assert "Ways out" not in page.words
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
    for each in (evil, formula):
        for position, planned in enumerate(each.planned):
            assert sum(values[position] for values in each.by_hardware.values()) >= planned * (1 - 1e-9)


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


def test_the_frontier_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_report(plan(), tmp_path, FRONTIER)
    assert read_frontier(tmp_path / "frontiers.csv") == FRONTIER
    assert len(frontier_table(FRONTIER)) == len(FRONTIER)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert read_frontier(tmp_path / "nothing.csv") == ()


def test_a_long_name_is_cut_in_figures_alone() -> None:
    assert short("x" * 36) == "x" * 36
    assert short("x" * 37) == "x" * 35 + "…"


def test_an_objective_before_cost_stands_in_the_headline() -> None:
    goal = Goal(objective="energy", unit="kWh", value=1200.0, bound=1100.0, gap=0.0833)
    words = Page(report_page(plan().model_copy(update={"goal": goal}))).words
    assert "Best at energy before cost" in words
    assert "1,200 kWh" in words
