"""The report page is complete, self-contained, and escapes names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.planner.report.report_pages import FRONTIER, ReportPage, plan, text
from tests.planner.whole_fleet import EVIL, FORMULA, whole_fleet

from fleetplan.fleet.figures import money
from fleetplan.fleet.inventory import LatencyLimit, Traffic
from fleetplan.planner.assemble.inputs import _load_limits
from fleetplan.planner.plan import (
    ConcessionRow,
    Conflict,
    DemandScenarioCost,
    Infeasible,
    Shortage,
    StatedGoal,
    StatedWayOut,
    WrongForecast,
)
from fleetplan.planner.report.html.page import infeasible_page, report_page

SECTIONS = {
    "map", "placements", "capacity", "purchases", "cost", "latency", "frontiers", "evidence", "limits",
    "rejections", "assumptions",
}  # fmt: skip

LARGEST_BYTES = 3_000_000


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
    given = ConcessionRow(requirement="power of here", change="500 kW more", least=True)
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


@pytest.mark.more
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


def test_one_of_something_is_singular() -> None:
    found = plan()
    one = found.model_copy(
        update={
            "placements": found.placements[:1],
            "inputs": found.inputs.model_copy(update={"cost_lines": found.inputs.cost_lines[:1]}),
        }
    )
    words = ReportPage(report_page(one, FRONTIER, None)).words
    assert "The bill: 1 line, each" in words
    assert "1 set of replicas" in words
    assert not re.search(r"\b1 (accelerators|lines|sets|regions)\b", words)


def test_a_printed_table_repeats_its_head() -> None:
    rows = re.findall(r"(<thead>)?<tr><th", text())
    assert rows
    assert all(rows)


def test_an_objective_before_cost_stands_in_the_headline() -> None:
    goal = StatedGoal(objective="energy", unit="kWh", value=1200.0, bound=1100.0, gap=0.0833)
    words = ReportPage(report_page(plan().model_copy(update={"goal": goal}))).words
    assert "First objective, energy" in words
    assert "1,200 kWh" in words
