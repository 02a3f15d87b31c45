"""The review page: changes, reasons, costs, risks and file hashes of a plan."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.command_line import run
from tests.planner.solving import solve
from tests.planner.whole_fleet import EVIL, whole_plan

from fleetplan.fleet.figures import money
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import CurrencyInput
from fleetplan.planner.questions.review import Review, review
from fleetplan.planner.report.html.review_page import review_page


def plan_for(demand: float, usd: float, part: str, headroom: float = 0.0) -> Plan:
    """One service on one kind of hardware."""
    question = fleet(
        services=[service("chat", demand, headroom=headroom)],
        hardware=[hardware(part, 1)],
        offers=[rent_offer(part, usd, maximum=int(demand * (1 + headroom)))],
    )
    plan = solve(question, [candidate("chat", part, 1.0)]).plan
    assert plan is not None
    return plan


def reviewed(folder: Path, old: Plan, new: Plan) -> Review:
    files = []
    for name, plan in (("old", old), ("new", new)):
        write_plan(plan, folder / name)
        files.append(folder / name / "plan.json")
    return review(*files)


def test_reasons_are_the_inputs_that_differ(tmp_path: Path) -> None:
    found = reviewed(tmp_path, plan_for(4.0, 1.0, "A"), plan_for(6.0, 1.5, "A", headroom=0.5))
    assert [(row.subject, row.name, row.before, row.after, row.unit) for row in found.reasons] == [
        ("peak demand", "chat in here", 4.0, 6.0, "requests/s"),
        ("service", "chat: headroom", 0.0, 0.5, ""),
        ("price", "A rent", 1.0, 1.5, "USD an accelerator-hour"),
    ]


def test_settings_of_the_command_are_reasons(tmp_path: Path) -> None:
    old = plan_for(4.0, 1.0, "A")
    stated = old.provenance.model_copy(update={"assignments": ("policy.unmet=forbid",)})
    found = reviewed(tmp_path, old, old.model_copy(update={"provenance": stated}))
    assert [(row.subject, row.name, row.before, row.after) for row in found.reasons] == [
        ("setting", "--set", "none", "policy.unmet=forbid")
    ]


def test_what_moves_is_told_by_service(tmp_path: Path) -> None:
    found = reviewed(tmp_path, plan_for(4.0, 1.0, "A"), plan_for(4.0, 1.0, "B"))
    moves = [
        (row.service, row.hardware, row.accelerators.before, row.accelerators.after) for row in found.moves
    ]
    assert moves == [("chat", "A", 4, 0), ("chat", "B", 0, 4)]
    assert reviewed(tmp_path, plan_for(4.0, 1.0, "A"), plan_for(4.0, 2.0, "A")).moves == ()


def test_risks_are_those_of_the_new_plan(tmp_path: Path) -> None:
    found = reviewed(tmp_path, plan_for(4.0, 1.0, "A"), plan_for(4.0, 1.0, "B"))
    assert [risk for risk in found.risks if "is binding" in risk]
    whole = whole_plan().plan
    assert whole is not None
    risks = reviewed(tmp_path, plan_for(4.0, 1.0, "A"), whole).risks
    owed = sum(row.usd for row in whole.commitments)
    assert f"{money(owed)} is owed after 2027Q3, independent of later decisions." in risks


STRESS = """\
case,service,region,period,unserved_requests_per_s,asked_requests_per_s,kept_least_usd,kept_most_usd
demand +10%,chat,here,now,0.4,4.4,1000,1200
demand +10%,chat,there,now,0.3,4.4,1000,1200
demand -10%,,,,0,,-500,-500
here lost,,,,,,,
"""


def test_what_a_stress_found_is_a_risk_and_its_file_is_signed(tmp_path: Path) -> None:
    plans = []
    for name in ("old", "new"):
        write_plan(plan_for(4.0, 1.0, "A"), tmp_path / name)
        plans.append(tmp_path / name / "plan.json")
    table = tmp_path / "stress.csv"
    table.write_text(STRESS, "utf-8")
    page = tmp_path / "review.html"
    assert run("diff", *plans, "--stress", table, "--out", page) == 0
    found = review(*plans, table)
    assert found.risks[:3] == (
        "Stress, demand +10%: unserved on the plan's hardware are 0.4 of 4.4 requests/s of chat in here now; "
        "0.3 of 4.4 requests/s of chat in there now.",
        "Stress: the time was too short to decide here lost.",
        "Stress: everything is served on the plan's hardware with demand -10%.",
    )
    assert found.hashes[-1].after == hashlib.sha256(STRESS.encode()).hexdigest()
    text = page.read_text("utf-8")
    assert found.risks[0].replace("'", "&#39;") in text
    assert found.hashes[-1].after in text
    # A stress of another plan is none of this one.
    for other in (STRESS.replace("chat", "code"), STRESS.replace("now", "later")):
        table.write_text(other, "utf-8")
        assert run("diff", *plans, "--stress", table) == 2


def test_reviews_are_in_the_currency_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_for(4.0, 1.0, "A")
    assert plan.inputs is not None
    euro = CurrencyInput(code="EUR", usd_per_unit=2.0, source="a bank", as_of="2026-11-01")
    inputs = plan.inputs.model_copy(update={"currency": euro})
    for name, each in (("old", plan_for(2.0, 1.0, "A")), ("new", plan)):
        write_plan(each.model_copy(update={"inputs": inputs}), tmp_path / name)
    files = [tmp_path / name / "plan.json" for name in ("old", "new")]
    page = tmp_path / "review.html"
    assert run("diff", *files, "--out", page) == 0
    # Four accelerators at 1 USD/h for 2190 h are 4380 EUR at 2 USD.
    assert "EUR 4.38 k" in capsys.readouterr().out
    assert "EUR 4.38 k" in page.read_text("utf-8")
    assert "$" not in page.read_text("utf-8")


def test_the_hashes_are_those_of_the_files(tmp_path: Path) -> None:
    found = reviewed(tmp_path, plan_for(4.0, 1.0, "A"), plan_for(4.0, 1.0, "B"))
    for name, stated in zip(("old", "new"), found.sha256, strict=True):
        assert hashlib.sha256((tmp_path / name / "plan.json").read_bytes()).hexdigest() == stated


def test_the_page_holds_every_part_and_keeps_names_as_text(tmp_path: Path) -> None:
    whole = whole_plan().plan
    assert whole is not None
    page = review_page(reviewed(tmp_path, plan_for(4.0, 1.0, "A"), whole))
    for section in ("what", "why", "cost", "risks", "inputs"):
        assert f'<section id="{section}">' in page
    assert EVIL not in page
    assert "<script" not in page


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reviewed(tmp_path, plan_for(4.0, 1.0, "A"), plan_for(6.0, 1.0, "A"))
    files = [str(tmp_path / name / "plan.json") for name in ("old", "new")]
    page = tmp_path / "review.html"
    assert run("diff", *files, "--out", str(page), "--exit-code") == 5
    assert "Why: inputs that differ" in page.read_text(encoding="utf-8")
    assert run("diff", *files, "--out", str(tmp_path)) == 2
    assert str(tmp_path) in capsys.readouterr().err
