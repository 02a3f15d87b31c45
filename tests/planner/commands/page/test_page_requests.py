"""Requests to the page of `plan serve`: plans, refusals, cancellation and saving."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.planner.commands.page.tiny import FLEET, TOKEN, Page, write_fleet

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.cli import main
from fleetplan.planner.commands.page import session as page_session
from fleetplan.planner.commands.page.application import application
from fleetplan.planner.commands.page.changes import scaled_figures
from fleetplan.planner.commands.page.messages import Settings
from fleetplan.planner.commands.page.saving import OWN_FORMS
from fleetplan.planner.commands.page.session import Session
from fleetplan.planner.export.launch.files import FORMATS
from fleetplan.scenarios.load import load_fleet


@contextmanager
def held(session: Session) -> Iterator[subprocess.Popen[bytes]]:
    """The process that plans, which does nothing meanwhile."""
    process = session._process
    assert process is not None
    process._process.send_signal(signal.SIGSTOP)
    try:
        yield process._process
    finally:
        process._process.send_signal(signal.SIGCONT)


def test_the_page_offers_what_the_file_has(page: Page) -> None:
    text = page.get().text
    for name in ("chat", "mail", "more", "book", "own", "H100-SXM", "H200-SXM", "growth"):
        assert name in text
    assert re.search(r'value="300"[^>]*services[^>]*slo[^>]*ttft_ms', text)
    # A scenario that is laid on the file fills the form.
    assert "50 requests/s" in text
    assert "70 requests/s" in page.get("?scenario=growth").text


def test_more_demand_costs_more_and_the_plan_says_what_was_changed(page: Page) -> None:
    first = page.solve()["plans"][-1]
    more = page.solve(demand={"chat": 2.0}, begin=first["number"])["plans"][-1]
    assert more["usd"] > first["usd"]
    assert more["title"] == "demand of chat +100 %"
    assert more["command"].endswith(" --set services.chat.demand=100.0")
    assert more["first_s"] is not None
    report = page.get(f"plans/{more['number']}/report.html")
    assert "tiny" in report.text
    assert "script-src" not in report.headers["content-security-policy"]


def test_a_solve_tells_how_it_goes(session: Session, page: Page) -> None:
    with held(session):
        assert page.post("solve", {"changes": {"demand": {"": 1.5}}}).status_code == 202
        # One at a time, for all who look at the page.
        busy = page.post("solve", {"changes": {}})
        assert busy.status_code == 409
        assert "already" in busy.json()["issues"][0]["text"]
        solving = page.state()["solving"]
        assert (solving["title"], solving["elapsed_s"] >= 0) == ("demand +50 %", True)
    assert page.ended()["plans"][-1]["title"] == "demand +50 %"


def test_a_mistake_is_the_product_s_own_with_the_nearest_match(page: Page) -> None:
    state = page.solve(other=["services.chta.slo.ttft_ms=200"])
    assert len(state["issues"]) == 1
    assert "did you mean 'chat'?" in state["issues"][0]["text"]
    state = page.solve(other=["services.chat.slo.ttft=200"])
    assert "ttft_ms" in state["issues"][0]["hint"]
    # The next plan is as if nothing had been.
    assert page.solve()["issues"] == []


def test_a_fleet_that_cannot_be_served_has_a_report(page: Page) -> None:
    made = page.solve(numbers=[[["offers", "more", "max_hosts"], 0]], off=["H200-SXM"], demand={"": 3.0})
    assert made["plans"][-1]["tco"] == "cannot be served"
    assert "Cannot be served" in page.get(f"plans/{made['plans'][-1]['number']}/report.html").text


def test_a_broken_file_is_shown_with_its_line(session: Session, page: Page) -> None:
    path = session.settings.path
    path.write_text(FLEET.replace("demand: 50", "demannd: 50"), encoding="utf-8")
    try:
        text = page.get().text
        assert f"{path}:10:" in text
        assert "demand" in text
        refused = page.post("solve", {"changes": {}})
        assert refused.status_code == 422
        assert refused.json()["issues"][0]["text"].startswith(f"{path}:10:")
    finally:
        path.write_text(FLEET, encoding="utf-8")


@pytest.mark.parametrize(
    "changes",
    [
        {"demand": {"chat": 0}},
        {"demand": {"chat": "much"}},
        {"numbers": [[["services", "chat", "slo", "ttft_ms"], -1]]},
        {"numbers": [[["name"], 1]]},
        {"numbers": [[[], 1]]},
        {"demand": {"nobody": 2}},
        {"prices": {"nothing": 2}},
        {"off": ["H1000"]},
        {"scenario": "decline"},
        {"unknown": 1},
        [],
    ],
)
def test_changes_of_what_is_not_there_are_refused_in_words(page: Page, changes: object) -> None:
    refused = page.post("solve", {"changes": changes})
    assert refused.status_code == 422
    assert refused.json()["issues"]


def test_what_is_no_json_is_refused(page: Page) -> None:
    path = f"/{TOKEN}/solve"
    assert (
        page.ask("POST", path, content="{", headers={"content-type": "application/json"}).status_code == 422
    )
    assert page.ask("POST", path, content="{}", headers={"content-type": "text/plain"}).status_code == 415
    assert page.ask("POST", path, json={"changes": {"other": ["x" * 2**20]}}).status_code == 413


def test_cancel_keeps_what_was_evaluated(session: Session, page: Page) -> None:
    made = len(page.solve()["plans"])
    with held(session) as process:
        assert page.post("solve", {"changes": {"demand": {"": 1.1}}}).status_code == 202
        assert page.post("stop", {"keep": False}).status_code == 202
        assert page.state()["solving"]["cancelled"]
    state = page.ended()
    assert state["reason"] == "cancelled"
    assert len(state["plans"]) == made
    assert process.poll() is None
    assert page.solve()["reason"] == ""


def test_cancel_ends_a_process_that_does_not_listen(
    session: Session, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_session, "CANCEL_S", 0.3)
    with held(session) as process:
        assert page.post("solve", {"changes": {"demand": {"": 1.1}}}).status_code == 202
        began = time.monotonic()
        page.post("stop", {"keep": False})
        assert page.ended()["reason"] == "cancelled"
        assert 0.3 <= time.monotonic() - began < 0.3 + 10
        assert process.poll() is not None
    assert page.solve()["reason"] == ""


def test_a_question_that_is_not_read_yet_holds_nobody_up(session: Session, page: Page) -> None:
    # More than a pipe takes, as a plan to begin with is: a process that starts reads it after some seconds.
    long = ["services.chat.headroom=0." + "1" * 900] * 300
    with held(session):
        answered = threading.Event()

        def ask() -> None:
            page.post("solve", {"changes": {"other": long}})
            answered.set()

        threading.Thread(target=ask, daemon=True).start()
        assert answered.wait(30)
        assert page.state()["solving"] is not None
        page.post("stop", {"keep": False})
    assert page.ended()["reason"] == "cancelled"


def test_the_page_survives_its_planner(session: Session, page: Page) -> None:
    made = page.solve()["plans"][-1]["number"]
    with held(session) as process:
        assert page.post("solve", {"changes": {"demand": {"": 1.2}}}).status_code == 202
        process.kill()
        assert "process ended" in page.ended()["reason"]
    assert page.solve()["plans"][-1]["number"] == made + 1


def as_asked(fleet: Fleet) -> Fleet:
    """The fleet without where it says what."""
    offers = tuple(replace(offer, price_source="") for offer in fleet.offers)
    return replace(fleet, offers=offers, scenarios=(), assignments=())


def test_a_saved_scenario_is_the_plan_s_fleet_and_comments_stay(tmp_path: Path) -> None:
    path = write_fleet(tmp_path)
    opened = Session(Settings(path, time_limit_s=20.0, gap_ratio=0.01, seed=1))
    try:
        page = Page(application(opened, TOKEN, "127.0.0.1"))
        changes = {
            "scenario": "growth",
            "demand": {"": 1.1, "mail": 2.0},
            "prices": {"book": 0.9},
            "numbers": [[["services", "chat", "slo", "ttft_ms"], 250], [["pools", "own", "hosts"], 2]],
            "other": ["services.mail.headroom=0.1"],
        }
        made = page.solve(**changes)["plans"][-1]
        address = f"plans/{made['number']}/scenario"
        assert page.post(address, {"name": "busy"}).status_code == 201
        text = path.read_text(encoding="utf-8")
        assert text.startswith(FLEET.rstrip("\n"))
        assert "# plan serve: scenario growth, demand +10 %" in text
        kept = opened.plan(made["number"])
        assert kept is not None
        asked = load_fleet(path, kept.scenarios, kept.assignments)
        saved = load_fleet(path, ["busy"])
        assert as_asked(saved) == as_asked(asked)
        assert saved.services[1].demand != load_fleet(path).services[1].demand

        taken = page.post(address, {"name": "growth"})
        assert taken.status_code == 422
        assert f"{path}:13:" in taken.json()["issues"][0]["text"]
        for name in ("", "two words", "a,b", "x" * 101):
            assert page.post(address, {"name": name}).status_code == 422
        plain = page.solve()["plans"][-1]["number"]
        nothing = page.post(f"plans/{plain}/scenario", {"name": "empty"})
        assert "nothing was changed" in nothing.json()["issues"][0]["text"]
        assert path.read_text(encoding="utf-8") == text
        assert "busy" in page.get().text
    finally:
        opened.close()


def test_a_plan_of_the_page_holds_as_that_of_the_command_line_does(
    session: Session, page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = page.solve()["plans"][-1]["number"]
    changes = {"demand": {"mail": 1.7}, "prices": {"": 1.2}, "off": ["H200-SXM"]}
    number = page.solve(begin=first, **changes)["plans"][-1]["number"]
    (tmp_path / "plan.json").write_bytes(page.get(f"plans/{number}/files/json").content)
    kept = session.plan(number)
    assert kept is not None
    options = [word for text in kept.assignments for word in ("--set", text)]
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path / "plan.json"), str(session.settings.path), *options])
    assert ended.value.code == 0
    assert "the plan holds" in capsys.readouterr().out


def test_two_plans_stand_side_by_side(page: Page) -> None:
    first = page.solve()["plans"][-1]["number"]
    more = page.solve(demand={"chat": 1.6}, begin=first)["plans"][-1]["number"]
    none = page.solve(numbers=[[["offers", "more", "max_hosts"], 0]], demand={"": 9.0})["plans"][-1]["number"]
    text = page.get(f"plans/{first}/beside/{more}").text
    assert f"plan {first}" in text
    assert "demand of chat +60 %" in text
    assert "by hardware" in text
    assert "lines differ" in text
    assert "Cannot be served" in page.get(f"plans/{first}/beside/{none}").text
    assert page.get(f"plans/{first}/beside/999").status_code == 404


def test_every_export_is_a_file_or_a_reason(page: Page) -> None:
    number = page.solve()["plans"][-1]["number"]
    forms = re.findall(r'<option value="([^"]+)">', page.get().text.partition('name="form"')[2])
    assert {*FORMATS, *OWN_FORMS} == set(forms)
    found = {}
    for form in forms:
        answer = page.get(f"plans/{number}/files/{form}")
        if answer.status_code == 200:
            assert answer.headers["content-disposition"].startswith(f'attachment; filename="plan-{number}-')
            found[form] = answer.content
        else:
            assert answer.status_code == 422
            assert answer.json()["issues"][0]["text"]
    assert json.loads(found["json"])["fleet"] == "tiny"
    assert found["workbook"][:2] == b"PK"
    assert "placements.csv" in zipfile.ZipFile(io.BytesIO(found["tables"])).namelist()
    assert found["report"].decode() == page.get(f"plans/{number}/report.html").text
    assert {"report", "json", "tables", "workbook", "purchases", "node-pools"} <= set(found)
    assert "did you mean 'launch'?" in page.get(f"plans/{number}/files/lanch").text


@pytest.mark.parametrize(
    ("demand", "ratio", "scaled"),
    [
        (10, 1.1, 11.0),
        ("3.2 M requests/day", 0.5, "1.6 M requests/day"),
        ("2 M users x 6 requests/day", 1.5, "3 M users x 6 requests/day"),
        ({"us": {"low": 1, "mid": 2, "high": "40 k output tokens/s"}}, 2.0,
         {"us": {"low": 2.0, "mid": 4.0, "high": "80 k output tokens/s"}}),
        (1e-9, 1.5, 1.5e-9),
        ("0.00001 M requests/day", 0.5, "0.000005 M requests/day"),
    ],
)  # fmt: skip
def test_demand_is_scaled_in_the_form_that_it_has(demand: object, ratio: float, scaled: object) -> None:
    assert scaled_figures(demand, ratio) == scaled
